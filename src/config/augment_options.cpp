// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "config/options.hpp"

namespace convoy {
namespace {

/// Stands before the other options in the table, so it is set before them and they change parts of it.
void take_recipe(const std::string& name, AugmentSpec& spec) {
  if (name == "none") return;
  spec.crop = Crop::resized;
  spec.flip = Flip::random;
  if (name == "mxnet") {
    spec.colour.brightness = spec.colour.contrast = spec.colour.saturation = 0.4F;
    spec.colour.lighting = 0.1F;
  }
  if (name == "trivial") {
    spec.policy.policy = Policy::trivial;
    spec.erasing.probability = 0.1F;
  }
}

Option preset_option(DataConfig& data) {
  Option option = word_option(
      "augment", data.augmentation, {"none", "imagenet", "mxnet", "trivial"},
      "a recipe; imagenet: random resized crop and flip; mxnet: these with colour jitter and PCA noise; trivial: these with TrivialAugment and erasing; further options change parts of it");
  option.set = [&data, set_word = option.set](const std::string& text) {
    set_word(text);
    take_recipe(data.augmentation, data.augment);
  };
  return option.also({"augmentation", "use-imagenet-data-augmentation"});
}

constexpr Bounds share{.low = 0, .high = 1};
constexpr Bounds positive_share{.low = 0, .high = 1, .low_excluded = true};

}  // namespace

OptionGroup augment_options(DataConfig& data) {
  AugmentSpec& spec = data.augment;
  OptionGroup group{"Augmentation", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(preset_option(data));
  add(choice_option<Crop>(
          "crop", spec.crop, {{"auto", Crop::automatic}, {"window", Crop::window}, {"resized", Crop::resized}},
          "window: train on a window of the input's size out of the stored pixels; auto: out of the resized image (see --resize); resized: on a region of random area and shape, resized"))
      .decides_bits()
      // Earlier versions hashed the default as window. auto keeps that word, so an explicit window needs another.
      .hashed_by_old_names({{"auto", "window"}, {"window", "stored window"}});
  add(number_option("min-random-area", "F", spec.min_area, positive_share, "resized crops: smallest share of the area"))
      .also({"min-scale", "min-crop-scale"})
      .decides_bits();
  add(number_option("max-random-area", "F", spec.max_area, positive_share, "resized crops: largest share of the area"))
      .decides_bits();
  add(number_option("min-random-aspect-ratio", "F", spec.min_aspect, above(0),
                    "resized crops: smallest ratio of width to height"))
      .decides_bits();
  add(number_option("max-random-aspect-ratio", "F", spec.max_aspect, above(0),
                    "resized crops: largest ratio of width to height"))
      .decides_bits();
  add(switch_option("scaled-decoding", spec.scaled_decoding,
                    "resized crops: decode JPEG files at 1/2, 1/4 or 1/8 of their size if that is large enough"))
      .decides_bits();
  add(number_option("pad", "PIXELS", spec.pad, from_to(0, 4096),
                    "padding on every side before a random window, pixels"))
      .also({"pad-size"})
      .decides_bits();
  add(choice_option<Padding>("padding-mode", spec.padding,
                             {{"constant", Padding::constant}, {"reflect", Padding::reflect}},
                             "what --pad shows around an image: --fill-value, or the image reflected at its rim"))
      .decides_bits_unless({"constant"});
  add(number_option("fill-value", "V", spec.fill, from_to(0, 255),
                    "value of padding and of pixels that a rotation or shear brings into view"))
      .decides_bits();
  add(choice_option<Flip>("flip", spec.flip,
                          {{"none", Flip::none}, {"random", Flip::random}, {"alternating", Flip::alternating}},
                          "mirror images left to right: never, at random, or in every other epoch"))
      .decides_bits();
  add(number_option("vertical-flip", "P", spec.vertical_flip, share,
                    "probability that an image is mirrored top to bottom, for pictures without an up and a down"))
      .also({"vflip"})
      .decides_bits_unless({"0"});
  add(number_option("cutout", "PIXELS", spec.cutout, from_to(0, 16384), "side of the square to erase, pixels; 0: none"))
      .decides_bits();
  add(number_option("random-erasing", "P", spec.erasing.probability, share,
                    "probability that a random box of an image is erased"))
      .also({"random-erase", "reprob"})
      .decides_bits();
  add(number_option("brightness", "F", spec.colour.brightness, from_to(0, 10), "random factor from 1-F to 1+F"))
      .decides_bits();
  add(number_option("contrast", "F", spec.colour.contrast, from_to(0, 10), "random factor from 1-F to 1+F"))
      .decides_bits();
  add(number_option("saturation", "F", spec.colour.saturation, from_to(0, 10), "random factor from 1-F to 1+F"))
      .decides_bits();
  add(number_option("hue", "F", spec.colour.hue, from_to(0, 0.5),
                    "random change of hue, as a share of the colour circle"))
      .decides_bits();
  add(number_option("max-random-h", "N", spec.colour.hsl_hue, from_to(0, 180),
                    "random change of HSL's hue, in units of 2 degrees"))
      .decides_bits();
  add(number_option("max-random-s", "N", spec.colour.hsl_saturation, from_to(0, 255),
                    "random change of HSL's saturation, 0 to 255"))
      .decides_bits();
  add(number_option("max-random-l", "N", spec.colour.hsl_lightness, from_to(0, 255),
                    "random change of HSL's lightness, 0 to 255"))
      .decides_bits();
  add(number_option("pca-noise", "F", spec.colour.lighting, from_to(0, 10),
                    "standard deviation of the PCA lighting noise"))
      .also({"lighting"})
      .decides_bits();
  add(choice_option<ColourSource>(
          "pca-noise-source", spec.colour.source, {{"imagenet", ColourSource::imagenet}, {"data", ColourSource::data}},
          "whose principal components of the colours --pca-noise follows: ImageNet's, or those of the data set"))
      .decides_bits_unless({"imagenet"});
  add(number_option("max-random-rotate-angle", "DEGREES", spec.geometry.rotate, from_to(0, 180),
                    "largest random rotation"))
      .decides_bits();
  add(number_option("max-random-shear-ratio", "F", spec.geometry.shear, from_to(0, 10),
                    "largest random shear, as a tangent"))
      .decides_bits();
  add(number_option("min-random-scale", "F", spec.geometry.min_scale, above(0), "smallest random scale"))
      .decides_bits();
  add(number_option("max-random-scale", "F", spec.geometry.max_scale, above(0), "largest random scale")).decides_bits();
  add(choice_option<Policy>(
          "auto-augment", spec.policy.policy,
          {{"none", Policy::none},
           {"randaugment", Policy::rand},
           {"trivial", Policy::trivial},
           {"autoaugment", Policy::autoaugment},
           {"augmix", Policy::mix}},
          "random operations on colour and shape: RandAugment, TrivialAugmentWide, AutoAugment's ImageNet policy, or AugMix",
          {{"ra", Policy::rand}, {"ta_wide", Policy::trivial}, {"imagenet", Policy::autoaugment}}))
      .also({"aa"})
      .answers({{"augmix-*", "it is timm's; use augmix with --augmix-severity"},
                {"rand-*",
                 "it is timm's; use randaugment with --randaugment-magnitude, which goes up to --randaugment-bins - 1, "
                 "not to 10"},
                {"original*", "use autoaugment"},
                {"v0*", "Convoy has AutoAugment's ImageNet policy only, as autoaugment"},
                {"cifar10", "Convoy has AutoAugment's ImageNet policy only, as autoaugment"},
                {"svhn", "Convoy has AutoAugment's ImageNet policy only, as autoaugment"}})
      .decides_bits();
  add(number_option("randaugment-operations", "N", spec.policy.operations, from_to(1, 16), "operations per image"))
      .also({"ra-num-ops"})
      .decides_bits();
  add(number_option("randaugment-magnitude", "N", spec.policy.magnitude, from_to(0, 100),
                    "strength, from 0 to bins - 1"))
      .also({"ra-magnitude"})
      .decides_bits();
  add(number_option("randaugment-bins", "N", spec.policy.bins, from_to(2, 1000), "number of strengths"))
      .also({"ra-num-bins"})
      .decides_bits();
  add(number_option("augmix-severity", "N", spec.policy.severity, from_to(1, 10),
                    "AugMix: magnitudes are drawn from the lowest N of 10"))
      .decides_bits_unless({"3"});
  add(number_option("mixup", "ALPHA", spec.mixing.mixup, from_to(0, 100),
                    "mix-up: parameter of the Beta distribution; 0: off"))
      .also({"mixup-alpha"})
      .decides_bits();
  add(number_option("cutmix", "ALPHA", spec.mixing.cutmix, from_to(0, 100),
                    "cut-mix: parameter of the Beta distribution; 0: off"))
      .also({"cutmix-alpha"})
      .decides_bits();
  add(number_option("mix-probability", "P", spec.mixing.probability, share, "probability that an image is mixed"))
      .also({"mixup-prob"})
      .decides_bits();
  return group;
}

}  // namespace convoy
