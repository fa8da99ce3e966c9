// SPDX-License-Identifier: Apache-2.0
#include "data/augment.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"

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

}  // namespace

void check_augment(const AugmentSpec& spec) {
  constexpr Index limit = 16384;  // SampleSpec counts pixels in 16 bits
  require(spec.source_height > 0 && spec.source_width > 0 && spec.height > 0 && spec.width > 0, "empty images");
  if (std::max({spec.source_height, spec.source_width, spec.height, spec.width, spec.pad, spec.cutout}) > limit)
    fail(Exit::usage, "images, padding and cutout are limited to {} pixels a side; prepare smaller images", limit);
  if (spec.pad < 0 || spec.cutout < 0)
    fail(Exit::usage, "--pad and --cutout can't be negative (got {} and {})", spec.pad, spec.cutout);
  if (spec.train && (spec.source_height + 2 * spec.pad < spec.height || spec.source_width + 2 * spec.pad < spec.width))
    fail(Exit::usage,
         "cannot crop {}x{} from images of {}x{} with {} pixels of padding (the crop is larger); lower --image-size or "
         "raise --pad",
         spec.height, spec.width, spec.source_height, spec.source_width, spec.pad);
}

void augment(const AugmentSpec& spec, Index epoch, Index position, Index sample_id, SampleSpec& to) {
  to.flip = 0;
  to.erase_y = to.erase_x = to.erase_h = to.erase_w = 0;
  if (!spec.train) {
    to.y = narrow(centre(spec.source_height, spec.height));
    to.x = narrow(centre(spec.source_width, spec.width));
    return;
  }
  Random random(spec.seed, Stream::augmentation, static_cast<std::uint64_t>(epoch),
                static_cast<std::uint64_t>(position));
  // Every draw is made, in this order, whether it is used or not: switching one augmentation off leaves the others as
  // they were. New augmentations draw after these.
  const Index y = random.below(spec.source_height + 2 * spec.pad - spec.height + 1);
  const Index x = random.below(spec.source_width + 2 * spec.pad - spec.width + 1);
  const bool mirrored = random.bits() >> 31 != 0;
  const Index erase_y = random.below(spec.height), erase_x = random.below(spec.width);

  to.y = narrow(y - spec.pad);
  to.x = narrow(x - spec.pad);
  if (spec.flip == Flip::random) to.flip = mirrored ? 1 : 0;
  if (spec.flip == Flip::alternating) to.flip = alternating_flip(spec.seed, epoch, sample_id) ? 1 : 0;
  if (spec.cutout > 0) {
    const Range rows = clipped(erase_y, spec.cutout, spec.height), columns = clipped(erase_x, spec.cutout, spec.width);
    to.erase_y = narrow(rows.begin);
    to.erase_h = narrow(rows.count);
    to.erase_x = narrow(columns.begin);
    to.erase_w = narrow(columns.count);
  }
}

}  // namespace convoy
