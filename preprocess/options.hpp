// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"
#include "data/dataset.hpp"
#include "preprocess/images/images_spec.hpp"

namespace convoy::preparation {

enum class DataKind : std::uint8_t { cifar10, cifar100, mnist, synthetic };

/// `convoy-preprocess KIND ...`.
struct PrepareSpec {
  DataKind kind = DataKind::cifar10;
  std::string source;  ///< folder or archive; empty for synthetic
  std::string out;
  Index partitions = 8;      ///< of train
  Index val_partitions = 0;  ///< 0: as many as keep them no larger than train's
  std::uint64_t seed = 1;
  bool mean_image = false;
  bool overwrite = false;
  bool coarse = false;      ///< cifar100: its 20 superclasses
  SyntheticSpec synthetic;  ///< samples: of train
  Index val_samples = 500;  ///< synthetic
  Deadline deadline;
  TimeLimit time_limit;
};

struct VerifySpec {
  std::string folder;
  Deadline deadline;
  TimeLimit time_limit;
};

struct InspectSpec {
  std::string folder;
};

struct HelpSpec {
  std::string text;
};

using Command = std::variant<HelpSpec, PrepareSpec, ImagesSpec, VerifySpec, InspectSpec>;

/// Throws Error(usage): unknown options with the nearest name, missing or bad values.
Command parse_command_line(const std::vector<std::string>& arguments);

const char* kind_name(DataKind kind);

}  // namespace convoy::preparation
