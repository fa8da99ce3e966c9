// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/choices.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "backend/cpu/gemm/weight_gradient.hpp"
#include "backend/cpu/grouped/grouped.hpp"
#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/operations/convolution.hpp"
#include "backend/cpu/winograd/winograd.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

constexpr auto forward = static_cast<std::size_t>(Direction::forward);
constexpr auto data = static_cast<std::size_t>(Direction::data);
constexpr auto weights = static_cast<std::size_t>(Direction::weights);

constexpr std::array<std::string_view, 5> algorithm_names{"direct", "winograd", "grouped", "winograd-bf16", "gemm"};
std::string_view name_of(Algorithm algorithm) { return algorithm_names[static_cast<std::size_t>(algorithm)]; }

/// The divisor of `samples` nearest to `wanted` by ratio, the smaller of two.
Index nearest_divisor(Index samples, Index wanted) {
  Index best = 1;
  const auto distance = [&](Index d) {
    const double ratio = static_cast<double>(d) / static_cast<double>(wanted);
    return ratio > 1 ? ratio : 1 / ratio;
  };
  for (Index d = 1; d <= samples; ++d)
    if (samples % d == 0 && distance(d) < distance(best)) best = d;
  return best;
}

/// Tiles only help when every thread gets some, and nearly as many as the others.
bool tiles_suit(const ProgramParts& parts, Index tile) {
  const Index tiles = parts.spec.samples / tile, most = (tiles + parts.threads - 1) / parts.threads;
  return tiles >= parts.threads && most * parts.threads * 4 <= tiles * 5;
}

bool is_convolution(const ProgramParts& parts, int id) {
  const Value& value = parts.lowering.value(id);
  return value.kind == ValueKind::operation && as<Convolution>(parts.node(value)) != nullptr;
}

std::vector<int> convolutions_of(const ProgramParts& parts, const PassPlan& plan) {
  std::vector<int> result;
  for (const Instruction& i : plan.instructions) {
    const bool first = std::find(result.begin(), result.end(), i.value) == result.end();
    if (first && is_convolution(parts, i.value) && i.kind != InstructionKind::statistics &&
        i.kind != InstructionKind::accumulate)
      result.push_back(i.value);
  }
  return result;
}

Index winograd_tiles_of_image(const ConvolutionShape& s) { return (s.p() + 3) / 4 * ((s.q() + 3) / 4); }

/// A tile costs 36 multiplications, with stride 2 81, however many of its 16 results lie in the map. Direct kernels
/// multiply 9 times a result. The rule takes Winograd's algorithm if they multiply at least 9/5 times as often; with
/// stride 2 9/7 times (more products per tile, so the transformations weigh less), and without AVX-512 9/12 times,
/// since oneDNN's direct kernels of stride 2 then run at half the rate of its others (60 and 116 GFLOP/s on a core of
/// an AMD EPYC (Zen 4)). In bf16 direct kernels multiply two numbers at once: 3 times. With stride 1 and fewer than 16
/// source channels oneDNN has only its reference for blocked tensors. Few channels make the transformations dearer than
/// the products.
bool winograd_pays(const ConvolutionShape& s, const ProgramParts& parts) {
  if (parts.spec.options == no_winograd || !winograd_fits(s)) return false;
  const bool blocked = s.format == MemoryFormat::blocked;
  const bool wide_products = s.storage == Storage::bf16 && parts.spec.options != winograd_bf16;
  if (wide_products && !blocked) return false;  // the machine has a matrix unit, which is faster
  if (blocked && s.in < lanes && s.stride == 1) return true;
  constexpr Index few = 8;
  if (!blocked && std::min(s.in, s.out) < few) return false;
  const Index results = s.p() * s.q(), tiles = winograd_tiles_of_image(s);
  if (s.stride == 1) return tiles * 36 <= results * (wide_products ? 3 : 5);
  return tiles * 81 <= results * (has_avx512(parts.isa) ? 7 : 12);
}

Algorithm winograd_of(const ProgramParts& parts) {
  return parts.spec.options == winograd_bf16 ? Algorithm::winograd_bf16 : Algorithm::winograd;
}

/// Pairs of a result and a tap that reads the map, not its border, along one dimension.
Index taps_inside(Index results, Index pixels, Index pad) {
  Index count = 0;
  for (Index result = 0; result < results; ++result)
    for (Index tap = 0; tap < 3; ++tap) count += result + tap >= pad && result + tap - pad < pixels ? 1 : 0;
  return count;
}

/// Called if winograd_pays. In bf16, where the machine can, weight gradients take products in bf16: their rounding
/// costs no accuracy (ADR 0022). With the option winograd-bf16, so do the other directions, but only if direct kernels
/// multiply 1.5 times as often; those skip the border, which is most of a small map. Measured on 2026-11-30 for 64 to
/// 512 channels and 32 images (AMD EPYC, AVX-512 BF16, one thread by CPU time): direct time / Winograd's time, first
/// without, then with the packing of the weights.
///
///   map  direct / Winograd  forward and data         weight gradient
///        multiplications    gradient
///   3x3  49 / 36            0.9 to 1.1, 0.7 to 0.9   2.0 to 3.2, 1.2 to 2.7
///   4x4  100 / 36           1.7 to 2.2, 1.3 to 1.6   2.4 to 4.3, 1.5 to 3.6
///   6x6  256 / 144          1.2 to 1.5, 1.1 to 1.3   1.4 to 2.1, 1.2 to 2.0
///   7x7  361 / 144          1.6 to 2.5, 1.5 to 2.1   2.0 to 2.8, 1.7 to 2.7
std::array<Algorithm, 3> winograd_where_it_pays(const ConvolutionShape& s, const ProgramParts& parts) {
  std::array<Algorithm, 3> algorithms{};
  algorithms.fill(winograd_of(parts));
  if (s.storage == Storage::bf16 && parts.isa == Isa::avx512_bf16) algorithms[weights] = Algorithm::winograd_bf16;
  if (parts.spec.options != winograd_bf16 || s.storage != Storage::bf16 || std::min(s.in, s.out) < lanes)
    return algorithms;
  const Index p = s.p(), q = s.q(), tiles = winograd_tiles_of_image(s);
  const Index direct = taps_inside(p, s.height, s.pad) * taps_inside(q, s.width, s.pad_w);
  if (2 * direct < 3 * 36 * tiles) algorithms[forward] = algorithms[data] = Algorithm::direct;
  return algorithms;
}

bool makes_weight_gradients(const PassPlan& plan) {
  return std::any_of(plan.instructions.begin(), plan.instructions.end(),
                     [](const Instruction& i) { return i.kind == InstructionKind::weight_gradient; });
}

/// Returns how many images a thread takes at once in a pass with Winograd's kernels, or 0 if all threads take the whole
/// batch together. The images must fill a round of tiles and divide the batch. If threads share tiles, one thread reads
/// what another one transformed, which is slow without a common cache. If they don't, each has its own sum for the
/// weight gradient, four times as large as the weights. All sums of the rank must fit into a third-level cache. Adding
/// a thread's sum takes as long as the products of about 25 tiles, and may cost at most a fifth, so a thread needs 120
/// tiles. Measured on two cores of an AMD EPYC (Zen 4) only.
Index winograd_images(const ProgramParts& parts, const ConvolutionShape& s, const PassPlan& plan) {
  constexpr Index cache_bytes = 32 << 20, least_own_tiles = 120;
  const Index tiles = winograd_tiles_of_image(s), own = parts.spec.samples / parts.threads;
  const bool sums = makes_weight_gradients(plan);
  const Index sum_bytes = 36 * s.in * s.out * 4;
  if (sums && parts.threads > 1 && (parts.threads * sum_bytes > cache_bytes || own * tiles < least_own_tiles)) return 0;
  const Index round = winograd_round_tiles(s, sums ? Direction::weights : Direction::forward),
              wanted = s.height * s.width <= 256 ? 32 : 16, most = std::max(wanted, (round + tiles - 1) / tiles);
  for (Index images = std::min(most, own); images * tiles >= round; --images)
    if (parts.spec.samples % images == 0 && tiles_suit(parts, images)) return images;
  return 0;
}

std::array<Algorithm, 3> grouped_where_it_pays(const ConvolutionShape& s, Isa isa) {
  std::array<Algorithm, 3> algorithms{};
  for (const Direction direction : {Direction::forward, Direction::data, Direction::weights})
    if (grouped_pays(isa, s, direction)) algorithms[static_cast<std::size_t>(direction)] = Algorithm::grouped;
  return algorithms;
}

}  // namespace

PassChoice choose_by_rule(const ProgramParts& parts, const PassPlan& plan) {
  PassChoice choice;
  choice.tile = parts.spec.samples;
  if (plan.whole) return choice;
  const auto convolutions = convolutions_of(parts, plan);
  Index tile = 4;
  bool inner = false;
  if (!convolutions.empty()) {
    const ConvolutionShape s = convolution_shape(parts, convolutions.front(), 1);
    const Index pixels = s.height * s.width, width = std::max(s.in, s.out);
    if (winograd_pays(s, parts)) {
      choice.algorithms = winograd_where_it_pays(s, parts);
      const Index images = winograd_images(parts, s, plan);
      inner = images == 0;
      tile = std::max<Index>(images, 1);
    } else {
      choice.algorithms = grouped_where_it_pays(s, parts.isa);
      inner = width >= 256 && pixels / (s.stride * s.stride) <= 64;
      // A tile of source and result each in a quarter of the second-level cache; a call costs about 10 us on the matrix
      // unit.
      const int y_id = convolutions.front(), x_id = parts.lowering.value(y_id).sources[0];
      const TensorLayout &x = parts.layout(x_id), &y = parts.layout(y_id);
      constexpr Index cache_share_bytes = 512 * 1024;
      tile = std::clamp<Index>(cache_share_bytes / std::max(x.image_bytes(), y.image_bytes()), 1, 32);
      if (s.storage == Storage::f32) tile = std::min<Index>(tile, 4);
    }
  }
  tile = nearest_divisor(parts.spec.samples, tile);
  if (!inner && tiles_suit(parts, tile)) {
    choice.tile = tile;
    choice.inner = false;
  }
  if (plan.backward && !convolutions.empty() && choice.algorithms[weights] == Algorithm::direct)
    choice.algorithms[weights] = direct_or_gemm(parts, choice, convolution_shape(parts, convolutions.front(), 1));
  return choice;
}

Algorithm direct_or_gemm(const ProgramParts& parts, const PassChoice& choice, const ConvolutionShape& shape) {
  const bool sums = !choice.inner && parts.spec.samples / choice.tile > parts.threads;
  const bool pays = gemm_pays(parts.isa, shape, sums ? TileSums::some : TileSums::none);
  return pays ? Algorithm::gemm : Algorithm::direct;
}

std::vector<PassChoice> candidates_of(const ProgramParts& parts, const PassPlan& plan) {
  std::vector<PassChoice> result{choose_by_rule(parts, plan)};
  if (plan.whole) return result;
  const auto offer = [&](const PassChoice& choice) {
    if (std::find(result.begin(), result.end(), choice) == result.end()) result.push_back(choice);
  };
  std::vector<std::array<Algorithm, 3>> algorithms{result.front().algorithms};
  const auto convolutions = convolutions_of(parts, plan);
  if (!convolutions.empty()) {
    const ConvolutionShape s = convolution_shape(parts, convolutions.front(), 1);
    const Algorithm w = winograd_of(parts), d = Algorithm::direct, g = Algorithm::grouped, m = Algorithm::gemm;
    if (winograd_pays(s, parts)) {
      algorithms.push_back({w, w, w});
      if (plan.backward) algorithms.push_back({w, w, d});
      if (plan.backward && gemm_fits(s, Direction::weights)) {
        algorithms.push_back({w, w, m});
        algorithms.push_back({d, d, m});
      }
      algorithms.push_back({d, d, d});
    } else if (s.groups > 1) {
      algorithms.push_back({g, g, g});
      algorithms.push_back({d, d, d});
    } else {
      if (plan.backward && gemm_fits(s, Direction::weights)) algorithms.push_back({d, d, m});
      algorithms.push_back({d, d, d});
    }
  }
  for (const auto& set : algorithms) {
    for (const Index wanted : {4, 16}) {
      const Index tile = nearest_divisor(parts.spec.samples, wanted);
      if (tiles_suit(parts, tile)) offer({.tile = tile, .inner = false, .algorithms = set});
    }
    offer({.tile = parts.spec.samples, .inner = true, .algorithms = set});
  }
  return result;
}

std::string signature_of(const ProgramParts& parts, const PassPlan& plan) {
  std::string result;
  for (const Instruction& i : plan.instructions) {
    const TensorLayout& layout = parts.layout(i.value);
    const Value& value = parts.lowering.value(i.value);
    result += fmt::format("{} {} {}:{}x{}x{}", static_cast<int>(i.kind), static_cast<int>(value.kind),
                          parts.node(value).attributes.index(), layout.channels, layout.height, layout.width);
    for (const Buffer& buffer : i.in) result += fmt::format(",{}", static_cast<int>(buffer.where));
    if (is_convolution(parts, i.value)) {
      const ConvolutionShape s = convolution_shape(parts, i.value, 1);
      result += fmt::format(" c{}k{}x{}s{}p{}x{}g{}", s.in, s.kernel, s.kernel_w, s.stride, s.pad, s.pad_w, s.groups);
    }
    result += ";";
  }
  return result;
}

std::string write_choices(const std::vector<PassChoice>& choices) {
  std::string text;
  for (const PassChoice& c : choices) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {} {} {} {}", c.inner ? "whole" : "tile", c.tile, name_of(c.algorithms[forward]),
                        name_of(c.algorithms[data]), name_of(c.algorithms[weights]));
  }
  return text;
}

std::vector<PassChoice> read_choices(const std::string& text, std::size_t passes, Index samples) {
  std::vector<PassChoice> result;
  std::istringstream in(text);
  const auto unfit = [&] {
    fail(
        Exit::usage,
        "kernel choices '{:.40}' don't fit this program (written by another version or for another batch); change --tuning, so that kernels are chosen anew",
        text);
  };
  for (std::string one; std::getline(in, one, ';');) {
    std::istringstream words(one);
    std::string mode;
    std::array<std::string, 3> names;
    PassChoice choice;
    if (!(words >> mode >> choice.tile >> names[forward] >> names[data] >> names[weights])) unfit();
    choice.inner = mode == "whole";
    for (std::size_t i = 0; i < 3; ++i) {
      const auto found = std::find(algorithm_names.begin(), algorithm_names.end(), names[i]);
      if (found == algorithm_names.end()) unfit();
      choice.algorithms[i] = static_cast<Algorithm>(found - algorithm_names.begin());
    }
    if ((mode != "whole" && mode != "tile") || choice.tile < 1 || samples % choice.tile != 0) unfit();
    result.push_back(choice);
  }
  if (result.size() != passes) unfit();
  return result;
}

}  // namespace convoy::cpu
