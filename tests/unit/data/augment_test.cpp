// SPDX-License-Identifier: Apache-2.0
#include "data/augment.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/errors.hpp"

namespace convoy {
namespace {

AugmentSpec cifar() {
  return {.source_height = 32,
          .source_width = 32,
          .height = 32,
          .width = 32,
          .crop = Crop::window,
          .pad = 4,
          .flip = Flip::random,
          .cutout = 8,
          .seed = 9};
}

SampleSpec at(const AugmentSpec& spec, Index epoch, Index position, Index id = 0) {
  SampleSpec sample;
  augment(spec, epoch, position, id, sample);
  return sample;
}

TEST(Augment, ImagesTurnUpsideDownWithTheirProbabilityAndNothingElseChanges) {
  AugmentSpec turned = cifar();
  turned.vertical_flip = 0.25;
  int count = 0, both = 0;
  for (Index p = 0; p < 9000; ++p) {
    const SampleSpec plain = at(cifar(), 3, p);
    SampleSpec other = at(turned, 3, p);
    count += other.vertical_flip;
    both += other.vertical_flip * other.flip;
    EXPECT_EQ(plain.vertical_flip, 0);
    EXPECT_TRUE(other.y == plain.y && other.x == plain.x && other.flip == plain.flip &&
                other.erase_y == plain.erase_y && other.erase_x == plain.erase_x);
  }
  EXPECT_NEAR(count, 2250, 205);  // five standard deviations of 41
  EXPECT_NEAR(both, 1125, 160) << "the two flips are not independent";
}

// 9000 positions over 9 offsets: 1000 +- 30 each; 150 is five standard deviations.
TEST(Augment, CropsStartUniformlyInThePaddedRange) {
  std::map<int, int> rows, columns;
  int flips = 0, equal = 0;
  for (Index p = 0; p < 9000; ++p) {
    const SampleSpec s = at(cifar(), 0, p);
    ++rows[s.y];
    ++columns[s.x];
    flips += s.flip;
    equal += s.y == s.x;
  }
  EXPECT_EQ(rows.begin()->first, -4);
  EXPECT_EQ(rows.rbegin()->first, 4);
  for (const auto* side : {&rows, &columns}) {
    EXPECT_EQ(side->size(), 9U);
    for (const auto& [offset, count] : *side) EXPECT_NEAR(count, 1000, 150) << "offset " << offset;
  }
  EXPECT_NEAR(flips, 4500, 240);
  EXPECT_NEAR(equal, 1000, 150) << "rows and columns are not independent";
}

TEST(Augment, SmallerInputsAreCutFromAnywhereInTheSource) {
  AugmentSpec spec = cifar();
  spec.source_height = 40;
  spec.source_width = 33;
  spec.pad = 1;
  std::map<int, int> rows, columns;
  for (Index p = 0; p < 4000; ++p) {
    const SampleSpec s = at(spec, 0, p);
    ++rows[s.y];
    ++columns[s.x];
  }
  EXPECT_EQ(rows.begin()->first, -1);
  EXPECT_EQ(rows.rbegin()->first, 9);  // 9 + 32 = 41: one row of padding
  EXPECT_EQ(columns.begin()->first, -1);
  EXPECT_EQ(columns.rbegin()->first, 2);
}

TEST(Augment, SwitchingOneOffLeavesTheOthersDrawsAlone) {
  AugmentSpec plain = cifar(), no_flip = cifar(), alternating = cifar();
  plain.cutout = 0;
  no_flip.flip = Flip::none;
  alternating.flip = Flip::alternating;
  for (Index p = 0; p < 100; ++p) {
    const SampleSpec all = at(cifar(), 2, p), uncut = at(plain, 2, p), straight = at(no_flip, 2, p),
                     other = at(alternating, 2, p);
    EXPECT_EQ(uncut.y, all.y);
    EXPECT_EQ(uncut.x, all.x);
    EXPECT_EQ(uncut.flip, all.flip);
    EXPECT_EQ(uncut.erase_h, 0);
    EXPECT_EQ(straight.x, all.x);
    EXPECT_EQ(straight.erase_y, all.erase_y);
    EXPECT_EQ(straight.erase_x, all.erase_x);
    EXPECT_EQ(straight.flip, 0);
    EXPECT_EQ(other.y, all.y);
    EXPECT_EQ(other.erase_w, all.erase_w);
  }
}

TEST(Augment, IsAFunctionOfSeedEpochAndPosition) {
  AugmentSpec reseeded = cifar();
  reseeded.seed = 10;
  int same_epoch = 0, same_position = 0, same_seed = 0;
  const auto equal = [](const SampleSpec& a, const SampleSpec& b) {
    return a.y == b.y && a.x == b.x && a.flip == b.flip && a.erase_y == b.erase_y && a.erase_x == b.erase_x;
  };
  for (Index p = 0; p < 200; ++p) {
    EXPECT_TRUE(equal(at(cifar(), 1, p, 3), at(cifar(), 1, p, 4))) << "the sample's id changed a random draw";
    same_epoch += equal(at(cifar(), 1, p), at(cifar(), 2, p));
    same_position += equal(at(cifar(), 1, p), at(cifar(), 1, p + 1));
    same_seed += equal(at(cifar(), 1, p), at(reseeded, 1, p));
  }
  EXPECT_LT(same_epoch + same_position + same_seed, 3);
}

TEST(Augment, AlternatingFlipChangesEveryEpochWhateverThePosition) {
  AugmentSpec spec = cifar();
  spec.flip = Flip::alternating;
  int first_epoch = 0;
  for (Index id = 0; id < 1000; ++id) {
    const int flip = at(spec, 0, 7, id).flip;
    first_epoch += flip;
    for (Index epoch = 1; epoch < 5; ++epoch) EXPECT_EQ(at(spec, epoch, 31 * epoch + id, id).flip, (flip + epoch) % 2);
  }
  EXPECT_NEAR(first_epoch, 500, 80);
}

TEST(Augment, CutoutIsASquareClippedAtTheBorders) {
  std::map<int, int> heights;
  for (Index p = 0; p < 20000; ++p) {
    const SampleSpec s = at(cifar(), 0, p);
    ASSERT_GE(s.erase_y, 0);
    ASSERT_GE(s.erase_x, 0);
    ASSERT_LE(s.erase_y + s.erase_h, 32);
    ASSERT_LE(s.erase_x + s.erase_w, 32);
    if (s.erase_y > 0 && s.erase_y + s.erase_h < 32) {
      ASSERT_EQ(s.erase_h, 8);
    }
    ++heights[s.erase_h];
  }
  // Centres 0 .. 31, rows centre - 4 .. centre + 3: 4 to 7 at the upper border, 5 to 7 at the lower one, else 8.
  EXPECT_EQ(heights.begin()->first, 4);
  EXPECT_EQ(heights.rbegin()->first, 8);
  EXPECT_NEAR(heights[4], 20000 / 32.0, 130);
  EXPECT_NEAR(heights[8], 20000 * 25 / 32.0, 330);
}

// torchvision's center_crop starts at int(round(spare / 2)), which rounds half to even, and puts floor(missing / 2)
// pixels of padding before the image.
TEST(Augment, EvaluationTakesTheCentre) {
  AugmentSpec spec = cifar();
  spec.train = false;
  const std::map<Index, int> starts{{32, 0}, {33, 0}, {34, 1}, {35, 2}, {37, 2}, {40, 4}, {31, 0}, {29, -1}, {28, -2}};
  for (const auto& [source, start] : starts) {
    spec.source_height = source;
    check_augment(spec);
    const SampleSpec s = at(spec, 3, 17);
    EXPECT_EQ(s.y, start) << source;
    EXPECT_EQ(s.x, 0);
    EXPECT_EQ(s.flip, 0);
    EXPECT_EQ(s.erase_h, 0);
  }
}

/// What happens to an image, stored and input sizes given; and the short side before the crop.
TEST(Augment, SaysWhatHappensToAnImage) {
  const auto spec = [](Index height, Index width, Index input) {
    return AugmentSpec{.source_height = height, .source_width = width, .height = input, .width = input};
  };
  const auto expect = [](AugmentSpec of, Index side, const std::string& trained, const std::string& evaluated) {
    SCOPED_TRACE(trained);
    EXPECT_EQ(of.short_side(), side);
    EXPECT_EQ(of.on_host(), side > 0 || of.crop == Crop::resized || of.stored == Stored::files);
    EXPECT_EQ(describe(of), trained);
    of.train = false;
    EXPECT_EQ(of.short_side(), side);
    EXPECT_EQ(describe(of), evaluated);
  };
  expect(spec(32, 32, 32), 0, "32x32 raw", "32x32 raw");
  AugmentSpec of = spec(32, 32, 32);
  of.pad = 4, of.flip = Flip::random;
  expect(of, 0, "32x32 raw, padded 4, random crop of 32x32, flip", "32x32 raw");
  of = spec(256, 256, 32);
  expect(of, 37, "256x256 raw, resized to 37x37, random crop of 32x32",
         "256x256 raw, resized to 37x37, centre crop of 32x32");
  of.pad = 4, of.cutout = 8;
  expect(of, 32, "256x256 raw, resized to 32x32, padded 4, random crop of 32x32, cutout 8",
         "256x256 raw, resized to 32x32");
  of.pad = 0, of.cutout = 0, of.crop = Crop::window;
  expect(of, 0, "256x256 raw, random crop of 32x32", "256x256 raw, centre crop of 32x32");
  of.crop = Crop::resized;
  expect(of, 37, "256x256 raw, a random 0.08 to 1 of the area resized to 32x32",
         "256x256 raw, resized to 37x37, centre crop of 32x32");
  expect(spec(256, 320, 224), 0, "256x320 raw, random crop of 224x224", "256x320 raw, centre crop of 224x224");
  of = spec(28, 28, 32);
  of.pad = 2;
  expect(of, 0, "28x28 raw, padded 2", "28x28 raw, centre crop of 32x32");
  of = spec(0, 0, 224);
  of.stored = Stored::files;
  expect(of, 256, "files, short side resized to 256, random crop of 224x224",
         "files, short side resized to 256, centre crop of 224x224");
}

TEST(Augment, ImpossibleSpecsAreUsageErrors) {
  AugmentSpec large = cifar(), negative = cifar(), huge = cifar();
  large.height = 41;
  negative.pad = -1;
  huge.source_height = 40000;
  for (const AugmentSpec& spec : {large, negative, huge}) {
    try {
      check_augment(spec);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
    }
  }
  large.height = 40;
  EXPECT_NO_THROW(check_augment(large));
}

}  // namespace
}  // namespace convoy
