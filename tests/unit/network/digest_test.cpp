// SPDX-License-Identifier: Apache-2.0
// Checkpoints store the plan's digest: a network that gets another one can't resume from those it wrote before.
#include <gtest/gtest.h>

#include <vector>

#include "network/models.hpp"
#include "network/plan.hpp"

namespace convoy {
namespace {

struct Pinned {
  GraphSpec spec;
  std::uint64_t digest;  ///< computed by commit 8c0cb7f
};

TEST(Digest, OfEveryFamilyIsThatOfEarlierCheckpoints) {
  const std::vector<Pinned> all = {
      {{.model = "mlp", .classes = 10, .channels = 1, .image_size = 28}, 0x25bf5afeda0e0c61},
      {{.model = "lenet", .classes = 10, .channels = 1, .image_size = 28}, 0x37a2faa80ef1ce3c},
      {{.model = "lenet", .classes = 10, .channels = 1, .image_size = 28, .options = {{"pooling", "average"}}},
       0x1a7315d09d0e96d8},
      {{.model = "alexnet"}, 0xef4ca0a17bfd4c68},
      {{.model = "alexnet", .options = {{"variant", "ray"}}}, 0xe380ced2ec4d6b56},
      {{.model = "alexnet", .options = {{"variant", "owt"}}}, 0x6c259ba8cf5a9224},
      {{.model = "resnet50"}, 0xc55b5ba632009c52},
      {{.model = "resnet18", .options = {{"stem", "small"}}}, 0x9fec5f809d64f648},
      {{.model = "resnet20", .classes = 10, .image_size = 32}, 0x12c82d947759817e},
      {{.model = "resnet164", .classes = 10, .image_size = 32}, 0x1ab970af0050a618},
      {{.model = "resnet32",
        .classes = 100,
        .image_size = 32,
        .options = {{"resnet-version", "v2"}},
        .activation = "leaky_relu"},
       0x2976e5d8815f1442}};
  for (const Pinned& pinned : all) {
    const Graph graph = build_graph(pinned.spec);
    EXPECT_EQ(make_plan(graph, {}).digest, pinned.digest) << graph.model;
  }
}

}  // namespace
}  // namespace convoy
