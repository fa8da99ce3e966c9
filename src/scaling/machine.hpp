// SPDX-License-Identifier: Apache-2.0
// What a prediction knows about a machine, in a small JSON file that people can write, too.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/precision.hpp"

namespace convoy {

/// A number and how far it may be off, in parts of it (two standard errors).
struct Term {
  double value = 0, error = 0;
  double low() const { return value * (1 - error); }
  double high() const { return value * (1 + error); }
};

/// How messages go: inside a host, or between hosts. A sum of n bytes over R ranks takes
///
///     seconds_per_message * messages + seconds_per_byte * 2 (R - 1) / R * n
///
/// with 2 ceil(log2 R) messages one after the other in a library's all-reduce, and 2 (R - 1) in a tree.
struct Link {
  Term seconds_per_message, seconds_per_byte;
  bool measured = false;
  int ranks = 0;               ///< with which it was measured, for `inside` those of one host; 0: not known
  std::string transport = {};  ///< `mpi` or `nccl`; empty: not known
};

/// What else decides how long a step takes, as the options of these names say it.
struct StepConditions {
  std::string recompute = "off", kernels = {}, tuning = "rule";
  bool operator==(const StepConditions&) const = default;
  /// ` --recompute all`; empty where they are the usual ones.
  std::string words() const;
};

/// A training step of one rank alone, without sums.
struct StepTime {
  std::string model, precision;
  Index image_size = 0, batch = 0;
  int ranks_per_host = 1, threads = 0;  ///< while it was measured; threads 0: not known, or it has a device
  StepConditions conditions = {};
  Term seconds;
  bool measured = false;
};

/// Of the same network and batch, under the same conditions: one time replaces the other.
bool is_same_step(const StepTime& a, const StepTime& b);

struct Machine {
  std::string name, note;  ///< note: `an example, invented`
  int cores_per_host = 0;  ///< that ranks share; 0: each has a device of its own
  int ranks_per_host = 1;
  std::optional<Link> inside, between;
  /// The part of a sum's time that computation hides while both go on: 1 on a device with a queue for each, near 0
  /// if one core does both.
  double overlap = 0;
  bool overlap_measured = false;
  std::vector<StepTime> steps;
};

/// Throws Error(usage) that names the file and what is wrong.
Machine read_machine(const std::string& path);
/// Throws Error(usage).
void write_machine(const std::string& path, const Machine& machine);
/// What is at `path`, to be added to; a machine with this name if there is none. Throws Error(usage) if it has another
/// name. Empty: any name.
Machine machine_to_extend(const std::string& path, const std::string& name);

}  // namespace convoy
