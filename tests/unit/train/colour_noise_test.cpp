// SPDX-License-Identifier: Apache-2.0
// --pca-noise-source data: principal components from the covariance of a set, against one that was made from known
// components.
#include <gtest/gtest.h>

#include <array>

#include "engine/data.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

/// An orthogonal matrix of rational numbers; its columns are the components.
constexpr double components[3][3] = {
    {2 / 3.0, -1 / 3.0, 2 / 3.0}, {2 / 3.0, 2 / 3.0, -1 / 3.0}, {-1 / 3.0, 2 / 3.0, 2 / 3.0}};
constexpr double deviations[3] = {30, 10, 5};  // grey levels

DatasetInfo set_of_colours() {
  DatasetInfo info;
  info.folder = "set";
  info.encoding = "raw";
  info.height = info.width = 8;
  info.channels = 3;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < 3; ++i) sum += components[a][i] * components[b][i] * deviations[i] * deviations[i];
      info.covariance.push_back(sum);
    }
  return info;
}

DataConfig noisy(ColourSource source) {
  DataConfig config;
  config.augment.colour.lighting = 0.1F;
  config.augment.colour.source = source;
  return config;
}

TEST(ColourNoise, FollowsTheSetsOwnComponents) {
  const AugmentSpec spec = augment_spec(noisy(ColourSource::data), set_of_colours(), 1, Use::training);
  for (std::size_t i = 0; i < 3; ++i) {
    std::array<double, 3> weights{};
    weights[i] = 2;
    const auto shift = lighting_shift(spec.colour.components, weights);
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(shift[c], 2 * deviations[i] * deviations[i] / 255 * components[c][i], 1e-4) << i << c;
  }
}

TEST(ColourNoise, IsImageNetsUnlessAskedForOtherwise) {
  const AugmentSpec spec = augment_spec(noisy(ColourSource::imagenet), set_of_colours(), 1, Use::training);
  EXPECT_EQ(spec.colour.components.eigenvalues, imagenet_colours.eigenvalues);
  EXPECT_EQ(spec.colour.components.components, imagenet_colours.components);
}

TEST(ColourNoise, NeedsASetThatHasACovariance) {
  DatasetInfo old = set_of_colours();
  old.covariance.clear();
  expect_error(Exit::data, {"'set' has no covariance of its colours", "prepare it again with --overwrite"},
               [&] { augment_spec(noisy(ColourSource::data), old, 1, Use::training); });
  augment_spec(noisy(ColourSource::data), old, 1, Use::evaluation);  // which adds no noise
  DatasetInfo grey = old;
  grey.channels = 1;
  expect_error(Exit::usage, {"need images of 3 channels"},
               [&] { augment_spec(noisy(ColourSource::data), grey, 1, Use::training); });
}

}  // namespace
}  // namespace convoy
