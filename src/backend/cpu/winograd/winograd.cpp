// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd.hpp"

#include <algorithm>

#include "backend/cpu/gemm/product_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/winograd/winograd_loops.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Takes the tiles of all images in rounds: transforms some, multiplies, transforms back. Threads share the tiles of a
/// transformation and the points of a product, and chains of additions have a length of their own, so that results
/// don't depend on their number.
class WinogradKernel final : public ConvolutionKernel {
 public:
  WinogradKernel(Isa isa, const ConvolutionSpec& spec)
      : loops_(kernels_for<WinogradKernels>(isa)),
        products_(kernels_for<ProductKernels>(isa)),
        spec_(spec),
        bf16_(spec.algorithm == Algorithm::winograd_bf16 && spec.shape.storage == Storage::bf16 &&
              products_.multiply_bf16 != nullptr) {
    const ConvolutionShape& s = spec.shape;
    const Index p = s.p(), q = s.q();
    const bool data = spec.direction == Direction::data;
    // In the gradient of the source, dy is what is read and dx is what is written.
    x_ = {.layout = layout_of(s, s.in, s.height, s.width), .border = data ? 0 : s.pad};
    y_ = {.layout = layout_of(s, s.out, p, q), .border = data ? 2 - s.pad : 0};
    const Index rows = ((data ? s.height : p) + 3) / 4, columns = ((data ? s.width : q) + 3) / 4;
    x_.rows = y_.rows = rows;
    x_.columns = y_.columns = columns;
    x_.tiles = y_.tiles = s.images * rows * columns;
    x_.capacity = y_.capacity = std::min((x_.tiles + 1) / 2 * 2, round_tiles(s, spec.direction) * spec.threads);
    x_.prefetch = s.images * x_.layout.image_bytes() > cached_bytes;
    y_.prefetch = s.images * y_.layout.image_bytes() > cached_bytes;
    if (bf16_ && spec.direction == Direction::weights) {
      x_.form = y_.form = PanelForm::bf16_pairs;
    } else if (bf16_) {
      (data ? y_ : x_).form = PanelForm::bf16;
    }
    const auto even = [&](Index channels) { return bf16_ ? (channels + 1) / 2 * 2 : channels; };
    // Odd lines keep the points off the same cache sets.
    filter_plane_ =
        (data ? x_.layout.padded_channels() * even(s.out) : y_.layout.padded_channels() * even(s.in)) + 2 * lanes;
    x_.plane = (x_.layout.blocks() * x_.capacity + 1) * lanes;
    y_.plane = (y_.layout.blocks() * y_.capacity + 1) * lanes;
  }

  Index packed_bytes() const override { return winograd_points * filter_plane_ * (pairs() ? 2 : 4); }
  Index scratch_bytes() const override { return points_bytes(x_) + points_bytes(y_); }
  bool adds() const override { return true; }

  void pack(const float* weights, void* packed) const override {
    WinogradFilters f = filters(const_cast<float*>(weights), packed);
    split_units(filter_units(f), winograd_points * lanes,
                [&](Index begin, Index end) { loops_.transform_filters(f, begin, end); });
  }
  void unpack(const void* packed, float* weights) const override {
    WinogradFilters f = filters(weights, const_cast<void*>(packed));
    split_units(filter_units(f), winograd_points * lanes,
                [&](Index begin, Index end) { loops_.gather_filters(f, begin, end); });
  }

  bool execute(const ConvolutionData& data) const override {
    run_shared(spec_.threads, [&](const auto& share) { run(data, share); });
    return true;
  }

  std::string name() const override { return bf16_ ? "winograd 4x4 bf16" : "winograd 4x4"; }

 private:
  /// Tensors of more bytes are prefetched: fewer lie in a second-level cache, since another step has just used them.
  static constexpr Index cached_bytes = 1 << 20;

  /// Tiles of a round for each thread, a multiple of both kernels' 6 and 12 and no power of two, for the caches' sake.
  /// The wider the layer, the more filters a round reads. With few tiles, the points of 256 channels stay in the caches
  /// too; a weight gradient also reads and writes its sums in each round.
  static Index round_tiles(const ConvolutionShape& s, Direction direction) {
    const Index channels = std::max(s.in, s.out);
    if (channels >= 512) return 120;
    return channels >= 256 && direction != Direction::weights ? 36 : 60;
  }

  static Index points_bytes(const WinogradTiles& t) {
    return winograd_points * t.plane * (t.form == PanelForm::f32 ? 4 : 2);
  }
  /// Whether packed weights are pairs in bf16; their gradients never are.
  bool pairs() const { return bf16_ && spec_.direction != Direction::weights; }

  WinogradFilters filters(float* canonical, void* packed) const {
    const ConvolutionShape& s = spec_.shape;
    const Index of_out = s.in * 9, of_in = 9;
    WinogradFilters f{.canonical = canonical, .filters = packed, .pairs = pairs(), .plane = filter_plane_};
    if (spec_.direction == Direction::data) {
      f.lane = of_in, f.channel = of_out, f.lanes = s.in, f.channels = s.out, f.turned = true;
    } else {
      f.lane = of_out, f.channel = of_in, f.lanes = s.out, f.channels = s.in;
    }
    return f;
  }

  /// `share` gives each thread its part of some units, and waits for the others.
  template <class Share>
  void run(const ConvolutionData& data, const Share& share) const {
    WinogradTiles x = x_, y = y_;
    x.tensor = const_cast<void*>(data.source);
    y.tensor = const_cast<void*>(data.result);
    x.points = data.scratch;
    y.points = static_cast<std::byte*>(data.scratch) + points_bytes(x);
    const bool weights = spec_.direction == Direction::weights, turned = spec_.direction == Direction::data;
    const WinogradTiles &from = turned ? y : x, &to = turned ? x : y;
    const auto multiply = bf16_ ? products_.multiply_bf16 : products_.multiply;
    const auto add_gradients = bf16_ ? products_.filter_gradients_bf16 : products_.filter_gradients;
    Product product{.points = winograd_points,
                    .filters = const_cast<void*>(data.packed),
                    .filter_plane = filter_plane_,
                    .source = from.points,
                    .result = to.points,
                    .source_channels = from.layout.channels,
                    .result_channels = to.layout.blocked() ? to.layout.padded_channels() : to.layout.channels,
                    .result_blocks = to.layout.blocks(),
                    .source_plane = from.plane,
                    .result_plane = to.plane,
                    .capacity = x.capacity,
                    .add = data.add,
                    .chain = round_tiles(spec_.shape, spec_.direction)};
    for (Index first = 0; first < x_.tiles; first += x.capacity) {
      x.first = y.first = first;
      product.tiles = std::min(x.capacity, x_.tiles - first);
      if (weights) {
        share(bf16_ ? (product.tiles + 1) / 2 : product.tiles, [&](Index begin, Index end) {
          loops_.transform_source(x, begin, end);
          loops_.transform_gradient(y, begin, end);
        });
        share(gradient_units(product), [&](Index begin, Index end) { add_gradients(product, begin, end); });
        product.add = true;
      } else {
        share(product.tiles, [&](Index begin, Index end) { loops_.transform_source(from, begin, end); });
        share(product_units(product), [&](Index begin, Index end) { multiply(product, begin, end); });
        share(product.tiles, [&](Index begin, Index end) { loops_.write_result(to, data.bias, begin, end); });
      }
    }
    if (weights && data.bias)
      share(y.layout.blocks(), [&](Index begin, Index end) {
        loops_.sum_pixels(y, spec_.shape.images, const_cast<float*>(data.bias), data.add, begin, end);
      });
  }

  const WinogradKernels& loops_;
  const ProductKernels& products_;
  const ConvolutionSpec spec_;
  const bool bf16_;  ///< the products
  WinogradTiles x_, y_;
  Index filter_plane_ = 0;
};

}  // namespace

bool winograd_fits(const ConvolutionShape& s) {
  return s.kernel == 3 && s.kernel_w == 3 && s.stride == 1 && s.pad <= 2 && s.pad_w == s.pad && s.groups == 1 &&
         !s.reads_plain;
}

std::unique_ptr<ConvolutionKernel> make_winograd(Isa isa, const ConvolutionSpec& spec) {
  require(winograd_fits(spec.shape), "a convolution that Winograd's algorithm doesn't fit");
  return std::make_unique<WinogradKernel>(isa, spec);
}

}  // namespace convoy::cpu
