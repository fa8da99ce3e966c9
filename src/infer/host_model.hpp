// SPDX-License-Identifier: Apache-2.0
// A trained model in host memory, as export and average take it: without other ranks and without a device.
#pragma once
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file.hpp"
#include "config/config.hpp"
#include "core/weight_choice.hpp"

namespace convoy {

/// The run's configuration in the phase in which it wrote the file. Throws Error(data).
TrainConfig config_of(const CheckpointMeta& meta, const std::string& path);

/// What a checkpoint says about itself.
struct SavedModel {
  std::string path;
  FileMeta file;
  TrainConfig config;  ///< of the run, in the phase in which it wrote the file
};
/// `path`: a checkpoint, or the best (else the newest) one of a run directory. Throws Error(data).
SavedModel find_model(const std::string& path);

struct HostModel {
  ImageSize input;  ///< of the network
  Plan plan;
  SetLayout layout;  ///< without optimiser
  HostSet set;
  std::string weights = "trained";  ///< name_of_weights()
};
/// `image_size`: height and width of the input; 0: as in training. Throws Error(data), also if `choice` asks for a
/// moving average that the file doesn't have.
HostModel read_model(const SavedModel& saved, WeightChoice choice = WeightChoice::usual, Index image_size = 0);

}  // namespace convoy
