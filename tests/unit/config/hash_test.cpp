// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "words.hpp"

namespace convoy {
namespace {

std::string hash_of(const std::string& line) { return configuration_hash(train_config(line)); }

TEST(Hash, changes_with_what_decides_bits) {
  const char* lines[] = {"",
                         "--seed 2",
                         "--batch-size 64",
                         "--global-batch 64",
                         "--lr 0.2",
                         "--momentum 0.8",
                         "--weight-decay 1e-3",
                         "--optimizer nesterov",
                         "--optimizer adamw",
                         "--optimizer adamw --beta2 0.99",
                         "--epochs 91",
                         "--warmup-epochs 3",
                         "--lr-scaling none",
                         "--model resnet34",
                         "--resnet-version v1",
                         "--label-smoothing 0.1",
                         "--zero-init-residual",
                         "--sync gradients",
                         "--local-steps 2",
                         "--local-steps 2 --local-sgd-start 10",
                         "--local-momentum reset",
                         "--local-steps 2 --outer-optimizer momentum",
                         "--local-steps 2 --outer-optimizer nesterov",
                         "--local-steps 2 --outer-optimizer nesterov --outer-lr 0.7",
                         "--local-steps 2 --outer-optimizer nesterov --outer-momentum 0.9",
                         "--local-steps 4 --node-steps 2",
                         "--local-steps 4 --node-steps 2 --node-replicas 2",
                         "--local-steps 4 --overlap-average",
                         "--on-spike rollback",
                         "--on-spike rollback --spike-factor 9",
                         "--reproducible",
                         "--ema-decay 0.999",
                         "--ema-decay 0.999 --ema-steps 8",
                         "--fusion-threshold-mb 4",
                         "--shuffle global",
                         "--epoch-mode resample",
                         "--train-fraction 0.5",
                         "--class-weights auto",
                         "--class-weights 1,2",
                         "--balance classes",
                         "--initialiser orthogonal",
                         "--optimizer muon",
                         "--optimizer muon --no-muon-match-rms",
                         "--pad 4",
                         "--flip random",
                         "--cutout 8",
                         "--crop window",
                         "--crop resized",
                         "--augment imagenet",
                         "--augment mxnet",
                         "--augment trivial",
                         "--augment imagenet --min-random-area 0.25",
                         "--resize 256",
                         "--mixup 0.2",
                         "--repeated-augmentation 4",
                         "--normalise per-image",
                         "--image-size 64",
                         "--synthetic-samples 999",
                         "--threads 2",
                         "--precision bf16",
                         "--tuning measured",
                         "--kernels no-winograd"};
  std::set<std::string> seen;
  for (const char* line : lines) EXPECT_TRUE(seen.insert(hash_of(line)).second) << line;
}

TEST(Hash, ignores_everything_else) {
  for (const char* line : {"--output-dir x",       "--name y",
                           "--print-freq 3",       "--no-tensorboard",
                           "--monitor 5",          "--quiet",
                           "--max-steps 10",       "--run-epochs 2",
                           "--save-every 3",       "--save-every-steps 7",
                           "--keep-checkpoints 9", "--resume auto",
                           "--weights w.h5",       "--checkpoint-dir c",
                           "--val-interval 2",     "--skip-eval",
                           "--eval-batch-size 8",  "--workers 4",
                           "--prefetch 9",         "--stall-abort-seconds 99",
                           "--replicas 4",         "--grad-accum-steps 2",
                           "--check-weights 5",    "--no-checkpoints",
                           "--check-arithmetic 5", "--exclude-slow",
                           "--slow-factor 2",      "--on-spike off",
                           "--recompute all",      "--recompute auto",
                           "--target-accuracy 70", "--dry-run",
                           "--dry-run-seconds 3",  "--inject-fault throw@0@3"}) {
    EXPECT_EQ(hash_of(line), hash_of("")) << line;
  }
}

TEST(Hash, one_batch_said_in_two_ways) {
  EXPECT_EQ(hash_of("--batch-size 64 --global-batch 128"), hash_of("--batch-size 64"));
}

TEST(Hash, covers_phases) {
  const auto with = [](const std::string& rate) {
    return configuration_hash(train_config("--config f", "[phase.1]\nepochs = 0:90\nlr = " + rate + "\n"));
  };
  EXPECT_NE(with("0.1:0.4"), with("0.1:0.5"));
  EXPECT_NE(with("0.1"), with("0.1\nimage-size = 128"));
  EXPECT_NE(with("0.1"), with("0.1\nmin-random-area = 0.5"));
  EXPECT_EQ(with("0.1"), with("0.1:0.1"));
}

TEST(Changes, AreToldByPartAndWithoutWhatOnlyRounds) {
  const std::string then = to_ini(train_config("--lr 0.1 --threads 1 --data-cache ram --seed 1"));
  const auto changed = [&](const std::string& line) { return changed_parts(then, train_config(line)); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(changed("--lr 0.1 --threads 3 --backend mpi --quiet --max-steps 3 --workers 7"), Texts{});
  EXPECT_EQ(changed("--lr 0.2 --batch-size 64"),
            Texts{"optimiser changed: batch-size 128 then, 64 now; lr 0.1 then, 0.2 now"});
  EXPECT_EQ(changed("--lr 0.1 --seed 2 --flip random --model resnet8 --precision bf16"),
            (Texts{"data changed: seed 1 then, 2 now", "input changed: flip none then, random now",
                   "model changed: model resnet50 then, resnet8 now; precision fp32 then, bf16 now"}));
}

TEST(Changes, TellPhasesAndWhatOnlyRounds) {
  const std::string phases = "[phase.1]\nepochs = 0:9\nlr = 0.1:0.4\n";
  const std::string then = to_ini(train_config("--config f --threads 1", phases));
  using Texts = std::vector<std::string>;
  EXPECT_EQ(changed_parts(then, train_config("--config f --threads 3", phases)), Texts{});
  EXPECT_EQ(rounding_options(then, train_config("--config f --threads 3", phases)), "threads 1 then, 3 now");
  EXPECT_EQ(rounding_options(then, train_config("--config f --seed 2 --threads 1", phases)), "");
  EXPECT_EQ(
      changed_parts(then, train_config("--config f", "[phase.1]\nepochs = 0:9\nlr = 0.1:0.5\n")),
      Texts{"phases changed: [phase.1] epochs = 0:9, lr = 0.1:0.4 then, [phase.1] epochs = 0:9, lr = 0.1:0.5 now"});
}

/// What is left out of a compressed gradient is more than rounding, and so are its settings.
TEST(Changes, TellWhatOnlyRoundsByOption) {
  const std::string usual = "--threads 1 --sync gradients", then = to_ini(train_config(usual));
  const auto rounds = [&](const std::string& more) { return rounding_options(then, train_config(usual + more)); };
  const auto changed = [&](const std::string& more) { return changed_parts(then, train_config(usual + more)); };
  using Texts = std::vector<std::string>;
  for (const char* more : {" --cuda-aware", " --reproducible", " --fusion-threshold-mb 3", " --backend mpi",
                           " --wire bf16", " --wire fp16", " --tuning measured", " --kernels x", " --device cpu"}) {
    EXPECT_NE(rounds(more), "") << more;
    EXPECT_EQ(changed(more), Texts{}) << more;
  }
  EXPECT_EQ(rounds(" --cuda-aware"), "cuda-aware false then, true now");
  for (const char* wire : {"2bit", "topk", "powersgd"}) {
    const std::string more = std::string(" --wire ") + wire;
    EXPECT_EQ(rounds(more), "");
    EXPECT_EQ(changed(more), Texts{std::string("optimiser changed: wire fp32 then, ") + wire + " now"});
    const std::string before = to_ini(train_config(usual + more));
    EXPECT_EQ(changed_parts(before, train_config(usual)),
              Texts{std::string("optimiser changed: wire ") + wire + " then, fp32 now"});
  }
  const std::string compressed = to_ini(train_config(usual + " --wire powersgd --wire-rank 2"));
  EXPECT_EQ(changed_parts(compressed, train_config(usual + " --wire powersgd --wire-rank 4")),
            Texts{"optimiser changed: wire-rank 2 then, 4 now"});
}

TEST(Hash, is_the_same_in_every_run) { EXPECT_EQ(hash_of("--seed 5").size(), 16U); }

}  // namespace
}  // namespace convoy
