// SPDX-License-Identifier: Apache-2.0
#include "data/augment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "image/resize.hpp"

namespace convoy {
namespace {

/// Start of a centred window, as torchvision's CenterCrop: half to even inside the source, equal padding around it.
Index centre(Index source, Index size) {
  const Index spare = source - size;
  if (spare < 0) return -(-spare / 2);
  return spare / 2 + (spare % 4 == 3 ? 1 : 0);
}

/// Jordan 2024 (arXiv 2404.00498), section 3.6: the first epoch's side is random, then it changes every epoch.
bool alternating_flip(std::uint64_t seed, Index epoch, Index sample_id) {
  const std::uint64_t first =
      mix_bits(mix_bits(seed ^ 0x616c7465726e6174ULL) + static_cast<std::uint64_t>(sample_id)) >> 63;
  return ((first + static_cast<std::uint64_t>(epoch)) & 1) != 0;
}

/// The part of [centre - side/2, + side) that lies in 0 .. size-1.
Range clipped(Index middle, Index side, Index size) {
  const Index begin = middle - side / 2, end = std::min(begin + side, size);
  return {std::max<Index>(begin, 0), end - std::max<Index>(begin, 0)};
}

std::int16_t narrow(Index pixels) { return static_cast<std::int16_t>(pixels); }

/// The first draws of the stream. Draws take the same numbers whatever the size.
Region window_in(const AugmentSpec& spec, Random& random, const ImageSize& size) {
  const Index y = random.below(size.height + 2 * spec.pad - spec.height + 1);
  const Index x = random.below(size.width + 2 * spec.pad - spec.width + 1);
  return {y - spec.pad, x - spec.pad, spec.height, spec.width};
}

/// Log-uniform.
double draw_aspect(Random& random, double low, double high) {
  return std::exp(std::log(low) + random.uniform() * (std::log(high) - std::log(low)));
}

/// torchvision's RandomErasing: ten tries for a box that fits.
void erase(const AugmentSpec& spec, Index epoch, Index position, SampleSpec& to) {
  const ErasingSpec& e = spec.erasing;
  Random random(spec.seed, Stream::erasing, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position));
  if (random.uniform() >= e.probability) return;
  const double area = static_cast<double>(spec.height * spec.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * (e.min_area + random.uniform() * (e.max_area - e.min_area));
    const double aspect = draw_aspect(random, 1 / e.max_aspect, e.max_aspect);
    const auto h = static_cast<Index>(std::nearbyint(std::sqrt(wanted * aspect))),
               w = static_cast<Index>(std::nearbyint(std::sqrt(wanted / aspect)));
    if (h < 1 || w < 1 || h >= spec.height || w >= spec.width) continue;
    to.erase_y = narrow(random.below(spec.height - h + 1));
    to.erase_x = narrow(random.below(spec.width - w + 1));
    to.erase_h = narrow(h);
    to.erase_w = narrow(w);
    return;
  }
}

void check_ranges(const AugmentSpec& spec) {
  const ColourSpec& colour = spec.colour;
  const GeometrySpec& geometry = spec.geometry;
  const ErasingSpec& erasing = spec.erasing;
  if (!(spec.min_area > 0 && spec.min_area <= spec.max_area && spec.max_area <= 1))
    fail(Exit::usage, "--min-random-area {} and --max-random-area {} are no range within 0 to 1; give both",
         spec.min_area, spec.max_area);
  if (!(spec.min_aspect > 0 && spec.min_aspect <= spec.max_aspect))
    fail(Exit::usage, "--min-random-aspect-ratio {} and --max-random-aspect-ratio {} are no range above 0; give both",
         spec.min_aspect, spec.max_aspect);
  if (!(geometry.min_scale > 0 && geometry.min_scale <= geometry.max_scale))
    fail(Exit::usage, "--min-random-scale {} and --max-random-scale {} are no range above 0; give both",
         geometry.min_scale, geometry.max_scale);
  if (!(erasing.min_area > 0 && erasing.min_area <= erasing.max_area && erasing.max_area < 1 &&
        erasing.max_aspect >= 1))
    fail(Exit::usage, "areas {} to {} of erased boxes are no range within 0 to 1", erasing.min_area, erasing.max_area);
  if (erasing.probability > 0 && spec.cutout > 0)
    fail(Exit::usage, "--random-erasing and --cutout both erase a box of each image; drop one");
  const bool changes = colour.any() || geometry.any() || spec.policy.policy != Policy::none;
  if (changes && spec.channels != 3)
    fail(Exit::usage, "colour and shape changes need images of 3 channels (these have {}); drop them", spec.channels);
}

}  // namespace

Index AugmentSpec::short_side() const {
  const Index input = std::min(height, width), usual = (input * 8 + 3) / 7;
  if (resize > 0) return resize;
  if (stored == Stored::files) return usual;
  const Index own = std::min(source_height, source_width);
  if (crop == Crop::window || own == input || (pad > 0 && own < input && crop != Crop::resized)) return 0;
  const Index side = pad > 0 && crop != Crop::resized ? input : usual;
  return side == own ? 0 : side;
}

bool AugmentSpec::on_host() const {
  if (stored == Stored::files || (train && crop == Crop::resized) || short_side() > 0) return true;
  if (!train) return false;
  return colour.any() || geometry.any() || policy.policy != Policy::none || fill != 0;
}

std::string describe(const AugmentSpec& spec) {
  const bool files = spec.stored == Stored::files, resized = spec.train && spec.crop == Crop::resized;
  const Index side = spec.short_side(), pad = spec.train && !resized ? spec.pad : 0;
  ImageSize size{spec.source_height, spec.source_width};
  std::string text = files ? "files" : fmt::format("{}x{} raw", size.height, size.width);
  const auto say = [&](bool said, const std::string& what) { text += said ? ", " + what : ""; };
  if (side > 0 && !files) size = with_short_side(size, side);
  say(resized, fmt::format("a random {:g} to {:g} of the area resized to {}x{}", spec.min_area, spec.max_area,
                           spec.height, spec.width));
  say(side > 0 && !resized,
      files ? fmt::format("short side resized to {}", side) : fmt::format("resized to {}x{}", size.height, size.width));
  say(pad > 0, fmt::format("padded {}{}", pad, spec.padding == Padding::reflect ? " by reflection" : ""));
  const bool whole = size.height + 2 * pad == spec.height && size.width + 2 * pad == spec.width;
  say(!resized && !whole, fmt::format("{} crop of {}x{}", spec.train ? "random" : "centre", spec.height, spec.width));
  if (!spec.train) return text;
  say(spec.flip != Flip::none, spec.flip == Flip::random ? "flip" : "alternating flip");
  say(spec.vertical_flip > 0, "vertical flip");
  say(spec.geometry.any(), "rotation, shear or scale");
  say(spec.policy.policy != Policy::none, "augmentation policy");
  say(spec.colour.any(), "colour");
  say(spec.cutout > 0, fmt::format("cutout {}", spec.cutout));
  say(spec.erasing.probability > 0, "erasing");
  say(spec.mixing.any(), "mixing");
  return text;
}

void check_augment(const AugmentSpec& spec) {
  constexpr Index limit = 16384;  // SampleSpec counts pixels in 16 bits
  const bool files = spec.stored == Stored::files;
  require(files || (spec.source_height > 0 && spec.source_width > 0), "empty stored images");
  require(spec.height > 0 && spec.width > 0, "empty images");
  if (std::max({spec.source_height, spec.source_width, spec.height, spec.width, spec.pad, spec.cutout, spec.resize}) >
      limit)
    fail(Exit::usage, "images, padding and cutout are limited to {} pixels a side; prepare smaller images", limit);
  if (spec.pad < 0 || spec.cutout < 0)
    fail(Exit::usage, "--pad and --cutout can't be negative (got {} and {})", spec.pad, spec.cutout);
  const Index shortest = spec.short_side(), pad = spec.train ? spec.pad : 0;
  const bool window = !spec.train || spec.crop != Crop::resized;
  if (window && shortest > 0 && shortest + 2 * pad < std::min(spec.height, spec.width))
    fail(
        Exit::usage,
        "cannot crop {}x{} from images with a short side of {}; raise --resize (in validation --val-resize) or lower --image-size",
        spec.height, spec.width, shortest);
  if (spec.train && window && shortest == 0 &&
      (spec.source_height + 2 * spec.pad < spec.height || spec.source_width + 2 * spec.pad < spec.width))
    fail(
        Exit::usage,
        "cannot crop {}x{} from images of {}x{} with {} pixels of padding (the crop is larger); lower --image-size or raise --pad",
        spec.height, spec.width, spec.source_height, spec.source_width, spec.pad);
  check_ranges(spec);
}

Region random_window(const AugmentSpec& spec, Index epoch, Index position, const ImageSize& size) {
  Random random(spec.seed, Stream::augmentation, static_cast<std::uint64_t>(epoch),
                static_cast<std::uint64_t>(position));
  return window_in(spec, random, size);
}

void augment(const AugmentSpec& spec, Index epoch, Index position, Index sample_id, SampleSpec& to) {
  to.flip = to.vertical_flip = 0;
  to.erase_y = to.erase_x = to.erase_h = to.erase_w = 0;
  const bool made = spec.on_host();  // images come as large as the input
  const Index source_height = made ? spec.height : spec.source_height;
  const Index source_width = made ? spec.width : spec.source_width;
  if (!spec.train) {
    to.y = narrow(centre(source_height, spec.height));
    to.x = narrow(centre(source_width, spec.width));
    return;
  }
  Random random(spec.seed, Stream::augmentation, static_cast<std::uint64_t>(epoch),
                static_cast<std::uint64_t>(position));
  // Every draw is made, in this order, whether it is used or not: switching one augmentation off leaves the others as
  // they were. New augmentations draw after these.
  const Region window = window_in(spec, random, {source_height, source_width});
  const bool mirrored = random.bits() >> 31 != 0;
  const Index erase_y = random.below(spec.height), erase_x = random.below(spec.width);
  const bool upside_down = random.uniform() < spec.vertical_flip;

  to.y = narrow(made ? 0 : window.y);
  to.x = narrow(made ? 0 : window.x);
  if (spec.flip == Flip::random) to.flip = mirrored ? 1 : 0;
  if (spec.flip == Flip::alternating) to.flip = alternating_flip(spec.seed, epoch, sample_id) ? 1 : 0;
  to.vertical_flip = upside_down ? 1 : 0;
  if (spec.cutout > 0) {
    const Range rows = clipped(erase_y, spec.cutout, spec.height), columns = clipped(erase_x, spec.cutout, spec.width);
    to.erase_y = narrow(rows.begin);
    to.erase_h = narrow(rows.count);
    to.erase_x = narrow(columns.begin);
    to.erase_w = narrow(columns.count);
  }
  if (spec.erasing.probability > 0) erase(spec, epoch, position, to);
}

Region random_region(const AugmentSpec& spec, Index epoch, Index position, const ImageSize& size) {
  Random random(spec.seed, Stream::region, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position));
  const double area = static_cast<double>(size.height * size.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * (spec.min_area + random.uniform() * (spec.max_area - spec.min_area));
    const double aspect = draw_aspect(random, spec.min_aspect, spec.max_aspect);
    const auto w = static_cast<Index>(std::nearbyint(std::sqrt(wanted * aspect))),
               h = static_cast<Index>(std::nearbyint(std::sqrt(wanted / aspect)));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    const Index y = random.below(size.height - h + 1);
    return {y, random.below(size.width - w + 1), h, w};
  }
  const double own = static_cast<double>(size.width) / static_cast<double>(size.height);
  Index h = size.height, w = size.width;
  if (own < spec.min_aspect) h = static_cast<Index>(std::nearbyint(static_cast<double>(w) / spec.min_aspect));
  if (own > spec.max_aspect) w = static_cast<Index>(std::nearbyint(static_cast<double>(h) * spec.max_aspect));
  return {(size.height - h) / 2, (size.width - w) / 2, h, w};
}

// mix_batch: which samples are mixed, how much and where.

namespace {

double open_uniform(Random& random) { return (static_cast<double>(random.bits()) + 0.5) * 0x1p-32; }

/// Logarithm of a Gamma(alpha, 1) variable: Marsaglia, Tsang 2000; below 1 by their boost, as a logarithm since the
/// power underflows for small alpha.
double log_gamma_draw(Random& random, double alpha) {
  if (alpha < 1) {
    const double boosted = log_gamma_draw(random, alpha + 1);
    return boosted + std::log(open_uniform(random)) / alpha;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(open_uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

/// Beta(alpha, alpha).
double beta_draw(Random& random, double alpha) {
  const double a = log_gamma_draw(random, alpha), b = log_gamma_draw(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

/// The box has the share 1 - lambda of the image's area before it is clipped at the rim; lambda becomes the share that
/// is left.
void cut_box(Random& random, double lambda, Index height, Index width, SampleSpec& to) {
  const double side = std::sqrt(1 - lambda) / 2;
  const Index y = random.below(height), x = random.below(width);
  const auto half_h = static_cast<Index>(side * static_cast<double>(height)),
             half_w = static_cast<Index>(side * static_cast<double>(width));
  const Index top = std::max<Index>(y - half_h, 0), bottom = std::min(y + half_h, height);
  const Index left = std::max<Index>(x - half_w, 0), right = std::min(x + half_w, width);
  to.mix_y = static_cast<std::int16_t>(top);
  to.mix_x = static_cast<std::int16_t>(left);
  to.mix_h = static_cast<std::int16_t>(bottom - top);
  to.mix_w = static_cast<std::int16_t>(right - left);
  const double share = static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  to.lambda = static_cast<float>(1 - share);
}

}  // namespace

void mix_batch(const AugmentSpec& spec, Index epoch, std::span<SampleSpec> batch) {
  for (SampleSpec& sample : batch) {
    sample.partner = -1;
    sample.lambda = 1;
    sample.b = sample.a;
    sample.mix_y = sample.mix_x = sample.mix_h = sample.mix_w = 0;
  }
  if (!spec.train || !spec.mixing.any() || batch.size() < 2) return;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    SampleSpec& sample = batch[i];
    Random random(spec.seed, Stream::mixing, static_cast<std::uint64_t>(epoch),
                  static_cast<std::uint64_t>(sample.position));
    const float chance = random.uniform();
    const bool first = random.bits() >> 31 != 0;
    if (chance >= spec.mixing.probability) continue;
    const bool cut = spec.mixing.cutmix > 0 && (spec.mixing.mixup <= 0 || first);
    const double lambda = beta_draw(random, cut ? spec.mixing.cutmix : spec.mixing.mixup);
    const std::size_t partner = (i + batch.size() / 2) % batch.size();
    sample.lambda = static_cast<float>(lambda);
    if (cut) cut_box(random, lambda, spec.height, spec.width, sample);
    if (cut && (sample.mix_h == 0 || sample.mix_w == 0)) {  // too small a box to show
      sample.mix_h = sample.mix_w = 0;
      continue;
    }
    sample.partner = static_cast<Index>(partner);
    sample.b = batch[partner].a;
  }
}

}  // namespace convoy
