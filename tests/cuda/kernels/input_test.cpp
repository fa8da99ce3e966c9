// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/input.hpp"

#include <algorithm>

#include "backend/cuda/runtime/feed.hpp"
#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"
#include "support/reference/input.hpp"

namespace convoy::cuda {
namespace {

struct Case {
  Index channels, stored, height, width;
};

InputSpec stored_images(const Case& c, InputSpec::Normalise normalise) {
  InputSpec spec;
  spec.height = 11;
  spec.width = 9;
  spec.channels = c.channels;
  spec.normalise = normalise;
  spec.mean = {120, 110.5F, 99, 77};
  spec.std = {60, 55.5F, 64, 70};
  if (normalise == InputSpec::Normalise::mean_image) {
    for (const double value : formula_values("mean image", spec.height * spec.width * spec.channels, 50, 120))
      spec.mean_image.push_back(static_cast<float>(value));
  }
  return spec;
}

/// Crops that leave the image on every side, mirrored ones, erased boxes, both kinds of mixing.
std::vector<SampleSpec> every_kind() {
  std::vector<SampleSpec> samples(8);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    SampleSpec& sample = samples[i];
    sample.sample = static_cast<Index>(i * 5 % 7);
    sample.y = static_cast<std::int16_t>(static_cast<int>(i) - 3);
    sample.x = static_cast<std::int16_t>(4 - static_cast<int>(i));
    sample.flip = i % 2;
    sample.vertical_flip = i / 2 % 2;
  }
  samples[2].erase_y = 1;
  samples[2].erase_x = -2;
  samples[2].erase_h = 3;
  samples[2].erase_w = 5;
  samples[3].partner = 2;
  samples[3].lambda = 0.3F;
  samples[4].partner = 5;
  samples[4].lambda = 0.6F;
  samples[4].mix_y = 2;
  samples[4].mix_x = 1;
  samples[4].mix_h = 4;
  samples[4].mix_w = 3;
  samples[5].erase_y = 3;
  samples[5].erase_x = 2;
  samples[5].erase_h = 20;
  samples[5].erase_w = 20;
  return samples;
}

class InputKernel : public EveryStorage {};
CONVOY_EVERY_STORAGE(InputKernel);

TEST_P(InputKernel, MakesWhatTheReferenceMakes) {
  using Normalise = InputSpec::Normalise;
  in_all_orders([&] {
    for (const Case& c : {Case{3, 4, 8, 8}, {3, 8, 12, 7}, {1, 4, 11, 9}, {3, 3, 5, 23}, {4, 4, 17, 17}}) {
      for (int i = 0; i < 6; ++i) {
        const auto normalise = static_cast<Normalise>(i % 3);
        SCOPED_TRACE(testing::Message() << c.channels << " channels, mode " << i);
        Bench bench;
        InputSpec spec = stored_images(c, normalise);
        spec.padding = i < 3 ? Padding::constant : Padding::reflect;
        const std::vector<SampleSpec> samples = every_kind();
        const auto images = formula_images("images", 7 * spec.height * spec.width * spec.channels);
        const Tensor want = reference::make_input(spec, samples, images.data(), c.height, c.width);

        std::vector<SampleRow> rows;
        rows.reserve(samples.size());
        for (const SampleSpec& sample : samples) rows.push_back(row_of(sample));
        FeedNumbers feed;
        feed.images = bench.put(images);
        InputStage stage;
        stage.storage = storage();
        stage.normalise = static_cast<InputStage::Normalise>(normalise);
        stage.padding = spec.padding;
        stage.samples = static_cast<int>(samples.size());
        stage.source_height = static_cast<int>(spec.height);
        stage.source_width = static_cast<int>(spec.width);
        stage.height = static_cast<int>(c.height);
        stage.width = static_cast<int>(c.width);
        stage.channels = static_cast<int>(c.channels);
        stage.stored_channels = static_cast<int>(c.stored);
        std::copy(spec.mean.begin(), spec.mean.end(), stage.mean);
        std::copy(spec.std.begin(), spec.std.end(), stage.std);
        if (!spec.mean_image.empty()) stage.mean_image = bench.put(spec.mean_image);
        stage.rows = bench.put(rows);
        stage.feed = bench.put(std::vector<FeedNumbers>{feed});
        stage.moments = bench.empty<float>(2 * stage.samples);
        stage.x = bench.empty_elements(stage.samples * c.height * c.width * c.stored, storage());
        expect_success(make_input(stage, bench.stream()));
        expect_close(bench.tensor(stage.x, want, storage(), c.stored).values, want.values, epsilon() + 0x1p-21, "x");
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
