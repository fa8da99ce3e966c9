// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/options.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

/// `--network resnet --num-layers 50`, as in MXNet. Stands after the network in the table, so it is read after it.
Option depth_option(GraphSpec& model) {
  Option option{.name = "num-layers", .value = "N", .help = "depth of the network, if --model names none"};
  option.allowed = "a whole number, with a network without a depth, as in --model resnet --num-layers 50";
  option.set = [&model](const std::string& text) {
    read_integer(text, from_to(1, 10000));
    if (!model.model.empty() && std::isdigit(static_cast<unsigned char>(model.model.back())) != 0) {
      throw BadValue("adds a depth to '" + model.model + "', which has one");
    }
    model.model += text;
  };
  option.print = [] { return std::string(); };
  return option.hidden();
}

/// Of a network that is there: without what only training needs.
OptionGroup trained_network_group(GraphSpec& model) {
  OptionGroup group = network_options(model);
  constexpr std::array of_training{"dropout",         "norm-momentum",      "initialiser",
                                   "initialiser-std", "zero-init-residual", "aux-heads",
                                   "aux-weight",      "label-smoothing"};
  std::erase_if(group.options, [&](const Option& option) {
    return std::find(of_training.begin(), of_training.end(), option.name) != of_training.end();
  });
  for (Option& option : group.options) {
    if (option.name == "model") {
      option.help = "network of a file that doesn't name it; default: the one that fits";
    } else if (option.name == "norm-epsilon") {
      option.help = "added to the variance in batch norm; default: that of the program that wrote the file";
      option.print = [] { return std::string(); };
      option.otherwise.clear();
    }
  }
  return group;
}

Option batch_option(Index& batch, std::string help) {
  return number_option("batch-size", "N", batch, from_to(1, 1 << 24), std::move(help)).short_form('b');
}

Option freeze_option(std::vector<std::string>& frozen) {
  Option option{.name = "freeze",
                .value = "PATTERN,...",
                .help =
                    "parameters that keep their values, by their names or those of their modules, with * and ?; "
                    "backbone: all but the last layer. Frozen batch norms use their running statistics"};
  option.allowed = "a comma-separated list of patterns, such as conv1,layer1,*.bn?";
  option.set = [&frozen](const std::string& text) {
    frozen = split_list(text);
    std::erase(frozen, "");
  };
  option.print = [&frozen] { return fmt::format("{}", fmt::join(frozen, ",")); };
  return option.decides_bits_unless({""});
}

Option balance_option(Balance& balance) {
  Option option = choice_option<Balance>(
      "balance", balance, {{"none", Balance::none}, {"classes", Balance::classes}},
      "classes: an epoch shows each class equally often, and all replicas draw from all samples (--shuffle global)");
  option.print = [&balance] { return balance == Balance::none ? std::string() : std::string("classes"); };
  return option.decides_bits_unless({""});
}

/// `*.bias=2` in two. Throws BadValue that says the form.
std::pair<std::string, std::string> at_equals_sign(const std::string& item, const char* form) {
  const std::size_t equal = item.rfind('=');
  if (equal == std::string::npos || equal == 0) throw BadValue(std::string("is not ") + form);
  return {item.substr(0, equal), item.substr(equal + 1)};
}

Option rate_multiplier_option(std::vector<RateMultiplierConfig>& multipliers) {
  Option option{
      .name = "lr-mult",
      .value = "PATTERN=F,...",
      .help =
          "multiply the learning rate of the parameters that a pattern matches (as for --freeze, also backbone) by F; "
          "PATTERN=F@EPOCHS: after EPOCHS epochs they keep their values"};
  option.allowed = "a comma-separated list such as *.bias=2,conv1=0.1,stem.bias=1@3";
  option.set = [&multipliers](const std::string& text) {
    std::vector<RateMultiplierConfig> read;
    for (const std::string& item : split_list(text)) {
      const auto [pattern, value] = at_equals_sign(item, "PATTERN=F or PATTERN=F@EPOCHS");
      const std::size_t at = value.find('@');
      RateMultiplierConfig& one = read.emplace_back();
      one.pattern = pattern;
      one.factor = read_fp32(value.substr(0, at), at_least(0));
      if (at != std::string::npos) one.epochs = read_number(value.substr(at + 1), epochs_above(0));
    }
    multipliers = std::move(read);
  };
  option.print = [&multipliers] {
    std::string text;
    for (const RateMultiplierConfig& one : multipliers) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", one.pattern, print_number(one.factor));
      if (one.epochs > 0) text += fmt::format("@{}", print_number(one.epochs));
    }
    return text;
  };
  return option.decides_bits_unless({""});
}

Option decay_multiplier_option(std::vector<DecayMultiplierConfig>& multipliers) {
  Option option{.name = "decay-mult",
                .value = "PATTERN=F,...",
                .help =
                    "multiply the weight decay of the parameters that a pattern matches (as for --freeze, also "
                    "backbone) by F; 0: they do not decay"};
  option.allowed = "a comma-separated list such as fc=0,layer4=0.5";
  option.set = [&multipliers](const std::string& text) {
    std::vector<DecayMultiplierConfig> read;
    for (const std::string& item : split_list(text)) {
      const auto [pattern, factor] = at_equals_sign(item, "PATTERN=F");
      read.push_back({pattern, read_fp32(factor, at_least(0))});
    }
    multipliers = std::move(read);
  };
  option.print = [&multipliers] {
    std::string text;
    for (const DecayMultiplierConfig& one : multipliers)
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", one.pattern, print_number(one.factor));
    return text;
  };
  // MXNet's name of it, as an attribute of parameters.
  return option.also({"wd-mult", "weight-decay-mult"}).decides_bits_unless({""});
}

Option topk_option(int& topk) {
  return number_option("topk", "K", topk, from_to(1, 1 << 20), "also count labels among the K most likely classes")
      .also({"top-k"});
}

/// What evaluation shows of an image.
std::vector<Option> form_options(DataConfig& data) {
  return {
      switch_option("rectangular-validation", data.rectangular,
                    "keep the shape of images: the short side is --image-size, the long side a multiple of 8")
          .also({"rect-val"}),
      switch_option("flip-test", data.flip_test, "average the logits of an image and of its mirror image")
          .also({"test-time-flip", "tta-flip"}),
      number_option("translate-test", "PIXELS", data.translate_test, from_to(0, 64),
                    "average the logits of an image (half of the weight) and of the image moved along its diagonal, "
                    "both ways (a quarter each); 0: only the image")
          .also({"tta-translate"})};
}

/// For tests of the fault paths: KIND@RANK@STEP, for slow ones also @SECONDS of every batch.
Option fault_option(TrainConfig& config) {
  Option option{
      .name = "inject-fault",
      .value = "KIND@RANK@STEP[@SECONDS]",
      .help =
          "for tests: throw, nan, spike, stall, slow-data, slow-compute, or flip-convolution, flip-memory, flip-sum"};
  option.allowed =
      "throw, nan, spike, stall, slow-data, slow-compute, flip-convolution, flip-memory or flip-sum, then @RANK@STEP[@SECONDS]";
  option.set = [&config](const std::string& text) {
    const auto first = text.find('@');
    const auto second = first == std::string::npos ? first : text.find('@', first + 1);
    if (second == std::string::npos) throw BadValue("is not KIND@RANK@STEP[@SECONDS]");
    const auto third = text.find('@', second + 1);
    const std::string kind = text.substr(0, first);
    const auto known = {"throw",       "spike",   "nan", "stall", "slow-data", "slow-compute", "flip-convolution",
                        "flip-memory", "flip-sum"};
    if (std::find(known.begin(), known.end(), kind) == known.end()) throw BadValue("names no known fault");
    config.fault_rank = static_cast<int>(read_integer(text.substr(first + 1, second - first - 1), from_to(0, 1 << 20)));
    config.fault_step = read_integer(text.substr(second + 1, third - second - 1), at_least(0));
    if (third != std::string::npos) config.fault_seconds = read_number(text.substr(third + 1), at_least(0));
    config.fault_kind = kind;
  };
  option.print = [&config] {
    if (config.fault_kind.empty()) return std::string();
    return fmt::format("{}@{}@{}@{}", config.fault_kind, config.fault_rank, config.fault_step, config.fault_seconds);
  };
  return option.hidden().only_on_command_line();
}

OptionGroup length_options(TrainConfig& config) {
  OptionGroup group{"Batches and length", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  Option batch = batch_option(config.batch, "images per replica in one step");
  batch.set = [&config, set_batch = batch.set](const std::string& text) {
    set_batch(text);
    config.batch_given = true;
  };
  batch.print = [&config, print_batch = batch.print] {
    return config.global_batch > 0 && !config.batch_given ? std::string() : print_batch();
  };
  add(std::move(batch)).also({"bs"}).decides_bits();
  add(number_option("global-batch", "N", config.global_batch, from_to(0, Index{1} << 40),
                    "images of all replicas in one step; 0: --batch-size times the replicas"))
      .also({"optimizer-batch-size", "macrobatch-size", "mini-batch-size"})
      // Beside --batch-size it only repeats what that and the replicas say.
      .decides_bits_where([&config] { return !config.batch_given; });
  add(number_option("epochs", "EPOCHS", config.epochs, epochs_above(0), "length of the run and of the schedule"))
      .also({"num-epochs", "nepochs", "train-epochs"})
      .decides_bits();
  add(number_option("start-epoch", "EPOCH", config.start_epoch, from_to(0, most_epochs), "first epoch"))
      .also({"begin-epoch"});
  add(number_option(
      "run-epochs", "EPOCHS", config.run_epochs, from_to(0, most_epochs),
      "stop this job N epochs after where it starts or resumes, with a checkpoint; 0: at the end of the run"));
  add(number_option(
          "max-steps", "STEPS", config.max_steps, at_least(0),
          "stop this job N steps after where it starts or resumes, with a checkpoint; 0: at the end of the run"))
      .also({"max-train-steps"});
  add(number_option("seed", "N", config.seed, from_to(0, 9007199254740992.0),
                    "seed of initial weights, order and augmentation"))
      .also({"random-seed"})
      .decides_bits();
  add(switch_option("dry-run", config.dry_run,
                    "print configuration, sizes, cost and an estimate of the time, and do not train"))
      .only_on_command_line();
  add(number_option("dry-run-seconds", "SECONDS", config.dry_run_seconds, seconds_from_0(),
                    "time that --dry-run spends on measured steps; 0: none"))
      .only_on_command_line();
  add(text_option("card", "FILE", config.card,
                  "--dry-run: memory and largest batch on the CUDA card that this JSON file describes (docs/cuda.md)"))
      .only_on_command_line();
  add(switch_option("take-over", config.take_over,
                    "start even if another job seems to be alive in the run directory; that job then exits with 6"))
      .only_on_command_line();
  add(number_option("wait-for-other", "SECONDS", config.wait_for_other, seconds_from_0(),
                    "how long to wait until another job in the run directory has ended"));
  add(fault_option(config));
  return group;
}

OptionGroup spike_options(TrainConfig& config) {
  OptionGroup group{"Loss spikes", {}};
  group
      .add(choice_option<OnSpike>(
          "on-spike", config.on_spike,
          {{"off", OnSpike::off}, {"warn", OnSpike::warn}, {"rollback", OnSpike::rollback}},
          "if the loss of an interval (with rollback also a gradient's norm) is far above those before: nothing, "
          "warn, or go back to an earlier checkpoint's weights and skip the batches since"))
      .decides_bits_unless({"off", "warn"});
  group
      .add(number_option("spike-factor", "F", config.spike_factor, above(1),
                         "a spike is F times the median of the last 20 intervals; a loss below 1 is no spike"))
      .decides_bits_where([&config] { return config.on_spike == OnSpike::rollback; });
  return group;
}

OptionGroup evaluation_options(TrainConfig& config) {
  OptionGroup group{"Evaluation", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(number_option(
          "val-interval", "EPOCHS", config.val_interval, from_to(0, most_epochs),
          "epochs between two validations; 0: validate only at the end. One more where a job stops between them "
          "is printed, and counts for no best and no --patience"))
      .also({"epochs-between-evals", "eval-frequency"});
  add(number_option("eval-batch-size", "N", config.eval_batch, from_to(1, 1 << 24), "images per rank in one batch"))
      .also({"val-batch-size", "validation-batch-size"});
  add(topk_option(config.topk));
  add(number_option("target-accuracy", "PERCENT", config.target_accuracy, from_to(0, 100),
                    "stop when top-1 on the val split reaches this; 0: off"));
  add(number_option("patience", "N", config.patience, at_least(0),
                    "stop after N validations in a row without a new best top-1; 0: off"))
      .also({"early-stopping-patience"});
  add(switch_option("skip-eval", config.skip_eval, "never evaluate")).also({"training-only"});
  add(number_option("val-image-size", "PIXELS", config.data.val_image_size, from_to(0, 16384),
                    "height and width of the network input in validation, pixels; 0: --image-size"))
      .also({"val-crop-size"});
  add(number_option("val-resize", "PIXELS", config.data.val_resize, from_to(0, 16384),
                    "resize the short side to this before validation's centre crop, pixels; 0: as --resize"))
      .also({"val-resize-size"});
  for (Option& option : form_options(config.data)) add(std::move(option));
  return group;
}

/// Of commands that show images to a trained network: how pixels become its input is the network's to say.
std::vector<Option> learned_input_options(DataConfig& data) {
  std::vector<Option> options = input_options(data).options;
  std::erase_if(options, [](const Option& option) { return option.name == "normalise"; });
  const std::string of_set = "the data set's";
  for (Option& option : options)
    if (const auto at = option.help.find(of_set); at != std::string::npos)
      option.help.replace(at, of_set.size(), "what the network learned with");
  return options;
}

}  // namespace

OptionGroup network_options(GraphSpec& model) {
  OptionGroup group = model_options(model);
  group.options.push_back(depth_option(model));
  return group;
}

std::vector<OptionGroup> options_of(TrainConfig& config) {
  OptionGroup optimiser = optimiser_options(config.optimiser);
  optimiser.options.push_back(freeze_option(config.frozen));
  optimiser.options.push_back(rate_multiplier_option(config.rate_multipliers));
  optimiser.options.push_back(decay_multiplier_option(config.decay_multipliers));
  optimiser.options.push_back(class_weights_option(config.class_weights));
  OptionGroup order = order_options(config.data);
  order.options.push_back(balance_option(config.data.balance));
  return {source_options(config.data),
          network_options(config.model),
          length_options(config),
          std::move(optimiser),
          schedule_options(config.optimiser),
          ema_options(config.ema),
          spike_options(config),
          lookahead_options(config.lookahead),
          sync_options(config.sync),
          input_options(config.data),
          std::move(order),
          augment_options(config.data),
          evaluation_options(config),
          checkpoint_options(config.checkpoint),
          time_limit_options(config.time_limit),
          output_options(config.output),
          training_device_options(config.device),
          stall_options(config.sync.deadline)};
}

/// A switch that has a third state: neither form is given.
Option weight_choice_option(WeightChoice& choice) {
  Option option{
      .name = "ema",
      .help =
          "take the moving average of the weights, or the slow weights of lookahead (--no-ema: the trained weights)",
      .otherwise = "the average if the checkpoint has one, as in validation"};
  option.set = [&choice](const std::string& text) {
    choice = read_bool(text) ? WeightChoice::average : WeightChoice::trained;
  };
  option.print = [&choice]() -> std::string {
    switch (choice) {
      case WeightChoice::usual:
        return "";
      case WeightChoice::average:
        return "true";
      case WeightChoice::trained:
        return "false";
    }
    return "";
  };
  return option;
}

std::vector<OptionGroup> options_of(EvaluateConfig& config) {
  OptionGroup group{"Evaluation", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("checkpoint", "PATH", config.checkpoint,
                  "checkpoint, run directory, or a safetensors, PyTorch (FILE or FILE:KEY) or ONNX file"))
      .also({"weights", "resume"});
  add(weight_choice_option(config.choice));
  add(word_option("split", config.split, {"val", "train"}, "split of the data set"));
  add(batch_option(config.batch, "images per rank in one batch").also({"eval-batch-size", "val-batch-size"}));
  add(number_option("limit-val-batches", "N", config.data.limit_val_batches, at_least(0),
                    "at most this many batches per rank; 0: all"));
  add(topk_option(config.topk));
  for (Option& option : form_options(config.data)) add(std::move(option));
  add(text_option("output-dir", "DIR", config.output_folder,
                  "write result.json, per_class.csv and confusion.csv to this folder; default: print only"))
      .short_form('o')
      .also({"logdir", "output"});
  OptionGroup input{input_options(config.data).title, learned_input_options(config.data)};
  for (Option& option : input.options) {
    if (option.name == "image-size") option.also({"val-image-size", "val-crop-size"});
    if (option.name == "resize") option.also({"val-resize", "val-resize-size"});
  }
  return {std::move(group),
          source_options(config.data),
          std::move(input),
          trained_network_group(config.model),
          device_options(config.device),
          time_limit_options(config.time_limit),
          stall_options(config.deadline)};
}

std::vector<OptionGroup> options_of(PredictConfig& config) {
  OptionGroup group{"Prediction", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option(
          "checkpoint", "PATH", config.checkpoint,
          "checkpoint, run directory, or a safetensors, PyTorch (FILE or FILE:KEY) or ONNX file; default: the first path"))
      .also({"weights", "resume"});
  add(weight_choice_option(config.choice));
  add(number_option("topk", "K", config.topk, from_to(1, 1 << 20), "list the K most likely classes")).also({"top-k"});
  add(choice_option<PredictFormat>(
      "format", config.format,
      {{"text", PredictFormat::text}, {"json", PredictFormat::json}, {"csv", PredictFormat::csv}},
      "text for people, one JSON object per line, or a CSV table"));
  add(text_option("output", "FILE", config.output, "write to this file; default: standard output")).short_form('o');
  add(word_option("split", config.split, {"val", "train"}, "split of a prepared data set"));
  add(batch_option(config.batch, "images per rank in one batch"));
  add(number_option("image-size", "PIXELS", config.data.image_size, from_to(0, 16384),
                    "height and width of the network input; 0: as in validation"))
      .also({"img-size", "input-size", "val-image-size", "val-crop-size"});
  add(number_option("resize", "PIXELS", config.data.augment.resize, from_to(0, 16384),
                    "short side before the centre crop; 0: as in validation"))
      .also({"val-resize", "val-resize-size"});
  add(number_option("workers", "N", config.data.workers, from_to(1, 1024), "threads per rank that read images ahead"))
      .short_form('j')
      .also({"num-workers"});
  add(number_option("prefetch", "N", config.data.prefetch, from_to(1, 1024), "batches that each rank reads ahead"));
  for (Option& option : learned_input_options(config.data))
    if (option.name.starts_with("rgb-")) add(std::move(option));
  return {std::move(group), trained_network_group(config.model), device_options(config.device),
          stall_options(config.deadline)};
}

std::vector<OptionGroup> options_of(BenchConfig& config) {
  OptionGroup group{"Benchmark", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(batch_option(config.batch, "images per rank in one step"));
  add(number_option("steps", "N", config.steps, from_to(1, 1 << 30), "number of timed steps, batches or messages"));
  add(number_option("warmup-steps", "N", config.warmup, from_to(0, 1 << 20), "steps before the first timed one"));
  add(number_option("megabytes", "MB", config.megabytes, from_to(0, 1 << 20),
                    "comm: size of a message, MB of 10^6 bytes; 0: several sizes"))
      .also({"mb"});
  add(switch_option(
          "forward", config.forward,
          "compute: only the forward pass, as evaluation does it: with running statistics, without gradients"))
      .also({"inference"});
  add(switch_option("gradients", config.gradients, "compute: also all-reduce the gradients, overlapped with backward"));
  add(switch_option("reproducible", config.reproducible, "all-reduce along a fixed tree of the ranks"));
  add(word_option("backend", config.backend, {"auto", "mpi", "shared", "nccl", "all"},
                  "what does the all-reduce, as for train; all: comm compares those that are available"))
      .also({"dist-backend"});
  add(cuda_aware_option(config.cuda_aware));
  add(switch_option("strong", config.strong,
                    "scaling: divide --batch-size among the ranks; otherwise each rank has --batch-size images"));
  add(switch_option(
      "profile", config.profile,
      "compute: print where the time of a step goes: time, FLOP, bytes and share of the roofline of each part"));
  add(text_option("csv", "FILE", config.csv, "scaling, compute --profile: also write the table to this file"));
  add(text_option("machine", "FILE", config.machine,
                  "compute, comm: add what was measured to this description of the machine, for predict-scale"));
  add(text_option("machine-name", "NAME", config.machine_name, "name in a new description of a machine"));
  add(number_option("classes", "N", config.classes, from_to(0, 1 << 20),
                    "compute: outputs of the network; 0: its usual number"))
      .also({"num-classes"});
  add(number_option("channels", "N", config.channels, from_to(0, 4),
                    "compute: channels of an image; 0: the usual number"));
  add(freeze_option(config.frozen));
  return {std::move(group),
          source_options(config.data),
          input_options(config.data),
          order_options(config.data),
          augment_options(config.data),
          network_options(config.model),
          training_device_options(config.device),
          stall_options(config.deadline)};
}

std::vector<OptionGroup> options_of(InspectConfig& config) {
  TrainConfig& train = config.train;
  OptionGroup group{"Plan", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(batch_option(train.batch, "images the program is compiled for"));
  add(number_option("classes", "N", config.classes, from_to(0, 1 << 20), "outputs of the network; 0: its usual number"))
      .also({"num-classes"});
  add(number_option("channels", "N", config.channels, from_to(0, 4), "channels of an image; 0: the usual number"));
  add(number_option("image-size", "PIXELS", train.data.image_size, from_to(0, 16384),
                    "height and width of the network input; 0: the usual size"))
      .also({"img-size", "input-size"});
  add(number_option("fusion-threshold-mb", "MB", train.sync.bucket_mb, {.low = 0, .high = 65536, .low_excluded = true},
                    "size of the gradient buckets, MB of 2^20 bytes"));
  add(freeze_option(train.frozen));
  add(text_option("card", "FILE", config.card,
                  "compile for the CUDA card that this JSON file describes (docs/cuda.md); needs no GPU"));
  return {std::move(group), network_options(train.model), training_device_options(train.device)};
}

}  // namespace convoy
