// SPDX-License-Identifier: Apache-2.0
// What the weights of a checkpoint learned from, and what each use of a checkpoint makes of data that differ. All
// commands ask here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "core/types.hpp"

namespace convoy {

struct TrainedData {
  std::vector<std::string> class_names;
  std::vector<double> mean, std;  ///< per channel, pixel units: what the input is normalised with
  Index height = 0, width = 0;    ///< of stored pixels; 0: files of any size
  // Checkpoints of older versions tell nothing of what follows.
  std::uint64_t train_digest = 0, val_digest = 0;  ///< of the partitions' seals; 0: unknown, or no such split
  std::uint64_t mean_image = 0;                    ///< digest of the image that is subtracted; 0: unknown, or none
  std::optional<InputSpec::Normalise> normalise;   ///< nothing: unknown; per_image doesn't use mean and std
  Index input_height = 0, input_width = 0;
  Index short_side = 0;  ///< of the image whose centre evaluation takes as input
};

/// `channel`, `mean_image` or `per_image`, as files tell it.
std::string name_of(InputSpec::Normalise normalise);
/// Nothing: no kind has this name.
std::optional<InputSpec::Normalise> normalise_named(std::string_view name);

/// For messages: `mean 120.50, deviation 60.00`, or that each image has its own.
std::string normalisation_text(const TrainedData& data);
/// Whether pixels become the same input. What one of them doesn't tell is not compared.
bool normalise_alike(const TrainedData& a, const TrainedData& b);

/// `labels[c]`: the model's number of the set's class c, -1 if it knows no such class; empty: their names are the same.
/// `difference`: which names only one of them has; empty: one has all of the other's, or one tells none.
struct ClassMatch {
  std::vector<std::int32_t> labels;
  std::string difference;
};
ClassMatch match_classes(const std::vector<std::string>& model, const std::vector<std::string>& set);

/// mid_epoch, epoch_border: where a run continues.
enum class DataUse : std::uint8_t { evaluation, weights, epoch_border, mid_epoch };

struct DataVerdict {
  std::vector<std::string> notes, warnings;  ///< for the log
  std::vector<std::int32_t> labels;          ///< evaluation: as in ClassMatch
  bool new_head = false;                     ///< weights: the last layer starts anew
  bool new_best = false;                     ///< the best accuracy so far is of another val split
};

/// A model and a set as messages call them: `'runs/a/best.h5'`, `train split 'sets/a'`.
struct NamedData {
  const TrainedData& data;
  std::string name;
};
/// Throws Error(data) if the set is not for this use of the model:
///
/// | the set has other     | evaluation             | weights        | epoch_border          | mid_epoch             |
/// | --------------------- | ---------------------- | -------------- | --------------------- | --------------------- |
/// | class names           | refused                | new head, said | refused               | refused               |
/// | names, one has all    | labels by name, said   | new head, said | refused               | refused               |
/// | samples               |                        |                | warned                | refused               |
/// | mean or deviation     | the model's are taken  | said           | warned                | warned                |
/// | mean image, channels  | refused                | said           | warned                | warned                |
/// | kind of normalisation |                        | said           | warned                | warned                |
/// | input                 | the model's is taken   | said           | warned                | warned                |
/// | val samples           |                        |                | best starts anew      | best starts anew      |
///
/// What an older version's model doesn't tell is not compared: said in one line.
DataVerdict judge(const NamedData& model, const NamedData& set, DataUse use);

}  // namespace convoy
