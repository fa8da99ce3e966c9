// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

namespace convoy {
namespace {

struct Case {
  const char* name;
  const char* line;
  const char* file;
  const char* message;
};

class UsageError : public testing::TestWithParam<Case> {};

TEST_P(UsageError, says_what_is_wrong) { EXPECT_EQ(train_error(GetParam().line, GetParam().file), GetParam().message); }

const Case cases[] = {
    {"unknown_option", "--bacth-size 3", "",
     "'convoy train' has no option '--bacth-size'; did you mean '--batch-size'? See 'convoy train --help'"},
    {"all_unknown_options", "--epoch 3 --wieght-decay 1 --qqqqqqqq --epoch 4", "",
     "'convoy train' has none of these options: '--epoch' (did you mean '--epochs'?), '--wieght-decay' (did you mean "
     "'--weight-decay'?), '--qqqqqqqq'. See 'convoy train --help'"},
    {"all_wrong_values", "--lr -1 --epochs 0", "",
     "--epochs 0 ('0' is out of range); allowed: > 0 and <= 1000000000; and --lr -1 ('-1' is out of range); allowed: > 0"},
    {"far_from_all", "--qqqqqqqq 3", "", "'convoy train' has no option '--qqqqqqqq'. See 'convoy train --help'"},
    {"no_abbreviation", "--batch 3", "",
     "'convoy train' has no option '--batch'; did you mean '--batch-size'? See 'convoy train --help'"},
    {"words_that_two_begin_with", "--stall 3", "",
     "'convoy train' has no option '--stall'; did you mean '--stall-abort-seconds' or '--stall-warning-seconds'? See "
     "'convoy train --help'"},
    {"amp_of_others", "--amp", "",
     "'convoy train' has no option '--amp'; use --precision fp16 or bf16. See 'convoy train --help'"},
    {"classes_of_others", "--num-classes 10", "",
     "'convoy train' has no option '--num-classes'; the number of classes is read from the data set. See 'convoy train "
     "--help'"},
    {"dtype_of_others", "--dtype float8", "",
     "--dtype float8 ('float8' is not one of the choices); allowed: fp32, tf32, bf16, fp16"},
    {"unknown_letter", "-z 3", "", "'convoy train' has no option '-z'. See 'convoy train --help'"},
    {"evaluate_is_a_command", "--evaluate", "",
     "'convoy train' has no option '--evaluate'; use 'convoy evaluate'. See 'convoy train --help'"},
    {"evaluate_letter", "-e", "",
     "'convoy train' has no option '-e'; use 'convoy evaluate'. See 'convoy train --help'"},
    {"test_io_is_a_command", "--test-io", "",
     "'convoy train' has no option '--test-io'; use 'convoy bench io'. See 'convoy train --help'"},
    {"not_a_number", "--lr fast", "", "--lr fast ('fast' is not a number); allowed: > 0"},
    {"trailing_letters", "--batch-size 12k", "",
     "--batch-size 12k ('12k' is not a whole number); allowed: 1 to 16777216"},
    {"fraction_for_whole", "--batch-size 1.5", "",
     "--batch-size 1.5 ('1.5' is not a whole number); allowed: 1 to 16777216"},
    {"not_finite", "--lr nan", "", "--lr nan ('nan' is not a finite number); allowed: > 0"},
    {"batch_zero", "-b 0", "", "-b 0 ('0' is out of range); allowed: 1 to 16777216"},
    {"momentum_one", "--momentum 1", "", "--momentum 1 ('1' is out of range); allowed: >= 0 and < 1"},
    {"alias_is_shown_as_typed", "--wd -1", "", "--wd -1 ('-1' is out of range); allowed: >= 0 and < 1"},
    {"too_large", "--batch-size 99999999999999999999", "",
     "--batch-size 99999999999999999999 ('99999999999999999999' is too large); allowed: 1 to 16777216"},
    {"too_close_to_zero", "--lr 1e-400", "", "--lr 1e-400 ('1e-400' is too close to 0); allowed: > 0"},
    {"too_large_a_number", "--lr 1e400", "", "--lr 1e400 ('1e400' is too large); allowed: > 0"},
    {"smoothing_too_close_to_zero", "--label-smoothing 1e-400", "",
     "--label-smoothing 1e-400 ('1e-400' is too close to 0); allowed: >= 0 and < 1"},
    {"zero_in_fp32", "--wire 2bit --sync gradients --gc-threshold 1e-50", "",
     "--gc-threshold 1e-50 ('1e-50' is 0 in fp32, the format of the arithmetic); allowed: > 0"},
    {"zero_rate_in_fp32", "--lr 1e-50", "",
     "--lr 1e-50 ('1e-50' is 0 in fp32, the format of the arithmetic); allowed: > 0"},
    {"zero_factor_in_fp32", "--lr-mult conv1=1e-50", "",
     "--lr-mult conv1=1e-50 ('conv1=1e-50' is 0 in fp32, the format of the arithmetic); allowed: a comma-separated list such as "
     "*.bias=2,conv1=0.1,stem.bias=1@3"},
    {"decay_that_ends", "--decay-mult conv1=0@3", "",
     "--decay-mult conv1=0@3 ('conv1=0@3' is not a number); allowed: a comma-separated list such as fc=0,layer4=0.5"},
    {"decay_without_factor", "--decay-mult conv1", "",
     "--decay-mult conv1 ('conv1' is not PATTERN=F); allowed: a comma-separated list such as fc=0,layer4=0.5"},
    {"one_in_fp32", "--label-smoothing 0.999999999", "",
     "--label-smoothing 0.999999999 ('0.999999999' is 1 in fp32, the format of the arithmetic); allowed: >= 0 and < 1"},
    {"infinite_in_fp32", "--clip-grad 1e39", "",
     "--clip-grad 1e39 ('1e39' is infinite in fp32, the format of the arithmetic); allowed: >= 0"},
    {"epochs_without_end", "--epochs 1e18", "",
     "--epochs 1e18 ('1e18' is out of range); allowed: > 0 and <= 1000000000"},
    {"validations_without_end", "--val-interval 1e300", "",
     "--val-interval 1e300 ('1e300' is out of range); allowed: 0 to 1000000000"},
    {"run_epochs_without_end", "--run-epochs 1e18", "",
     "--run-epochs 1e18 ('1e18' is out of range); allowed: 0 to 1000000000"},
    {"warmup_without_end", "--lr 0.1 --warmup-epochs 1e18", "",
     "--warmup-epochs 1e18 ('1e18' is out of range); allowed: 0 to 1000000000"},
    {"limit_without_end", "--time-limit 99999999999d", "",
     "--time-limit 99999999999d ('99999999999d' is more seconds than any clock counts); allowed: seconds, MM:SS, HH:MM:SS, "
     "D-HH:MM:SS, or a number with s, m, h or d; 0: none"},
    {"name_of_another_folder", "--name ../../evil", "",
     "--name ../../evil ('../../evil' is a path; it names a folder in runs, so give a word without '/')"},
    {"name_of_the_folder_above", "--name ..", "",
     "--name .. ('..' is a path; it names a folder in runs, so give a word without '/')"},
    {"synthetic_classes", "--synthetic --synthetic-classes 3361", "",
     "--synthetic-classes 3361 ('3361' is out of range); allowed: 2 to 3360"},
    {"fraction", "--train-fraction 0", "", "--train-fraction 0 ('0' is out of range); allowed: > 0 and <= 1"},
    {"smoothing", "--label-smoothing 1", "", "--label-smoothing 1 ('1' is out of range); allowed: >= 0 and < 1"},
    {"choice", "--sync weight", "", "--sync weight ('weight' is not one of the choices); allowed: weights, gradients"},
    {"word", "--device gpu", "", "--device gpu ('gpu' is not one of the choices); use cuda; allowed: auto, cpu, cuda"},
    {"list", "--lr-step-epochs 3,,6 --lr-schedule multistep", "",
     "--lr-step-epochs 3,,6 ('3,,6' is not a number); allowed: a comma-separated list of numbers > 0 and <= 1000000000"},
    {"empty_value", "--name=", "", "option '--name' needs a value"},
    {"missing_value", "--lr", "", "option '--lr' needs a value (allowed: > 0)"},
    {"option_for_value", "--lr --batch-size 3", "", "option '--lr' needs a value (allowed: > 0)"},
    {"option_for_text", "--name --batch_size=3", "", "option '--name' needs a value"},
    {"switch_with_value", "--sync-bn=yes", "",
     "'--sync-bn' is a switch and takes no value; use '--sync-bn' or '--no-sync-bn'"},
    {"stray_word", "data other", "",
     "'convoy train' can't use 'other' (an option's name without --, or one path too many); see 'convoy train --help'"},
    {"fault", "--inject-fault burn@1@2", "",
     "--inject-fault burn@1@2 ('burn@1@2' names no known fault); allowed: throw, nan, spike, stall, slow-data, "
     "slow-compute, flip-convolution, flip-memory or flip-sum, then @RANK@STEP[@SECONDS]"},
    {"two_configs", "--config a --config b", "", "two configuration files are given ('a' and 'b'); give one"},
    {"model", "--model resnett50", "", "unknown model 'resnett50'; did you mean 'resnet50'?"},

    {"key", "--config f.cfg", "epochs = 3\n\nbacth-size = 4\n",
     "f.cfg:3: bacth-size = 4 (unknown key 'bacth-size'); did you mean 'batch-size'?"},
    {"key_value", "--config f.cfg", "momentum = 2\n",
     "f.cfg:1: momentum = 2 ('2' is out of range); allowed: >= 0 and < 1"},
    {"key_twice", "--config f.cfg", "lr = 1\nepochs = 2\nlearning_rate = 2\n",
     "'lr' is set twice (f.cfg:1: lr = 1; f.cfg:3: learning_rate = 2); keep one"},
    {"key_no_form", "--config f.cfg", "no-tensorboard = true\n",
     "f.cfg:1: no-tensorboard = true (unknown key 'no-tensorboard'); write 'tensorboard = ...'"},
    {"key_switch_value", "--config f.cfg", "tensorboard = maybe\n",
     "f.cfg:1: tensorboard = maybe ('maybe' is neither true nor false); allowed: true, false"},
    {"quote_without_end", "--config f.cfg", "name = \"a\n",
     "f.cfg:1: name = \"a (its value begins with a double quote that nothing closes); close it, or drop it"},
    {"phase_without_end", "--config f.cfg", "[phase.1]\nepochs = 0:1e300\nlr = 1\n",
     "f.cfg:2: epochs = 0:1e300 ('0:1e300' is out of range); allowed: BEGIN:END, epochs from 0 to 10^9"},
    {"key_empty", "--config f.cfg", "lr =\n", "f.cfg:1: lr = ('' is empty); allowed: > 0"},
    {"key_of_the_command_line", "--config f.cfg", "dry-run = true\n",
     "f.cfg:1: dry-run = true (only for the command line); give --dry-run there"},
    {"config_in_config", "--config f.cfg", "config = g.cfg\n",
     "f.cfg:1: config = g.cfg (only for the command line); give --config there"},
    {"no_key", "--config f.cfg", "lr 0.1\n",
     "f.cfg:1: lr 0.1 (neither a comment, a [phase.N] nor 'key = value'); write 'key = value'"},
    {"section", "--config f.cfg", "[optimizer]\nlr = 1\n",
     "f.cfg:1: [optimizer] (unknown section); the sections are [phase.1], [phase.2], ..."},
    {"empty_section", "--config f.cfg", "lr = 1\n[phases]\n",
     "f.cfg:2: [phases] (unknown section); the sections are [phase.1], [phase.2], ..."},
    {"phase_zero", "--config f.cfg", "[phase.0]\nlr = 1\n",
     "f.cfg:1: [phase.0] (unknown section); the sections are [phase.1], [phase.2], ..."},
    {"phase_key", "--config f.cfg", "[phase.1]\nepoch = 0:1\nlr = 1\n",
     "f.cfg:2: epoch = 0:1 (unknown key in a phase); did you mean 'epochs'?; a phase has 'epochs', 'lr', 'image-size', "
     "'batch-size', 'global-batch', 'min-random-area', 'rectangular-validation' and 'data'"},
    {"phase_key_of_an_option", "--config f.cfg", "[phase.1]\nmomentum = 0.5\n",
     "f.cfg:2: momentum = 0.5 (unknown key in a phase); a phase has 'epochs', 'lr', 'image-size', 'batch-size', "
     "'global-batch', 'min-random-area', 'rectangular-validation' and 'data'"},
    {"phase_two_batches", "--config f.cfg", "[phase.1]\nepochs = 0:1\nbatch-size = 4\nglobal-batch = 8\n",
     "[phase.1] has batch-size 4 and global-batch 8; keep one"},
    {"phase_twice", "--config f.cfg", "[phase.1]\nepochs = 0:1\nlr = 1\n[phase.1]\nepochs = 1:2\n",
     "'epochs' is set twice (f.cfg:2: epochs = 0:1; f.cfg:5: epochs = 1:2); keep one"},
    {"phase_half", "--config f.cfg", "[phase.1]\nlr = 1\n",
     "[phase.1] has no 'epochs' (f.cfg:2: lr = 1); a phase has 'epochs = BEGIN:END' and what it changes"},
    {"phase_without_rate", "--config f.cfg", "[phase.1]\nepochs = 0:1\nlr = 1\n[phase.2]\nepochs = 1:2\n",
     "some phases have 'lr' and others don't; give it in all of them, or in none beside --lr-schedule"},
    {"phase_order", "--config f.cfg", "[phase.1]\nepochs = 0:2\n[phase.2]\nepochs = 1:3\nimage-size = 64\n",
     "[phase.2] lasts from epoch 1 to 3; phases must be in order, not empty and must not overlap"},
    {"phase_between_epochs", "--config f.cfg", "[phase.1]\nepochs = 0:1.5\n[phase.2]\nepochs = 1.5:3\nsize = 64\n",
     "[phase.2] begins at epoch 1.5 and changes data, image size or batch; such a phase must begin at the start of an epoch"},
    {"phase_span", "--config f.cfg", "[phase.1]\nepochs = 5\nlr = 1\n",
     "f.cfg:2: epochs = 5 ('5' has no ':'); allowed: BEGIN:END, epochs from 0 to 10^9"},
    {"phase_rate", "--config f.cfg", "[phase.1]\nepochs = 0:5\nlr = 0.1:x\n",
     "f.cfg:3: lr = 0.1:x ('0.1:x' is not a number); allowed: RATE or FROM:TO, >= 0"},
    {"phases_and_another_schedule", "--config f.cfg --lr-schedule cosine", "[phase.1]\nepochs = 0:5\nlr = 0.1\n",
     "the configuration has [phase.1] and another --lr-schedule; keep one of them"},
    {"schedule_without_phases", "--lr-schedule phases", "",
     "--lr-schedule phases has no phases; write [phase.1], [phase.2], ... into the configuration file"},

    {"two_batches", "--batch-size 48 --global-batch 100", "",
     "--batch-size 48 and --global-batch 100 don't fit (no number of replicas makes one from the other); give one of "
     "them"},
    {"two_batches_with_replicas", "--batch-size 48 --global-batch 96 --replicas 4", "",
     "--batch-size 48 and --global-batch 96 don't fit (4 replicas take 192); give one of them"},
    {"sync_bn", "--sync-bn", "",
     "--sync-bn needs --sync gradients (replicas that average weights go their own ways between averages)"},
    {"local_steps", "--sync gradients --local-steps 8", "",
     "--local-steps 8 needs --sync weights (gradients are averaged every step)"},
    {"ema_between_averages", "--ema-decay 0.9 --ema-steps 6 --local-steps 4", "",
     "--ema-steps 6 is no multiple of --local-steps 4 (between two averages of the weights replicas differ); give "
     "--ema-steps 8"},
    {"ema_of_one", "--ema-decay 0.99999999", "",
     "--ema-decay 0.99999999 is 1 in fp32, so the average would stay as it is; give 0.9999999 or less"},
    {"mxnets_large_batches", "--optimizer lbsgd", "",
     "--optimizer lbsgd ('lbsgd' is not one of the choices); MXNet's is SGD with a warm-up: use sgd with --lr-scaling "
     "linear and --warmup-epochs; with its warmup_strategy 'lars' it is lars; allowed: sgd, "
     "nesterov, adam, adamw, rmsprop, adagrad, signum, lars, lamb, muon"},
    {"policy_of_timm", "--auto-augment augmix-m3", "",
     "--auto-augment augmix-m3 ('augmix-m3' is not one of the choices); it is timm's; use augmix with "
     "--augmix-severity; allowed: none, randaugment, trivial, autoaugment, augmix"},
    {"weights_of_torchvision", "--weights ResNet50_Weights.IMAGENET1K_V1", "",
     "--weights ResNet50_Weights.IMAGENET1K_V1 ('ResNet50_Weights.IMAGENET1K_V1' names weights that torchvision "
     "downloads, and Convoy downloads nothing); allowed: the path of a checkpoint, a run directory or a file, such as "
     "torch.save(model.state_dict(), 'FILE.pth') writes, or FILE.pth:KEY for one of its dictionaries"},
    {"polynomial_of_mxnet", "--config f.cfg", "lr-step-epochs = pow 2\n",
     "f.cfg:1: lr-step-epochs = pow 2 ('pow 2' is MXNet's polynomial decay: use --lr-schedule poly with --lr-power 2); "
     "allowed: a comma-separated list of numbers > 0 and <= 1000000000"},
    {"initialiser_of_mxnet", "--initializer msra", "",
     "--initializer msra ('msra' is not one of the choices); use he; allowed: he, xavier, normal, truncated_normal, "
     "uniform, orthogonal"},
    {"initialiser_by_default", "--initializer default", "",
     "--initializer default ('default' is not one of the choices); leave it out for the model's own; allowed: he, xavier, "
     "normal, truncated_normal, uniform, orthogonal"},
    {"beta_of_another_rule", "--beta1 0.8", "",
     "--beta1 0.8 has no effect: it needs --optimizer adam, adamw, lamb or muon; give that, or drop it"},
    {"norms_of_adamw", "--opt adamw --always-adapt", "",
     "--always-adapt has no effect: it needs --optimizer lars or lamb; give that, or drop it"},
    {"momentum_of_adamw", "--opt adamw --momentum 0.8", "",
     "--momentum 0.8 has no effect: it needs --optimizer sgd, nesterov, rmsprop, signum or lars; give that, or drop it"},
    {"adam_epsilon", "--opt adamw --adam-eps 0", "", "--adam-eps 0 ('0' is out of range); allowed: > 0 and < 1"},
    {"steps_of_another_schedule", "--lr-step-size 30", "",
     "--lr-step-size 30 has no effect: it needs --lr-schedule step or multistep; give that, or drop it"},
    {"start_of_another_schedule", "--onecycle-start 0.4", "",
     "--onecycle-start 0.4 has no effect: it needs --lr-schedule onecycle; give that, or drop it"},
    {"warmup_rate_alone", "--lr 0.1 --warmup-lr 0.01", "",
     "--warmup-lr 0.01 has no effect: it needs --warmup-epochs; give that, or drop it"},
    {"area_of_windows", "--crop window --min-scale 0.2", "",
     "--min-scale 0.2 has no effect: it needs --crop resized (or --augment with a recipe); give that, or drop it"},
    {"buffer_of_another_order", "--shuffle-buffer 100 --shuffle global", "",
     "--shuffle-buffer 100 has no effect: it needs --shuffle buffered; give that, or drop it"},
    {"strength_of_another_policy", "--aa trivial --ra-magnitude 7", "",
     "--ra-magnitude 7 has no effect: it needs --auto-augment randaugment; give that, or drop it"},
    {"mixing_of_nothing", "--mix-probability 0.5", "",
     "--mix-probability 0.5 has no effect: it needs --mixup or --cutmix; give that, or drop it"},
    {"momentum_of_gradients", "--sync gradients --local-momentum reset", "",
     "--local-momentum reset has no effect: it needs --sync weights; give that, or drop it"},
    {"outer_step_of_gradients", "--sync gradients --outer-optimizer momentum", "",
     "--outer-optimizer momentum has no effect: it needs --sync weights; give that, or drop it"},
    {"outer_step_of_every_step", "--outer-optimizer nesterov", "",
     "--outer-optimizer nesterov needs --local-steps above 1 (a momentum of single steps is what --optimizer has); give "
     "--local-steps N, or drop it"},
    {"outer_rate_alone", "--local-steps 8 --slowmo-lr 0.7", "",
     "--slowmo-lr 0.7 has no effect: it needs --outer-optimizer momentum or nesterov; give that, or drop it"},
    {"outer_momentum_of_one", "--local-steps 8 --outer-optimizer nesterov --outer-momentum 1", "",
     "--outer-momentum 1 ('1' is out of range); allowed: >= 0 and < 1"},
    {"key_without_effect", "--config f.cfg", "optimizer = adagrad\nmomentum = 0.8\n",
     "f.cfg:2: momentum = 0.8 has no effect: it needs --optimizer sgd, nesterov, rmsprop, signum or lars; give that, or "
     "drop it"},
    {"key_without_effect_beside_others", "--config f.cfg --lr-schedule poly", "lr-step-epochs = 30,60\n",
     "f.cfg:1: lr-step-epochs = 30,60 has no effect: it needs --lr-schedule step or multistep; give that, or drop it"},
    {"norms_of_a_network_without", "--model vgg16 --bn-momentum 0.2", "",
     "--bn-momentum 0.2 has no effect: it needs a network with batch norms; give that, or drop it"},
    {"epsilon_of_a_network_without", "--model lenet --norm-epsilon 1e-3", "",
     "--norm-epsilon 1e-3 has no effect: it needs a network with batch norms; give that, or drop it"},
    {"ema_steps_alone", "--ema-steps 8", "",
     "--ema-steps 8 has no effect: it needs --ema-decay; give that, or drop it"},
    {"replicas_twice", "--replicas 4 --grad-accum-steps 2", "",
     "--replicas 4 and --grad-accum-steps 2 both set the number of replicas; give one"},
    {"resume_and_weights", "--resume r.h5 --weights w.h5", "",
     "--resume r.h5 and --weights w.h5 are both given; --resume continues a run, --weights starts a new one (beside "
     "--resume "
     "auto they count if there is nothing to resume)"},
    {"loss_scale_without_fp16", "--loss-scale 512 --precision bf16", "",
     "--loss-scale 512 needs --precision fp16 (the others hold small gradients without it)"},
    {"start_after_end", "--epochs 3 --start-epoch 3", "", "--start-epoch 3 is not before the end (--epochs 3)"},
    {"patience_without_evaluation", "--patience 3 --skip-eval", "",
     "--patience 3 counts validations, and --skip-eval leaves them out; drop one"},
    {"plateau_without_evaluation", "--lr-schedule plateau --skip-eval", "",
     "--lr-schedule plateau follows the validations, and --skip-eval leaves them out; drop one"},
    {"patience_of_another_schedule", "--lr-patience 3", "",
     "--lr-patience 3 has no effect: it needs --lr-schedule plateau; give that, or drop it"},
    {"target_without_evaluation", "--target-accuracy 90 --skip-eval", "",
     "--target-accuracy 90 can't be reached with --skip-eval; drop one"},
    {"stall_order", "--stall-warning-seconds 20 --stall-abort-seconds 10", "",
     "--stall-warning-seconds 20 comes after --stall-abort-seconds 10; warn earlier, or 0 for never"},
    {"two_sources", "--data d", "", "--synthetic and a data folder are both given; keep one"},
    {"channels", "--rgb-mean 1,2,3 --rgb-std 1", "",
     "--rgb-mean has 3 values and --rgb-std 1; give one per channel in both"},
};

INSTANTIATE_TEST_SUITE_P(Config, UsageError, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(UsageErrors, of_the_other_commands) {
  const auto error = [](auto parse, const std::string& line) {
    return usage_error([&] { parse(words(line), [](const std::string&) { return "epohcs = 3\n"; }); });
  };
  EXPECT_EQ(usage_error([] { parse_train({}); }),
            "no data set is given; use --data DIR (made by convoy-preprocess) or --synthetic");
  EXPECT_EQ(error(parse_evaluate, ""),
            "no checkpoint is given; use 'convoy evaluate PATH --data DIR' with a checkpoint or run directory");
  EXPECT_EQ(error(parse_evaluate, "a --checkpoint b"), "two paths are given (--checkpoint b and 'a'); give one");
  EXPECT_EQ(error(parse_evaluate, "a -c f"),
            "f:1: epohcs = 3 (unknown key 'epohcs'); 'convoy train --help-all' lists them");
  EXPECT_EQ(error(parse_evaluate, "a --lr 1"), "'convoy evaluate' has no option '--lr'. See 'convoy evaluate --help'");
  EXPECT_EQ(error(parse_bench, ""), "'convoy bench' needs to know what (one of compute, scaling, io, comm)");
  EXPECT_EQ(error(parse_bench, "disk"), "'convoy bench disk' is unknown; it is one of compute, scaling, io, comm");
  EXPECT_EQ(error(parse_bench, "io"),
            "no data set is given; use --data DIR (made by convoy-preprocess) or --synthetic");
  EXPECT_EQ(error(parse_inspect, "data"), "'convoy inspect data' needs a folder made by convoy-preprocess");
  EXPECT_EQ(error(parse_inspect, "checkpoint"),
            "'convoy inspect checkpoint' needs a checkpoint file, its folder or a run directory");
}

}  // namespace
}  // namespace convoy
