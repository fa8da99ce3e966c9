// SPDX-License-Identifier: Apache-2.0
#include "data/sample_images.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {

SampleImages::SampleImages(const Dataset& dataset, const AugmentSpec& augment) : dataset_(dataset), augment_(augment) {
  if (augment.on_host()) maker_.emplace(augment);
}

Index SampleImages::image_bytes(const Dataset& dataset, const AugmentSpec& augment) {
  return augment.on_host() ? augment.height * augment.width * augment.channels : dataset.info().image_bytes();
}

/// The sample, or the first one near it for which `make` finds nothing wrong.
template <class Make>
Index SampleImages::put_whole(Index sample, const Make& make) {
  for (Index from = sample;;) {
    std::string fault;
    const auto stored = dataset_.stored(from, scratch_, fault);
    if (fault.empty()) {
      const DecodeStatus status = make(stored);
      if (status.ok()) return from;
      fault =
          fmt::format("{} can't be decoded ({}: {})", dataset_.describe(from), fault_name(status.fault), status.reason);
    }
    from = dataset_.stand_in(sample, from, fault);
  }
}

Index SampleImages::put(Index sample, Index epoch, Index position, std::uint8_t* to) {
  return put_whole(sample, [&](std::span<const std::uint8_t> stored) {
    if (maker_) return maker_->make(stored, epoch, position, to);
    std::copy(stored.begin(), stored.end(), to);
    return DecodeStatus{};
  });
}

Index SampleImages::put_centre(Index sample, Index height, Index width, std::uint8_t* to) {
  require(maker_.has_value(), "crops of other sizes are made on the host");
  return put_whole(
      sample, [&](std::span<const std::uint8_t> stored) { return maker_->make_centre(stored, height, width, to); });
}

}  // namespace convoy
