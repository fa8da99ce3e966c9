// SPDX-License-Identifier: Apache-2.0
#include "data/image_maker.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

Random draws(const AugmentSpec& spec, Stream stream, Index epoch, Index position) {
  return {spec.seed, stream, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position)};
}

/// Uniform in [-range, range).
float both_ways(Random& random, float range) { return range * (2 * random.uniform() - 1); }

/// Factor of an enhancement: 1 - range to 1 + range, not below 0.
float factor(Random& random, float range) {
  const float low = std::max(0.0F, 1 - range), high = 1 + range;
  return low + random.uniform() * (high - low);
}

/// torchvision's ColorJitter: all four draws, in a random order. Draws of changes that are off are made too.
void jitter(const ColourSpec& spec, Random& random, const Canvas& canvas) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = 3; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(random.below(static_cast<Index>(i) + 1))]);
  const float brightness = factor(random, spec.brightness), contrast = factor(random, spec.contrast),
              saturation = factor(random, spec.saturation), hue = both_ways(random, spec.hue);
  for (const int change : order) {
    if (change == 0 && spec.brightness > 0) adjust_brightness(canvas, brightness);
    if (change == 1 && spec.contrast > 0) adjust_contrast(canvas, contrast);
    if (change == 2 && spec.saturation > 0) adjust_saturation(canvas, saturation);
    if (change == 3 && spec.hue > 0) shift_hue(canvas, double{hue});
  }
}

/// Copies `window` of `from`; what lies outside is reflected.
void copy_reflected(const ImageView& from, const Region& window, std::uint8_t* to) {
  for (Index y = 0; y < window.height; ++y) {
    const std::uint8_t* const row = from.row(reflected(window.y + y, from.height));
    for (Index x = 0; x < window.width; ++x, to += from.channels)
      std::copy_n(row + reflected(window.x + x, from.width) * from.channels, from.channels, to);
  }
}

/// Copies `window` of `from`; what lies outside is `fill`.
void copy_window(const ImageView& from, const Region& window, std::uint8_t fill, std::uint8_t* to) {
  const Index row = window.width * from.channels;
  const Index left = std::clamp<Index>(-window.x, 0, window.width),
              right = std::clamp<Index>(from.width - window.x, left, window.width);
  for (Index y = 0; y < window.height; ++y, to += row) {
    const Index source = window.y + y;
    if (source < 0 || source >= from.height || left == right) {
      std::fill_n(to, row, fill);
      continue;
    }
    std::fill_n(to, left * from.channels, fill);
    std::copy_n(from.row(source) + (window.x + left) * from.channels, (right - left) * from.channels,
                to + left * from.channels);
    std::fill_n(to + right * from.channels, (window.width - right) * from.channels, fill);
  }
}

/// The part of a window that lies inside of 0 .. size-1.
Range inside(Index begin, Index count, Index size) {
  const Index first = std::clamp<Index>(begin, 0, size), end = std::clamp(begin + count, first, size);
  return {first, end - first};
}

/// Source pixels that outputs [begin, begin + count) of `size` outputs over `source` inputs look at, filter included.
Range source_range(Index begin, Index count, Index size, Index source) {
  const double scale = static_cast<double>(source) / static_cast<double>(size), support = std::max(scale, 1.0) + 1;
  const auto first = static_cast<Index>(std::floor(static_cast<double>(begin) * scale - support)),
             end = static_cast<Index>(std::ceil(static_cast<double>(begin + count) * scale + support));
  return inside(first, end - first, source);
}

}  // namespace

ImageMaker::ImageMaker(const AugmentSpec& spec)
    : spec_(spec), decoder_(spec.channels == 1 ? Channels::grey : Channels::rgb) {
  require(spec.on_host(), "an image maker for images that the input stage makes");
  if (spec.stored == Stored::files && spec.channels != 1 && spec.channels != 3)
    fail(Exit::usage, "image files give 1 or 3 channels, not {}", spec.channels);
}

ImageSize ImageMaker::stored_size() const {
  if (spec_.stored == Stored::files) return {decoder_.header().height, decoder_.header().width};
  return {spec_.source_height, spec_.source_width};
}

ImageView ImageMaker::stored_view() const {
  return {stored_.data(), spec_.source_height, spec_.source_width, spec_.channels, spec_.source_width * spec_.channels};
}

DecodeStatus ImageMaker::make(std::span<const std::uint8_t> stored, Index epoch, Index position, std::uint8_t* to) {
  if (!spec_.train) return make_centre(stored, spec_.height, spec_.width, to);
  stored_ = stored;
  if (spec_.stored == Stored::files) {
    if (DecodeStatus status = decoder_.open(stored); !status.ok()) return status;
  }
  DecodeStatus status;
  if (spec_.crop == Crop::resized) {
    status = make_region(random_region(spec_, epoch, position, stored_size()), to);
  } else {
    const Index side = spec_.short_side();
    const ImageSize size = side > 0 ? with_short_side(stored_size(), side) : stored_size();
    status = make_window(random_window(spec_, epoch, position, size), side, to);
  }
  if (status.ok()) change(epoch, position, to);
  return status;
}

DecodeStatus ImageMaker::make_centre(std::span<const std::uint8_t> stored, Index height, Index width,
                                     std::uint8_t* to) {
  stored_ = stored;
  if (spec_.stored == Stored::files) {
    if (DecodeStatus status = decoder_.open(stored); !status.ok()) return status;
  }
  const Index side = spec_.short_side();
  const ImageSize size = side > 0 ? with_short_side(stored_size(), side) : stored_size();
  return make_window(centre_region(size, height, width), side, to);
}

DecodeStatus ImageMaker::decode(const Region& region, int denominator, Resizer::Box& box) {
  DecodedRegion decoded;
  DecodeStatus status = decoder_.decode_region(region, denominator, image_, decoded);
  const auto d = static_cast<double>(decoded.denominator);
  box = {static_cast<double>(region.y) / d - static_cast<double>(decoded.wanted.y),
         static_cast<double>(region.x) / d - static_cast<double>(decoded.wanted.x),
         static_cast<double>(region.height) / d, static_cast<double>(region.width) / d};
  return status;
}

DecodeStatus ImageMaker::make_region(const Region& region, std::uint8_t* to) {
  if (spec_.stored == Stored::pixels) {
    resizer_.resize(stored_view().part(region), spec_.height, spec_.width, to);
    return {};
  }
  const int denominator = spec_.scaled_decoding ? shrink_for(region, spec_.height, spec_.width) : 1;
  Resizer::Box box;
  DecodeStatus status = decode(region, denominator, box);
  if (!status.ok()) return status;
  if (denominator == 1) {
    resizer_.resize(image_.view(), spec_.height, spec_.width, to);
  } else {
    resizer_.resize(image_.view(), box, spec_.height, spec_.width, to);
  }
  return status;
}

DecodeStatus ImageMaker::make_window(const Region& window, Index side, std::uint8_t* to) {
  const ImageSize source = stored_size();
  const ImageSize size = side > 0 ? with_short_side(source, side) : source;
  Range rows = inside(window.y, window.height, size.height), columns = inside(window.x, window.width, size.width);
  const bool padded = rows.count < window.height || columns.count < window.width;
  const bool reflects = padded && spec_.padding == Padding::reflect;
  if (reflects) rows = {0, size.height}, columns = {0, size.width};
  const auto copy = [&](const ImageView& view, Index y, Index x) {
    const Region from{window.y - y, window.x - x, window.height, window.width};
    if (reflects) return copy_reflected(view, from, to);
    copy_window(view, from, spec_.fill, to);
  };
  if (rows.count == 0 || columns.count == 0) {
    std::fill_n(to, window.height * window.width * spec_.channels, spec_.fill);
    return {};
  }
  // Only what the window looks at is decoded and resized.
  const Range from_rows = source_range(rows.begin, rows.count, size.height, source.height),
              from_columns = source_range(columns.begin, columns.count, size.width, source.width);
  const Region part{from_rows.begin, from_columns.begin, from_rows.count, from_columns.count};
  ImageView view;
  if (spec_.stored == Stored::files) {
    Resizer::Box unused;
    if (DecodeStatus status = decode(part, 1, unused); !status.ok()) return status;
    view = image_.view();
  } else {
    view = stored_view().part(part);
  }
  if (size == source) {
    copy(view, part.y, part.x);
    return {};
  }
  const double scale_y = static_cast<double>(source.height) / static_cast<double>(size.height),
               scale_x = static_cast<double>(source.width) / static_cast<double>(size.width);
  const Resizer::Box box{static_cast<double>(rows.begin) * scale_y - static_cast<double>(part.y),
                         static_cast<double>(columns.begin) * scale_x - static_cast<double>(part.x),
                         static_cast<double>(rows.count) * scale_y, static_cast<double>(columns.count) * scale_x};
  if (!padded) {
    resizer_.resize(view, box, window.height, window.width, to);
    return {};
  }
  scratch_.resize(static_cast<std::size_t>(rows.count * columns.count * spec_.channels));
  resizer_.resize(view, box, rows.count, columns.count, scratch_.data());
  const ImageView seen{scratch_.data(), rows.count, columns.count, spec_.channels, columns.count * spec_.channels};
  copy(seen, rows.begin, columns.begin);
  return {};
}

void ImageMaker::change(Index epoch, Index position, std::uint8_t* to) {
  const Canvas canvas{to, spec_.height, spec_.width};
  if (spec_.geometry.any()) {
    const GeometrySpec& g = spec_.geometry;
    Random random = draws(spec_, Stream::geometry, epoch, position);
    AffineSpec affine;
    affine.degrees = both_ways(random, g.rotate);
    affine.shear_x = std::atan(both_ways(random, g.shear)) * 180 / 3.14159265358979323846;
    affine.scale = g.min_scale + random.uniform() * (g.max_scale - g.min_scale);
    affine.centre_x = static_cast<double>(spec_.width) / 2;
    affine.centre_y = static_cast<double>(spec_.height) / 2;
    transform(canvas, inverse_affine(affine), Sampling::bilinear, spec_.fill, scratch_);
  }
  if (spec_.policy.policy != Policy::none) {
    Random random = draws(spec_, Stream::policy, epoch, position);
    draw_policy(spec_.policy, random, spec_.height, spec_.width, policy_draw_);
    apply_policy(policy_draw_, canvas, spec_.fill, policy_buffers_);
  }
  const ColourSpec& colour = spec_.colour;
  if (!colour.any()) return;
  Random random = draws(spec_, Stream::colour, epoch, position);
  // The jitter takes a fixed number of draws, so that the others don't depend on it.
  Random jitters = random;
  for (int i = 0; i < 16; ++i) random.bits();
  if (colour.jitters()) jitter(colour, jitters, canvas);
  const float hue = both_ways(random, colour.hsl_hue), saturation = both_ways(random, colour.hsl_saturation),
              lightness = both_ways(random, colour.hsl_lightness);
  if (colour.shifts_hsl()) shift_hsl(canvas, hue, saturation, lightness);
  if (colour.lighting > 0) {
    std::array<double, 3> weights{};
    for (double& weight : weights) weight = colour.lighting * random.normal();
    shift_channels(canvas, lighting_shift(colour.components, weights));
  }
}

SampleImages::SampleImages(const Dataset& dataset, const AugmentSpec& augment) : dataset_(dataset), augment_(augment) {
  if (augment.on_host()) maker_.emplace(augment);
}

Index SampleImages::image_bytes(const Dataset& dataset, const AugmentSpec& augment) {
  return image_bytes(dataset.info(), augment);
}

Index SampleImages::image_bytes(const DatasetInfo& info, const AugmentSpec& augment) {
  return augment.on_host() ? augment.height * augment.width * augment.channels : info.image_bytes();
}

/// The sample, or the first one near it for which `make` finds nothing wrong.
template <class Make>
Index SampleImages::put_whole(Index sample, const Make& make) {
  for (Index from = sample;;) {
    std::string fault;
    const auto stored = dataset_.stored(from, scratch_, fault);
    bool stored_so = false;
    if (fault.empty()) {
      DecodeStatus status = make(stored);
      if (status.ok()) return from;
      stored_so = true;
      fault = fmt::format("{} can't be decoded ({}: {}), and was stored so (its CRC32C is right)",
                          dataset_.describe(from), fault_name(status.fault), status.reason);
    }
    from = dataset_.stand_in(sample, from, fault, stored_so);
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
