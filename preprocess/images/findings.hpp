// SPDX-License-Identifier: Apache-2.0
// What was unusual about images: converted by rule, or skipped by rule. Each is reported with its name.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy::preparation {

enum class Finding : std::uint8_t {
  // converted
  grey,
  cmyk,
  palette,
  alpha,
  deep,
  rotated,
  misnamed,
  warning,
  // skipped
  empty,
  not_an_image,
  unsupported,
  too_large,
  truncated,
  damaged,
  no_label,
  duplicate,
  left_out,  ///< of a class that the user's list doesn't have: no fault
  link,      ///< in an archive, which is read front to back
};
constexpr std::size_t finding_kinds = 18;
constexpr bool is_skipped(Finding finding) { return finding >= Finding::empty; }
/// For tables: `grey`, `16 bits a channel`, `no label`.
const char* finding_name(Finding finding);

/// One line of the report.
struct Note {
  Finding finding = Finding::grey;
  std::string name, detail;                       ///< of the image; what exactly, may be empty
  auto operator<=>(const Note&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

using FindingCounts = std::array<Index, finding_kinds>;

}  // namespace convoy::preparation
