// SPDX-License-Identifier: Apache-2.0
// From configuration to data set, input and network: shared by training, evaluation and the dry run.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "data/augment.hpp"
#include "data/batch_queue.hpp"
#include "data/dataset.hpp"
#include "data/shapes.hpp"

namespace convoy {

/// Where a split lies: --train-data, --val-data or --data.
std::string folder_of(const DataConfig& config, const std::string& split);
bool split_exists(const DataConfig& config, const std::string& split);
DatasetInfo open_split(const DataConfig& config, const std::string& split);
/// `90 images of 16x16x3`, `90 images of any size (jpeg)`.
std::string tell_images(const DatasetInfo& info);
/// `train '/data/pets': 90 images of 64x64x3 in 37 classes; 64x64 raw, resized to 32x32, padded 4, random crop of
/// 32x32`
std::string tell_input(const DatasetInfo& info, const AugmentSpec& augment);
/// What `range` of a split would take in memory, bytes.
Index samples_bytes(const DatasetInfo& info, Range range);
/// Whether samples are kept in memory or read when they are used: as asked for, else what `memory_bytes` allow.
std::unique_ptr<Dataset> load_split(const DataConfig& config, const DatasetInfo& info, Range range, Index memory_bytes);
/// --rectangular-validation: the samples of a split by the shape that the network sees; empty: all are square.
std::vector<ShapeGroup> val_groups(const DataConfig& config, const DatasetInfo& info);
/// Where rectangles were asked for and val_groups found none: what to say. Else empty.
std::string shape_warning(const DataConfig& config, const DatasetInfo& info, const std::vector<ShapeGroup>& groups);
/// The class of each sample of a range, as DatasetInfo::label_of says it; of files the labels alone are read. Throws
/// Error(data).
std::vector<std::int32_t> labels_of(const DataConfig& config, const DatasetInfo& info, Range range);
/// What load_split keeps in memory, bytes; 0: it reads samples when they are used.
Index kept_bytes(const DataConfig& config, const DatasetInfo& info, Range range, Index memory_bytes);
/// The samples that a rank evaluates: its share. By groups that lies all over the split, so it is the whole split,
/// streamed unless another --data-cache is asked for.
std::unique_ptr<Dataset> load_evaluated(const DataConfig& config, const DatasetInfo& info, Range share,
                                        const std::vector<ShapeGroup>& groups, Index memory_bytes);
/// What load_evaluated keeps in memory, bytes.
Index kept_evaluated_bytes(const DataConfig& config, const DatasetInfo& info, Range share,
                           const std::vector<ShapeGroup>& groups, Index memory_bytes);
/// --data-memory in bytes; its default is half of the memory that the host has to spare, shared by `node_size` ranks.
Index samples_memory(const DataConfig& config, int node_size);

enum class Use : std::uint8_t { training, evaluation };
AugmentSpec augment_spec(const DataConfig& config, const DatasetInfo& info, std::uint64_t seed, Use use);

/// Backend::keep_resident of a data set's images; -1 where batches bring rows, since images are made or read.
int keep_resident(Backend& backend, const Dataset& dataset, const AugmentSpec& augment);

/// Memory for rows of images from which the device copies fastest.
ImageMemory image_memory(Backend& backend);

/// Throws Error(usage) unless --rgb-mean and --rgb-std have one value for each channel of the set.
void require_mean_per_channel(const DataConfig& config, const DatasetInfo& info);

/// Network input from a data set's attributes and the user's wishes, of images as `augment` gives them.
InputSpec input_spec(const DataConfig& config, const DatasetInfo& info, const AugmentSpec& augment);
/// Height and width of the network input: --image-size, else the stored size, else (files of any size) 224.
ImageSize input_size(const DataConfig& config, const DatasetInfo& info);

/// The model's description with what the data decide filled in.
GraphSpec graph_spec(const GraphSpec& model, const DataConfig& config, const DatasetInfo& info);

}  // namespace convoy
