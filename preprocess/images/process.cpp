// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/process.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "image/jpeg.hpp"
#include "io/seal.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

Finding finding_of(Fault fault) {
  switch (fault) {
    case Fault::empty:
      return Finding::empty;
    case Fault::not_an_image:
      return Finding::not_an_image;
    case Fault::unsupported:
      return Finding::unsupported;
    case Fault::too_large:
      return Finding::too_large;
    case Fault::truncated:
      return Finding::truncated;
    case Fault::none:
    case Fault::damaged:
      break;
  }
  return Finding::damaged;
}

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  const std::string folded = lower(name);
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return folded.ends_with(ending); });
}

/// Returns a digest of a sample's name, class and bytes.
std::uint64_t content_of(const RawSample& raw) {
  return hash_bytes(raw.bytes.data(), raw.bytes.size(), hash_text(raw.name, hash_text(*raw.class_text)));
}

/// A format other than the one that the name promises. Names without a known extension promise nothing.
bool is_misnamed(const std::string& name, ImageFormat format) {
  const bool jpeg = ends_with_any(name, {".jpg", ".jpeg"}), png = ends_with_any(name, {".png"}),
             webp = ends_with_any(name, {".webp"});
  return (jpeg && format != ImageFormat::jpeg) || (png && format != ImageFormat::png) ||
         (webp && format != ImageFormat::webp);
}

ImageSize bounded(const ImageSize& size, Index short_side, Index max_resolution) {
  ImageSize result = size;
  if (short_side > 0 && std::min(size.height, size.width) > short_side) result = with_short_side(size, short_side);
  if (max_resolution > 0) result = within_long_side(result, max_resolution);
  return result;
}

}  // namespace

ImageSums sum_channels(const ImageView& image) {
  // 48 neighbours at a time hold whole pixels of 1 to 4 channels, and whole vectors.
  constexpr std::size_t lanes = 48, most_rounds = 60000;  // 60000 * 255^2 < 2^32
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto bytes = static_cast<std::size_t>(image.width * image.channels);
  std::array<std::uint32_t, lanes> sum{}, squares{};
  std::array<std::uint32_t, lanes> with_next{}, with_second{};  // products with the neighbours one and two places on
  const bool coloured = channels == 3;
  ImageSums sums;
  std::size_t rounds = 0;
  const auto fold = [&] {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums.sum[lane % channels] += sum[lane];
      sums.squares[lane % channels] += squares[lane];
    }
    for (std::size_t pixel = 0; coloured && pixel < lanes; pixel += 3) {
      sums.products[0] += with_next[pixel];
      sums.products[1] += with_second[pixel];
      sums.products[2] += with_next[pixel + 1];
    }
    for (auto* const all : {&sum, &squares, &with_next, &with_second}) all->fill(0);
    rounds = 0;
  };
  for (Index y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.row(y);
    std::size_t i = 0;
    for (; i + lanes <= bytes; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::uint32_t value = row[i + lane];
        sum[lane] += value;
        squares[lane] += value * value;
      }
      if (coloured) {
        for (std::size_t lane = 0; lane + 1 < lanes; ++lane) {
          const std::uint32_t value = row[i + lane], next = row[i + lane + 1];
          with_next[lane] += value * next;
        }
        for (std::size_t lane = 0; lane + 2 < lanes; ++lane) {
          const std::uint32_t value = row[i + lane], second = row[i + lane + 2];
          with_second[lane] += value * second;
        }
      }
      if (++rounds == most_rounds) fold();
    }
    for (; i < bytes; ++i) {
      sums.sum[i % channels] += row[i];
      sums.squares[i % channels] += std::uint64_t{row[i]} * row[i];
      if (!coloured || i % 3 > 0) continue;
      sums.products[0] += std::uint64_t{row[i]} * row[i + 1];
      sums.products[1] += std::uint64_t{row[i]} * row[i + 2];
      sums.products[2] += std::uint64_t{row[i + 1]} * row[i + 2];
    }
  }
  fold();
  return sums;
}

Processor::Processor(const Recipe& recipe) : recipe_(recipe), decoder_(recipe.channels, recipe.limits) {}

void Processor::note_conversions(const RawSample& raw, const DecodeStatus& status, ProcessedImage& to) const {
  const ImageHeader& h = decoder_.header();
  const auto note = [&](bool is, Finding finding, const std::string& detail = "") {
    if (is) to.notes.push_back({finding, raw.name, detail});
  };
  note(h.grey, Finding::grey);
  note(h.cmyk, Finding::cmyk);
  note(h.palette, Finding::palette);
  note(h.alpha, Finding::alpha);
  note(h.deep, Finding::deep);
  note(h.rotated(), Finding::rotated, fmt::format("orientation {}", h.orientation));
  note(is_misnamed(raw.name, h.format), Finding::misnamed, fmt::format("a {} file", format_name(h.format)));
  note(!raw.remark.empty(), Finding::further_files, raw.remark);
  note(!status.reason.empty(), Finding::warning, status.reason);
}

void Processor::process(const RawSample& raw, ProcessedImage& to) {
  to.kept = false;
  to.stored.clear();
  to.notes.clear();
  if (raw.unread) {
    to.notes.push_back({*raw.unread, raw.name, raw.detail});
    return;
  }
  if (!raw.class_text) {
    to.notes.push_back({Finding::no_label, raw.name, ""});
    return;
  }
  if (recipe_.pixels) return store_pixels(raw, to);
  DecodeStatus status = decoder_.open(raw.bytes);
  if (status.ok()) status = decoder_.decode(image_);
  if (!status.ok()) {
    to.notes.push_back({finding_of(status.fault), raw.name, status.reason});
    return;
  }
  note_conversions(raw, status, to);
  to.kept = true;
  to.content = content_of(raw);
  to.file = hash_bytes(raw.bytes.data(), raw.bytes.size());
  to.stored.resize(recipe_.sizes.size());
  for (std::size_t i = 0; i < recipe_.sizes.size(); ++i) {
    StoredImage& stored = to.stored[i];
    if (recipe_.encoding == Encoding::raw) {
      store_raw(recipe_.sizes[i], stored);
    } else {
      store_jpeg(raw, status.unended, recipe_.sizes[i], stored);
    }
    stored.crc = crc32c(stored.bytes.data(), stored.bytes.size());
  }
}

void Processor::store_pixels(const RawSample& raw, ProcessedImage& to) const {
  const PixelShape& shape = *recipe_.pixels;
  StoredImage& stored = to.stored.emplace_back();
  stored.bytes = raw.bytes;
  stored.height = shape.height;
  stored.width = shape.width;
  stored.pixels = shape.height * shape.width;
  stored.sums =
      sum_channels({raw.bytes.data(), shape.height, shape.width, shape.channels, shape.width * shape.channels});
  stored.crc = crc32c(raw.bytes.data(), raw.bytes.size());
  to.kept = true;
  to.content = content_of(raw);
  to.file = hash_bytes(raw.bytes.data(), raw.bytes.size());
}

void Processor::store_raw(Index side, StoredImage& to) {
  to.height = image_.height;
  to.width = image_.width;
  to.pixels = side * side;
  to.bytes.resize(static_cast<std::size_t>(side * side * image_.channels));
  if (recipe_.fit == Fit::squash) {
    resizer_.resize(image_.view(), side, side, to.bytes.data());
  } else {
    const ImageSize size = with_short_side({image_.height, image_.width}, side);
    resized_.reshape(size.height, size.width, image_.channels);
    resizer_.resize(image_.view(), size.height, size.width, resized_.pixels.data());
    const ImageView part = resized_.view().part(centre_region(size, side, side));
    for (Index y = 0; y < side; ++y) {
      std::copy_n(part.row(y), side * part.channels, to.bytes.data() + y * side * part.channels);
    }
  }
  to.sums = sum_channels({to.bytes.data(), side, side, image_.channels, side * image_.channels});
}

/// Whether the file itself can be stored: an upright JPEG in colour or grey, as wished for, and not drawn for encoding.
bool Processor::may_pass(const RawSample& raw) const {
  const ImageHeader& h = decoder_.header();
  if (h.format != ImageFormat::jpeg || h.cmyk || h.rotated()) return false;
  if (recipe_.channels == Channels::grey && !h.grey) return false;
  constexpr std::uint64_t purpose = 0x6a70656761676e;  // other numbers than those of the order
  const double draw = static_cast<double>(hash_text(raw.name, recipe_.seed ^ purpose) >> 11) * 0x1p-53;
  return draw >= recipe_.compress_probability;
}

void Processor::store_jpeg(const RawSample& raw, bool unended, Index side, StoredImage& to) {
  const ImageSize size{image_.height, image_.width};
  const ImageSize wanted = bounded(size, side, recipe_.max_resolution);
  ImageView view = image_.view();
  if (wanted != size) {
    resized_.reshape(wanted.height, wanted.width, image_.channels);
    resizer_.resize(view, wanted.height, wanted.width, resized_.pixels.data());
    view = resized_.view();
  }
  if (wanted == size && may_pass(raw)) {
    constexpr std::array<std::uint8_t, 2> end_marker{0xFF, 0xD9};
    to.bytes = raw.bytes;
    if (unended) to.bytes.insert(to.bytes.end(), end_marker.begin(), end_marker.end());
  } else {
    encode_jpeg(view, recipe_.quality, to.bytes);
  }
  to.height = wanted.height;
  to.width = wanted.width;
  to.pixels = wanted.height * wanted.width;
  to.sums = sum_channels(view);
}

}  // namespace convoy::preparation
