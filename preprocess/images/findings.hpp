// SPDX-License-Identifier: Apache-2.0
// What was unusual about images: converted by rule, or skipped by rule. Each is reported with its name.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
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
  further_files,  ///< the first image of a sample counts
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
  left_out,  ///< the user's list lacks its class: no fault
  link,      ///< the file to which it leads is missing, in a folder or an archive
};
constexpr bool is_skipped(Finding finding) { return finding >= Finding::empty; }
/// Names for tables, in the order of Finding.
constexpr std::array finding_names{
    "grey",         "CMYK",           "palette",        "alpha",           "16 bits a channel",
    "EXIF-rotated", "misnamed",       "further files",  "decoder warning", "empty",
    "not an image", "unsupported",    "too large",      "truncated",       "damaged",
    "no label",     "duplicate name", "class left out", "link to nowhere",
};
constexpr std::size_t finding_kinds = finding_names.size();
static_assert(finding_names.back() == std::string_view("link to nowhere") &&
              static_cast<std::size_t>(Finding::link) + 1 == finding_kinds);
constexpr const char* finding_name(Finding finding) { return finding_names[static_cast<std::size_t>(finding)]; }

/// One line of the report.
struct Note {
  Finding finding = Finding::grey;
  std::string name, detail;  ///< the image's name; what exactly, may be empty
  void fields(auto&& visit) { visit(finding, name, detail); }
  auto operator<=>(const Note&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

using FindingCounts = std::array<Index, finding_kinds>;

}  // namespace convoy::preparation
