// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/grouped/grouped.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "backend/cpu/grouped/grouped_loops.hpp"
#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/parallel.hpp"

namespace convoy::cpu {
namespace {

/// Where the results lie that the same taps make: every one, or, in the gradient of the source, those whose distance
/// from the padded edge leaves one remainder by the stride.
struct Lattice {
  Index top = 0, left = 0;  ///< of the result
  Index rows = 0, columns = 0;
  Index source = 0, weights = 0;  ///< of the first tap, in floats
  Index filter_rows = 0, source_row = 0, weights_row = 0;
  std::vector<TapRun> runs = {};  ///< of the first row of the filter
};

/// One dimension of a lattice in the gradient of the source: the taps that reach the results first, first + stride ...,
/// the last of them first, and the pixel of dy that it multiplies for the first result.
struct Reach {
  Index taps = 0, last_tap = 0, start = 0;

  Reach(int kernel, int stride, int pad, Index first) {
    const Index tap = (first + pad) % stride;
    if (tap >= kernel) return;
    taps = (kernel - 1 - tap) / stride + 1;
    last_tap = tap + stride * (taps - 1);
    start = (first + pad) / stride - (taps - 1);
  }
};

Index round_up(Index n, Index to) { return (n + to - 1) / to * to; }

/// Threads share images times blocks of 16 results, or, in the gradient of the weights, blocks, so that results don't
/// depend on their number. Each copies a band of rows at a time into planes of its own.
class GroupedKernel final : public ConvolutionKernel {
 public:
  GroupedKernel(Isa isa, const ConvolutionSpec& spec) : loops_(kernels_for<GroupedKernels>(isa)), spec_(spec) {
    const ConvolutionShape& s = spec.shape;
    const TensorLayout x = layout_of(s, s.in, s.height, s.width, s.reads_plain), y = layout_of(s, s.out, s.p(), s.q());
    const bool data = spec.direction == Direction::data;
    source_ = data ? y : x;
    result_ = data ? x : y;
    channels_ = source_.channels / s.groups;
    results_ = result_.channels / s.groups;
    weights_block_ = channels_ * taps() * lanes;
    choose_lanes();
    if (data)
      place_gradient_taps();
    else
      place_taps(s.p(), s.q());
    place_planes();
  }

  Index packed_bytes() const override { return result_.blocks() * weights_block_ * 4; }
  Index scratch_bytes() const override { return spec_.threads * thread_floats_ * 4; }
  bool adds() const override { return true; }

  void pack(const float* weights, void* packed) const override {
    auto* const to = static_cast<float*>(packed);
    for_weights([&](Index place, Index canonical) { to[place] = canonical < 0 ? 0.0F : weights[canonical]; });
  }
  void unpack(const void* packed, float* weights) const override {
    const auto* const from = static_cast<const float*>(packed);
    for_weights([&](Index place, Index canonical) {
      if (canonical >= 0) weights[canonical] = from[place];
    });
  }

  bool execute(const ConvolutionData& data) const override {
    const bool weights = spec_.direction == Direction::weights;
    const Index units = (weights ? 1 : spec_.shape.images) * result_.blocks();
    const auto run = [&](Index thread, Index begin, Index end) {
      float* const scratch = static_cast<float*>(data.scratch) + thread * thread_floats_;
      for (Index unit = begin; unit < end; ++unit) {
        if (weights)
          sum_gradient(data, unit, scratch);
        else
          make_result(data, unit / result_.blocks(), unit % result_.blocks(), scratch);
      }
    };
    if (spec_.threads == 1) {
      run(0, 0, units);
    } else {
#pragma omp parallel num_threads(spec_.threads)
      {
        const Index t = omp_get_thread_num(), n = omp_get_num_threads();
        run(t, units * t / n, units * (t + 1) / n);
      }
    }
    return true;
  }

  std::string name() const override {
    return spec_.shape.groups == spec_.shape.in && spec_.shape.in == spec_.shape.out ? "depthwise" : "grouped";
  }

 private:
  Index taps() const { return Index{spec_.shape.kernel} * spec_.shape.kernel_w; }

  /// How lanes find their channels; in planes gathered channel by channel where no other way fits.
  void choose_lanes() {
    const bool narrow = channels_ == results_ && channels_ <= 8 && lanes % channels_ == 0;
    const bool wide = results_ % lanes == 0 || spec_.shape.groups == 1;
    filter_.channels = channels_;
    filter_.weights_channel = taps() * lanes;
    gathers_ = spec_.shape.reads_plain || !(narrow || wide);
    planes_ = channels_;
    if (gathers_) return;
    planes_ = 1;
    if (narrow) {
      filter_.group = static_cast<int>(channels_);
      filter_.lane = channels_ == 1 ? LaneSource::own : LaneSource::permuted;
    } else {
      filter_.lane = LaneSource::shared;
      // A group may begin within a block.
      for (Index g = 0; g < spec_.shape.groups; ++g)
        planes_ = std::max(planes_, ((g + 1) * channels_ - 1) / lanes - g * channels_ / lanes + 1);
    }
  }

  /// A row's taps of one part of a plane's row, in runs of nearly equal length.
  void add_runs(Lattice& lattice, Index count, Index source, Index weights, Index step) const {
    const Index pieces = (count + longest_run - 1) / longest_run;
    for (Index piece = 0; piece < pieces; ++piece) {
      const Index begin = count * piece / pieces, end = count * (piece + 1) / pieces;
      lattice.runs.push_back({.source = source + begin * lanes,
                              .weights = weights + begin * step,
                              .step = step,
                              .taps = static_cast<int>(end - begin)});
    }
  }

  void place_taps(Index p, Index q) {
    const ConvolutionShape& s = spec_.shape;
    top_ = -s.pad;
    left_ = -s.pad_w;
    step_ = s.stride;
    const Index reach = (s.kernel_w - 1) / s.stride;
    set_width(q, reach);
    span_ = s.kernel;
    Lattice all{
        .rows = p, .columns = q, .filter_rows = s.kernel, .source_row = row_, .weights_row = s.kernel_w * lanes};
    for (Index part = 0; part < std::min<Index>(s.stride, s.kernel_w); ++part)
      add_runs(all, (s.kernel_w - part + s.stride - 1) / s.stride, part * part_, part * lanes, s.stride * lanes);
    lattices_.push_back(std::move(all));
  }

  void place_gradient_taps() {
    const ConvolutionShape& s = spec_.shape;
    constexpr Index none = std::numeric_limits<Index>::max();
    Index bottom = -none, right = -none;
    top_ = left_ = none;
    for (Index first = 0; first < s.stride; ++first) {
      const Reach h(s.kernel, s.stride, s.pad, first), w(s.kernel_w, s.stride, s.pad_w, first);
      if (h.taps > 0) top_ = std::min(top_, h.start), bottom = std::max(bottom, h.start + h.taps);
      if (w.taps > 0) left_ = std::min(left_, w.start), right = std::max(right, w.start + w.taps);
    }
    span_ = bottom - top_;
    result_step_ = s.stride;
    set_width((s.width + s.stride - 1) / s.stride, right - left_ - 1);
    const Index step = -Index{s.stride} * lanes;
    for (Index top = 0; top < std::min<Index>(s.stride, s.height); ++top) {
      for (Index left = 0; left < std::min<Index>(s.stride, s.width); ++left) {
        const Reach h(s.kernel, s.stride, s.pad, top), w(s.kernel_w, s.stride, s.pad_w, left);
        Lattice lattice{.top = top,
                        .left = left,
                        .rows = (s.height - top + s.stride - 1) / s.stride,
                        .columns = (s.width - left + s.stride - 1) / s.stride};
        if (h.taps > 0 && w.taps > 0) {
          lattice.filter_rows = h.taps;
          lattice.source = (h.start - top_) * row_ + (w.start - left_) * lanes;
          lattice.weights = (h.last_tap * s.kernel_w + w.last_tap) * lanes;
          lattice.source_row = row_;
          lattice.weights_row = step * s.kernel_w;
          add_runs(lattice, w.taps, 0, 0, step);
        }
        lattices_.push_back(std::move(lattice));
      }
    }
  }

  /// Rows of planes for `columns` results whose taps reach `reach` pixels further.
  void set_width(Index columns, Index reach) {
    columns_ = round_up(columns, gradient_columns) + reach;
    part_ = (columns + overread_pixels + reach) * lanes;
    row_ = step_ * part_;
  }

  void place_planes() {
    // What stays in the second-level cache while it is read once for each tap.
    constexpr Index cached_floats = 32 * 1024;
    for (const Lattice& lattice : lattices_) rows_ = std::max(rows_, lattice.rows);
    const bool weights = spec_.direction == Direction::weights;
    dy_row_ = round_up(result_.width, gradient_columns) * lanes;
    const Index a_row = planes_ * step_ * row_ + (weights ? dy_row_ : 0);
    band_ = std::min(rows_, std::max<Index>((cached_floats - planes_ * row_ * span_) / a_row, 4));
    filter_.source_channel = plane_rows(band_) * row_ + lanes;  // the odd line keeps planes off the same cache sets
    // dy, the sums of a block in fp32 and in double; or results.
    const Index beside = weights ? band_ * dy_row_ + 3 * weights_block_
                                 : (direct(result_.blocks() - 1) ? 0 : band_ * result_.width * lanes);
    thread_floats_ = round_up(planes_ * filter_.source_channel + beside, lanes) + lanes;
  }

  Index plane_rows(Index rows) const { return (rows - 1) * step_ + span_; }

  /// Whether the sums of a block go straight to the tensor.
  bool direct(Index block) const {
    return result_.storage == Storage::f32 && (result_.blocked() || (block + 1) * lanes <= result_.channels);
  }

  /// Calls visit(place, canonical place or -1) for all packed weights.
  template <class Visit>
  void for_weights(const Visit& visit) const {
    const ConvolutionShape& s = spec_.shape;
    const bool data = spec_.direction == Direction::data;
    const Index of_out = s.in / s.groups * taps(), of_in = taps();
    split_units(result_.blocks() * channels_, taps() * lanes, [&](Index begin, Index end) {
      for (Index unit = begin; unit < end; ++unit) {
        const Index block = unit / channels_, i = unit % channels_;
        for (Index lane = 0; lane < lanes; ++lane) {
          const Index result = block * lanes + lane, group = result / results_;
          const Index filter =
              data ? (group * channels_ + i) * of_out + result % results_ * of_in : result * of_out + i * of_in;
          for (Index tap = 0; tap < taps(); ++tap)
            visit((unit * taps() + tap) * lanes + lane, result < result_.channels ? filter + tap : -1);
        }
      }
    });
  }

  /// First source channel of the group that a block's first lane belongs to.
  Index first_channel(Index block) const { return block * lanes / results_ * channels_; }

  void fill(const ConvolutionData& data, Index image, Index block, Index first, Index rows, float* planes) const {
    WindowCopy copy{.tensor = spec_.direction == Direction::data ? data.result : data.source,
                    .layout = source_,
                    .image = image,
                    .block = block,
                    .top = top_ + first * step_,
                    .left = left_,
                    .rows = plane_rows(rows),
                    .step = step_,
                    .columns = columns_,
                    .row = row_,
                    .part = part_};
    std::array<std::int64_t, lanes> offsets{};
    if (gathers_) copy.offsets = offsets.data();
    for (Index plane = 0; plane < planes_; ++plane) {
      copy.plane = planes + plane * filter_.source_channel;
      if (gathers_) {
        for (Index lane = 0; lane < lanes; ++lane) {
          const Index result = block * lanes + lane, channel = result / results_ * channels_ + plane;
          const Index place =
              channel / lanes * source_.block + channel % lanes * (spec_.shape.reads_plain ? source_.pixels() : 1);
          offsets[static_cast<std::size_t>(lane)] = result < result_.channels ? place : -1;
        }
      } else if (filter_.lane == LaneSource::shared) {
        copy.block = first_channel(block) / lanes + plane;
        if (copy.block >= source_.blocks()) break;
      }
      loops_.fill(copy);
    }
  }

  FilterTaps filter_of(const Lattice& lattice, Index block) const {
    FilterTaps filter = filter_;
    filter.runs = lattice.runs.data();
    filter.count = static_cast<std::int64_t>(lattice.runs.size());
    filter.rows = lattice.filter_rows;
    filter.source_row = lattice.source_row;
    filter.weights_row = lattice.weights_row;
    filter.first = first_channel(block) % lanes;
    return filter;
  }

  void make_result(const ConvolutionData& data, Index image, Index block, float* planes) const {
    alignas(64) std::array<float, lanes> bias{};
    if (data.bias) {
      const float* const from = data.bias + block * lanes;
      std::copy(from, from + std::min(lanes, result_.channels - block * lanes), bias.begin());
    }
    void* const tensor = const_cast<void*>(spec_.direction == Direction::data ? data.source : data.result);
    float* const rows = planes + planes_ * filter_.source_channel;
    const bool straight = direct(block);
    for (Index first = 0; first < rows_; first += band_) {
      const Index count = std::min(band_, rows_ - first);
      fill(data, image, block, first, count, planes);
      for (const Lattice& lattice : lattices_) {
        const Index top = lattice.top + first * result_step_;
        LaneSum sum{.filter = filter_of(lattice, block),
                    .source = planes + lattice.source,
                    .weights = static_cast<const float*>(data.packed) + block * weights_block_ + lattice.weights,
                    .bias = bias.data(),
                    .result = rows,
                    .rows = std::min(count, lattice.rows - first),
                    .columns = lattice.columns,
                    .source_row = step_ * row_,
                    .result_row = lattice.columns * lanes,
                    .result_pixel = lanes};
        if (sum.rows <= 0) continue;
        if (straight) {
          sum.result = static_cast<float*>(tensor) + image * result_.image + block * result_.block +
                       (top * result_.width + lattice.left) * result_.pixel;
          sum.result_row = result_step_ * result_.width * result_.pixel;
          sum.result_pixel = result_step_ * result_.pixel;
        }
        loops_.sum(sum);
        if (!straight)
          loops_.put({.tensor = tensor,
                      .layout = result_,
                      .image = image,
                      .block = block,
                      .top = top,
                      .left = lattice.left,
                      .step = result_step_,
                      .rows = sum.rows,
                      .columns = lattice.columns,
                      .from = rows});
      }
    }
  }

  /// A block's gradient. Chains of additions in fp32 go on over bands and images, and end after longest_chain pixels.
  void sum_gradient(const ConvolutionData& data, Index block, float* planes) const {
    alignas(64) std::array<double, lanes> bias{};
    float* const dy = planes + planes_ * filter_.source_channel;
    float* const sums = dy + band_ * dy_row_;
    auto* const total = reinterpret_cast<double*>(sums + weights_block_);
    std::fill(sums, sums + weights_block_, 0.0F);
    std::fill(total, total + weights_block_, 0.0);
    const Index width = dy_row_ / lanes, columns = std::min(width, longest_chain), rows = longest_chain / columns;
    Index chain = 0;
    LaneGradient part{
        .filter = filter_of(lattices_.front(), block), .weights = sums, .source_row = step_ * row_, .dy_row = dy_row_};
    for (Index image = 0; image < spec_.shape.images; ++image) {
      for (Index first = 0; first < rows_; first += band_) {
        const Index count = std::min(band_, rows_ - first);
        fill(data, image, block, first, count, planes);
        loops_.fill({.tensor = data.result,
                     .layout = result_,
                     .image = image,
                     .block = block,
                     .top = first,
                     .rows = count,
                     .columns = width,
                     .plane = dy,
                     .row = dy_row_});
        for (Index row = 0; row < count; row += rows) {
          for (Index column = 0; column < width; column += columns) {
            part.source = planes + row * part.source_row + column * lanes;
            part.dy = dy + row * dy_row_ + column * lanes;
            part.rows = std::min(rows, count - row);
            part.columns = std::min(columns, width - column);
            if (chain + part.rows * part.columns > longest_chain) {
              loops_.flush(sums, total, weights_block_);
              chain = 0;
            }
            loops_.gradient(part);
            chain += part.rows * part.columns;
          }
        }
        if (data.bias) loops_.add_pixels(dy, count * width, bias.data());
      }
    }
    loops_.flush(sums, total, weights_block_);
    float* const weights = static_cast<float*>(const_cast<void*>(data.packed)) + block * weights_block_;
    loops_.finish(total, weights, weights_block_, data.add);
    if (data.bias)
      loops_.finish(bias.data(), const_cast<float*>(data.bias) + block * lanes,
                    std::min(lanes, result_.channels - block * lanes), data.add);
  }

  const GroupedKernels& loops_;
  const ConvolutionSpec spec_;
  TensorLayout source_, result_;
  Index channels_ = 0, results_ = 0;  ///< of a group
  FilterTaps filter_;                 ///< what is the same for all lattices and blocks
  bool gathers_ = false;
  std::vector<Lattice> lattices_;
  Index top_ = 0, left_ = 0;  ///< pixel of the source where the planes of the first result begin
  Index step_ = 1,
        result_step_ = 1;      ///< pixels of the source, or of the result, from one result of a lattice to the next
  Index span_ = 0;             ///< rows of the source that one row of results reads
  Index rows_ = 0, band_ = 0;  ///< of lattices: at most, and at a time
  Index planes_ = 0, row_ = 0, part_ = 0;  ///< floats
  Index columns_ = 0;                      ///< filled, of each part of a row
  Index dy_row_ = 0, weights_block_ = 0, thread_floats_ = 0;
};

}  // namespace

bool grouped_pays(Isa isa, const ConvolutionShape& s, Direction direction) {
  const Index channels = s.in / s.groups;
  if (s.groups == 1 || s.reads_plain || s.out != s.in) return false;
  if (channels == 1) return direction != Direction::forward && s.kernel * s.kernel_w >= 25;
  if (has_avx512(isa)) return false;
  // With AVX2 the library multiplies groups narrower than its blocks one by one, or as if they were as wide.
  if (channels <= 8) return lanes % channels == 0;
  return direction == Direction::weights && channels <= 32 && channels % lanes == 0;
}

std::unique_ptr<ConvolutionKernel> make_grouped(Isa isa, const ConvolutionSpec& spec) {
  return std::make_unique<GroupedKernel>(isa, spec);
}

}  // namespace convoy::cpu
