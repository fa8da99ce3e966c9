// SPDX-License-Identifier: Apache-2.0
// Batches whose images are made by the loader's threads.
#include <gtest/gtest.h>

#include <cstring>

#include "data/evaluation.hpp"
#include "data/image_maker.hpp"
#include "data/loader.hpp"

namespace convoy {
namespace {

const SyntheticSpec images{.samples = 61, .height = 20, .width = 28, .classes = 4};

LoaderSpec spec_of(int replicas, Index batch) {
  LoaderSpec spec;
  spec.order = {.samples = images.samples, .replicas = replicas, .batch = batch, .seed = 5};
  spec.augment = {.source_height = 20,
                  .source_width = 28,
                  .height = 12,
                  .width = 12,
                  .crop = Crop::resized,
                  .flip = Flip::random,
                  .colour = {.brightness = 0.4F, .saturation = 0.4F, .lighting = 0.1F},
                  .policy = {.policy = Policy::rand},
                  .mixing = {.mixup = 0.2F, .cutmix = 1},
                  .seed = 5};
  spec.replica_count = replicas;
  spec.resident = -1;
  return spec;
}

TEST(MadeImages, AreTheMakersWhateverTheNumberOfWorkers) {
  const Dataset set(images, synthetic_info(images, "train"), {0, images.samples});
  for (const int workers : {0, 1, 3}) {
    LoaderSpec spec = spec_of(2, 8);
    spec.workers = workers;
    ASSERT_FALSE(can_be_resident(set, spec.augment));
    Loader loader(set, spec);
    ImageMaker maker(spec.augment);
    for (Index epoch = 0; epoch < 2; ++epoch) {
      const EpochOrder& order = loader.begin_epoch(epoch, epoch);
      for (Index step = epoch; step < order.steps(); ++step) {
        for (const int r : {0, 1}) {
          if (order.count(step, r) == 0) continue;
          const Batch batch = loader.next(step, r);
          std::vector<SampleSpec> mixed(batch.samples.begin(), batch.samples.end());
          mix_batch(spec.augment, epoch, mixed);
          for (Index i = 0; i < batch.valid_count; ++i) {
            const SampleSpec& s = batch.samples[static_cast<std::size_t>(i)];
            const Index sample = order.sample(step, r, i), position = order.position(step, r, i);
            std::vector<std::uint8_t> wanted(12 * 12 * 3);
            ASSERT_TRUE(
                maker.make({set.images() + sample * 20 * 28 * 3, 20 * 28 * 3}, epoch, position, wanted.data()).ok());
            ASSERT_EQ(std::memcmp(batch.images + i * 12 * 12 * 3, wanted.data(), wanted.size()), 0);
            ASSERT_EQ(s.sample, i);
            ASSERT_EQ(s.position, position);
            ASSERT_EQ(s.a, set.label(sample));
            ASSERT_EQ(s.partner, mixed[static_cast<std::size_t>(i)].partner);
            ASSERT_EQ(s.lambda, mixed[static_cast<std::size_t>(i)].lambda);
            ASSERT_EQ(s.x, 0);
          }
        }
      }
    }
  }
}

TEST(MadeImages, EvaluationResizesAndTakesTheCentre) {
  const Dataset set(images, synthetic_info(images, "train"), {3, 50});
  AugmentSpec augment = spec_of(1, 1).augment;
  augment.resize = 14;
  ImageMaker maker([&] {
    AugmentSpec centred = augment;
    centred.train = false;
    return centred;
  }());
  for (const int workers : {0, 2}) {
    EvaluationBatches batches(set, {.augment = augment, .batch = 16, .workers = workers});
    for (int round = 0; round < 2; ++round) {
      Index seen = 0;
      for (Index n = 0; n < batches.count(); ++n) {
        const Batch batch = batches.batch(n);
        ASSERT_EQ(batch.samples.size(), 16U);
        for (Index row = 0; row < 16; ++row) {
          const SampleSpec& s = batch.samples[static_cast<std::size_t>(row)];
          const Index sample = 3 + seen + std::min(row, batch.valid_count - 1);
          ASSERT_EQ(s.a, set.label(sample));
          ASSERT_EQ(s.partner, -1);
          ASSERT_EQ(s.flip, 0);
          std::vector<std::uint8_t> wanted(12 * 12 * 3);
          ASSERT_TRUE(maker.make({set.images() + (sample - 3) * 20 * 28 * 3, 20 * 28 * 3}, 0, 0, wanted.data()).ok());
          ASSERT_EQ(std::memcmp(batch.images + s.sample * 12 * 12 * 3, wanted.data(), wanted.size()), 0);
        }
        seen += batch.valid_count;
      }
      ASSERT_EQ(seen, 50);
    }
  }
}

}  // namespace
}  // namespace convoy
