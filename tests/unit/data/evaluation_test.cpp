// SPDX-License-Identifier: Apache-2.0
#include "data/evaluation.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "core/errors.hpp"

namespace convoy {
namespace {

const SyntheticSpec images{.samples = 203, .height = 6, .width = 7, .classes = 5};
const AugmentSpec centre{.source_height = 6, .source_width = 7, .height = 4, .width = 4, .crop = Crop::window};

/// resident, and DatasetInfo::labels_as.
using Way = std::tuple<int, std::vector<std::int32_t>>;
class EvaluationBatchesTest : public testing::TestWithParam<Way> {};

TEST_P(EvaluationBatchesTest, AnyRankCountAndBatchCountsEverySampleThatHasAClassOnce) {
  const auto& [resident, labels_as] = GetParam();
  DatasetInfo info = synthetic_info(images, "train");
  const Dataset whole(images, info, {0, images.samples});
  info.labels_as = labels_as;
  const auto label = [&](Index sample) { return info.label_of(whole.label(sample)); };
  std::vector<Index> known;  // samples that are to be counted, in their order
  for (Index i = 0; i < images.samples; ++i)
    if (label(i) >= 0) known.push_back(i);
  const auto bytes = static_cast<std::size_t>(info.image_bytes());
  for (const int ranks : {1, 2, 3, 5, 8, 250}) {
    for (const Index batch_size : {1, 7, 64, 300}) {
      SCOPED_TRACE(fmt::format("{} ranks, batch {}", ranks, batch_size));
      Index counted = 0, dealt = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range share = EvaluationBatches::share(images.samples, ranks, rank);
        ASSERT_EQ(share.begin, dealt) << "shares overlap or leave a gap";
        dealt += share.count;
        ASSERT_LE(share.count, images.samples / ranks + 1);
        const Dataset set(images, info, share);
        EvaluationBatches batches(set, {.augment = centre, .batch = batch_size, .resident = resident});
        for (Index n = 0; n < batches.count(); ++n) {
          const Batch batch = batches.batch(n);
          ASSERT_EQ(static_cast<Index>(batch.samples.size()), batch_size);
          ASSERT_GT(batch.valid_count, 0);
          ASSERT_EQ(batch.images == nullptr, resident >= 0);
          ASSERT_EQ(batch.resident, resident);
          const std::uint8_t* const rows = resident >= 0 ? set.images() : batch.images;
          for (Index row = 0; row < batch_size; ++row) {
            const SampleSpec& s = batch.samples[static_cast<std::size_t>(row)];
            const Index sample = known[static_cast<std::size_t>(counted + std::min(row, batch.valid_count - 1))];
            ASSERT_EQ(s.a, label(sample));
            ASSERT_EQ(s.b, label(sample));
            ASSERT_EQ(std::memcmp(rows + static_cast<std::size_t>(s.sample) * bytes,
                                  whole.images() + static_cast<std::size_t>(sample) * bytes, bytes),
                      0);
            ASSERT_EQ(s.y, 1);
            ASSERT_EQ(s.x, 2);
            ASSERT_EQ(s.flip, 0);
          }
          counted += batch.valid_count;
        }
      }
      ASSERT_EQ(counted, static_cast<Index>(known.size()));
      ASSERT_EQ(dealt, images.samples);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, EvaluationBatchesTest,
                         testing::Values(Way{-1, {}}, Way{1, {}}, Way{-1, {2, -1, 0, -1, 1}},
                                         Way{1, {2, -1, 0, -1, 1}}));

}  // namespace
}  // namespace convoy
