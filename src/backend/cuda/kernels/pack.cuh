// SPDX-License-Identifier: Apache-2.0
// Elements in memory as floats in registers, 8 neighbours at a time (16 bytes of half precision, 32 of float) or one.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/types.hpp"
#include "backend/rules/activation.hpp"

namespace convoy::cuda {

constexpr int pack_width = 8;

template <int Width>
struct Floats {
  float at[Width];
};

/// Elements of a storage: one, and a pack of 8.
template <class T>
struct Element;

template <>
struct Element<float> {
  static __device__ __forceinline__ float up(float x) { return x; }
  static __device__ __forceinline__ float down(float x) { return x; }
  static __device__ __forceinline__ Floats<pack_width> load(const float* from) {
    const float4 a = reinterpret_cast<const float4*>(from)[0], b = reinterpret_cast<const float4*>(from)[1];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }
  static __device__ __forceinline__ void store(float* to, const Floats<pack_width>& v) {
    reinterpret_cast<float4*>(to)[0] = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
    reinterpret_cast<float4*>(to)[1] = make_float4(v.at[4], v.at[5], v.at[6], v.at[7]);
  }
};

struct Half {
  using One = __half;
  using Two = __half2;
  static __device__ __forceinline__ float up(One x) { return __half2float(x); }
  static __device__ __forceinline__ One down(float x) { return __float2half_rn(x); }
  static __device__ __forceinline__ float2 up2(Two x) { return __half22float2(x); }
  static __device__ __forceinline__ Two down2(float a, float b) { return __floats2half2_rn(a, b); }
};
struct Brain {
  using One = __nv_bfloat16;
  using Two = __nv_bfloat162;
  static __device__ __forceinline__ float up(One x) { return __bfloat162float(x); }
  static __device__ __forceinline__ One down(float x) { return __float2bfloat16_rn(x); }
  static __device__ __forceinline__ float2 up2(Two x) { return __bfloat1622float2(x); }
  static __device__ __forceinline__ Two down2(float a, float b) { return __floats2bfloat162_rn(a, b); }
};

template <class Format>
struct HalfElement : Format {
  using One = typename Format::One;
  union Pack {
    uint4 raw;
    typename Format::Two two[4];
  };
  static __device__ __forceinline__ Floats<pack_width> load(const One* from) {
    Pack pack;
    pack.raw = *reinterpret_cast<const uint4*>(from);
    Floats<pack_width> v;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 two = Format::up2(pack.two[k]);
      v.at[2 * k] = two.x;
      v.at[2 * k + 1] = two.y;
    }
    return v;
  }
  static __device__ __forceinline__ void store(One* to, const Floats<pack_width>& v) {
    Pack pack;
#pragma unroll
    for (int k = 0; k < 4; ++k) pack.two[k] = Format::down2(v.at[2 * k], v.at[2 * k + 1]);
    *reinterpret_cast<uint4*>(to) = pack.raw;
  }
};
template <>
struct Element<__half> : HalfElement<Half> {};
template <>
struct Element<__nv_bfloat16> : HalfElement<Brain> {};

template <int Width, class T>
__device__ __forceinline__ Floats<Width> load(const T* from) {
  if constexpr (Width == pack_width) {
    return Element<T>::load(from);
  } else {
    return Floats<Width>{{Element<T>::up(*from)}};
  }
}

template <int Width, class T>
__device__ __forceinline__ void store(T* to, const Floats<Width>& v) {
  if constexpr (Width == pack_width) {
    Element<T>::store(to, v);
  } else {
    *to = Element<T>::down(v.at[0]);
  }
}

/// `fallback` where the pointer is null.
template <int Width, class T>
__device__ __forceinline__ Floats<Width> load_or(const T* from, Index at, float fallback) {
  if (from != nullptr) return load<Width>(from + at);
  Floats<Width> out;
#pragma unroll
  for (int k = 0; k < Width; ++k) out.at[k] = fallback;
  return out;
}

/// Calls use(rule): the choice is made once, not for every element.
template <class Use>
__device__ __forceinline__ void with_rule(const ActivationRule& activation, const Use& use) {
  with_activation<FloatMath>(activation.kind, activation.slope, use);
}

template <class T>
struct Tag {
  using type = T;
};
/// use(Tag<T>{}) with the element type of a storage.
template <class Use>
cudaError_t with_storage(Storage storage, const Use& use) {
  switch (storage) {
    case Storage::bf16:
      return use(Tag<__nv_bfloat16>{});
    case Storage::f16:
      return use(Tag<__half>{});
    case Storage::f32:
      break;
  }
  return use(Tag<float>{});
}

template <int Width>
struct WidthTag {
  static constexpr int value = Width;
};
/// use(tag, width): packs where every row is made of whole ones.
template <class Use>
cudaError_t with_elements(Storage storage, Index channels, const Use& use) {
  return with_storage(storage, [&](auto tag) {
    return channels % pack_width == 0 ? use(tag, WidthTag<pack_width>{}) : use(tag, WidthTag<1>{});
  });
}

}  // namespace convoy::cuda
