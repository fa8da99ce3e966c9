// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

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
                         "--local-steps 2 --outer-optimizer nesterov --outer-lr 1",
                         "--local-steps 2 --outer-optimizer nesterov --outer-momentum 0.7",
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

TEST(Hash, of_a_network_without_what_a_default_is_about) {
  EXPECT_EQ(hash_of("--model resnet50 --dropout 0"), hash_of("--model resnet50"));
  EXPECT_EQ(hash_of("--model lenet --norm-momentum 0.1 --norm-epsilon 1e-5"), hash_of("--model lenet"));
  EXPECT_NE(hash_of("--model alexnet --dropout 0"), hash_of("--model alexnet")) << "it has dropout";
}

/// Checkpoints hold the hash of the version that wrote them. A new option must not change these hashes. If a default
/// changes what is trained, update them here.
TEST(Hash, is_what_earlier_versions_wrote) {
  const std::pair<const char*, const char*> runs[] = {
      {"", "91cd954ff3cc1aac"},
      {"--batch-size 64 --global-batch 128", "4738dc0c35710139"},
      {"--global-batch 128", "edb5d6dd78796c8a"},
      {"--ema-decay 0.999", "f63e9ebcc9db8243"},
      {"--ema-decay 0.999 --ema-steps 8", "fb712bcc5d388f4b"},
      {"--lookahead-steps 5", "a6d1a9b620fe55b3"},
      {"--lookahead-steps 5 --lookahead-alpha 0.7 --lookahead-power 2", "33b7e189887c5739"},
      {"--local-steps 4 --outer-optimizer nesterov --outer-lr 1 --outer-momentum 0.7", "bc1f77ac8673111e"},
      {"--local-steps 4 --outer-optimizer nesterov", "4889c35d8a74a219"},
      {"--local-steps 4 --outer-optimizer nesterov --outer-lr 0.7 --outer-momentum 0.9", "4889c35d8a74a219"},
      {"--local-steps 4 --overlap-average", "c665cc10cc4199f6"},
      {"--local-steps 4 --node-steps 2", "f1f7e36dfc1c0144"},
      {"--local-steps 4 --node-steps 2 --node-replicas 2", "5b3f760fb64e7b09"},
      {"--on-spike warn --spike-factor 9", "91cd954ff3cc1aac"},
      {"--on-spike rollback", "48fb2ea2ed74ea77"},
      {"--on-spike rollback --spike-factor 9", "0fb1843328df593c"},
      {"--crop window --pad 4 --padding-mode reflect", "6fe3c6152e8d8f67"},
      {"--crop auto", "91cd954ff3cc1aac"},
      {"--crop window", "d040ec0e62686339"},
      {"--crop resized", "07ad075f78f44d1a"},
      {"--sync gradients --wire bf16", "b7724a3c07678db9"},
      {"--sync gradients --wire 2bit", "d4f4f639f83efce4"},
      {"--sync gradients --wire 2bit --wire-threshold 0.25", "60d1034b34c94f32"},
      {"--sync gradients --wire topk", "a271c1fe9d38d2b1"},
      {"--sync gradients --wire powersgd --wire-rank 4", "04be092d8635a74f"},
      {"--optimizer nesterov", "ea330f00dd6b084b"},
      {"--optimizer sgd --momentum 0", "3f8b0f4053d5320d"},
      {"--optimizer adamw", "ba936aecffd3fe41"},
      {"--optimizer adamw --beta2 0.99", "f1f56420e116018d"},
      {"--optimizer muon --no-muon-match-rms", "a346ff7a7486f268"},
      {"--lr-schedule plateau", "a75f51677462c9e4"},
      {"--lr-schedule plateau --lr-patience 3", "70d9c3ce1d857ac8"},
      {"--freeze backbone", "f82224038270e86c"},
      {"--balance classes", "6830be4c6144cb71"},
      {"--class-weights auto", "42180b34de74bd33"},
      {"--lr-mult conv1=0.5", "60584e183ff991a7"},
      {"--decay-mult conv1=0.5", "c755694778066b9d"},
      {"--zero-init-residual", "0f85e29db551a992"},
      {"--model mobilenet_v3_small --norm-epsilon 1e-5 --norm-momentum 0.1", "4ab19dfd1f803382"},
      {"--model mobilenet_v3_small", "1d75b1508a641fc1"},
      {"--model mobilenet_v3_small --width-mult 1", "1d75b1508a641fc1"},
      {"--model mobilenet_v3_small --width-mult 0.5", "79a827d36ef8b0f7"},
      {"--pca-noise 0.1 --pca-noise-source data", "6b118ba2f5527b07"},
  };
  for (const auto& [line, hash] : runs) EXPECT_EQ(hash_of(line), hash) << line;
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
