// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd.hpp"

#include <algorithm>

#include "backend/cpu/gemm/product_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/winograd/winograd_loops.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Takes tiles in rounds: transforms some, multiplies, transforms back. Forward and in the gradient of the source, each
/// thread takes tiles of its own if there are enough: tiles that one thread transforms and another one multiplies are
/// slow between cores without a common cache. Otherwise threads share the tiles of a transformation and the points of a
/// product. Chains of additions have a length of their own. So one kernel call gives the same bits with any number of
/// threads.
class WinogradKernel final : public ConvolutionKernel {
 public:
  WinogradKernel(Isa isa, const ConvolutionSpec& spec)
      : loops_(kernels_for<WinogradKernels>(isa)),
        products_(kernels_for<ProductKernels>(isa)),
        transforms_(spec.shape.stride == 1 ? loops_.stride_1 : loops_.stride_2),
        spec_(spec),
        bf16_(spec.algorithm == Algorithm::winograd_bf16 && spec.shape.storage == Storage::bf16 &&
              products_.multiply_bf16 != nullptr) {
    const ConvolutionShape& s = spec.shape;
    const Index p = s.p(), q = s.q(), step = 4 * s.stride;
    const bool data = spec.direction == Direction::data;
    // In the gradient of the source, dy is what is read and dx is what is written.
    x_ = {.layout = layout_of(s, s.in, s.height, s.width), .step = step, .border = data ? 0 : s.pad};
    y_ = {.layout = layout_of(s, s.out, p, q), .border = data && s.stride == 1 ? 2 - s.pad : 0};
    const Index rows = data ? (s.height + step - 1) / step : (p + 3) / 4;
    const Index columns = data ? (s.width + step - 1) / step : (q + 3) / 4;
    const Index tiles = s.images * rows * columns;
    if (bf16_ && spec.direction == Direction::weights) {
      x_.form = y_.form = PanelForm::bf16_pairs;
    } else if (bf16_) {
      (data ? y_ : x_).form = PanelForm::bf16;
    }
    choose_round(tiles);
    const Index sharers = own_tiles_ ? spec.threads : 1, least = tiles / sharers,
                most = (tiles + sharers - 1) / sharers;
    for (WinogradTiles* const t : {&x_, &y_}) {
      t->rows = rows;
      t->columns = columns;
      t->tiles = tiles;
      t->capacity = (std::max(largest_round(least), largest_round(most)) + 1) / 2 * 2;
      t->prefetch = s.images * t->layout.image_bytes() > cached_bytes;
    }
    const auto even = [&](Index channels) { return bf16_ ? (channels + 1) / 2 * 2 : channels; };
    // Two more blocks of 16 numbers keep the filters' planes off the same cache sets.
    filter_plane_ =
        (data ? x_.layout.padded_channels() * even(s.out) : y_.layout.padded_channels() * even(s.in)) + 2 * lanes;
    plan_products();
  }

  Index packed_bytes() const override { return winograd_filters * filter_plane_ * (pairs() ? 2 : 4); }
  Index scratch_bytes() const override { return (own_tiles_ ? spec_.threads : 1) * round_bytes(); }
  bool adds() const override { return true; }

  void pack(const float* weights, void* packed) const override {
    WinogradFilters f = filters(const_cast<float*>(weights), packed);
    split_units(filter_units(f), winograd_filters * lanes,
                [&](Index begin, Index end) { transforms_.pack_filters(f, begin, end); });
  }
  void unpack(const void* packed, float* weights) const override {
    WinogradFilters f = filters(weights, const_cast<void*>(packed));
    split_units(filter_units(f), winograd_filters * lanes,
                [&](Index begin, Index end) { transforms_.unpack_filters(f, begin, end); });
  }

  bool execute(const ConvolutionData& data) const override {
    auto* const scratch = static_cast<std::byte*>(data.scratch);
    if (own_tiles_) {
      split_among(spec_.threads, x_.tiles, [&](int thread, Index begin, Index end) {
        run(data, scratch + thread * round_bytes(), begin, end, take_all);
      });
    } else {
      run_shared(spec_.threads, [&](const auto& share) { run(data, scratch, 0, x_.tiles, share); });
    }
    return true;
  }

  std::string name() const override { return bf16_ ? "winograd 4x4 bf16" : "winograd 4x4"; }

 private:
  /// Transformations prefetch a tensor with more bytes. A smaller one is often still in a thread's second-level cache,
  /// and then prefetching costs 1 to 3 %.
  static constexpr Index cached_bytes = 1 << 20;
  static constexpr std::size_t most_groups = 4;

  /// The product of a group of points. `product` lacks addresses and the number of tiles; the others are the bytes by
  /// which its panels start after the first.
  struct PlannedProduct {
    Product product;
    Index filters = 0, source = 0, result = 0;
  };

  /// Whether threads have tiles of their own, and the tiles of a round. Bits depend on neither: the gradient of
  /// weights, whose chains of additions must not cross rounds, always takes whole ones of winograd_round_tiles().
  void choose_round(Index tiles) {
    constexpr Index least_tiles = 24;  // twice the rows that products take at once with AVX-512
    const Index usual = winograd_round_tiles(spec_.shape, spec_.direction);
    Index tile_bytes = 0;
    for (const WinogradTiles* const t : {&x_, &y_})
      for (const PointGroup& g : transforms_.groups)
        tile_bytes += g.filters * g.points_per_filter * t->layout.blocks() * lanes * element_bytes(*t);
    // The last round takes up to a quarter more. Whole twelves, which both kernels take at once.
    const Index fitting = winograd_scratch_bytes / tile_bytes / spec_.copies * 4 / 5,
                own = std::min(usual, fitting / spec_.threads / 12 * 12);
    own_tiles_ = spec_.direction != Direction::weights && tiles >= spec_.threads * least_tiles &&
                 (own >= least_tiles || spec_.threads == 1);
    if (own_tiles_) {
      round_ = std::max(own, least_tiles);
    } else {
      round_ = usual * std::clamp<Index>(fitting / usual, 1, spec_.threads);
    }
  }

  void plan_products() {
    const bool turned = spec_.direction == Direction::data;
    const WinogradTiles &from = turned ? y_ : x_, &to = turned ? x_ : y_;
    require(transforms_.groups.size() <= most_groups, "more groups of points than products");
    Index source = 0, result = 0;
    for (std::size_t i = 0; i < transforms_.groups.size(); ++i) {
      const PointGroup& g = transforms_.groups[i];
      planned_[i] = {
          .product = {.points = g.filters,
                      .filter_plane = filter_plane_,
                      .source_channels = from.layout.channels,
                      .result_channels = to.layout.blocked() ? to.layout.padded_channels() : to.layout.channels,
                      .result_blocks = to.layout.blocks(),
                      .source_plane = from.plane(g),
                      .result_plane = to.plane(g),
                      .capacity = x_.capacity * g.points_per_filter,
                      .chain = chain_points(spec_.shape, g)},
          .filters = g.first * filter_plane_ * (pairs() ? 2 : 4),
          .source = source,
          .result = result};
      source += g.filters * from.plane(g) * element_bytes(from);
      result += g.filters * to.plane(g) * element_bytes(to);
    }
  }

  /// How many points of a group one chain adds. It divides the points of a round for any number of threads, so no chain
  /// continues in the next round.
  static Index chain_points(const ConvolutionShape& s, const PointGroup& group) {
    const Index round = winograd_round_tiles(s, Direction::weights),
                chain = group.points_per_filter == 1 ? round : std::max<Index>(96, 2 * round);
    require(round * group.points_per_filter % chain == 0, "a chain of additions would cross rounds");
    return chain;
  }

  /// The last round takes a few tiles more rather than leave them to one that reads all filters, or a whole sum, again.
  Index most_of_round() const { return round_ + round_ / 4; }
  Index largest_round(Index tiles) const {
    if (tiles <= most_of_round()) return tiles;
    const Index rest = tiles % round_;
    return rest <= round_ / 4 ? round_ + rest : round_;
  }

  Index points_bytes(const WinogradTiles& t) const {
    Index count = 0;
    for (const PointGroup& g : transforms_.groups) count += g.filters * t.plane(g);
    return count * element_bytes(t);
  }
  Index round_bytes() const { return points_bytes(x_) + points_bytes(y_); }
  static Index element_bytes(const WinogradTiles& t) { return t.form == PanelForm::f32 ? 4 : 2; }
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

  /// Divides the products of all groups among the threads, so that each gets about as many points, and calls
  /// multiply(product, begin, end) with its units.
  template <class Share, class Multiply>
  void share_products(const Share& share, const Product* products, const Multiply& multiply) const {
    Index points = 0;
    for (std::size_t i = 0; i < transforms_.groups.size(); ++i)
      points += product_units(products[i]) * transforms_.groups[i].points_per_filter;
    share(points, [&](Index begin, Index end) {
      Index first = 0;
      for (std::size_t i = 0; i < transforms_.groups.size(); ++i) {
        const Index units = product_units(products[i]), each = transforms_.groups[i].points_per_filter;
        // The thread that has a unit's first point takes it.
        const auto unit_from = [&](Index point) {
          return std::clamp((point - first + each - 1) / each, Index{0}, units);
        };
        const Index from = unit_from(begin), to = unit_from(end);
        if (from < to) multiply(products[i], from, to);
        first += units * each;
      }
    });
  }

  /// The tiles [begin, end). `share` gives each thread its part of some units, and waits for the others.
  template <class Share>
  void run(const ConvolutionData& data, std::byte* scratch, Index begin, Index end, const Share& share) const {
    WinogradTiles x = x_, y = y_;
    x.tensor = const_cast<void*>(data.source);
    y.tensor = const_cast<void*>(data.result);
    x.points = scratch;
    y.points = scratch + points_bytes(x);
    const bool weights = spec_.direction == Direction::weights, turned = spec_.direction == Direction::data;
    const WinogradTiles &from = turned ? y : x, &to = turned ? x : y;
    const auto multiply = bf16_ ? products_.multiply_bf16 : products_.multiply;
    const auto add_gradients = bf16_ ? products_.filter_gradients_bf16 : products_.filter_gradients;
    const auto read = turned ? transforms_.read_dy : transforms_.read_x;
    const auto write = turned ? transforms_.write_dx : transforms_.write_y;
    Product products[most_groups];
    for (std::size_t i = 0; i < transforms_.groups.size(); ++i) {
      products[i] = planned_[i].product;
      products[i].filters = static_cast<std::byte*>(const_cast<void*>(data.packed)) + planned_[i].filters;
      products[i].source = static_cast<const std::byte*>(from.points) + planned_[i].source;
      products[i].result = static_cast<std::byte*>(to.points) + planned_[i].result;
      products[i].add = data.add;
    }
    for (Index first = begin, tiles = 0; first < end; first += tiles) {
      x.first = y.first = first;
      // A smaller team than asked for has larger shares, but no more memory.
      tiles = end - first <= std::min(most_of_round(), x.capacity) ? end - first : std::min(round_, x.capacity);
      for (std::size_t i = 0; i < transforms_.groups.size(); ++i)
        products[i].tiles = tiles * transforms_.groups[i].points_per_filter;
      if (weights) {
        share(bf16_ ? (tiles + 1) / 2 : tiles, [&](Index from_unit, Index to_unit) {
          transforms_.read_x(x, from_unit, to_unit);
          transforms_.read_dy_for_filters(y, from_unit, to_unit);
        });
        share_products(share, products, add_gradients);
        for (Product& product : products) product.add = true;
      } else {
        share(tiles, [&](Index from_unit, Index to_unit) { read(from, from_unit, to_unit); });
        share_products(share, products, multiply);
        share(tiles, [&](Index from_unit, Index to_unit) { write(to, data.bias, from_unit, to_unit); });
      }
    }
    if (weights && data.bias)
      share(y.layout.blocks(), [&](Index from_block, Index to_block) {
        loops_.sum_pixels(y, spec_.shape.images, const_cast<float*>(data.bias), data.add, from_block, to_block);
      });
  }

  const WinogradKernels& loops_;
  const ProductKernels& products_;
  const WinogradTransforms& transforms_;
  const ConvolutionSpec spec_;
  const bool bf16_;         ///< the products
  bool own_tiles_ = false;  ///< of each thread
  Index round_ = 0;         ///< tiles
  WinogradTiles x_, y_;
  Index filter_plane_ = 0;
  PlannedProduct planned_[most_groups];  ///< one for each group of points
};

}  // namespace

bool winograd_fits(const ConvolutionShape& s) {
  const bool stride_1 = s.stride == 1 && s.pad <= 2,
             stride_2 = s.stride == 2 && s.pad == 1 && s.storage == Storage::f32;
  return s.kernel == 3 && s.kernel_w == 3 && s.pad_w == s.pad && s.groups == 1 && !s.reads_plain &&
         (stride_1 || stride_2);
}

Index winograd_round_tiles(const ConvolutionShape& s, Direction direction) {
  const Index channels = std::max(s.in, s.out);
  if (s.stride == 2) return channels < 512 ? 24 : 60;
  if (channels >= 512) return 120;
  return channels >= 256 && direction != Direction::weights ? 36 : 60;
}

std::unique_ptr<ConvolutionKernel> make_winograd(Isa isa, const ConvolutionSpec& spec) {
  require(winograd_fits(spec.shape), "a convolution that Winograd's algorithm doesn't fit");
  return std::make_unique<WinogradKernel>(isa, spec);
}

}  // namespace convoy::cpu
