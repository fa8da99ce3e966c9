// SPDX-License-Identifier: Apache-2.0
// The images that `convoy predict` is given, numbered alike on all ranks.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "data/augment.hpp"
#include "infer/model_file.hpp"
#include "infer/prediction.hpp"

namespace convoy {

class ImageSource {
 public:
  explicit ImageSource(DataConfig data) : data_(std::move(data)) {}
  ImageSource(const ImageSource&) = delete;
  ImageSource& operator=(const ImageSource&) = delete;
  virtual ~ImageSource() = default;
  /// What the network's input follows from.
  virtual const DatasetInfo& info() const = 0;
  virtual const AugmentSpec& augment() const = 0;
  const DataConfig& data() const { return data_; }
  virtual Index count() const = 0;
  /// Digest of the names, or of the data set: ranks compare it.
  virtual std::uint64_t digest() const = 0;
  /// Whether a file that exists is one of those that the images come from.
  virtual bool reads(const std::string& path) const = 0;
  /// Fills name and label, and the image's row or why there is none. `worker`: each called by one thread at a time.
  virtual void put(Index number, int worker, std::uint8_t* to, Prediction& prediction) = 0;

 private:
  DataConfig data_;
};

/// One prepared data set or partition, else image files and all files below folders, hidden ones aside, in order of
/// their names. Throws Error(data) where a path isn't there, or the set is none for the model. `speaks`: says how a set
/// that differs is seen.
std::unique_ptr<ImageSource> open_image_source(const PredictConfig& config, const ModelFile& model, int workers,
                                               bool speaks);

}  // namespace convoy
