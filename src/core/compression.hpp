// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "core/wire.hpp"

namespace convoy {

/// What a replica sends in place of its gradient. It keeps what it has not sent (its residual), and adds it to the next
/// gradient. two_bits: of every value nothing, or +- threshold (Strom, "Scalable distributed DNN training using
/// commodity GPU cloud computing", Interspeech 2015; MXNet's gc-type 2bit). top_k: the values of largest magnitude of
/// each tensor (Stich et al., "Sparsified SGD with memory", NeurIPS 2018). power_sgd: two factors of low rank of each
/// matrix (Vogels et al., "PowerSGD", NeurIPS 2019).
enum class Compression : std::uint8_t { none, two_bits, top_k, power_sgd };

struct CompressionSpec {
  Compression kind = Compression::none;
  double threshold = 0.5;  ///< two_bits: of the sum over a replica's samples, as MXNet counts, not of a mean
  double fraction = 0.01;  ///< top_k: of the values of a tensor, one at least
  int rank = 2;            ///< power_sgd
  bool is_on() const { return kind != Compression::none; }
};

/// As users and checkpoints write it.
constexpr const char* name_of(Compression kind) {
  switch (kind) {
    case Compression::none:
      return "none";
    case Compression::two_bits:
      return "2bit";
    case Compression::top_k:
      return "topk";
    case Compression::power_sgd:
      return "powersgd";
  }
  return "";
}

/// --wire: in which format, or how compressed, a replica's share of a sum travels.
enum class WireChoice : std::uint8_t { fp32, bf16, fp16, two_bits, top_k, power_sgd };

constexpr Compression compression_of(WireChoice choice) {
  switch (choice) {
    case WireChoice::two_bits:
      return Compression::two_bits;
    case WireChoice::top_k:
      return Compression::top_k;
    case WireChoice::power_sgd:
      return Compression::power_sgd;
    case WireChoice::fp32:
    case WireChoice::bf16:
    case WireChoice::fp16:
      break;
  }
  return Compression::none;
}

/// What is compressed has no format of its own.
constexpr Wire format_of(WireChoice choice) {
  return choice == WireChoice::bf16 ? Wire::bf16 : choice == WireChoice::fp16 ? Wire::fp16 : Wire::fp32;
}

constexpr const char* name_of(WireChoice choice) {
  const Compression compression = compression_of(choice);
  return compression == Compression::none ? name_of(format_of(choice)) : name_of(compression);
}

}  // namespace convoy
