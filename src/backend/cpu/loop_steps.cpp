// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/loop_steps.hpp"

#include <cstring>

#include "backend/cpu/parallel.hpp"
#include "backend/rules/dropout.hpp"

namespace convoy::cpu {
namespace {

template <class Args, class Kernel>
bool run_units(const Kernel& kernel, const Args& args, const Field& field, Index images) {
  const Index units = units_per_image(field) * images;
  split_units(units, field.pixels() * lanes * unit_blocks(field),
              [&](Index begin, Index end) { kernel(args, begin, end); });
  return true;
}

float read(const std::byte* data, Storage storage, Index i) {
  if (storage == Storage::f32) return reinterpret_cast<const float*>(data)[i];
  const std::uint32_t bits = static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(data)[i]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Nearest even, as the vector loops round.
void write(std::byte* data, Storage storage, Index i, float value) {
  if (storage == Storage::f32) {
    reinterpret_cast<float*>(data)[i] = value;
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = value == value ? (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 : (bits >> 16) | 0x40;
  reinterpret_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(rounded);
}

}  // namespace

bool EvaluateStep::run(const Memory& memory, const Tile& tile) {
  EvaluateArgs args = spec_.args;
  args.first = spec_.first.at(memory, tile);
  args.second = spec_.second.at(memory, tile);
  args.out = spec_.out.at(memory, tile);
  if (spec_.norm0) {
    args.scale0 = spec_.norm0->scale;
    args.shift0 = spec_.norm0->shift;
  }
  if (spec_.norm1) {
    args.scale1 = spec_.norm1->scale;
    args.shift1 = spec_.norm1->shift;
  }
  return run_units(kernels_.evaluate, args, args.field, tile.count);
}

bool StatisticsStep::run(const Memory& memory, const Tile& tile) {
  StatisticsArgs args{.field = spec_.field};
  args.value = spec_.value.at(memory, tile);
  args.sums = reinterpret_cast<float*>(spec_.sums.at(memory, tile));
  args.squares = reinterpret_cast<float*>(spec_.squares.at(memory, tile));
  return run_units(kernels_.statistics, args, args.field, tile.count);
}

void StatisticsStep::close(const Memory& memory, int) {
  const auto* sums = reinterpret_cast<const float*>(spec_.sums.at(memory, {}));
  const auto* squares = reinterpret_cast<const float*>(spec_.squares.at(memory, {}));
  for (const int norm : spec_.norms) norms_.fold_statistics(norm, memory.norm_step, sums, squares, spec_.images);
}

bool CollectStep::run(const Memory& memory, const Tile& tile) {
  CollectArgs args = spec_.args;
  args.gradient = spec_.gradient.at(memory, tile);
  args.self = spec_.self.at(memory, tile);
  args.second = spec_.second.at(memory, tile);
  args.output = spec_.output.at(memory, tile);
  args.out = spec_.out.at(memory, tile);
  if (spec_.through) {
    args.a = spec_.through->a;
    args.b = spec_.through->b;
    args.d = spec_.through->d;
  }
  args.sums = reinterpret_cast<float*>(spec_.sums.at(memory, tile));
  for (int i = 0; i < args.norms; ++i) {
    args.norm[i].value = spec_.value[i].at(memory, tile);
    args.norm[i].mean = norms_.vectors(spec_.norms[i]).mean;
    args.norm[i].products = reinterpret_cast<float*>(spec_.products[i].at(memory, tile));
  }
  return run_units(kernels_.collect, args, args.field, tile.count);
}

void CollectStep::close(const Memory& memory, int) {
  const auto* sums = reinterpret_cast<const float*>(spec_.sums.at(memory, {}));
  for (int i = 0; i < spec_.args.norms; ++i) {
    const auto* products = reinterpret_cast<const float*>(spec_.products[i].at(memory, {}));
    norms_.fold_products(spec_.norms[i], memory.norm_step, sums, products, spec_.images);
  }
}

bool PoolStep::run(const Memory& memory, const Tile& tile) {
  PoolArgs args = args_;
  args.from = from_.at(memory, tile);
  args.to = to_.at(memory, tile);
  args.index = reinterpret_cast<std::uint16_t*>(winners_.at(memory, tile));
  return way_ == Way::forward ? run_units(kernels_.pool_forward, args, args.y, tile.count)
                              : run_units(kernels_.pool_backward, args, args.x, tile.count);
}

bool LocalResponseStep::run(const Memory& memory, const Tile& tile) {
  LocalResponseArgs args = args_;
  args.x = x_.at(memory, tile);
  args.dy = dy_.at(memory, tile);
  args.to = to_.at(memory, tile);
  split_units(tile.count * args.field.height, args.field.width * args.field.channels,
              [&](Index begin, Index end) { kernels_.local_response(args, begin, end); });
  return true;
}

bool DropoutStep::run(const Memory& memory, const Tile& tile) {
  const Field& f = spec_.field;
  const std::byte* const from = spec_.from.at(memory, tile);
  std::byte* const to = spec_.to.at(memory, tile);
  if (spec_.rate == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(tile.count * f.image_bytes()));
    return true;
  }
  const DropoutRule rule = DropoutRule::of(spec_.rate);
  const std::uint64_t node_key = dropout_key(step_.seed, step_.step, spec_.node);
  const Index pixels = f.pixels();
  // Channels that only fill the last block stay zeros.
  const Index stored = f.blocked() ? f.padded_channels() : f.channels;
  split_units(tile.count * stored, pixels, [&](Index begin, Index end) {
    for (Index unit = begin; unit < end; ++unit) {
      const Index image = unit / stored, c = unit % stored;
      const SampleSpec& sample = memory.samples[static_cast<std::size_t>(tile.first + image)];
      const std::uint64_t key = dropout_sample_key(node_key, sample.position);
      const Index start = image * f.image + c / lanes * f.block + c % lanes;
      for (Index p = 0; p < pixels; ++p) {
        const Index at = start + p * f.pixel;
        const float factor = c < f.channels ? rule.factor(key, c * pixels + p) : 0;
        write(to, f.storage, at, factor * read(from, f.storage, at));
      }
    }
  });
  return true;
}

bool GlobalPoolStep::run(const Memory& memory, const Tile& tile) {
  const GlobalPoolArgs args{x_, from_.at(memory, tile), to_.at(memory, tile)};
  return run_units(way_ == Way::forward ? kernels_.global_forward : kernels_.global_backward, args, x_, tile.count);
}

bool StorageStep::run(const Memory& memory, const Tile& tile) {
  const ConvertArgs args{field_, from_.at(memory, tile), to_.at(memory, tile)};
  return run_units(kernels_.convert, args, field_, tile.count);
}

bool OrderStep::run(const Memory& memory, const Tile& tile) {
  const std::byte* const from = from_.at(memory, tile);
  std::byte* const out = out_.at(memory, tile);
  const Index pixels = field_.pixels(), plain_image = field_.channels * pixels;
  split_units(tile.count, plain_image, [&](Index begin, Index end) {
    for (Index image = begin; image < end; ++image) {
      for (Index c = 0; c < field_.blocks() * lanes; ++c) {
        const Index start = image * field_.image + c / lanes * field_.block + c % lanes;
        if (c >= field_.channels && !field_.blocked()) break;
        for (Index p = 0; p < pixels; ++p) {
          const Index there = start + p * field_.pixel, here = image * plain_image + c * pixels + p;
          if (to_ == To::plain) {
            if (c < field_.channels) write(out, Storage::f32, here, read(from, field_.storage, there));
          } else {
            write(out, field_.storage, there, c < field_.channels ? read(from, Storage::f32, here) : 0.0F);
          }
        }
      }
    }
  });
  return true;
}

}  // namespace convoy::cpu
