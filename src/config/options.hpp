// SPDX-License-Identifier: Apache-2.0
// The tables of options, one a command: names and aliases of the field, units, ranges, and the fields they fill.
#pragma once
#include <functional>

#include "config/config.hpp"
#include "core/table.hpp"
#include "options/limits.hpp"
#include "options/option.hpp"

namespace convoy {

// The options work on the struct, which must outlive them.
std::vector<OptionGroup> options_of(TrainConfig& config);
std::vector<OptionGroup> options_of(EvaluateConfig& config);
std::vector<OptionGroup> options_of(PredictConfig& config);
std::vector<OptionGroup> options_of(BenchConfig& config);
std::vector<OptionGroup> options_of(PreflightConfig& config);
std::vector<OptionGroup> options_of(PreviewConfig& config);
std::vector<OptionGroup> options_of(InspectConfig& config);
std::vector<OptionGroup> options_of(StatusConfig& config);

using SeeOptions = std::function<void(const std::vector<OptionGroup>&)>;
/// Shows a command's options, bound to defaults that live as long as the call.
template <class Config>
void see_options(const SeeOptions& see) {
  Config config;
  see(options_of(config));
}

// Groups that several commands share.
OptionGroup general_options(std::string& config_path);  ///< --config, which no table above has
OptionGroup source_options(DataConfig& data);           ///< where samples come from
OptionGroup input_options(DataConfig& data);            ///< from stored pixels to network input
OptionGroup order_options(DataConfig& data);            ///< order of training
OptionGroup augment_options(DataConfig& data);
OptionGroup model_options(GraphSpec& model);
OptionGroup network_options(GraphSpec& model);  ///< model_options and --num-layers
OptionGroup device_options(DeviceConfig& device);
OptionGroup training_device_options(DeviceConfig& device);  ///< device_options and what only training has
OptionGroup optimiser_options(OptimiserConfig& optimiser);
OptionGroup schedule_options(OptimiserConfig& optimiser);
OptionGroup ema_options(EmaConfig& ema);
OptionGroup lookahead_options(LookaheadConfig& lookahead);
OptionGroup sync_options(SyncConfig& sync);
Option cuda_aware_option(bool& value);
OptionGroup stall_options(StallLimits& deadline);  ///< waiting_options and the watchdog
OptionGroup checkpoint_options(CheckpointConfig& checkpoint);
OptionGroup output_options(OutputConfig& output);

Option table_format_option(TableFormat& format);  ///< --format of a table
Option overwrite_option(bool& overwrite);
Option weight_choice_option(WeightChoice& choice);  ///< --ema, --no-ema

/// The keys of a [phase.N] besides epochs and lr.
std::vector<OptionGroup> options_of(PhaseConfig& phase);
/// All keys of a [phase.N], for messages; epochs and lr first.
const std::vector<std::string>& phase_keys();

/// What to write instead of an option of other training programs (`amp`, `kv-store`; hyphens, no dashes in front):
/// `use --precision fp16 or bf16`. `command`: of Convoy, as `train`. Empty: no such name is known.
std::string foreign_hint(const std::string& command, const std::string& name);
/// All names that have a hint in training, also patterns (see is_pattern_of), as the table has them.
std::vector<std::string> foreign_names();
/// The same for a command (`eval`, `preprocess`).
std::string foreign_command(const std::string& name);

}  // namespace convoy
