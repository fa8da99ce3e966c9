// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "config/options.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

/// Minutes, or `auto`.
Option save_minutes_option(CheckpointConfig& checkpoint) {
  const Bounds bounds = at_least(0);
  Option option{.name = "save-every-minutes", .value = "MINUTES|auto"};
  option.help =
      "time between two checkpoints; 0: off; auto: sqrt(2 C M) with C the measured time of a checkpoint and M --mtbf";
  option.allowed = "auto, or a number " + bounds.text();
  option.set = [&checkpoint, bounds](const std::string& text) {
    checkpoint.save_auto = text == "auto";
    checkpoint.save_every_minutes = checkpoint.save_auto ? 0 : read_number(text, bounds);
  };
  option.print = [&checkpoint] {
    return checkpoint.save_auto ? std::string("auto") : print_number(checkpoint.save_every_minutes);
  };
  return option;
}

/// A trace of more steps would be a file that no viewer opens.
constexpr Index most_traced_steps = 1000;

/// `41` or `41:45`.
Option trace_option(StepSpan& span) {
  Option option{.name = "trace-steps", .value = "A:B"};
  option.help =
      "write what each rank does in steps A to B of the run, counted from 1, to trace.json in the run directory, for ui.perfetto.dev";
  option.allowed = "A or A:B with 1 <= A <= B, at most 1000 steps";
  option.set = [&span](const std::string& text) {
    const auto colon = text.find(':');
    const Index first = read_integer(text.substr(0, colon), at_least(1));
    const Index last = colon == std::string::npos ? first : read_integer(text.substr(colon + 1), at_least(1));
    if (last < first || last - first >= most_traced_steps) throw BadValue("is no range of steps, or too long");
    span = {first, last};
  };
  option.print = [&span] {
    if (span.last == 0) return std::string();
    return std::to_string(span.first) + ':' + std::to_string(span.last);
  };
  return option;
}

Option wire_option(WireChoice& wire) {
  std::vector<std::pair<std::string, WireChoice>> names;
  std::vector<std::string> formats;
  for (const WireChoice& choice : all_wire_choices) {
    names.emplace_back(name_of(choice), choice);
    if (choice.compression == Compression::none) formats.emplace_back(name_of(choice));
  }
  std::string compressions;
  for (const Compression kind : all_compressions)
    compressions += fmt::format("{}{}",
                                kind == all_compressions.front()  ? ""
                                : kind == all_compressions.back() ? " and "
                                                                  : ", ",
                                name_of(kind));
  Option option = choice_option<WireChoice>(
      "wire", wire, names,
      fmt::format(
          "format in which gradients, or the changes of weights since the last average, travel between ranks; the all-reduce adds in fp32 (NCCL adds bf16 itself). {} compress gradients, need --sync gradients and CPUs, and send what they leave out in later steps",
          compressions),
      {{"none", WireChoice{}}});
  // What is left out of a compressed gradient is more than rounding.
  return option.also({"gc-type"}).decides_bits_unless({name_of(WireChoice{})}).only_rounds_among(std::move(formats));
}

}  // namespace

Option cuda_aware_option(bool& value) {
  return switch_option(
      "cuda-aware", value,
      "with --backend mpi: pass GPU memory to MPI, which must be CUDA-aware, instead of copying it to the host");
}

OptionGroup sync_options(SyncConfig& sync) {
  OptionGroup group{"Ranks and averaging", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  const auto has_outer = [&sync] { return sync.outer.is_on(); };
  const auto compressed_by = [&sync](Compression kind) {
    return [&sync, kind] { return sync.wire.compression == kind; };
  };
  add(choice_option<SyncMode>(
          "sync", sync.mode, {{"weights", SyncMode::weights}, {"gradients", SyncMode::gradients}},
          "what the replicas average: their weights every --local-steps steps, or their gradients every step"))
      .decides_bits();
  add(number_option("local-steps", "N", sync.local_steps, at_least(1), "steps between two averages of the weights"))
      .decides_bits();
  add(number_option("node-steps", "N", sync.group.steps, at_least(0),
                    "steps between two averages among the replicas of a host, beside those of all; 0: none"))
      .decides_bits_unless({"0"});
  add(number_option("node-replicas", "N", sync.group.replicas, from_to(0, 1 << 20),
                    "number of replicas that average every --node-steps steps; 0: those of a host"))
      .decides_bits_where([&sync] { return sync.group.is_on(); });
  add(switch_option(
          "overlap-average", sync.overlap,
          "let the average of the weights travel beside the next --local-steps steps; it reaches the replicas "
          "a period late"))
      .also({"delayed-averaging"})
      .decides_bits_unless({"false"});
  add(number_option("local-sgd-start", "STEPS", sync.local_start, at_least(0),
                    "until this step, average after every step (post-local SGD)"))
      .also({"local-start"})
      .decides_bits();
  add(choice_option<MomentumPolicy>(
          "local-momentum", sync.momentum,
          {{"keep", MomentumPolicy::keep}, {"average", MomentumPolicy::average}, {"reset", MomentumPolicy::reset}},
          "what happens to the optimiser state when weights are averaged: each replica keeps its own, it is averaged too, or set to 0"))
      .decides_bits();
  add(choice_option<OuterRule>(
          "outer-optimizer", sync.outer.rule,
          {{"average", OuterRule::average}, {"momentum", OuterRule::momentum}, {"nesterov", OuterRule::nesterov}},
          "where the replicas continue after an average of their weights: at the average, or after a step along its change since the last one, with momentum (SlowMo) or Nesterov momentum (DiLoCo)"))
      .also({"outer-optimiser"})
      .decides_bits_unless({"average"});
  add(fp32_option("outer-lr", sync.outer.rate, above(0), "learning rate of the outer step"))
      .also({"slowmo-lr"})
      .default_depends("1; nesterov: 0.7, as DiLoCo")
      .decides_bits_where(has_outer);
  add(number_option("outer-momentum", "F", sync.outer.momentum, from_below(0, 1), "momentum of the outer step"))
      .also({"slowmo-momentum"})
      .default_depends("0.5; nesterov: 0.9, as DiLoCo")
      .decides_bits_where(has_outer);
  add(wire_option(sync.wire));
  add(fp32_option(
          words_of(Compression::two_bits).setting, sync.compression.threshold, above(0),
          "threshold F of --wire 2bit: a value of magnitude F or more is sent as +F or -F; applies to the gradient of "
          "the loss summed over a replica's samples, as in MXNet"))
      .also({"gc-threshold"})
      .decides_bits_where(compressed_by(Compression::two_bits));
  add(number_option(words_of(Compression::top_k).setting, "F", sync.compression.fraction,
                    {.low = 0, .high = 1, .low_excluded = true}, "share of each weight tensor that --wire topk sends"))
      .decides_bits_where(compressed_by(Compression::top_k));
  add(number_option(words_of(Compression::power_sgd).setting, "N", sync.compression.rank, from_to(1, 64),
                    "rank of the factors of each weight matrix that --wire powersgd sends"))
      .also({"powersgd-rank"})
      .decides_bits_where(compressed_by(Compression::power_sgd));
  add(switch_option(
          "reproducible", sync.reproducible,
          "compute the same bits on any number of ranks (with equal --threads), by an all-reduce along a fixed tree of "
          "the replicas"))
      .decides_bits()
      .only_rounds();
  add(switch_option("sync-bn", sync.sync_bn,
                    "batch norm over the whole step; needs --sync gradients and one replica per rank"))
      .decides_bits();
  add(number_option("replicas", "N", sync.replicas, from_to(0, 1 << 20),
                    "number of data-parallel workers; 0: ranks times --grad-accum-steps"));
  add(number_option("grad-accum-steps", "N", sync.grad_accum_steps, from_to(1, 1 << 16),
                    "batches per rank in one step (gradient accumulation)"))
      .also({"batches-per-allreduce", "gradient-accumulation-steps"});
  add(number_option("fusion-threshold-mb", "MB", sync.bucket_mb, {.low = 0, .high = 65536, .low_excluded = true},
                    "size of the buckets in which gradients are all-reduced during backward, MB of 2^20 bytes"))
      .also({"bucket-mb", "bucket-cap-mb"})
      .decides_bits()
      .only_rounds();
  add(word_option(
          "backend", sync.backend, {"auto", "mpi", "shared", "nccl"},
          "what does the all-reduce: NCCL, the MPI library, or memory that the ranks of one host share; auto: NCCL on "
          "GPUs, otherwise shared memory on one host and MPI on several"))
      .also({"dist-backend"})
      .decides_bits()
      .only_rounds();
  add(cuda_aware_option(sync.cuda_aware)).decides_bits().only_rounds();
  add(number_option(
      "check-weights", "STEPS", sync.digest_every, at_least(0),
      "every N steps, compare the weights, which must be the same on all ranks; if they differ, the job ends with "
      "code 7 and names rank and host; 0: never"));
  add(number_option("check-arithmetic", "STEPS", sync.check_arithmetic, at_least(0),
                    "every N steps, other ranks repeat the step of one rank, and a rank that computes other bits ends "
                    "the job with 7, named with its host; 0: never"));
  return group;
}

OptionGroup stall_options(StallLimits& deadline) {
  OptionGroup group = waiting_options(deadline);
  group.add(number_option(
      "watchdog-seconds", "SECONDS", deadline.watchdog_seconds, seconds_from_0(),
      "end a process with code 5 if its main thread has been stuck in a system call or a driver this long; 0: never"));
  return group;
}

OptionGroup general_options(std::string& config_path) {
  Option config = text_option(
      "config", "FILE", config_path,
      "INI file: option names as keys, # for comments, double quotes around values that hold one; the command line wins, where the last of two equal options counts");
  return {"General", {config.short_form('c').also({"cfg-file", "config-file"}).only_on_command_line()}};
}

OptionGroup checkpoint_options(CheckpointConfig& checkpoint) {
  OptionGroup group{"Checkpoints", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(switch_option("checkpoints", checkpoint.save, "write checkpoints"));
  add(text_option("checkpoint-dir", "DIR", checkpoint.folder,
                  "folder of the checkpoints; default: checkpoints in the run directory"))
      .also({"ckpt-dir"});
  add(number_option("save-every", "EPOCHS", checkpoint.save_every, from_to(0, most_epochs),
                    "epochs between two checkpoints; 0: save only at the end"))
      .also({"save-period", "save-frequency", "checkpoint-freq"});
  add(number_option("save-every-steps", "STEPS", checkpoint.save_every_steps, at_least(0),
                    "steps between two checkpoints; 0: off"))
      .also({"recovery-interval"});
  add(save_minutes_option(checkpoint)).also({"checkpoint-every"});
  add(number_option("mtbf", "HOURS", checkpoint.mean_failure_hours, above(0),
                    "mean time between failures of the whole job, for --save-every-minutes auto"));
  add(number_option("keep-checkpoints", "N", checkpoint.keep, from_to(1, 1 << 20),
                    "number of numbered checkpoints to keep, besides the best and the last"))
      .also({"checkpoint-hist"});
  add(text_option(
      "resume", "PATH|auto", checkpoint.resume,
      "continue from a checkpoint file or folder; auto: from this run's newest checkpoint, if there is one"));
  add(switch_option("restart", checkpoint.restart,
                    "begin anew if --resume auto finds an earlier run's traces and nothing to continue from"))
      .only_on_command_line();
  Option weights = text_option(
      "weights", "PATH", checkpoint.weights,
      "start a new run from the weights of a checkpoint, or of a safetensors, PyTorch (FILE or FILE:KEY) or ONNX file");
  weights.allowed =
      "the path of a checkpoint, a run directory or a file, such as torch.save(model.state_dict(), 'FILE.pth') writes, or FILE.pth:KEY for one of its dictionaries";
  weights.set = [&checkpoint](const std::string& text) {
    const std::string name = text.substr(text.rfind('.') + 1);
    if (name.starts_with("IMAGENET1K_V") || name == "DEFAULT")
      throw BadValue("names weights that torchvision downloads, and Convoy downloads nothing");
    checkpoint.weights = text;
  };
  add(std::move(weights))
      .also({"initial-checkpoint", "pretrained-from-file", "pretrained-path", "pretrained-model-checkpoint-path",
             "load-model-weights-dir"});
  add(switch_option("new-head", checkpoint.new_head,
                    "start a new last layer instead of that of --weights, even if the number of classes is the same"));
  return group;
}

OptionGroup output_options(OutputConfig& output) {
  OptionGroup group{"Output", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("output-dir", "DIR", output.folder, "run directory; default: runs/NAME-TIME"))
      .short_form('o')
      .also({"logdir", "log-dir", "save-dir", "workspace", "output", "model-dir"});
  Option name = text_option("name", "NAME", output.name, "name of the run; default: the model");
  name.set = [&output](const std::string& text) {
    if (text.find('/') != std::string::npos || text == "." || text == "..")
      throw BadValue("is a path; it names a folder in runs, so give a word without '/'");
    output.name = text;
  };
  add(std::move(name));
  add(number_option("print-freq", "STEPS", output.print_every, at_least(1), "steps between two progress lines"))
      .short_form('p')
      .also({"disp-batches", "log-interval", "log-steps"});
  add(switch_option("tensorboard", output.tensorboard, "write TensorBoard event files"));
  add(number_option("monitor", "STEPS", output.monitor, at_least(0),
                    "every N steps, record norm, range, mean and histogram of parameters and gradients; 0: off"));
  add(trace_option(output.trace)).only_on_command_line();
  add(number_option("slow-factor", "F", output.slow_factor, above(1),
                    "name a host whose ranks worked longer than F times the median of the hosts in an epoch"));
  add(switch_option("exclude-slow", output.exclude_slow,
                    "write such hosts into excluded-hosts in the run directory, where the job scripts find them"));
  add(switch_option("quiet", output.quiet, "print only warnings and errors")).short_form('q');
  return group;
}

}  // namespace convoy
