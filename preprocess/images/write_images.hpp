// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "data/partition.hpp"
#include "preprocess/images/partition_images.hpp"
#include "preprocess/images/survey.hpp"

namespace convoy::preparation {

/// Where partitions of a size lie: in the output folder itself where there is one size only, else in a folder of its
/// own.
std::string size_folder(const ImagesSpec& spec, std::size_t size);

/// What the headers of a size say of how its partitions were made: the size, then what all sizes share.
std::string parameters_of(const Recipe& recipe, std::size_t size, const std::string& parameters);

/// A partition's header, complete but for the mean image.
Partition header_of(const ImagesSpec& spec, const Survey& survey, const std::string& parameters,
                    const PartitionKey& key);

/// Collective. Mean images of the train split by size; empty ones where none are wanted.
std::vector<std::vector<float>> measure_mean_images(Communicator& comm, const ImagesSpec& spec,
                                                    const std::vector<RunReader>& runs, const Survey& survey);

/// One partition from the runs, under its final name only when whole. Throws Error(data).
void write_images(const ImagesSpec& spec, const std::vector<RunReader>& runs, const Survey& survey,
                  const Partition& header, const PartitionKey& key);

}  // namespace convoy::preparation
