// SPDX-License-Identifier: Apache-2.0
// How a replica's share of a sum travels: in a format, or compressed. Every list of the kinds of compression is made
// from this file.
#pragma once
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

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
  int rank = 2;            ///< power_sgd; checkpoints keep it, since it decides how residuals and bases lie
  bool is_on() const { return kind != Compression::none; }
};

struct CompressionWords {
  const char* name = "";     ///< as users and checkpoints write it
  const char* setting = "";  ///< the option that acts only with this kind
};

/// Empty words: there is no such kind.
constexpr CompressionWords words_of(Compression kind) {
  switch (kind) {
    case Compression::none:
      return {"none", ""};
    case Compression::two_bits:
      return {"2bit", "wire-threshold"};
    case Compression::top_k:
      return {"topk", "wire-fraction"};
    case Compression::power_sgd:
      return {"powersgd", "wire-rank"};
  }
  return {};
}

constexpr const char* name_of(Compression kind) { return words_of(kind).name; }

/// What follows `gradients` when the program prints what ranks exchange.
inline std::string describe(const CompressionSpec& spec) {
  switch (spec.kind) {
    case Compression::none:
      break;
    case Compression::two_bits:
      return " in 2 bits";
    case Compression::top_k:
      return fmt::format(", the largest {:.4g} % of each tensor", 100 * spec.fraction);
    case Compression::power_sgd:
      return fmt::format(" of rank {} (PowerSGD)", spec.rank);
  }
  return {};
}

/// All kinds but `none`: those that have a name. A kind without one does not compile.
inline constexpr auto all_compressions = [] {
  constexpr auto kind = [](std::size_t number) { return static_cast<Compression>(number); };
  constexpr std::size_t count = [&] {
    std::size_t next = 1;
    while (*name_of(kind(next)) != '\0') ++next;
    return next - 1;
  }();
  std::array<Compression, count> all{};
  for (std::size_t i = 0; i < count; ++i) all[i] = kind(i + 1);
  return all;
}();

/// --wire: in which format, or how compressed, a replica's share of a sum travels. With a compression, format is
/// unused and stays fp32.
struct WireChoice {
  Wire format = Wire::fp32;
  Compression compression = Compression::none;
  bool is_plain() const { return *this == WireChoice{}; }
  bool operator==(const WireChoice&) const = default;
};

constexpr const char* name_of(const WireChoice& choice) {
  return choice.compression == Compression::none ? name_of(choice.format) : name_of(choice.compression);
}

/// The formats, then the compressions.
inline constexpr auto all_wire_choices = [] {
  constexpr std::array formats{Wire::fp32, Wire::bf16, Wire::fp16};
  std::array<WireChoice, formats.size() + all_compressions.size()> all{};
  std::size_t next = 0;
  for (const Wire format : formats) all[next++] = {.format = format};
  for (const Compression kind : all_compressions) all[next++] = {.compression = kind};
  return all;
}();

}  // namespace convoy
