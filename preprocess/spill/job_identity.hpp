// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "core/json.hpp"

namespace convoy::preparation {

/// Whether files whose times alone differ count as changed.
enum class Times : std::uint8_t { compare, ignore };

/// What a preparation is made of: its options, and digests of the source, one for each kind of change.
struct JobIdentity {
  std::string recipe;  ///< options that decide bytes
  /// The only digest that earlier versions knew: names of files; of archives also sizes and times; labels, classes.
  std::string source;
  std::string labels;  ///< of label files and of the list of classes; empty: an earlier version left this behind
  std::string names, sizes, times;
  bool is_of_earlier_version() const { return labels.empty(); }
  bool operator==(const JobIdentity&) const = default;
};

/// Describes the first thing in which a preparation was another than `wanted`: `made with other options: seed=1, now
/// seed=9`. Empty: it was the same. What an earlier version made is the same if its one digest is.
std::string difference_of(const JobIdentity& found, const JobIdentity& wanted, Times times);
/// Advice that goes with a difference: what to give.
std::string advice_on(const JobIdentity& found, const JobIdentity& wanted);
/// The words `name=value` of two texts of options that differ: `seed=1, now seed=9`. At most a few of them.
std::string differing_options(const std::string& found, const std::string& wanted);

JobIdentity identity_from(const Json& json);
void write_identity(const JobIdentity& identity, Json& to);

}  // namespace convoy::preparation
