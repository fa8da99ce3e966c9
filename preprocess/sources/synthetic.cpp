// SPDX-License-Identifier: Apache-2.0
#include "core/errors.hpp"
#include "preprocess/sources/pixel_source.hpp"

namespace convoy::preparation {
namespace {

/// Samples made when they are read: nothing is held, so any size fits.
class Generated final : public PixelSet {
 public:
  explicit Generated(const PrepareSpec& spec) : spec_(spec.synthetic), val_samples_(spec.val_samples) {
    info_ = {"convoy-preprocess synthetic", "generated", spec_.height, spec_.width, spec_.channels, {}};
    for (Index i = 0; i < spec_.classes; ++i) info_.class_names.push_back(fmt::format("texture-{}", i));
  }

  const SetInfo& info() const override { return info_; }
  Index samples(Split split) const override { return split == Split::train ? spec_.samples : val_samples_; }
  std::string name(Split split, Index sample) const override { return fmt::format("{}/{}", split_name(split), sample); }
  std::int32_t read(Split split, Index sample, std::uint8_t* image) const override {
    // Far above any train sample, so that val doesn't change with --samples.
    constexpr Index first_of_val = Index{1} << 48;
    return synthetic_sample(spec_, split == Split::train ? sample : first_of_val + sample, image);
  }

 private:
  SyntheticSpec spec_;
  Index val_samples_;
  SetInfo info_;
};

}  // namespace

const Source& synthetic_source() {
  static const PixelSource source("synthetic", [](const PrepareSpec& spec) -> std::shared_ptr<const PixelSet> {
    return std::make_shared<const Generated>(spec);
  });
  return source;
}

}  // namespace convoy::preparation
