// SPDX-License-Identifier: Apache-2.0
// What a checkpoint tells of the data that its network learned from: training writes it, prediction reads it.
#pragma once
#include <map>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// Names of classes, channels, mean and standard deviation, stored size, as texts of a checkpoint.
std::map<std::string, std::string> texts_of_data(const DatasetInfo& info);

/// Reads these texts of the checkpoint `path` back, with encoding `jpeg`: for images that come as files. Height and
/// width are the stored size of pixels, 0 where the network learned from files. Throws Error(data) where the checkpoint
/// tells none of that.
DatasetInfo data_of_model(const CheckpointMeta& meta, const std::string& path);

}  // namespace convoy
