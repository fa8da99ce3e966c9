// SPDX-License-Identifier: Apache-2.0
// Every option of training, set to something that is not its default, comes back from the printed INI.
#include <map>

#include "config/options.hpp"
#include "config/print.hpp"
#include "words.hpp"

namespace convoy {
namespace {

std::map<std::string, std::string> printed(const TrainConfig& config) {
  TrainConfig copy = config;
  std::map<std::string, std::string> values;
  for (const auto& group : options_of(copy)) {
    for (const auto& option : group.options) values[option.name] = option.print();
  }
  return values;
}

/// A value of the option that differs from what it prints now.
std::string another_value(const Option& option) {
  if (option.is_switch()) return option.print() == "true" ? "false" : "true";
  const std::map<std::string, std::string> special = {{"model", "resnet20"},
                                                      {"lr-step-epochs", "30.5,60,80"},
                                                      {"rgb-mean", "1,2.5,3"},
                                                      {"rgb-std", "0.1,50,60"},
                                                      {"hidden", "300,100"},
                                                      {"data", "/some/place"},
                                                      {"resume", "auto"},
                                                      {"balance", "classes"},
                                                      {"lr-mult", "*.bias=2,stem.bias=0.5@3"},
                                                      {"decay-mult", "*.bias=2,stem.bias=0.5"},
                                                      {"weights", "w.h5"},
                                                      {"num-layers", ""},
                                                      {"inject-fault", "nan@1@2"},
                                                      {"seed", "123456789012"},
                                                      {"save-every-minutes", "auto"},
                                                      {"layers", "fc = linear out=classes"}};
  if (const auto at = special.find(option.name); at != special.end()) return at->second;
  if (const auto bar = option.value.find('|'); bar != std::string::npos) {
    const std::string first = option.value.substr(0, bar), rest = option.value.substr(bar + 1);
    return option.print() == first ? rest.substr(0, rest.find('|')) : first;
  }
  for (const char* candidate : {"0.30000000000000004", "0.1", "3", "2", "some text"}) {
    try {
      const std::string before = option.print();
      option.set(candidate);
      if (option.print() != before) return candidate;
    } catch (const BadValue&) {
    }
  }
  ADD_FAILURE() << "no other value for --" << option.name;
  return "";
}

TEST(RoundTrip, every_option) {
  TrainConfig changed;
  std::map<std::string, std::string> given;
  for (const auto& group : options_of(changed)) {
    for (const auto& option : group.options) {
      if (option.name == "num-layers" || option.name == "model-file") continue;  // what they say stands in others
      const std::string before = option.print(), value = another_value(option);
      option.set(value);
      EXPECT_NE(option.print(), before) << option.name;
      given[option.name] = option.print();
    }
  }
  EXPECT_GT(given.size(), 90U);
  changed.phases = {{.number = 1, .rate = {0, 5, 0.1, 0.4}, .image_size = 128, .min_area = 0.25},
                    {.number = 3, .rate = {5, 1e3, 0.4, 1.0 / 3}, .global_batch = 64, .folder = "/else/where"}};

  // Not every combination of these is a legal run, so each goes through the file alone, and the text whole.
  const std::string text = to_ini(changed);
  for (const auto& [name, value] : given) {
    if (name.starts_with("dry-run") || name == "card" || name == "inject-fault" || name == "end-time" ||
        name == "take-over" || name == "restart" || name == "trace-steps") {
      EXPECT_EQ(text.find("\n" + name), std::string::npos) << "about one call, not about the run";
    } else {
      EXPECT_NE(text.find("\n" + name + " = " + value + "\n"), std::string::npos) << name << " = " << value;
    }
  }
  EXPECT_NE(text.find("[phase.3]\nepochs = 5:1000\nlr = 0.4:0.3333333333333333\n"), std::string::npos);
}

TEST(RoundTrip, whole_configurations) {
  const std::string lines[] = {
      "",
      "--batch-size 48 --global-batch 96 --sync gradients --sync-bn --lr 0.30000000000000004 --norm-epsilon 1e-7",
      "--global-batch 100 --replicas 5 --local-steps 4 --local-momentum average --reproducible",
      "--local-steps 8 --outer-optimizer nesterov --outer-lr 0.7 --outer-momentum 0.9",
      "--local-steps 8 --node-steps 2 --node-replicas 4 --on-spike rollback --spike-factor 3.5 --check-arithmetic 100",
      "--local-steps 8 --overlap-average --on-spike off --exclude-slow --slow-factor 1.25",
      "--lr-schedule multistep --lr-step-epochs 30,60.5 --lr-factor 0.25 --rgb-mean 1,2,3 --rgb-std 4,5,6.7",
      "--lr-schedule onecycle --onecycle-linear --label-smoothing 0.1 --resnet-version v2 --model resnet20 --seed 99",
      "--no-checkpoints --no-tensorboard --skip-eval --device cpu --precision bf16 --tuning measured --kernels a,b --recompute auto",
      "--class-weights 1,0.25,3 --balance classes --optimizer muon --muon-momentum 0.9 --initialiser orthogonal --initialiser-gain 1.5",
      "--class-weights auto",
      "--config f",
  };
  for (const auto& line : lines) {
    const std::string file = "[phase.1]\nepochs = 0:5\nlr = 0.1:0.4\n[phase.2]\nepochs = 5:90\nlr = 0.4:0\n";
    const TrainConfig config = train_config(line, file);
    const TrainConfig again = parse_ini(to_ini(config));
    EXPECT_EQ(printed(again), printed(config)) << line;
    EXPECT_EQ(to_ini(again), to_ini(config)) << line;
    EXPECT_EQ(again.batch_given || config.global_batch == 0, config.batch_given || config.global_batch == 0) << line;
    EXPECT_EQ(again.phases.size(), config.phases.size());
  }
}

TEST(RoundTrip, values_of_any_kind) {
  for (const std::string value :
       {"/sets/#1 dog", "# all", " blanks ", "two\nlines\r", "\"quoted\"", "'quoted'", "\"half", "back\\slash \\n #",
        "a = b", "[phase.1]", "; no comment", "tab\t#", "caf\xC3\xA9 \xE9 #"}) {
    const std::string name = value.substr(value.rfind('/') + 1);  // a name has no '/'
    const TrainConfig config = parse_train({"--data", value, "--name", name});
    EXPECT_EQ(config.data.folder, value);
    EXPECT_EQ(parse_ini(to_ini(config)).data.folder, value) << to_ini(config);
    EXPECT_EQ(parse_ini(to_ini_of_words(config)).output.name, name) << to_ini_of_words(config);
  }
  TrainConfig config =
      train_config("--config f", "[phase.1]\nepochs = 0:5\ndata = \"/else/#2\"  # where \"it\" lies\n");
  EXPECT_EQ(config.phases.at(0).folder, "/else/#2");
  EXPECT_EQ(parse_ini(to_ini(config)).phases.at(0).folder, "/else/#2") << to_ini(config);
  // A comment is one as before, and quotes within a value are the value's.
  EXPECT_EQ(train_config("--config f", "name = a # b\n").output.name, "a");
  EXPECT_EQ(train_config("--config f", "name = a \"b\"\n").output.name, "a \"b\"");
  EXPECT_EQ(train_config("--config f", "name = \"a\" b\n").output.name, "\"a\" b");
}

TEST(RoundTrip, a_batch_that_follows_from_the_global_one_is_not_printed) {
  const std::string text = to_ini(train_config("--global-batch 100"));
  EXPECT_NE(text.find("\nglobal-batch = 100\n"), std::string::npos);
  EXPECT_EQ(text.find("\nbatch-size = "), std::string::npos);
}

}  // namespace
}  // namespace convoy
