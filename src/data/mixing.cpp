// SPDX-License-Identifier: Apache-2.0
// mix_batch: which samples are mixed, how much and where.
#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "data/augment.hpp"

namespace convoy {
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
