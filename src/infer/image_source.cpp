// SPDX-License-Identifier: Apache-2.0
#include "infer/image_source.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/image_maker.hpp"
#include "data/partition.hpp"
#include "engine/data.hpp"
#include "engine/model_data.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// What training decided and prediction must repeat.
DataConfig data_of(const PredictConfig& config, const TrainConfig& trained) {
  DataConfig data = validation_data(trained.data);
  if (config.data.image_size > 0) data.image_size = config.data.image_size;
  if (config.data.augment.resize > 0) data.augment.resize = config.data.augment.resize;
  if (!config.data.rgb_mean.empty()) data.rgb_mean = config.data.rgb_mean;
  if (!config.data.rgb_std.empty()) data.rgb_std = config.data.rgb_std;
  return data;
}

bool are_one(const std::string& file, const std::string& other) {
  std::error_code unknown;
  return fs::equivalent(file, other, unknown);
}

bool is_hidden(const fs::path& path) { return path.filename().string().front() == '.'; }

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code reason;
  fs::recursive_directory_iterator at(folder, reason);
  for (; !reason && at != fs::recursive_directory_iterator(); at.increment(reason)) {
    std::error_code unknown;  // links that lead nowhere or to themselves: whoever reads them finds out and says so
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (!at->is_directory(unknown)) {
      files.push_back(at->path().string());
    }
  }
  if (reason) fail(Exit::data, "cannot read the folder '{}' ({}); check its permissions", folder, reason.message());
  std::sort(files.begin(), files.end());
  return files;
}

/// Of a model that tells neither the names of its classes nor what it learned from.
DatasetInfo data_of_tensors(const ModelFile& model, const DataConfig& data) {
  if (data.rgb_mean.empty() || data.rgb_std.empty())
    fail(Exit::usage, "'{}' doesn't tell how images become its input; give --rgb-mean and --rgb-std", model.found.path);
  DatasetInfo info;
  info.folder = model.found.path;
  info.encoding = "jpeg";
  info.classes = model.classes;
  info.mean = data.rgb_mean;
  info.std = data.rgb_std;
  info.channels = static_cast<Index>(info.mean.size());
  if (info.channels != model.channels)
    fail(Exit::usage, "--rgb-mean has {}, and '{}' takes images of {}; give one per channel",
         counted(info.channels, "value"), model.found.path, counted(model.channels, "channel"));
  return info;
}

/// Evaluation's image of a file: where the network learned from stored pixels, their short side and its input.
AugmentSpec augment_of_files(const DataConfig& data, const DatasetInfo& info) {
  if (info.height == 0) return augment_spec(data, info, 0, Use::evaluation);
  DatasetInfo stored = info;
  stored.encoding = "raw";
  AugmentSpec spec = augment_spec(data, stored, 0, Use::evaluation);
  spec.resize = spec.short_side() > 0 ? spec.short_side() : std::min(info.height, info.width);
  spec.stored = Stored::files;
  spec.source_height = spec.source_width = 0;
  return spec;
}

class FileImages final : public ImageSource {
 public:
  FileImages(const std::vector<std::string>& paths, const DatasetInfo& info, const DataConfig& data, int workers)
      : ImageSource(data), info_(info), augment_(augment_of_files(data, info_)) {
    for (int i = 0; i < workers; ++i) makers_.emplace_back(augment_);
    for (const std::string& path : paths) {
      std::error_code reason;
      const fs::file_status status = fs::status(path, reason);
      if (fs::is_directory(status)) {
        const auto below = files_below(path);
        files_.insert(files_.end(), below.begin(), below.end());
      } else if (status.type() == fs::file_type::not_found) {
        fail(Exit::data, "'{}' doesn't exist; give image files, folders of them, or a prepared data set", path);
      } else {
        files_.push_back(path);
      }
    }
  }
  const DatasetInfo& info() const override { return info_; }
  const AugmentSpec& augment() const override { return augment_; }
  Index count() const override { return static_cast<Index>(files_.size()); }
  std::uint64_t digest() const override {
    std::uint64_t digest = 0;
    for (const std::string& name : files_) digest = hash_bytes(name.data(), name.size(), digest);
    return digest;
  }
  bool reads(const std::string& path) const override {
    return std::any_of(files_.begin(), files_.end(), [&](const std::string& file) { return are_one(file, path); });
  }
  void put(Index number, int worker, std::uint8_t* to, Prediction& prediction) override {
    prediction.name = files_[static_cast<std::size_t>(number)];
    try {
      const File file(prediction.name, File::Access::read);
      std::vector<std::uint8_t> bytes(file.size());
      file.read_at(bytes.data(), bytes.size(), 0);
      const DecodeStatus status = makers_[static_cast<std::size_t>(worker)].make(bytes, 0, 0, to);
      if (!status.ok()) prediction.error = fmt::format("{}: {}", fault_name(status.fault), status.reason);
    } catch (const Error& e) {
      prediction.error = e.what();
    }
  }

 private:
  DatasetInfo info_;
  AugmentSpec augment_;
  std::vector<ImageMaker> makers_;
  std::vector<std::string> files_;
};

class PreparedImages final : public ImageSource {
 public:
  PreparedImages(const DatasetInfo& info, Range range, const DataConfig& data, int workers)
      : ImageSource(data),
        samples_(info, range, ReadSpec{.keep = Keep::files}),
        augment_(augment_spec(data, info, 0, Use::evaluation)) {
    for (int i = 0; i < workers; ++i) images_.emplace_back(samples_, augment_);
  }
  const DatasetInfo& info() const override { return samples_.info(); }
  const AugmentSpec& augment() const override { return augment_; }
  Index count() const override { return samples_.range().count; }
  std::uint64_t digest() const override { return samples_.info().digest; }
  bool reads(const std::string& path) const override {
    const auto& partitions = samples_.info().partitions;
    return std::any_of(partitions.begin(), partitions.end(),
                       [&](const PartitionInfo& part) { return are_one(part.path, path); });
  }
  void put(Index number, int worker, std::uint8_t* to, Prediction& prediction) override {
    const Index sample = samples_.range().begin + number;
    prediction.name = fmt::format("{}/{}", samples_.info().split, samples_.id(sample));
    prediction.label = samples_.label(sample);
    try {
      images_[static_cast<std::size_t>(worker)].put(sample, 0, 0, to);
    } catch (const Error& e) {
      prediction.error = e.what();
    }
  }

 private:
  Dataset samples_;
  AugmentSpec augment_;
  std::vector<SampleImages> images_;
};

}  // namespace

std::unique_ptr<ImageSource> open_image_source(const PredictConfig& config, const ModelFile& model, int workers,
                                               bool speaks) {
  DataConfig data = data_of(config, model.config);
  const auto seen = [&](DatasetInfo info) {
    data.image_size = input_side(model, data, info);
    const DataVerdict verdict = see_as_model(model.data(), info, data);
    if (speaks) tell(verdict);
    return info;
  };
  const auto seen_set = [&](const DatasetInfo& info) {
    require_channels(model, info);
    return seen(info);
  };
  if (config.paths.size() == 1) {
    const fs::path path = config.paths.front();
    const PartitionName name = parse_partition_name(path.filename().string());
    std::error_code unknown;
    if (name.partitions > 0 && fs::is_regular_file(path, unknown)) {
      const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
      const DatasetInfo info = seen_set(read_dataset_info(folder, name.split));
      return std::make_unique<PreparedImages>(info, info.partitions.at(static_cast<std::size_t>(name.number)).samples,
                                              data, workers);
    }
    if (fs::is_directory(path, unknown) && has_split(path.string(), config.split)) {
      const DatasetInfo info = seen_set(read_dataset_info(path.string(), config.split));
      return std::make_unique<PreparedImages>(info, Range{0, info.samples}, data, workers);
    }
  }
  if (data.normalise == InputSpec::Normalise::mean_image)
    fail(Exit::usage, "'{}' subtracts a mean image, which image files have none of; give a prepared data set",
         model.found.path);
  const DatasetInfo info = seen(model.classes > 0 ? data_of_tensors(model, data) : data_of_model(model.data()));
  return std::make_unique<FileImages>(config.paths, info, data, workers);
}

}  // namespace convoy
