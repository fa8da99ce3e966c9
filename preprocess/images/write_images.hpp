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
std::string size_folder(const PrepareSpec& spec, std::size_t size);

/// What headers tell of a preparation.
struct Provenance {
  std::string source;      ///< `CIFAR-10 binary version`
  std::string digest;      ///< digest of the source
  std::string parameters;  ///< shared by all sizes

  /// Returns the parameters of one size.
  std::string parameters_of(const Recipe& recipe, std::size_t size) const;
};

/// Returns a partition's header, complete but for the mean image.
Partition header_of(const PrepareSpec& spec, const Survey& survey, const Provenance& provenance,
                    const PartitionKey& key);

/// Collective. Mean images of the train split by size; empty ones where none are wanted.
std::vector<std::vector<float>> measure_mean_images(Communicator& comm, const PrepareSpec& spec,
                                                    const std::vector<RunReader>& runs, const Survey& survey);

/// One partition from the runs, under its final name only when whole. Throws Error(data).
void write_images(const PrepareSpec& spec, const std::vector<RunReader>& runs, const Survey& survey,
                  const Partition& header, const PartitionKey& key);

}  // namespace convoy::preparation
