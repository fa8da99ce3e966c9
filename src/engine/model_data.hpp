// SPDX-License-Identifier: Apache-2.0
// What a network learns from, as its checkpoints tell it, and data as such a network sees them: training writes it,
// evaluation, prediction and validation read it.
#pragma once
#include <string>

#include "checkpoint/trained_data.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// Of a run on `train`, validated on a split with `val_digest` (0: none). Throws Error(usage) as augment_spec does.
TrainedData trained_data(const DataConfig& config, const DatasetInfo& train, std::uint64_t val_digest);

/// Mean and deviation of the colours with which torchvision's and timm's published weights of a network learned, and
/// nothing else: files of them don't tell it.
TrainedData published_input(const std::string& model);

/// Makes a set the model's: its classes (labels by name), its normalisation, input size and short side unless the
/// configuration has others. Throws Error(data) where judge() refuses the set.
DataVerdict see_as_model(const NamedData& model, DatasetInfo& set, DataConfig& config);

/// The set that a model learned from, without samples and with encoding `jpeg`: for images that come as files. Height
/// and width are the stored size of pixels, 0 where the network learned from files. Throws Error(data) where the
/// checkpoint tells none of that.
DatasetInfo data_of_model(const NamedData& model);

/// To the log, on the rank that calls it.
void tell(const DataVerdict& verdict);

}  // namespace convoy
