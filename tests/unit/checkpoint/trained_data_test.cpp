// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/trained_data.hpp"

#include <gtest/gtest.h>

#include "checkpoint/meta.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {
using Names = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;

TrainedData animals() {
  return {.class_names = {"cat", "dog", "emu"},
          .mean = {120.5, 118, 1.0 / 3},
          .std = {60, 61, 62},
          .height = 32,
          .width = 32,
          .train_digest = 0xfeedfacecafebeefULL,
          .val_digest = 7,
          .mean_image = 0,
          .normalise = InputSpec::Normalise::channel,
          .input_height = 28,
          .input_width = 28,
          .short_side = 32};
}

TrainedData with_names(const Names& names) {
  TrainedData data = animals();
  data.class_names = names;
  return data;
}

DataVerdict judge(const TrainedData& model, const TrainedData& set, DataUse use) {
  return judge({model, "'best.h5'"}, {set, "'set'"}, use);
}

std::string all_lines(const DataVerdict& verdict) {
  std::string text;
  for (const std::string& note : verdict.notes) text += "note " + note + "\n";
  for (const std::string& warning : verdict.warnings) text += "warning " + warning + "\n";
  return text;
}

void expect_refused(const TrainedData& model, const TrainedData& set, DataUse use, const std::string& said) {
  try {
    judge(model, set, use);
    ADD_FAILURE() << "not refused: " << said;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data);
    EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
  }
}

constexpr DataUse uses[] = {DataUse::evaluation, DataUse::weights, DataUse::epoch_border, DataUse::mid_epoch};

TEST(TrainedDataTest, TheSameDataAreTakenWithoutAWord) {
  for (const DataUse use : uses) {
    const DataVerdict verdict = judge(animals(), animals(), use);
    EXPECT_EQ(all_lines(verdict), "");
    EXPECT_TRUE(verdict.labels.empty());
    EXPECT_FALSE(verdict.new_head || verdict.new_best);
  }
}

TEST(TrainedDataTest, ClassesAreMatchedByNameIfOneHasAllOfTheOther) {
  EXPECT_EQ(match_classes({"cat", "dog", "emu"}, {"emu", "dog"}).labels, (Labels{2, 1}));
  EXPECT_EQ(match_classes({"cat", "dog"}, {"ant", "dog", "cat"}).labels, (Labels{-1, 1, 0}));
  EXPECT_TRUE(match_classes({"cat", "dog"}, {"cat", "dog"}).labels.empty());
  EXPECT_TRUE(match_classes({}, {"cat", "dog"}).labels.empty());
  EXPECT_EQ(match_classes({"cat", "dog"}, {"dog", "zcat"}).difference,
            "only the model has 'cat', only the set has 'zcat'");
  EXPECT_EQ(match_classes({"a", "a", "b"}, {"b", "a"}).difference, "several classes have one name");
  EXPECT_TRUE(match_classes({"a", "a", "b"}, {"a", "a", "b"}).difference.empty());
  Names many, others;
  for (int i = 0; i < 8; ++i) many.push_back("m" + std::to_string(i)), others.push_back("s" + std::to_string(i));
  EXPECT_EQ(
      match_classes(many, others).difference,
      "only the model has 'm0', 'm1', 'm2', 'm3', 'm4' and 3 more, only the set has 's0', 's1', 's2', 's3', 's4' and 3 more");
}

TEST(TrainedDataTest, OtherClassNames) {
  const TrainedData other = with_names({"dog", "emu", "zcat"}), reordered = with_names({"dog", "emu", "cat"}),
                    more = with_names({"ant", "cat", "dog", "emu"});
  expect_refused(
      animals(), other, DataUse::evaluation,
      "'best.h5' learned other classes than 'set' holds (only the model has 'cat', only the set has 'zcat')");
  EXPECT_EQ(judge(animals(), reordered, DataUse::evaluation).labels, (Labels{1, 2, 0}));
  EXPECT_EQ(all_lines(judge(animals(), reordered, DataUse::evaluation)),
            "note classes of 'set' are matched by name with those of 'best.h5': 3 of 3\n");
  EXPECT_EQ(all_lines(judge(animals(), more, DataUse::evaluation)),
            "note classes of 'set' are matched by name with those of 'best.h5': 3 of 3\n"
            "warning images of classes that 'best.h5' doesn't know are left out: 'ant'\n");
  for (const TrainedData& set : {other, reordered, more}) {
    EXPECT_TRUE(judge(animals(), set, DataUse::weights).new_head);
    EXPECT_NE(all_lines(judge(animals(), set, DataUse::weights)).find("a new head starts"), std::string::npos);
    for (const DataUse use : {DataUse::epoch_border, DataUse::mid_epoch})
      expect_refused(animals(), set, use, "'best.h5' learned other classes than 'set' holds");
  }
  expect_refused(animals(), reordered, DataUse::epoch_border, "class 0 is 'cat' then and 'dog' now");
}

TEST(TrainedDataTest, OtherSamples) {
  TrainedData remade = animals();
  remade.train_digest = 8;
  for (const DataUse use : {DataUse::evaluation, DataUse::weights})
    EXPECT_EQ(all_lines(judge(animals(), remade, use)), "");
  EXPECT_EQ(all_lines(judge(animals(), remade, DataUse::epoch_border)),
            "warning the samples of 'set' are not those that 'best.h5' was trained on (digest feedfacecafebeef then, "
            "0000000000000008 now): it continues with the new ones\n");
  expect_refused(animals(), remade, DataUse::mid_epoch, "'best.h5' stands in the middle of an epoch of other samples");

  TrainedData other_val = animals();
  other_val.val_digest = 9;
  for (const DataUse use : {DataUse::epoch_border, DataUse::mid_epoch}) {
    EXPECT_TRUE(judge(animals(), other_val, use).new_best);
    EXPECT_NE(all_lines(judge(animals(), other_val, use)).find("best.h5 starts anew"), std::string::npos);
  }
  other_val.val_digest = 0;  // --skip-eval
  EXPECT_FALSE(judge(animals(), other_val, DataUse::epoch_border).new_best);
}

TEST(TrainedDataTest, OtherNormalisationAndInput) {
  TrainedData dark = animals(), grey = animals(), image = animals(), large = animals();
  dark.mean[0] = 40;
  grey.mean = grey.std = {100};
  image.mean_image = 5;
  large.input_height = large.input_width = 64;
  EXPECT_EQ(all_lines(judge(animals(), dark, DataUse::evaluation)), "");
  EXPECT_EQ(all_lines(judge(animals(), large, DataUse::evaluation)), "");
  expect_refused(animals(), grey, DataUse::evaluation, "takes images of 3 channels, and 'set' holds images of 1");
  expect_refused(image, animals(), DataUse::evaluation, "'best.h5' subtracts the mean image of its training set");
  for (const DataUse use : {DataUse::weights, DataUse::epoch_border, DataUse::mid_epoch}) {
    const std::string kind = use == DataUse::weights ? "note " : "warning ";
    EXPECT_EQ(all_lines(judge(animals(), dark, use)),
              kind +
                  "input is normalised with mean 40.00 118.00 0.33, deviation 60.00 61.00 62.00, in 'best.h5' it was "
                  "mean 120.50 118.00 0.33, deviation 60.00 61.00 62.00; --rgb-mean and --rgb-std keep what it "
                  "learned with\n");
    EXPECT_EQ(
        all_lines(judge(animals(), large, use)),
        kind +
            "input is 64 x 64 pixels of a short side of 32, in 'best.h5' it was 28 x 28 pixels of a short side of 32\n");
  }
}

TEST(TrainedDataTest, AnotherKindOfNormalisation) {
  TrainedData own = animals(), unknown = animals();
  own.normalise = InputSpec::Normalise::per_image;
  unknown.normalise.reset();
  EXPECT_EQ(all_lines(judge(own, animals(), DataUse::evaluation)), "");  // the model's is taken
  EXPECT_EQ(all_lines(judge(own, animals(), DataUse::weights)),
            "note input is normalised with mean 120.50 118.00 0.33, deviation 60.00 61.00 62.00, in 'best.h5' it was "
            "each image's own mean and deviation; --normalise per-image keeps what it learned with\n");
  for (const DataUse use : {DataUse::epoch_border, DataUse::mid_epoch})
    EXPECT_EQ(all_lines(judge(animals(), own, use)),
              "warning input is normalised with each image's own mean and deviation, in 'best.h5' it was mean 120.50 "
              "118.00 0.33, deviation 60.00 61.00 62.00; --normalise channel keeps what it learned with\n");
  EXPECT_EQ(all_lines(judge(unknown, own, DataUse::evaluation)), "");
  EXPECT_EQ(all_lines(judge(unknown, own, DataUse::weights)),
            "note 'best.h5' doesn't tell its data's kind of normalisation (an older version or another program wrote "
            "it): not compared\n");
  TrainedData dark = own;  // whose mean and deviation nothing uses
  dark.mean[0] = 40;
  EXPECT_EQ(all_lines(judge(own, dark, DataUse::weights)), "");
  EXPECT_FALSE(normalise_alike(animals(), own));
}

TEST(TrainedDataTest, OlderVersionsTellLessAndThatIsSaid) {
  TrainedData old = animals();
  old.train_digest = old.val_digest = 0;
  old.input_height = old.input_width = old.short_side = 0;
  TrainedData remade = animals();
  remade.train_digest = 8;
  remade.val_digest = 9;
  for (const DataUse use : uses) {
    EXPECT_EQ(
        all_lines(judge(old, remade, use)),
        "note 'best.h5' doesn't tell its data's samples, input size (an older version or another program wrote it): "
        "not compared\n");
    EXPECT_EQ(all_lines(judge({}, remade, use)),
              "note 'best.h5' doesn't tell its data's classes, normalisation, samples, input size (an older version or "
              "another program wrote it): not compared\n");
  }
  expect_refused(old, with_names({"zcat"}), DataUse::evaluation, "learned other classes");
}

TEST(TrainedDataTest, AFileKeepsAllOfIt) {
  FileMeta file;
  file.model = "small";
  file.meta.data = with_names({"line\nend", "b\xff", "c, d"});
  const TrainedData read = parse_meta(to_text(file), "a.h5").meta.data;
  EXPECT_EQ(read.class_names[0], "line\nend");
  EXPECT_EQ(read.mean, animals().mean);
  EXPECT_EQ(read.std, animals().std);
  EXPECT_EQ(read.normalise, InputSpec::Normalise::channel);
  EXPECT_EQ(read.train_digest, 0xfeedfacecafebeefULL);
  EXPECT_EQ(read.input_width, 28);
  EXPECT_EQ(read.short_side, 32);
  for (const DataUse use : uses)  // what is no UTF-8 is kept otherwise, and is the same class
    EXPECT_EQ(all_lines(judge(read, with_names({"line\nend", "b\xff", "c, d"}), use)), "");
}

TEST(TrainedDataTest, TextsOfOlderVersionsAreRead) {
  const std::string text =
      R"({"model": "m", "position": {"epoch": 1, "step_in_epoch": 0, "step": 5, "images": 40}, "replicas": 1, "ranks": 1,
          "local_steps": 0, "plan_digest": "0", "configuration_hash": "", "numbers": {},
          "texts": {"class_names": "cat\ndog", "data_mean": "1.5, 2", "data_std": "3, 4.25", "data_size": "32, 24"}})";
  const TrainedData data = parse_meta(text, "a.h5").meta.data;
  EXPECT_EQ(data.class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(data.mean, (std::vector<double>{1.5, 2}));
  EXPECT_EQ(data.std, (std::vector<double>{3, 4.25}));
  EXPECT_EQ(data.height, 32);
  EXPECT_EQ(data.width, 24);
  EXPECT_EQ(data.train_digest, 0U);
  EXPECT_FALSE(data.normalise);
}

}  // namespace
}  // namespace convoy
