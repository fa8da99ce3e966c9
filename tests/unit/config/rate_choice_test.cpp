// SPDX-License-Identifier: Apache-2.0
#include "config/rate_choice.hpp"

#include "config/print.hpp"
#include "words.hpp"

namespace convoy {
namespace {

const ScheduleSpec& schedule(const TrainConfig& config) { return config.optimiser.schedule; }

TEST(RateChoice, fits_optimiser_and_length) {
  struct Case {
    const char* line;
    double rate;
    Scaling scaling;
    double warmup;
  };
  const Case cases[] = {
      {"", 0.1, Scaling::linear, 5},
      {"--epochs 20", 0.1, Scaling::linear, 2},
      {"--epochs 3 --optimizer nesterov", 0.1, Scaling::linear, 0.3},
      {"--optimizer rmsprop", 0.016, Scaling::linear, 5},
      {"--optimizer adam", 1e-3, Scaling::none, 5},
      {"--optimizer lamb", 5e-3, Scaling::none, 5},
      {"--optimizer adam --lr-scaling sqrt", 1e-3, Scaling::sqrt, 5},
      {"--lr-scaling none --warmup-epochs 0", 0.1, Scaling::none, 0},
      {"--lr-schedule onecycle", 0.1, Scaling::linear, 0},
      {"--lr 0.1", 0.1, Scaling::none, 0},
      {"--lr 0.4 --epochs 20 --lr-scaling linear --warmup-epochs 3", 0.4, Scaling::linear, 3},
  };
  for (const Case& one : cases) {
    const TrainConfig config = train_config(one.line);
    EXPECT_DOUBLE_EQ(config.optimiser.rate, one.rate) << one.line;
    EXPECT_EQ(config.optimiser.scaling, one.scaling) << one.line;
    EXPECT_DOUBLE_EQ(schedule(config).warmup_epochs, one.warmup) << one.line;
    EXPECT_EQ(explain_rate(config).empty(), config.said.count("lr") > 0) << one.line;
  }
}

TEST(RateChoice, leaves_phases_and_files_alone) {
  const TrainConfig phases = train_config("--config f", "[phase.1]\nepochs = 0:9\nlr = 0.1:0.4\n");
  EXPECT_EQ(phases.optimiser.scaling, Scaling::none);
  EXPECT_EQ(schedule(phases).warmup_epochs, 0);
  const TrainConfig file = train_config("--config f", "lr = 0.2\n");
  EXPECT_EQ(file.optimiser.scaling, Scaling::none);
  EXPECT_EQ(schedule(file).warmup_epochs, 0);
}

/// What a dry run prints is a configuration that gives the same rate again; a run's own says only what was said.
TEST(RateChoice, is_printed) {
  const TrainConfig config = train_config("--epochs 20");
  const TrainConfig again = train_config("--config f --epochs 20", to_ini(config));
  EXPECT_EQ(to_ini(again), to_ini(config));
  EXPECT_NE(to_ini_of_words(config).find("# lr = 0.1\n"), std::string::npos);
  EXPECT_NE(to_ini_of_words(config).find("# warmup-epochs = 2\n"), std::string::npos);
}

TEST(RateChoice, a_run_that_goes_on_keeps_its_norms) {
  const TrainConfig older = parse_ini("synthetic = true\nmodel = googlenet\nnorm-epsilon = 1e-05\n");
  const auto kept = [&](const std::string& line) {
    TrainConfig config = train_config(line);
    keep_norms(config, older);
    return norms_of(config.model).epsilon;
  };
  EXPECT_EQ(kept("--model googlenet"), 1e-5F);
  EXPECT_EQ(kept("--model googlenet --norm-epsilon 0.002"), 0.002F) << "what is given counts";
  EXPECT_EQ(kept("--model inception_v3"), 1e-3F) << "another network";
}

TEST(RateChoice, a_run_that_goes_on_keeps_its_rate) {
  const TrainConfig older = parse_ini("synthetic = true\nepochs = 20\n");  // 0.1 for any batch, no warm-up
  const auto continued = [&](const std::string& line, const TrainConfig& stored) {
    TrainConfig config = train_config(line);
    keep_rate(config, stored);
    return config;
  };
  const TrainConfig same = continued("--epochs 20", older);
  EXPECT_EQ(same.optimiser.scaling, Scaling::none);
  EXPECT_EQ(schedule(same).warmup_epochs, 0);
  const TrainConfig said = continued("--epochs 20 --lr 0.3 --warmup-epochs 1", older);
  EXPECT_EQ(said.optimiser.rate, 0.3);
  EXPECT_EQ(schedule(said).warmup_epochs, 1);
  EXPECT_EQ(continued("--optimizer adam", older).optimiser.rate, 1e-3) << "another optimiser";
  const TrainConfig longer = continued("--epochs 80", train_config("--epochs 20"));
  EXPECT_EQ(longer.optimiser.scaling, Scaling::linear);
  EXPECT_EQ(schedule(longer).warmup_epochs, 2);
  const TrainConfig cycle = continued("--epochs 20 --lr-schedule onecycle", train_config("--epochs 20"));
  EXPECT_EQ(schedule(cycle).warmup_epochs, 0) << "which has a rise of its own";
  const TrainConfig shorter = continued("--epochs 2", train_config("--epochs 20"));
  EXPECT_DOUBLE_EQ(schedule(shorter).warmup_epochs, 0.2) << "as the run has no room for two epochs of it";
}

OuterSpec outer_of(const std::string& line) { return train_config("--local-steps 8 " + line).sync.outer; }

TEST(OuterStep, has_the_values_of_its_rule) {
  const OuterSpec slow = outer_of("--outer-optimizer momentum"), diloco = outer_of("--outer-optimizer nesterov");
  EXPECT_EQ(slow.rate, 1);
  EXPECT_EQ(slow.momentum, 0.5);
  EXPECT_EQ(diloco.rate, 0.7);
  EXPECT_EQ(diloco.momentum, 0.9);
  const OuterSpec said = outer_of("--outer-optimizer nesterov --slowmo-momentum 0.8 --outer-lr 1");
  EXPECT_EQ(said.rate, 1);
  EXPECT_EQ(said.momentum, 0.8);
}

TEST(OuterStep, of_a_run_that_goes_on_stays) {
  const TrainConfig older =
      parse_ini("synthetic = true\nlocal-steps = 8\nouter-optimizer = momentum\nouter-momentum = 0.7\n");
  const auto continued = [&](const std::string& line) {
    TrainConfig config = train_config("--local-steps 8 " + line);
    keep_rate(config, older);
    return config.sync.outer.momentum;
  };
  EXPECT_EQ(continued("--outer-optimizer momentum"), 0.7);
  EXPECT_EQ(continued("--outer-optimizer momentum --lr 0.1"), 0.7);
  EXPECT_EQ(continued("--outer-optimizer momentum --outer-momentum 0.6"), 0.6);
  EXPECT_EQ(continued("--outer-optimizer nesterov"), 0.9) << "another rule";
}

TEST(RateChoice, a_batch_beside_a_files_rate_is_remarked) {
  EXPECT_EQ(train_config("--config f --global-batch 1024", "lr = 0.1\nbatch-size = 32\n").remarks.size(), 1U);
  EXPECT_TRUE(train_config("--config f --global-batch 1024 --lr 0.4", "lr = 0.1\n").remarks.empty());
  EXPECT_TRUE(train_config("--config f --global-batch 1024", "lr = 0.1\nlr-scaling = linear\n").remarks.empty());
  EXPECT_TRUE(train_config("--config f", "lr = 0.1\nbatch-size = 32\n").remarks.empty());
}

TEST(CommandLine, takes_the_place_of_what_a_file_says_in_another_way) {
  const TrainConfig batch = train_config("--config f --global-batch 100", "batch-size = 32\n");
  EXPECT_EQ(batch.global_batch, 100);
  EXPECT_FALSE(batch.batch_given);
  EXPECT_EQ(train_config("--config f -b 32", "global-batch = 100\n").global_batch, 0);
  EXPECT_EQ(train_config("--config f --grad-accum-steps 2", "replicas = 3\n").sync.replicas, 0);
  EXPECT_NE(train_error("--config f", "batch-size = 32\nglobal-batch = 100\n"), "");
}

}  // namespace
}  // namespace convoy
