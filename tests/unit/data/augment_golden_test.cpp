// SPDX-License-Identifier: Apache-2.0
// Changes of colour and shape, resized crops and policies against torchvision on Pillow images:
// tests/golden/make_augment_golden.py.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/image_maker.hpp"
#include "data/policy.hpp"

namespace convoy {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& hex) {
  Bytes bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

const json& golden() {
  static const json file = [] {
    std::ifstream stream(std::string(CONVOY_GOLDEN) + "/augment.json");
    return json::parse(stream);
  }();
  return file;
}

/// Share of values that are more than one grey level off.
double share_off(const Bytes& made, const Bytes& wanted) {
  EXPECT_EQ(made.size(), wanted.size());
  double off = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) off += std::abs(made[i] - wanted[i]) > 1 ? 1 : 0;
  return off / static_cast<double>(wanted.size());
}

const std::map<std::string, PolicyOperation> names{{"identity", PolicyOperation::identity},
                                                   {"shear_x", PolicyOperation::shear_x},
                                                   {"shear_y", PolicyOperation::shear_y},
                                                   {"translate_x", PolicyOperation::translate_x},
                                                   {"translate_y", PolicyOperation::translate_y},
                                                   {"rotate", PolicyOperation::rotate},
                                                   {"brightness", PolicyOperation::brightness},
                                                   {"saturation", PolicyOperation::saturation},
                                                   {"contrast", PolicyOperation::contrast},
                                                   {"sharpness", PolicyOperation::sharpness},
                                                   {"posterize", PolicyOperation::posterize},
                                                   {"solarize", PolicyOperation::solarize},
                                                   {"stretch_contrast", PolicyOperation::stretch_contrast},
                                                   {"equalize", PolicyOperation::equalize},
                                                   {"invert", PolicyOperation::invert}};

void apply(const json& test, const Canvas& canvas) {
  const std::string name = test.at("operation");
  const json& p = test.at("parameters");
  const auto factor = [&] { return p.at("factor").get<float>(); };
  Bytes scratch;
  if (name == "brightness") return adjust_brightness(canvas, factor());
  if (name == "contrast") return adjust_contrast(canvas, factor());
  if (name == "saturation") return adjust_saturation(canvas, factor());
  if (name == "sharpness") return adjust_sharpness(canvas, factor(), scratch);
  if (name == "hue") return shift_hue(canvas, p.at("factor"));
  if (name == "posterize") return posterize(canvas, p.at("factor"));
  if (name == "solarize") return solarize(canvas, p.at("factor"));
  if (name == "invert") return invert(canvas);
  if (name == "equalize") return equalize(canvas);
  if (name == "stretch_contrast") {
    adjust_contrast(canvas, p.at("before"));
    return stretch_contrast(canvas);
  }
  if (name.starts_with("affine")) {
    const std::vector<double> shear = p.value("shear", std::vector<double>{0, 0});
    const AffineSpec spec{.degrees = p.value("angle", 0.0),
                          .scale = p.value("scale", 1.0),
                          .shear_x = shear[0],
                          .shear_y = shear[1],
                          .centre_x = static_cast<double>(canvas.width) / 2,
                          .centre_y = static_cast<double>(canvas.height) / 2};
    const Sampling sampling = name == "affine_nearest" ? Sampling::nearest : Sampling::bilinear;
    return transform(canvas, inverse_affine(spec), sampling, 7, scratch);
  }
  ASSERT_TRUE(name.starts_with("step ")) << name;
  apply_policy_step({names.at(name.substr(5)), p.at("magnitude")}, canvas, 7, scratch);
}

TEST(AugmentGolden, OperationsEqualPillows) {
  int exact = 0;
  for (const json& test : golden().at("operations")) {
    Bytes pixels = bytes_of(golden().at("image"));
    const Bytes wanted = bytes_of(test.at("result"));
    apply(test, {pixels.data(), golden().at("size")[0], golden().at("size")[1]});
    const std::string name = test.at("operation"), what = name + ' ' + test.at("parameters").dump();
    EXPECT_LE(share_off(pixels, wanted), 0.001) << what;
    exact += pixels == wanted ? 1 : 0;
    // These go through floating point in another order.
    if (name != "hue" && name != "affine_bilinear") {
      EXPECT_EQ(pixels, wanted) << what;
    }
  }
  EXPECT_GE(exact, 40);
}

class JpegGolden : public testing::Test {
 protected:
  AugmentSpec spec_{.stored = Stored::files, .height = 32, .width = 32, .train = false};
  Bytes file_ = bytes_of(golden().at("jpeg").at("file"));
};

TEST_F(JpegGolden, CentreCropsEqualTorchvisions) {
  for (const json& test : golden().at("jpeg").at("centres")) {
    spec_.height = test.at("size")[0];
    spec_.width = test.at("size")[1];
    spec_.resize = test.at("side");
    Bytes made(static_cast<std::size_t>(spec_.height * spec_.width * 3));
    ASSERT_TRUE(ImageMaker(spec_).make(file_, 0, 0, made.data()).ok());
    EXPECT_LE(share_off(made, bytes_of(test.at("result"))), 0.001) << test.at("side");
  }
}

// The draws are ours, so the region is given: stored pixels of the same image go the same way.
TEST_F(JpegGolden, ResizedCropsEqualTorchvisions) {
  Decoder decoder;
  Image image;
  ASSERT_TRUE(decoder.open(file_).ok() && decoder.decode(image).ok());
  Resizer resizer;
  for (const json& test : golden().at("jpeg").at("regions")) {
    const std::vector<Index> r = test.at("region");
    Bytes made(32 * 32 * 3);
    resizer.resize(image.view().part({r[0], r[1], r[2], r[3]}), 32, 32, made.data());
    EXPECT_LE(share_off(made, bytes_of(test.at("result"))), 0.001) << test.at("region").dump();
  }
}

TEST_F(JpegGolden, ResizedCropsAreTheRegionOfTheirDraws) {
  Decoder decoder;
  Image image;
  ASSERT_TRUE(decoder.open(file_).ok() && decoder.decode(image).ok());
  spec_.train = true;
  spec_.crop = Crop::resized;
  ImageMaker maker(spec_);
  Resizer resizer;
  AugmentSpec of_pixels = spec_;
  of_pixels.stored = Stored::pixels;
  of_pixels.source_height = image.height;
  of_pixels.source_width = image.width;
  ImageMaker pixel_maker(of_pixels);
  for (Index position = 0; position < 50; ++position) {
    const Region region = random_region(spec_, 3, position, {image.height, image.width});
    Bytes wanted(32 * 32 * 3), made = wanted, from_pixels = wanted;
    resizer.resize(image.view().part(region), 32, 32, wanted.data());
    ASSERT_TRUE(maker.make(file_, 3, position, made.data()).ok());
    ASSERT_EQ(made, wanted) << position;
    ASSERT_TRUE(pixel_maker.make(image.pixels, 3, position, from_pixels.data()).ok());
    ASSERT_EQ(from_pixels, wanted) << position;
  }
}

TEST(PolicyGolden, MagnitudesEqualTorchvisions) {
  const json& spaces = golden().at("spaces");
  const std::map<std::string, Policy> policies{
      {"rand", Policy::rand}, {"trivial", Policy::trivial}, {"autoaugment", Policy::autoaugment}, {"mix", Policy::mix}};
  for (const auto& [policy, value] : policies) {
    for (const auto& [name, space] : spaces.at(policy).items()) {
      const std::vector<double> wanted = space.at("magnitudes");
      const PolicyOperation operation = names.at(name);
      EXPECT_EQ(has_sign(operation), space.at("signed").get<bool>()) << name;
      for (std::size_t bin = 0; bin < wanted.size(); ++bin) {
        EXPECT_NEAR(policy_magnitude({.policy = value}, operation, static_cast<int>(bin), 200, 320), wanted[bin], 2e-5)
            << policy << ' ' << name << ' ' << bin;
      }
    }
  }
}

TEST(PolicyGolden, TheImagenetPolicyIsTorchvisions) {
  const json& wanted = golden().at("spaces").at("imagenet");
  ASSERT_EQ(imagenet_policy().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      const PolicyEntry& entry = imagenet_policy()[i][half];
      EXPECT_EQ(entry.operation, names.at(wanted[i][half][0])) << i;
      EXPECT_FLOAT_EQ(entry.probability, wanted[i][half][1].get<float>()) << i;
      EXPECT_EQ(entry.magnitude, wanted[i][half][2].get<int>()) << i;
    }
  }
}

}  // namespace
}  // namespace convoy
