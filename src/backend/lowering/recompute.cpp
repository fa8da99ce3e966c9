// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering/recompute.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/errors.hpp"

namespace convoy::lowering {
namespace {

constexpr Index unreachable = std::numeric_limits<Index>::max();

/// What the forward steps do with a tensor, and whether a backward step touches it.
struct Use {
  std::size_t first = 0, last = 0;  ///< forward steps
  bool forward = false, backward = false, once = false;
};

/// Cuts the forward steps into segments.
class Cutter {
 public:
  Cutter(const std::vector<KeptTensor>& tensors, const std::vector<TouchingStep>& steps)
      : tensors_(tensors), steps_(steps), uses_(tensors.size()) {
    const auto backward = [](const TouchingStep& step) { return step.backward; };
    forward_ = static_cast<std::size_t>(std::find_if(steps.begin(), steps.end(), backward) - steps.begin());
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (const int tensor : steps[k].reads) touch(k, tensor);
      for (const int tensor : steps[k].writes) {
        touch(k, tensor);
        uses_[index(tensor)].once |= steps[k].once;
      }
    }
    find_places();
    weigh();
  }

  const Use& use(int tensor) const { return uses_[index(tensor)]; }
  /// It lies inside of the segment [begin, end) and can be made again.
  bool inside(int tensor, std::size_t begin, std::size_t end) const {
    const Use& use = this->use(tensor);
    return tensors_[index(tensor)].kind != KeptTensor::Kind::other && !use.once && use.forward && use.first >= begin &&
           use.last < end;
  }

  /// Forward steps at which a segment begins, 0 first, and their number last.
  std::vector<std::size_t> cut() const {
    if (places_.size() < 3) return places_;
    Index least = 0, most = 0;
    for (const Segment& segment : segments_) most = std::max(most, segment.kept + segment.inner);
    most = most * 2 + 1;
    while (least < most) {  // the least peak for which there is a way from 0 to the end
      const Index peak = least + (most - least) / 2;
      if (path(peak).empty())
        least = peak + 1;
      else
        most = peak;
    }
    return path(least);
  }

 private:
  struct Segment {
    Index inner = 0;  ///< bytes that its backward needs beside what is kept
    Index kept = 0;   ///< bytes that it leaves to later segments
  };

  static std::size_t index(int tensor) { return static_cast<std::size_t>(tensor); }

  void touch(std::size_t step, int tensor) {
    Use& use = uses_[index(tensor)];
    if (steps_[step].backward) {
      use.backward = true;
      return;
    }
    if (!use.forward) use.first = step;
    use.forward = true;
    use.last = step;
  }

  /// Where a boundary may be: no passing tensor lies across it.
  void find_places() {
    std::vector<bool> barred(forward_ + 1, false);
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (tensors_[t].kind == KeptTensor::Kind::passing && uses_[t].forward)
        for (std::size_t k = uses_[t].first + 1; k <= uses_[t].last; ++k) barred[k] = true;
    for (std::size_t k = 0; k <= forward_; ++k)
      if (k == 0 || k == forward_ || !barred[k]) places_.push_back(k);
  }

  const Segment& segment(std::size_t begin, std::size_t end) const { return segments_[begin * places_.size() + end]; }

  /// The bytes of every segment between two places.
  void weigh() {
    const std::size_t n = places_.size();
    segments_.resize(n * n);
    std::vector<std::size_t> place_of(forward_ + 1);  // of a step: the last place at or before it
    for (std::size_t k = 0, place = 0; k <= forward_; ++k) {
      if (place + 1 < n && places_[place + 1] <= k) ++place;
      place_of[k] = place;
    }
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Use& use = uses_[t];
      const Index bytes = tensors_[t].bytes;
      if (!inside(static_cast<int>(t), 0, forward_) || bytes == 0) continue;
      const std::size_t first = place_of[use.first], last = place_of[use.last];
      for (std::size_t begin = 0; begin <= first; ++begin) {
        for (std::size_t end = first + 1; end < n; ++end) {
          Segment& segment = segments_[begin * n + end];
          if (end <= last)
            segment.kept += bytes;
          else if (use.backward)
            segment.inner += bytes;
        }
      }
    }
  }

  /// The segments' boundaries with the least bytes kept, such that no segment's backward needs more than `peak`. Empty:
  /// there are none.
  std::vector<std::size_t> path(Index peak) const {
    const std::size_t n = places_.size();
    std::vector<Index> kept(n, unreachable);
    std::vector<std::size_t> from(n, 0);
    kept[0] = 0;
    for (std::size_t end = 1; end < n; ++end) {
      for (std::size_t begin = 0; begin < end; ++begin) {
        if (kept[begin] == unreachable) continue;
        const Segment& step = segment(begin, end);
        const Index bytes = kept[begin] + step.kept;
        if (bytes + step.inner > peak || bytes >= kept[end]) continue;
        kept[end] = bytes;
        from[end] = begin;
      }
    }
    if (kept[n - 1] == unreachable) return {};
    std::vector<std::size_t> cuts{places_[n - 1]};
    for (std::size_t at = n - 1; at > 0; at = from[at]) cuts.push_back(places_[from[at]]);
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  const std::vector<KeptTensor>& tensors_;
  const std::vector<TouchingStep>& steps_;
  std::vector<Use> uses_;
  std::size_t forward_ = 0;          ///< number of forward steps
  std::vector<std::size_t> places_;  ///< where segments may begin and end
  std::vector<Segment> segments_;    ///< [begin][end], indices of places
};

}  // namespace

std::vector<RepeatedBlock> find_blocks(const std::vector<KeptTensor>& tensors, const std::vector<TouchingStep>& steps) {
  const Cutter cutter(tensors, steps);
  const std::vector<std::size_t> cuts = cutter.cut();
  std::vector<RepeatedBlock> blocks;
  for (std::size_t i = 0; i + 2 < cuts.size(); ++i) {  // the last one runs once
    const std::size_t begin = cuts[i], end = cuts[i + 1];
    const auto inside = [&](int tensor) { return cutter.inside(tensor, begin, end); };
    // From its end to its begin: what backward needs, what that is made of, and what its steps write beside it.
    RepeatedBlock block;
    std::vector<bool> needed(tensors.size(), false), written(tensors.size(), false);
    for (std::size_t k = end; k-- > begin;) {
      const TouchingStep& step = steps[k];
      const bool runs = std::any_of(step.writes.begin(), step.writes.end(), [&](int tensor) {
        return inside(tensor) && (cutter.use(tensor).backward || needed[static_cast<std::size_t>(tensor)]);
      });
      if (!runs) continue;
      require(!step.once, "a step that may not run again makes what is made again");
      block.steps.push_back(k);
      block.cost += step.cost;
      for (const int tensor : step.reads) needed[static_cast<std::size_t>(tensor)] = true;
      for (const int tensor : step.writes) written[static_cast<std::size_t>(tensor)] = true;
    }
    std::reverse(block.steps.begin(), block.steps.end());
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const int tensor = static_cast<int>(t);
      if (!inside(tensor) || !(cutter.use(tensor).backward || needed[t] || written[t])) continue;
      block.tensors.push_back(tensor);
      if (cutter.use(tensor).backward) block.bytes += tensors[t].bytes;
    }
    const auto made = [&](int tensor) {
      return std::binary_search(block.tensors.begin(), block.tensors.end(), tensor);
    };
    block.before = cuts.back();
    for (; block.before < steps.size(); ++block.before) {
      const TouchingStep& step = steps[block.before];
      if (std::any_of(step.reads.begin(), step.reads.end(), made)) break;
      require(std::none_of(step.writes.begin(), step.writes.end(), made), "backward writes what is computed again");
    }
    if (block.bytes > 0) blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<RepeatedBlock> choose_blocks(Recompute wanted, const std::vector<RepeatedBlock>& blocks, Index limit,
                                         const std::function<Index(const std::vector<RepeatedBlock>&)>& bytes_with) {
  if (wanted == Recompute::all) return blocks;
  if (wanted == Recompute::off) return {};
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto gain = [&](std::size_t i) {
    return static_cast<double>(blocks[i].bytes) / std::max(blocks[i].cost, std::numeric_limits<double>::min());
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return gain(a) > gain(b); });
  const auto first = [&](std::size_t count) {
    std::vector<std::size_t> chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(chosen.begin(), chosen.end());
    std::vector<RepeatedBlock> result;
    result.reserve(count);
    for (const std::size_t i : chosen) result.push_back(blocks[i]);
    return result;
  };
  // One block more may take more: what is placed then lies elsewhere. So no number is left out.
  std::vector<RepeatedBlock> best;
  Index least = unreachable;
  for (std::size_t count = 0; count <= blocks.size(); ++count) {
    std::vector<RepeatedBlock> some = first(count);
    const Index bytes = bytes_with(some);
    if (bytes >= least) continue;
    least = bytes;
    best = std::move(some);
    if (bytes <= limit) break;
  }
  return best;
}

}  // namespace convoy::lowering
