// SPDX-License-Identifier: Apache-2.0
// The tables of options, one a command: names and aliases of the field, units, ranges, and the fields they fill.
#pragma once
#include "config/config.hpp"
#include "config/option.hpp"

namespace convoy {

// The options work on the struct, which must outlive them.
std::vector<OptionGroup> options_of(TrainConfig& config);
std::vector<OptionGroup> options_of(EvaluateConfig& config);
std::vector<OptionGroup> options_of(PredictConfig& config);
std::vector<OptionGroup> options_of(BenchConfig& config);
std::vector<OptionGroup> options_of(PreflightConfig& config);
std::vector<OptionGroup> options_of(InspectConfig& config);
std::vector<OptionGroup> options_of(StatusConfig& config);
std::vector<OptionGroup> options_of(SummaryConfig& config);

// Groups that several commands share.
OptionGroup source_options(DataConfig& data);  ///< where samples come from
OptionGroup input_options(DataConfig& data);   ///< from stored pixels to network input
OptionGroup order_options(DataConfig& data);   ///< order of training
OptionGroup augment_options(DataConfig& data);
OptionGroup model_options(GraphSpec& model);
OptionGroup device_options(DeviceConfig& device);
OptionGroup optimiser_options(OptimiserConfig& optimiser);
OptionGroup schedule_options(OptimiserConfig& optimiser);
OptionGroup ema_options(EmaConfig& ema);
OptionGroup sync_options(SyncConfig& sync);
Option cuda_aware_option(bool& value);
OptionGroup stall_options(StallLimits& deadline);
OptionGroup time_limit_options(TimeLimit& limit);
OptionGroup checkpoint_options(CheckpointConfig& checkpoint);
OptionGroup output_options(OutputConfig& output);

}  // namespace convoy
