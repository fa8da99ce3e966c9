// SPDX-License-Identifier: Apache-2.0
// From configuration to data set, input and network: shared by training, evaluation and the dry run.
#pragma once
#include <memory>
#include <string>

#include "config/config.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// Where a split lies: --train-data, --val-data or --data.
std::string folder_of(const DataConfig& config, const std::string& split);
bool split_exists(const DataConfig& config, const std::string& split);
DatasetInfo open_split(const DataConfig& config, const std::string& split);
std::unique_ptr<Dataset> load_split(const DataConfig& config, const DatasetInfo& info, Range range);

enum class Use : std::uint8_t { training, evaluation };
AugmentSpec augment_spec(const DataConfig& config, const DatasetInfo& info, std::uint64_t seed, Use use);

/// Backend::keep_resident of a data set's images.
int keep_resident(Backend& backend, const Dataset& dataset);

/// Network input from a data set's attributes and the user's wishes.
InputSpec input_spec(const DataConfig& config, const DatasetInfo& info);

/// The model's description with what the data decide filled in.
GraphSpec graph_spec(const GraphSpec& model, const DataConfig& config, const DatasetInfo& info);

}  // namespace convoy
