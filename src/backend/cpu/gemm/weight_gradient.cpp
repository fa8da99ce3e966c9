// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/gemm/weight_gradient.hpp"

#include <algorithm>
#include <utility>

#include "backend/cpu/gemm/pixel_loops.hpp"
#include "backend/cpu/gemm/product_loops.hpp"
#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/parallel.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Pixels whose products are added in one chain in fp32. A block of channels takes 16 KB for them, half of a
/// first-level cache.
constexpr Index longest_chain = 256;

/// Takes the pixels of all images in rounds: gathers those of dy, then, tap by tap, those of the source, and
/// multiplies. Threads share the pixels of a gathering and the channels of a product, and chains of additions have a
/// length of their own, so that results don't depend on their number.
class GemmWeightGradient final : public ConvolutionKernel {
 public:
  GemmWeightGradient(Isa isa, const ConvolutionSpec& spec)
      : pixels_(kernels_for<PixelKernels>(isa)), products_(kernels_for<ProductKernels>(isa)), spec_(spec) {
    const ConvolutionShape& s = spec.shape;
    results_ = s.images * s.p() * s.q();
    require(results_ > 0, "the gradient of no images");
    round_ = std::min(results_, longest_chain * spec.threads);
    // An odd number keeps the channels of a pixel off the same cache sets.
    const Index capacity = round_ | 1;
    x_ = {.layout = layout_of(s, s.in, s.height, s.width), .stride = s.stride};
    dy_ = {.layout = layout_of(s, s.out, s.p(), s.q())};
    x_.rows = dy_.rows = s.p();
    x_.columns = dy_.columns = s.q();
    x_.capacity = dy_.capacity = capacity;
    join_rows(dy_);
    if (taps() == 1 && s.stride == 1 && s.pad == 0 && s.pad_w == 0) join_rows(x_);
    plane_ = dy_.layout.padded_channels() * s.in;
    const Index units = (dy_.layout.blocks() + 1) / 2;
    // For as many units as keep all threads busy.
    pieces_ = spec.threads == 1 ? 1 : std::clamp(4 * spec.threads / units, Index{1}, x_.layout.blocks());
  }

  Index packed_bytes() const override { return taps() * plane_ * 4; }
  Index scratch_bytes() const override { return (panel_floats(x_) + panel_floats(dy_)) * 4; }
  bool adds() const override { return true; }

  void pack(const float* weights, void* packed) const override {
    auto* const to = static_cast<float*>(packed);
    for_weights([&](Index place, Index canonical) { to[place] = weights[canonical]; });
  }
  void unpack(const void* packed, float* weights) const override {
    const auto* const from = static_cast<const float*>(packed);
    for_weights([&](Index place, Index canonical) { weights[canonical] = from[place]; });
  }

  bool execute(const ConvolutionData& data) const override {
    run_shared(spec_.threads, [&](const auto& share) { run(data, share); });
    return true;
  }

  std::string name() const override { return "gemm"; }

 private:
  Index taps() const { return Index{spec_.shape.kernel} * spec_.shape.kernel_w; }
  static Index panel_floats(const PixelGather& g) { return g.layout.blocks() * g.capacity * lanes; }
  /// For a tensor that is read pixel by pixel, as it lies.
  static void join_rows(PixelGather& g) {
    g.columns *= std::exchange(g.rows, 1);
    g.layout.width *= std::exchange(g.layout.height, 1);
  }

  /// `share` gives each thread its part of some units, and waits for the others.
  template <class Share>
  void run(const ConvolutionData& data, const Share& share) const {
    const ConvolutionShape& s = spec_.shape;
    PixelGather x = x_, dy = dy_;
    x.tensor = static_cast<const float*>(data.source);
    dy.tensor = static_cast<const float*>(data.result);
    x.panels = static_cast<float*>(data.scratch);
    dy.panels = x.panels + panel_floats(x);
    Product product{.source = x.panels,
                    .result = dy.panels,
                    .source_channels = s.in,
                    .result_channels = dy.layout.blocked() ? dy.layout.padded_channels() : s.out,
                    .result_blocks = dy.layout.blocks(),
                    .capacity = x.capacity,
                    .add = data.add,
                    .chain = longest_chain,
                    .pieces = pieces_};
    for (Index first = 0; first < results_; first += round_) {
      x.first = dy.first = first;
      product.tiles = std::min(round_, results_ - first);
      share(product.tiles, [&](Index begin, Index end) { pixels_.gather(dy, begin, end); });
      for (Index tap = 0; tap < taps(); ++tap) {
        x.top = tap / s.kernel_w - s.pad;
        x.left = tap % s.kernel_w - s.pad_w;
        product.filters = static_cast<float*>(const_cast<void*>(data.packed)) + tap * plane_;
        share(product.tiles, [&](Index begin, Index end) { pixels_.gather(x, begin, end); });
        share(gradient_units(product),
              [&](Index begin, Index end) { products_.filter_gradients(product, begin, end); });
      }
      product.add = true;
    }
  }

  /// Calls visit(packed place, canonical place) for all weights.
  template <class Visit>
  void for_weights(const Visit& visit) const {
    const Index in = spec_.shape.in, out = spec_.shape.out, pieces = (in + lanes - 1) / lanes;
    split_units(dy_.layout.blocks() * pieces, taps() * lanes * lanes, [&](Index begin, Index end) {
      for (Index unit = begin; unit < end; ++unit) {
        const Index block = unit / pieces, channel = unit % pieces * lanes, stop = std::min(channel + lanes, in);
        for (Index k = block * lanes; k < std::min((block + 1) * lanes, out); ++k)
          for (Index c = channel; c < stop; ++c)
            for (Index tap = 0; tap < taps(); ++tap)
              visit(tap * plane_ + (block * in + c) * lanes + k % lanes, (k * in + c) * taps() + tap);
      }
    });
  }

  const PixelKernels& pixels_;
  const ProductKernels& products_;
  const ConvolutionSpec spec_;
  PixelGather x_, dy_;
  Index results_ = 0;  ///< pixels of dy in all images
  Index round_ = 0;    ///< those that are gathered at a time
  Index plane_ = 0;    ///< floats of the packed weights of a tap
  Index pieces_ = 1;   ///< of a product's source channels
};

}  // namespace

bool gemm_fits(const ConvolutionShape& s, Direction direction) {
  return direction == Direction::weights && s.groups == 1 && s.storage == Storage::f32 && !s.bias && !s.reads_plain;
}

bool gemm_pays(Isa isa, const ConvolutionShape& s, TileSums sums) {
  if (!gemm_fits(s, Direction::weights)) return false;
  const Index pixels = s.p() * s.q(), taps = Index{s.kernel} * s.kernel_w;
  if (has_avx512(isa)) {
    // Whole steps gain only if tiles are added: the addition takes long if a tile has few pixels, or if the gradient is
    // too large for the cache.
    constexpr Index cached_floats = 512 * 1024;
    if (sums == TileSums::none || pixels > (s.in * s.out * taps >= cached_floats ? 256 : 64)) return false;
  }
  if (taps > 1) return std::min(s.in, s.out) >= 32;
  // With few channels gathering costs too much.
  const Index least = pixels <= 256 ? 24 : 64;
  return pixels <= 1024 && s.in * s.out >= least * (s.in + s.out);
}

std::unique_ptr<ConvolutionKernel> make_gemm(Isa isa, const ConvolutionSpec& spec) {
  require(gemm_fits(spec.shape, spec.direction), "a convolution that the products over pixels don't fit");
  return std::make_unique<GemmWeightGradient>(isa, spec);
}

}  // namespace convoy::cpu
