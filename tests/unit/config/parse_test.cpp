// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "config/print.hpp"
#include "support/temp_folder.hpp"
#include "words.hpp"

namespace convoy {
namespace {

TEST(Parse, defaults_are_the_documented_ones) {
  const TrainConfig config = train_config("");
  EXPECT_EQ(config.sync.mode, SyncMode::weights);
  EXPECT_EQ(config.sync.local_steps, 1);
  EXPECT_EQ(config.optimiser.rule, Rule::sgd);
  EXPECT_DOUBLE_EQ(config.optimiser.settings.at("momentum"), 0.9);
  EXPECT_DOUBLE_EQ(config.optimiser.weight_decay, 1e-4);
  EXPECT_EQ(config.model.model, "resnet50");
  EXPECT_EQ(config.epochs, 90);
  EXPECT_DOUBLE_EQ(config.sync.deadline.warn_seconds, 60);
  EXPECT_DOUBLE_EQ(config.sync.deadline.abort_seconds, 300);
  EXPECT_FALSE(config.batch_given);
}

TEST(Parse, long_forms_and_letters) {
  const TrainConfig config = train_config("--batch-size=64 -m mlp -j4 -p 7 -o out --lr .4 --hidden 32,16");
  EXPECT_EQ(config.batch, 64);
  EXPECT_TRUE(config.batch_given);
  EXPECT_EQ(config.model.model, "mlp");
  EXPECT_EQ(config.data.workers, 4);
  EXPECT_EQ(config.output.print_every, 7);
  EXPECT_EQ(config.output.folder, "out");
  EXPECT_DOUBLE_EQ(config.optimiser.rate, 0.4);
  EXPECT_EQ(config.model.option("hidden"), "32,16");
}

TEST(Parse, names_of_other_programs) {
  const TrainConfig config = train_config(
      "-a resnet20 --learning-rate 0.2 --wd 5e-4 --mom 0.8 --num-epochs 12 --smoothing 0.1 --dtype bfloat16 --lr-gamma "
      "0.5 "
      "--lr-scheduler multistep --decay-milestones 3,6 --opt nesterov --disp-batches 50 --checkpoint-hist 4 --logdir x "
      "--batches-per-allreduce 2 --data-nthreads 3 --random-seed 7 --init-bn0 --save-period 2 --top-k 3");
  EXPECT_EQ(config.model.model, "resnet20");
  EXPECT_DOUBLE_EQ(config.optimiser.rate, 0.2);
  EXPECT_DOUBLE_EQ(config.optimiser.weight_decay, 5e-4);
  EXPECT_DOUBLE_EQ(config.optimiser.settings.at("momentum"), 0.8);
  EXPECT_DOUBLE_EQ(config.epochs, 12);
  EXPECT_FLOAT_EQ(config.model.label_smoothing, 0.1F);
  EXPECT_EQ(config.device.precision, Precision::bf16);
  EXPECT_DOUBLE_EQ(config.optimiser.schedule.factor, 0.5);
  EXPECT_EQ(config.optimiser.schedule.decay, Decay::multistep);
  EXPECT_EQ(config.optimiser.schedule.step_epochs, (std::vector<double>{3, 6}));
  EXPECT_EQ(config.optimiser.rule, Rule::nesterov);
  EXPECT_EQ(config.output.print_every, 50);
  EXPECT_EQ(config.checkpoint.keep, 4);
  EXPECT_EQ(config.output.folder, "x");
  EXPECT_EQ(config.sync.grad_accum_steps, 2);
  EXPECT_EQ(config.data.workers, 3);
  EXPECT_EQ(config.seed, 7U);
  EXPECT_EQ(config.model.option("zero-init-residual"), "true");
  EXPECT_DOUBLE_EQ(config.checkpoint.save_every, 2);
  EXPECT_EQ(config.topk, 3);
}

TEST(Parse, formats_of_mxnet) {
  EXPECT_TRUE(train_config("--sync gradients --gc-type none").sync.wire.is_plain());
  const SyncConfig sync = train_config("--sync gradients --gc-type 2bit --gc-threshold 0.25").sync;
  EXPECT_EQ(sync.wire.compression, Compression::two_bits);
  EXPECT_DOUBLE_EQ(sync.compression.threshold, 0.25);
}

TEST(Parse, policies_of_torchvision) {
  EXPECT_EQ(train_config("--auto-augment ra").data.augment.policy.policy, Policy::rand);
  EXPECT_EQ(train_config("--auto-augment ta_wide").data.augment.policy.policy, Policy::trivial);
  EXPECT_EQ(train_config("--auto-augment imagenet").data.augment.policy.policy, Policy::autoaugment);
}

TEST(Parse, network_and_depth_in_two_options) {
  EXPECT_EQ(train_config("--num-layers 50 --network resnet").model.model, "resnet50");
  EXPECT_EQ(train_error("--model resnet20 --num-layers 50"),
            "--num-layers 50 ('50' adds a depth to 'resnet20', which has one); allowed: a whole number, with a network "
            "without a depth, as in --model resnet --num-layers 50");
}

TEST(Parse, a_network_of_the_command_line_wins) {
  struct Given {
    const char *file, *line, *model;
  };
  for (const Given& one : {Given{"network = resnet\nnum-layers = 101\n", "--network resnet50", "resnet50"},
                           Given{"network = resnet\nnum-layers = 101\n", "--num-layers 50", "resnet50"},
                           Given{"num-layers = 101\n", "--model resnet50", "resnet50"},
                           Given{"num-layers = 101\n", "--network resnet", "resnet101"},
                           Given{"network = resnet50\n", "--num-layers 18", "resnet18"},
                           Given{"network = vgg16_bn\n", "--num-layers 11", "vgg11_bn"},
                           Given{"network = resnet\nnum-layers = 101\n", "--network resnext", "resnext101_32x4d"}})
    EXPECT_EQ(train_config(std::string("--config f ") + one.line, one.file).model.model, one.model) << one.line;
  EXPECT_EQ(
      train_error("--config f --num-layers 7", "network = densenet121\n"),
      "--num-layers 7 ('7' adds a depth to 'densenet121', which has one); allowed: a whole number, with a network "
      "without a depth, as in --model resnet --num-layers 50")
      << "there is no such network";
}

TEST(Parse, defaults_without_effect_are_told) {
  const TrainConfig plain = train_config("--model lenet");
  for (const char* given : {"--norm-momentum 0.1", "--norm-epsilon 1e-5", "--onecycle-start 0.3", "--ema-steps 1"}) {
    const TrainConfig config = train_config(std::string("--model lenet ") + given);
    EXPECT_EQ(to_ini(config), to_ini(plain)) << given;
    ASSERT_EQ(config.remarks.size(), 1U) << given;
    EXPECT_EQ(config.remarks.front().rfind(std::string(given) + " has no effect (it is the default): it needs ", 0),
              0U);
  }
  EXPECT_EQ(train_config("--config f", "model = lenet\nnorm-momentum = 0.1\n").remarks,
            std::vector<std::string>{
                "f:2: norm-momentum = 0.1 has no effect (it is the default): it needs a network with batch norms"});
  const TrainConfig none = train_config("--model resnet50 --dropout 0");
  EXPECT_EQ(to_ini(none), to_ini(train_config("--model resnet50")));
  EXPECT_EQ(none.remarks, std::vector<std::string>{"--dropout 0 has no effect: resnet50 has none"});
}

/// MXNet's symbols (example/image-classification/symbols), GluonCV's model zoo, and hyphens for underscores.
TEST(Parse, networks_by_other_programs_names) {
  struct Named {
    const char *line, *model, *version;
  };
  for (const Named& one : {Named{"--network resnext --num-layers 50", "resnext50_32x4d", ""},
                           Named{"--network resnext --num-layers 101", "resnext101_32x4d", ""},
                           Named{"--network resnet-v1 --num-layers 50", "resnet50", "v1"},
                           Named{"--network resnet-v2 --num-layers 20", "resnet20", "v2"},
                           Named{"--network vgg --num-layers 16", "vgg16", ""},
                           Named{"--network mobilenet", "mobilenet_v1", ""},
                           Named{"--network mobilenet-v2", "mobilenet_v2", ""},
                           Named{"--network inception-v3", "inception_v3", ""},
                           Named{"--model ResNet50", "resnet50", ""},
                           Named{"--model Resnet-50", "resnet50", ""},
                           Named{"--model resnet_18", "resnet18", ""},
                           Named{"--model vgg-16", "vgg16", ""},
                           Named{"--model VGG-16-bn", "vgg16_bn", ""},
                           Named{"--model wide-resnet-50-2", "wide_resnet50_2", ""},
                           Named{"--model resnet50_v2", "resnet50", "v2"},
                           Named{"--model resnet50_v1b", "resnet50", "v1.5"},
                           Named{"--model se-resnet50", "seresnet50", ""},
                           Named{"--model RegNet-Y-400MF", "regnet_y_400mf", ""},
                           Named{"--model regnety_016", "regnet_y_1_6gf", ""},
                           Named{"--model EfficientNetV2-S", "efficientnet_v2_s", ""},
                           Named{"--model mnasnet_050", "mnasnet0_5", ""},
                           Named{"--model regnetx_004_tv", "regnet_x_400mf", ""}}) {
    const TrainConfig config = train_config(one.line);
    EXPECT_EQ(config.model.model, one.model) << one.line;
    EXPECT_EQ(config.model.option("resnet-version"), one.version) << one.line;
    EXPECT_EQ(to_ini(parse_ini(to_ini(config))), to_ini(config)) << one.line;
    EXPECT_EQ(train_config("--config f", to_ini_of_words(config)).model.option("resnet-version"), one.version);
  }
  EXPECT_EQ(
      train_error("--network resnext --num-layers 51"),
      "unknown model 'resnext51'; networks of this family are resnext50_32x4d, resnext101_32x4d, resnext101_32x8d, "
      "resnext101_64x4d, resnext152_32x4d");
  EXPECT_EQ(
      train_error("--network vgg"),
      "unknown model 'vgg'; networks of this family are vgg11, vgg13, vgg16, vgg19, vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn");
  EXPECT_EQ(train_config("--config f --model resnet50_v2", "resnet-version = v1.5\n").model.option("resnet-version"),
            "v2")
      << "the command line wins";
  EXPECT_EQ(
      train_error("--model resnet50_v1 --resnet-version v1.5"),
      "--model resnet50_v1 is a network with resnet-version v1, and --resnet-version v1.5 says another; drop one of "
      "them");
  EXPECT_EQ(train_error("--network squeezenet"),
            "unknown model 'squeezenet'; networks of this family are squeezenet1_0, squeezenet1_1");
  EXPECT_EQ(
      train_error("--network efficientnet_lite0").find("unknown model 'efficientnet_lite0'; networks of this family"),
      0U)
      << "no network is near";
  EXPECT_EQ(train_error("--network mobilenet_v3_larg"),
            "unknown model 'mobilenet_v3_larg'; did you mean 'mobilenet_v3_large'?");
  EXPECT_EQ(train_error("--network regnety_400mf"), "unknown model 'regnety_400mf'; did you mean 'regnet_y_400mf'?");
  EXPECT_EQ(train_error("--network resnet51").find("unknown model 'resnet51'; networks of this family are resnet"), 0U)
      << "another number is no typing error";
  EXPECT_EQ(train_error("--network regnety_008").rfind("unknown model 'regnety_008'; ", 0), 0U) << "not torchvision's";
  EXPECT_EQ(train_error("--network swin_t"), "unknown model 'swin_t'; 'convoy models' lists the networks");
}

TEST(Parse, widths_in_names_of_mobilenets) {
  for (const auto& [line, model, width] : {std::tuple{"--model mobilenet_v2 --width-mult 0.50", "mobilenet_v2", "0.5"},
                                           {"--model mobilenet_v2 --width-mult 1.0", "mobilenet_v2", ""},
                                           {"--model mobilenet0.25", "mobilenet_v1", "0.25"},
                                           {"--model mobilenet1.0", "mobilenet_v1", ""},
                                           {"--model MobileNetV2_0.75", "mobilenet_v2", "0.75"},
                                           {"--model mobilenet_v2_1.0", "mobilenet_v2", ""},
                                           {"--model mobilenetv2_050", "mobilenet_v2", "0.5"},
                                           {"--model mobilenetv2_140", "mobilenet_v2", "1.4"},
                                           {"--model mobilenetv1_100", "mobilenet_v1", ""}}) {
    const TrainConfig config = train_config(line);
    EXPECT_EQ(config.model.model, model) << line;
    EXPECT_EQ(config.model.option("width-mult"), width) << line;
    EXPECT_EQ(to_ini(parse_ini(to_ini(config))), to_ini(config)) << line;
  }
  EXPECT_EQ(
      train_error("--model mobilenet0.5 --width-mult 0.25"),
      "--model mobilenet0.5 is a network with width-mult 0.5, and --width-mult 0.25 says another; drop one of them");
  for (const auto& [name, depth] : {std::pair{"mobilenet_v2", "152"}, {"mobilenet_v2", "110"}, {"mobilenet_v1", "100"}})
    EXPECT_EQ(train_error(fmt::format("--model {} --num-layers {}", name, depth)),
              fmt::format("--num-layers {1} ('{1}' adds a depth to '{0}', which has one); allowed: a whole number, "
                          "with a network without a depth, as in --model resnet --num-layers 50",
                          name, depth))
        << "a depth is no width";
  EXPECT_EQ(train_error("--model mobilenetv2_inf").find("unknown model 'mobilenetv2_inf'"), 0U);
  EXPECT_EQ(train_error("--model mobilenetv2_x"), "unknown model 'mobilenetv2_x'; 'convoy models' lists the networks");
  EXPECT_EQ(train_error("--model mobilenet_v2 --width-mult 0"),
            "--width-mult 0 ('0' is out of range); allowed: > 0 and <= 100");
  EXPECT_EQ(train_error("--model resnet50 --width-mult 0.5"),
            "resnet50 has no width multiplier (got 0.5); leave it out");
}

TEST(Parse, underscores_are_hyphens) {
  const TrainConfig config =
      train_config("--batch_size 8 --weight_decay=1e-3 --activation leaky-relu --normalise per_image", "");
  EXPECT_EQ(config.batch, 8);
  EXPECT_DOUBLE_EQ(config.optimiser.weight_decay, 1e-3);
  EXPECT_EQ(config.model.activation, "leaky_relu");
  EXPECT_EQ(config.data.normalise, InputSpec::Normalise::per_image);
  EXPECT_EQ(train_config("--output-dir a_b --name=c_d").output.folder, "a_b");
  EXPECT_EQ(train_config("--output-dir a_b --name=c_d").output.name, "c_d");
}

TEST(Parse, switches_have_a_no_form) {
  EXPECT_FALSE(train_config("--no-checkpoints").checkpoint.save);
  EXPECT_FALSE(train_config("--no-tensorboard").output.tensorboard);
  EXPECT_TRUE(train_config("--sync gradients --sync-bn").sync.sync_bn);
  EXPECT_FALSE(train_config("--sync gradients --sync-bn --no-sync-bn").sync.sync_bn);
  EXPECT_EQ(train_config("--no-init-bn0 --config f", "zero-init-residual = true\n").model.option("zero-init-residual"),
            "");
}

TEST(Parse, command_line_wins_over_file_and_the_last_word_wins) {
  const std::string file = "lr = 0.5\nepochs = 3 # a comment\n# batch-size = 9\nmom = 0.7\nsync_bn = false\n";
  const TrainConfig config = train_config("--lr 0.2 --config f --lr 0.3", file);
  EXPECT_DOUBLE_EQ(config.optimiser.rate, 0.3);
  EXPECT_DOUBLE_EQ(config.epochs, 3);
  EXPECT_DOUBLE_EQ(config.optimiser.settings.at("momentum"), 0.7);
  EXPECT_EQ(config.batch, 128);
  EXPECT_DOUBLE_EQ(train_config("--momentum 0.1 -c f", file).optimiser.settings.at("momentum"), 0.1);
}

TEST(Parse, a_byte_order_mark_is_no_part_of_a_key) {
  EXPECT_DOUBLE_EQ(train_config("--config f", "\xEF\xBB\xBFlr = 0.5\n").optimiser.rate, 0.5);
  EXPECT_EQ(train_error("--config f", "\xFF\xFEl"), "'f' is no plain text (it is UTF-16 or UTF-32); save it as UTF-8");
}

TEST(Parse, reads_the_named_file) {
  const TempFolder folder;
  const std::string path = folder.path() + "/my.cfg";
  std::ofstream(path) << "synthetic = true\r\nlr = 0.25\r\n";
  EXPECT_DOUBLE_EQ(parse_train({"--config", path}).optimiser.rate, 0.25);
  EXPECT_EQ(usage_error([&] {
              parse_train({"--config", folder.path() + "/none.cfg"});
            }),
            "cannot read the file '" + folder.path() + "/none.cfg' (No such file or directory); check --config");
  EXPECT_NE(usage_error([&] { parse_train({"--config", folder.path()}); }), "");
}

TEST(Parse, phases_imply_their_schedule) {
  const TrainConfig config = train_config(
      "-c f --epochs 20", "lr = 0.4\n[phase.2]\nepochs = 5:20\nlr = 0.4\n[phase.1]\nepochs = 0:5\nlr = 0.1:0.4\n");
  EXPECT_EQ(config.optimiser.schedule.decay, Decay::phases);
  ASSERT_EQ(config.phases.size(), 2U);
  EXPECT_EQ(config.phases[0].number, 1);
  EXPECT_DOUBLE_EQ(config.phases[0].rate.begin_epoch, 0);
  EXPECT_DOUBLE_EQ(config.phases[0].rate.end_epoch, 5);
  EXPECT_DOUBLE_EQ(config.phases[0].rate.from, 0.1);
  EXPECT_DOUBLE_EQ(config.phases[0].rate.to, 0.4);
  EXPECT_DOUBLE_EQ(config.phases[1].rate.from, 0.4);
  EXPECT_DOUBLE_EQ(config.phases[1].rate.to, 0.4);
}

TEST(Parse, a_path_alone) {
  EXPECT_EQ(parse_train({"data/cifar10", "--lr", "0.2"}).data.folder, "data/cifar10");
  EXPECT_EQ(parse_evaluate({"runs/a", "--data", "d"}).checkpoint, "runs/a");
  EXPECT_EQ(parse_evaluate({"--checkpoint", "runs/a"}).checkpoint, "runs/a");
  EXPECT_EQ(parse_bench({"comm", "--megabytes", "4"}).what, "comm");
  EXPECT_EQ(parse_inspect({"data", "d"}).path, "d");
  EXPECT_EQ(parse_inspect({"plan", "-m", "resnet20", "--image-size", "48"}).train.data.image_size, 48);
}

TEST(Parse, fault_for_tests) {
  const TrainConfig config = train_config("--inject-fault nan@2@20");
  EXPECT_EQ(config.fault_kind, "nan");
  EXPECT_EQ(config.fault_rank, 2);
  EXPECT_EQ(config.fault_step, 20);
  EXPECT_EQ(train_config("--inject-fault slow-compute@0@7@1.5").fault_seconds, 1.5);
}

TEST(Parse, synthetic_size_is_both_sides) {
  const TrainConfig config = train_config("--synthetic-size 48 --synthetic-classes 7");
  EXPECT_EQ(config.data.synthetic_spec.height, 48);
  EXPECT_EQ(config.data.synthetic_spec.width, 48);
  EXPECT_EQ(config.data.synthetic_spec.classes, 7);
}

TEST(Parse, options_of_the_optimiser) {
  const TrainConfig config = train_config("--opt adamw --beta1 0.875 --opt-eps 1e-6 --lr 1e-3 --wd 0.05");
  EXPECT_EQ(config.optimiser.rule, Rule::adamw);
  const OptionValues values = config.optimiser.rule_values();
  EXPECT_EQ(values.value[0], 0.875);
  EXPECT_EQ(values.value[1], 0.999);
  EXPECT_EQ(values.value[2], 1e-6);
  EXPECT_TRUE(implausible(config).empty());
  EXPECT_EQ(implausible(train_config("--opt adamw --lr 0.1")).at(0),
            "--lr 0.1 is large for AdamW (recipes use 1e-4 to 4e-3)");
  EXPECT_EQ(train_config("--momentum 0.75").optimiser.rule_values().value[0], 0.75);
  EXPECT_EQ(train_config("--opt sgd --momentum 0").optimiser.rule_values().value[0], 0) << "plain SGD";
  const TrainConfig lars = train_config("--opt lars --lars-eta 0.002 --adapt-all");
  EXPECT_EQ(lars.optimiser.rule_values().value[1], 0.002);
  EXPECT_EQ(lars.optimiser.rule_values().value[2], 1);
  EXPECT_EQ(train_config("--config f", to_ini(lars)).optimiser.settings, lars.optimiser.settings);
  for (const auto& [name, rule] : {std::pair{"momentum", Rule::sgd}, {"nag", Rule::nesterov}, {"adam_w", Rule::adamw}})
    EXPECT_EQ(train_config(std::string("--opt ") + name).optimiser.rule, rule) << name;
}

TEST(Parse, implausible_settings_are_named) {
  EXPECT_TRUE(implausible(train_config("")).empty());
  const auto texts = implausible(train_config("--weight-decay 0.05 --lr 20 --label-smoothing 0.9"));
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_NE(texts[0].find("--weight-decay 0.05"), std::string::npos);
  EXPECT_NE(texts[1].find("--lr 20"), std::string::npos);
  EXPECT_NE(texts[2].find("--label-smoothing 0.9"), std::string::npos);
}

TEST(Phases, change_size_batch_and_data_from_their_epoch_on) {
  const TrainConfig config =
      train_config("--config f",
                   "lr-schedule = cosine\nbatch-size = 32\n[phase.1]\nepochs = 0:2\nsize = 128\n"
                   "[phase.2]\nepochs = 2:5\nsize = 128\n"
                   "[phase.3]\nepochs = 5:9\nimage_size = 224\nbatch-size = 16\nmin-scale = 0.3\n"
                   "data = /large\n");
  EXPECT_EQ(config.optimiser.schedule.decay, Decay::cosine);
  const auto legs = data_phases(config);
  ASSERT_EQ(legs.size(), 2U) << "phases 1 and 2 agree";
  EXPECT_EQ(legs[0].first, 0);
  EXPECT_EQ(legs[0].second.data.image_size, 128);
  EXPECT_EQ(legs[0].second.batch, 32);
  EXPECT_EQ(legs[1].first, 5);
  EXPECT_EQ(legs[1].second.data.image_size, 224);
  EXPECT_EQ(legs[1].second.batch, 16);
  EXPECT_EQ(legs[1].second.data.folder, "/large");
  EXPECT_DOUBLE_EQ(legs[1].second.data.augment.min_area, 0.3);
}

TEST(Phases, that_begin_late_leave_the_first_epochs_alone) {
  const auto legs = data_phases(train_config("--config f", "[phase.1]\nepochs = 3:5\nsize = 64\n"));
  ASSERT_EQ(legs.size(), 2U);
  EXPECT_EQ(legs[0].second.data.image_size, 0);
  EXPECT_EQ(legs[1].first, 3);
  EXPECT_EQ(data_phases(train_config("--config f", "[phase.1]\nepochs = 0:5\nlr = 1\n")).size(), 1U);
}

TEST(Parse, the_command_line_overrides_what_belongs_together) {
  const std::string file =
      "lr-schedule = multistep\nlr-step-epochs = 30,60\nlr-factor = 0.2\nmomentum = 0.8\nlr = 0.3\n";
  const TrainConfig config = train_config("--config f --lr-schedule cosine --optimizer adagrad", file), usual;
  EXPECT_EQ(config.optimiser.schedule.decay, Decay::cosine);
  EXPECT_TRUE(config.optimiser.schedule.step_epochs.empty());
  EXPECT_EQ(config.optimiser.schedule.factor, usual.optimiser.schedule.factor);
  EXPECT_EQ(config.optimiser.settings.at("momentum"), usual.optimiser.settings.at("momentum"));
  EXPECT_EQ(config.optimiser.rate, 0.3);
  EXPECT_TRUE(config.data.synthetic) << "the command line is kept";
  // What is printed is a file again.
  const std::string again = to_ini(config);
  EXPECT_EQ(again.find("lr-factor"), std::string::npos);
  EXPECT_EQ(again.find("\nmomentum"), std::string::npos);
  EXPECT_EQ(to_ini(train_config("--config f", again)), again);
}

TEST(Parse, a_file_may_wait_for_synthetic) {
  const auto read = [](const std::string&) { return std::string("synthetic-size = 64\n"); };
  EXPECT_EQ(parse_train(words("--data d --config f"), read).data.synthetic_spec.height, 64);
  EXPECT_EQ(usage_error([&] { parse_train(words("--data d --synthetic-size 64"), read); }),
            "--synthetic-size 64 has no effect: it needs --synthetic; give that, or drop it");
}

TEST(Parse, files_of_experiments_serve_all_commands) {
  const auto read = [](const std::string&) {
    return std::string(
        "model = resnet20\nreplicas = 2\nresume = auto\nweights = w.h5\nimage-size = 24\nbatch-size = 7\n"
        "data = d\noutput = o\n[phase.1]\nepochs = 0:1\nlr = 1\n");
  };
  const EvaluateConfig evaluate = parse_evaluate(words("run --config f"), read);
  EXPECT_EQ(evaluate.checkpoint, "run") << "resume and weights mean something else there";
  EXPECT_EQ(evaluate.data.folder, "d");
  EXPECT_EQ(evaluate.data.image_size, 24);
  EXPECT_EQ(evaluate.batch, 7);
  const PredictConfig predict = parse_predict(words("run a.jpg --config f"), read);
  EXPECT_EQ(predict.checkpoint, "run");
  EXPECT_EQ(predict.output, "") << "a folder there";
  const BenchConfig bench = parse_bench(words("compute --config f"), read);
  EXPECT_EQ(bench.model.model, "resnet20");
  EXPECT_EQ(parse_inspect(words("plan --config f"), read).train.model.model, "resnet20");
  EXPECT_EQ(parse_preflight(words("--config f"), read).train.phases.size(), 1U);
}

/// What a run said before, what this job says, and which of two options count.
TEST(Resume, TakesTheRunsOwnConfigurationUnderTheNewWords) {
  const auto resumed = [](const std::string& own, const std::string& line) {
    return parse_train(
        words("--resume auto -o some/run " + line), [](const std::string&) { return "lr = 0.3\n"; },
        [&](const std::string& path, NamesData) { return path == "some/run/config.cfg" ? own : std::string(); });
  };
  const std::string own =
      "synthetic = true\nsynthetic-size = 48\nlr = 0.2\nepochs = 7\nmax-steps = 5\nglobal-batch = 64\n";
  TrainConfig config = resumed(own, "");
  EXPECT_TRUE(config.data.synthetic);
  EXPECT_EQ(config.optimiser.rate, 0.2);
  EXPECT_EQ(config.epochs, 7);
  EXPECT_EQ(config.global_batch, 64);
  EXPECT_EQ(config.max_steps, 0) << "is about one job";
  EXPECT_EQ(resumed(own, "--lr 0.4").optimiser.rate, 0.4);
  EXPECT_EQ(resumed(own, "--config f").optimiser.rate, 0.3);
  config = resumed(own, "--batch-size 8");
  EXPECT_EQ(config.batch, 8);
  EXPECT_EQ(config.global_batch, 0) << "the same said in another way";
  EXPECT_EQ(resumed(own + "local-steps = 4\n", "--sync gradients").sync.local_steps, 1);
  EXPECT_NE(usage_error([&] {
              resumed(own + "local-steps = 4\n", "--ema-decay 0.9 --ema-steps 3");
            }).find("those of 'some/run/config.cfg'"),
            std::string::npos);
  for (const char* data : {"--data some/set", "some/set"}) {
    config = resumed(own, data);
    EXPECT_FALSE(config.data.synthetic);
    EXPECT_EQ(config.data.folder, "some/set");
  }
  EXPECT_EQ(resumed("data = /old\n", "/new").data.folder, "/new");
  EXPECT_EQ(resumed(own + "momentum = 0.8\n", "--optimizer adamw").optimiser.rule, Rule::adamw)
      << "what counts no more is dropped";
  EXPECT_EQ(parse_train(words("--synthetic --resume auto"), {}, {}).optimiser.rate, 0.1) << "without a folder";
  EXPECT_EQ(parse_train(words("--synthetic --resume x.h5 -o some/run"), {}, {}).epochs, 90);
}

TEST(Print, OfWordsHasDefaultsInComments) {
  TrainConfig config = train_config("--lr 0.2 --weights some/w.h5 --threads 3");
  std::string text = to_ini_of_words(config);
  EXPECT_NE(text.find("\nlr = 0.2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n# epochs = 90\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nweights = " + std::filesystem::absolute("some/w.h5").string() + "\n"), std::string::npos)
      << text;
  config.said.erase("threads");
  EXPECT_EQ(parse_ini(to_ini_of_words(config)).device.threads, 0) << "found out on this machine";
  EXPECT_EQ(parse_ini(text).optimiser.rate, 0.2);
}

}  // namespace
}  // namespace convoy
