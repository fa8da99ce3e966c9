// SPDX-License-Identifier: Apache-2.0
// What the *_loops.cpp share. Everything is local to the source that includes this: an inline function shared between
// sources could be linked in the version of the wrong instruction set.
#pragma once
#include <type_traits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vectors.hpp"

#ifndef CONVOY_ISA
#define CONVOY_ISA avx2  // no loops: the header is compiled alone, by a test
#endif

namespace convoy::cpu {

/// The instruction set that this source is compiled for.
inline constexpr Isa compiled_isa = Isa::CONVOY_ISA;

namespace {

using std::int64_t;

template <bool value>
using Flag = std::integral_constant<bool, value>;
template <int value>
using Number = std::integral_constant<int, value>;

/// Calls visit(Number<value>) for a value from 1 to `most`.
template <int most, class Visit>
inline void with_number(int64_t value, Visit visit) {
  if constexpr (most > 0) {
    if (value == most) return visit(Number<most>{});
    with_number<most - 1>(value, visit);
  }
}

/// Calls visit(image, first block, blocks at once, partial?) for the units [begin, end).
template <class Visit>
inline void for_units(const TensorLayout& layout, int64_t begin, int64_t end, Visit visit) {
  const int64_t per_image = units_per_image(layout), width = unit_blocks(layout), blocks = layout.blocks();
  const int64_t full = layout.blocked() ? blocks : layout.channels / lanes;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / per_image;
    int64_t block = unit % per_image * width;
    const int64_t stop = block + width < blocks ? block + width : blocks;
    if (stop - block == 4 && stop <= full) {
      visit(image, block, Number<4>{}, Flag<false>{});
      continue;
    }
    for (; block < stop; ++block) {
      if (block < full)
        visit(image, block, Number<1>{}, Flag<false>{});
      else
        visit(image, block, Number<1>{}, Flag<true>{});
    }
  }
}

/// Calls visit(float or Bf16) for the storage.
template <class Visit>
inline void with_storage(Storage storage, Visit visit) {
  switch (storage) {
    case Storage::f32:
      return visit(float{});
    case Storage::bf16:
      return visit(Bf16{});
  }
}

template <class Visit>
inline void with_flag(bool value, Visit visit) {
  if (value)
    visit(Flag<true>{});
  else
    visit(Flag<false>{});
}

/// A tensor seen from one image and channel block.
template <class T, bool partial>
struct Lines {
  T* base;
  int64_t pixel;
  int rest;  ///< channels of a partial block

  Lines(const TensorLayout& layout, const void* data, int64_t image, int64_t block)
      : base(static_cast<T*>(const_cast<void*>(data)) + (data ? image * layout.image + block * layout.block : 0)),
        pixel(layout.pixel),
        rest(static_cast<int>(layout.channels - block * lanes)) {}
  Vector operator()(int64_t p, int64_t b) const { return load<partial>(base + p * pixel + b * lanes, rest); }
  void put(int64_t p, int64_t b, Vector v) const { store<partial>(base + p * pixel + b * lanes, v, rest); }
};

}  // namespace
}  // namespace convoy::cpu
