// SPDX-License-Identifier: Apache-2.0
// What users of other programs type, and what fingers make of our names: accepted, answered with our name, or with
// none; never with a wrong one.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "options/command_line.hpp"

namespace convoy {
namespace {

/// `answer`: the option that the name is (`=lr`), or what the hint says; empty: nothing is said.
struct Typed {
  const char* name;
  const char* answer;
};

constexpr const char* silent = "";

const Typed table[] = {
    // Other names of our options (the peers' names for each concept).
    {"cfg-file", "=config"},
    {"config-file", "=config"},
    {"data-path", "=data"},
    {"data-dir", "=data"},
    {"data-train", "=train-data"},
    {"train-data-path", "=train-data"},
    {"val-dir", "=val-data"},
    {"arch", "=model"},
    {"a", "=model"},
    {"network", "=model"},
    {"num-layers", "=num-layers"},
    {"resnet-size", "--model resnetN"},
    {"mname", "=model"},
    {"bs", "=batch-size"},
    {"optimizer-batch-size", "=global-batch"},
    {"macrobatch-size", "=global-batch"},
    {"d", "--global-batch"},
    {"batches-per-allreduce", "=grad-accum-steps"},
    {"gradient-accumulation-steps", "=grad-accum-steps"},
    {"num-epochs", "=epochs"},
    {"nepochs", "=epochs"},
    {"train-epochs", "=epochs"},
    {"max-train-steps", "=max-steps"},
    {"short-epoch", "--limit-train-batches"},
    {"load-epoch", "--resume PATH"},
    {"begin-epoch", "=start-epoch"},
    {"learning-rate", "=lr"},
    {"base-lr", "--lr-scaling linear"},
    {"lr-base", "--lr-scaling linear"},
    {"lr-base-size", "=lr-base-batch"},
    {"mom", "=momentum"},
    {"wd", "=weight-decay"},
    {"no-bn-wd", "--norm-weight-decay"},
    {"bn-weight-decay", "=norm-weight-decay"},
    {"lr-scheduler", "=lr-schedule"},
    {"sched", "=lr-schedule"},
    {"lr-mode", "=lr-schedule"},
    {"decay-milestones", "=lr-step-epochs"},
    {"lr-gamma", "=lr-factor"},
    {"decay-rate", "=lr-factor"},
    {"lr-decay-epoch", "=lr-step-epochs"},
    {"lr-warmup-epochs", "=warmup-epochs"},
    {"warmup", "=warmup-epochs"},
    {"lr-min", "=min-lr"},
    {"end-lr", "=min-lr"},
    {"opt", "=optimizer"},
    {"smoothing", "=label-smoothing"},
    {"mixup-alpha", "=mixup"},
    {"cutmix-alpha", "=cutmix"},
    {"random-erase", "=random-erasing"},
    {"reprob", "=random-erasing"},
    {"aa", "=auto-augment"},
    {"augmentation", "=augment"},
    {"use-ema", "--ema-decay"},
    {"model-ema", "--ema-decay"},
    {"model-ema-decay", "=ema-decay"},
    {"init-bn0", "=zero-init-residual"},
    {"last-gamma", "=zero-init-residual"},
    {"last-bn-0-init", "=zero-init-residual"},
    {"dtype", "=precision"},
    {"amp", "--precision fp16 or bf16"},
    {"fp16", "--precision fp16 or bf16"},
    {"static-loss-scale", "=loss-scale"},
    {"dynamic-loss-scale", "--precision fp16"},
    {"clip-grad", "=clip-grad-norm"},
    {"memory-format", "the device chooses the layout"},
    {"channels-last", "the device chooses the layout"},
    {"data-format", "the device chooses the layout"},
    {"image-shape", "--image-size"},
    {"img-size", "=image-size"},
    {"input-size", "=image-size"},
    {"crop-pct", "--resize"},
    {"val-resize-size", "=val-resize"},
    {"val-crop-size", "=val-image-size"},
    {"train-crop-size", "=image-size"},
    {"mean", "=rgb-mean"},
    {"std", "=rgb-std"},
    {"data-nthreads", "=workers"},
    {"num-io-threads", "=workers"},
    {"num-workers", "=workers"},
    {"benchmark", "'convoy bench compute'"},
    {"synthetic-data", "=synthetic"},
    {"dummy", "=synthetic"},
    {"data-backend", "--synthetic"},
    {"test-io", "'convoy bench io'"},
    {"logdir", "=output-dir"},
    {"log-dir", "=output-dir"},
    {"save-dir", "=output-dir"},
    {"workspace", "=output-dir"},
    {"model-dir", "=output-dir"},
    {"save-period", "=save-every"},
    {"recovery-interval", "=save-every-steps"},
    {"ckpt-dir", "=checkpoint-dir"},
    {"model-prefix", "--output-dir"},
    {"checkpoint-hist", "=keep-checkpoints"},
    {"initial-checkpoint", "=weights"},
    {"pretrained-from-file", "=weights"},
    {"load-model-weights-dir", "=weights"},
    {"pretrained", "--weights PATH"},
    {"e", "'convoy evaluate'"},
    {"test-only", "'convoy evaluate'"},
    {"eval-only", "'convoy evaluate'"},
    {"disp-batches", "=print-freq"},
    {"log-interval", "=print-freq"},
    {"loginterval", "--print-freq STEPS"},
    {"epochs-between-evals", "=val-interval"},
    {"eval-frequency", "=val-interval"},
    {"top-k", "=topk"},
    {"random-seed", "=seed"},
    {"use-deterministic-algorithms", "--reproducible"},
    {"deterministic", "--reproducible"},
    {"bn-statistics-group-size", "--sync-bn"},
    {"kv-store", "--sync gradients or weights"},
    {"period", "--local-steps"},
    {"warmup-steps", "--local-sgd-start"},
    {"start-localSGD-iter", "--local-sgd-start"},
    {"dist-backend", "=backend"},
    {"compression", "--wire bf16"},
    {"compression", "2bit, topk or powersgd"},
    {"gc-type", "=wire"},
    {"gc-threshold", "=wire-threshold"},
    {"fp16-allreduce", "--wire fp16"},
    {"gpus", "one rank per GPU"},
    {"no-cuda", "--device cpu"},
    {"cpu", "--device cpu"},
    {"stop-threshold", "--target-accuracy PERCENT"},
    {"preset", "--config FILE"},
    // Further names of other programs.
    {"adam", "--optimizer"},
    {"random-mirror", "--flip random"},
    {"hflip", "--flip random"},
    {"color-jitter", "--brightness"},
    {"drop", "'--dropout'"},
    {"interpolation", "resized as Pillow does"},
    {"nproc-per-node", "the launcher gives this"},
    {"balanced-sampling", "--balance classes"},
    {"lr-find", "'convoy tune lr'"},
    {"val-split", "--train-data and --val-data"},
    {"grad-clip", "--clip-grad-norm"},
    {"tb", "TensorBoard"},
    {"wandb", "metrics.jsonl"},
    {"early-stopping", "--target-accuracy"},
    {"world-size", "mpirun -np N"},
    // torchvision's references, MXNet's fine-tune.py and timm's train.py.
    {"lr-warmup-method", "--warmup-epochs"},
    {"lr-warmup-decay", "--warmup-lr"},
    {"jsd-loss", "--auto-augment augmix"},
    {"ra-sampler", "--repeated-augmentation N"},
    {"pretrained-model", "--weights PATH"},
    {"layer-before-fullc", "--freeze backbone"},
    {"warmup-strategy", "--optimizer lars"},
    {"grad-checkpointing", "--recompute auto"},
    {"opt-betas", "--beta1 and --beta2"},
    {"clip-mode", "--clip-grad-norm"},
    {"wd-mult", "=decay-mult"},
    {"weight-decay-mult", "=decay-mult"},
    {"layer-decay", "--lr-mult"},
    // Names that are one or two letters from another thing of ours.
    {"train-steps", "--max-steps"},
    {"rec-val", "convoy-preprocess recordio"},
    {"eval-dir", "--output-dir"},
    {"min-crop-size", "--min-random-area"},
    {"local-sgd-steps", "--local-steps"},
    {"mode", "'convoy train' or 'convoy evaluate'"},
    {"min-np", "number of ranks"},
    {"train-crop-mode", "--crop resized"},
    {"lr-base-scale", "--lr-scaling linear"},
    {"min-crop-side", silent},
    {"train-stops", silent},
    // MXNet, GluonCV, imagenet18, Ray.
    {"data-train-idx", "recordio"},
    {"use-rec", "recordio"},
    {"lr-decay", "=lr-factor"},
    {"use-pretrained", "--weights PATH"},
    {"save-frequency", "=save-every"},
    {"kv-store", "dist_async"},
    {"phases", "[phase.N]"},
    {"vmtouch", "--data-cache ram"},
    {"scale-lr", "--lr-scaling linear"},
    {"use-tta", "--flip-test"},
    {"skip-auto-shutdown", "no machines"},
    {"s3-bucket", "s3://BUCKET/PREFIX"},
    {"label-file", "--label-file FILE"},
    {"redis-address", "the launcher gives this"},
    // TensorFlow's models, webdataset, LBANN.
    {"use-synthetic-data", "=synthetic"},
    {"pretrained-model-checkpoint-path", "=weights"},
    {"enable-lars", "--optimizer lars"},
    {"export-dir", "'convoy export'"},
    {"all-reduce-alg", "--backend auto"},
    {"log-steps", "=print-freq"},
    {"steps-per-loop", "without being asked"},
    {"valshards", "'convoy-preprocess webdataset'"},
    {"trainsize", "--limit-train-batches"},
    {"mini-batch-size", "=global-batch"},
    {"data-filedir-train", "--data DIR"},
    {"data-store-cache", "--data-cache ram"},
    {"procs-per-node", "the launcher gives this"},
    {"partition", "sbatch"},
    {"exit-after-setup", "--dry-run"},
    // Horovod, PyTorch, timm.
    {"np", "mpirun -np N"},
    {"use-adasum", "no Adasum"},
    {"cycle-time-ms", "--fusion-threshold-mb"},
    {"max-np", "--resume auto"},
    {"timeline-filename", "--trace-steps A:B"},
    {"apex-opt-level", "--precision"},
    {"powersgd-rank", "=wire-rank"},
    {"post-local-sgd", "--local-sgd-start"},
    {"validation-batch-size", "=eval-batch-size"},
    {"class-map", "--classes FILE"},
    {"pretrained-path", "=weights"},
    {"in-chans", "the data set"},
    {"lr-cycle-mul", "no schedule starts again"},
    {"lr-noise-pct", "nothing like it"},
    {"lr-k-decay", "nothing like it"},
    {"bce-target-thresh", "cross entropy"},
    {"kd-model-name", "no distillation"},
    {"drop-block", "no stochastic depth"},
    {"wandb-project", "metrics.jsonl"},
    // NVIDIA's examples and FFCV.
    {"prof", "--max-steps"},
    {"gather-checkpoints", "--keep-checkpoints"},
    {"training-only", "=skip-eval"},
    {"data-root", "=data"},
    {"lr.lr", "'--lr'"},
    {"training.epochs", "'--epochs'"},
    {"training.batch-size", "'--batch-size'"},
    {"validation.batch-size", "--eval-batch-size"},
    {"data.train-dataset", "--train-data DIR"},
    {"data.in-memory", "--data-cache ram"},
    {"resolution.min-res", "image-size"},
    {"training.nothing-of-ours", silent},
    {"momentum.", "'--momentum'"},
    {".", silent},
    // Our own names, shortened, lengthened or misspelt.
    {"epoch", "'--epochs'"},
    {"worker", "'--workers'"},
    {"seeds", "'--seed'"},
    {"batch", "'--batch-size'"},
    {"bacth-size", "'--batch-size'"},
    {"batchsize", "'--batch-size'"},
    {"wieght-decay", "'--weight-decay'"},
    {"momentm", "'--momentum'"},
    {"lr-sched", "'--lr-schedule'"},
    {"optimzer", "'--optimizer'"},
    {"tensorbord", "'--tensorboard'"},
    {"no-tensorbord", "'--no-tensorboard'"},
    {"ouput-dir", "'--output-dir'"},
    {"devce", "'--device'"},
    {"percision", "'--precision'"},
    {"lable-smoothing", "'--label-smoothing'"},
    {"local", "'--local-momentum' or '--local-sgd-start' or '--local-steps'"},
    {"freq", "'--print-freq'"},
    {"rezume", "'--resume'"},
    {"tresh", silent},
    {"drp", silent},
    {"qqqqqqqq", silent},
    {"verbose", silent},
    {"lrr", "'--lr'"},
    {"x", silent},
    {"class", "'--class-weights'"},
};

TEST(Suggestions, are_right_or_none) {
  EXPECT_GE(std::size(table), 120U);
  TrainConfig config;
  std::string path;
  std::vector<OptionGroup> groups = options_of(config);
  groups.push_back(general_options(path));
  const Names names(groups, [](const std::string& name) { return foreign_hint("train", name); });
  for (const Typed& typed : table) {
    const auto* entry = names.find(typed.name);
    if (typed.answer[0] == '=') {
      ASSERT_NE(entry, nullptr) << typed.name << " is no name of --" << typed.answer + 1;
      EXPECT_EQ(entry->option->name, typed.answer + 1) << typed.name;
      continue;
    }
    EXPECT_EQ(entry, nullptr) << typed.name << " is an option";
    const std::string hint = names.hint(typed.name, "--");
    if (typed.answer == silent) {
      EXPECT_EQ(hint, "") << typed.name;
    } else {
      EXPECT_NE(hint.find(typed.answer), std::string::npos) << typed.name << hint;
    }
  }
}

/// Of the table of other programs' names each is reached, and names options that exist: what is added or renamed must
/// be said there.
TEST(Suggestions, name_options_that_exist) {
  TrainConfig config;
  std::string path;
  std::vector<OptionGroup> groups = options_of(config);
  groups.push_back(general_options(path));
  const Names names(groups, [](const std::string& name) { return foreign_hint("train", name); });
  std::set<std::string> seen;
  for (std::string name : foreign_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name << " stands twice";
    if (name.ends_with('*')) name.pop_back();
    EXPECT_EQ(names.find(name), nullptr) << name << " is an option, and its hint is never shown";
    EXPECT_NE(names.hint(name, "--"), "") << foreign_hint("train", name);
  }
  EXPECT_GE(seen.size(), 250U);
}

/// A hint for training is none for a command that lacks these options.
TEST(Suggestions, are_those_of_the_command) {
  const auto error_of = [](const std::string& option) {
    try {
      parse_evaluate({"run", option, "x"}, [](const std::string&) { return std::string(); });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("--model-prefix"),
            "'convoy evaluate' has no option '--model-prefix'; give the checkpoint, or the run directory, as PATH. See "
            "'convoy evaluate --help'");
  EXPECT_NE(error_of("--load-epoch").find("; give the checkpoint of that epoch as PATH."), std::string::npos);
  EXPECT_EQ(error_of("--kv-store"), "'convoy evaluate' has no option '--kv-store'. See 'convoy evaluate --help'");
  EXPECT_NE(error_of("--fp16").find("use --precision fp16 or bf16"), std::string::npos);
  EXPECT_NE(error_of("--check-data").find("'convoy-preprocess verify DIR'"), std::string::npos);
}

/// Values of other programs are answered with ours, also those that only begin alike.
TEST(Suggestions, of_values) {
  TrainConfig config;
  const std::vector<OptionGroup> groups = options_of(config);
  for (const auto& [name, value, answer] :
       {std::tuple{"auto-augment", "rand-m9-mstd0.5-inc1", "use randaugment"},
        std::tuple{"auto-augment", "augmix-m3", "--augmix-severity"}, std::tuple{"lr-schedule", "tanh", "cosine"},
        std::tuple{"optimizer", "nadam", "the closest is adam"},
        std::tuple{"optimizer", "lion", "the closest is signum"}, std::tuple{"optimizer", "dcasgd", "use sgd"},
        std::tuple{"device", "gpu", "use cuda"}, std::tuple{"device", "cuda:0", "use cuda"}}) {
    const std::string given = std::string("--") + name + " " + value;
    try {
      set_options(groups, {{name, {name, value, given}}});
      ADD_FAILURE() << given << " is taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(answer), std::string::npos) << error.what();
    }
  }
}

TEST(Suggestions, name_commands) {
  EXPECT_EQ(foreign_command("eval"), "use 'convoy evaluate'");
  EXPECT_EQ(foreign_command("test"), "use 'convoy evaluate'");
  EXPECT_EQ(foreign_command("preprocess"), "convoy-preprocess makes data sets");
  EXPECT_EQ(foreign_command("train"), "");
}

}  // namespace
}  // namespace convoy
