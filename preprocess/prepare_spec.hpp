// SPDX-License-Identifier: Apache-2.0
// What `convoy-preprocess SOURCE` was asked for.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"
#include "data/dataset.hpp"
#include "image/decode.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

class Source;

enum class Encoding : std::uint8_t { raw, jpeg };
/// How an image becomes a square: its aspect ratio is lost, or what juts out is.
enum class Fit : std::uint8_t { squash, crop };

/// The shape of stored pixels. Height and width are 0 where each image has its own.
struct PixelShape {
  Index height = 0, width = 0, channels = 0;
  Index bytes() const { return height * width * channels; }
};

/// What is made of one image. Everything here decides bytes.
struct Recipe {
  Encoding encoding = Encoding::raw;
  std::vector<Index> sizes;  ///< raw: sides of squares; jpeg: short sides, 0: as it is (`full`)
  Fit fit = Fit::squash;
  Channels channels = Channels::rgb;
  Index max_resolution = 0;         ///< jpeg: longest side; 0: no limit
  int quality = 95;                 ///< quality of images that have to be encoded anew
  double compress_probability = 0;  ///< jpeg: of encoding an image anew though it could pass
  DecodeLimits limits;
  std::uint64_t seed = 1;
  /// The samples are pixels of this shape already, and are stored as they are; sizes has one entry, 0.
  std::optional<PixelShape> pixels;

  PixelShape stored_shape(std::size_t size) const {
    if (pixels) return *pixels;
    const Index side = encoding == Encoding::raw ? sizes[size] : 0;
    return {side, side, channel_count(channels)};
  }
};

/// Findings that end the run with an error.
enum class Strict : std::uint8_t { no, skipped, any };

/// Ranks may wait long for one that reads from slow storage.
constexpr StallLimits patience_of_preparation{.warn_seconds = 600, .abort_seconds = 7200};

struct PrepareSpec {
  const Source* kind = nullptr;
  std::string source;                    ///< holds both splits, or is cut by train_ratio
  std::string train, val;                ///< locations of the splits
  std::string root;                      ///< list: where its paths begin
  std::string train_labels, val_labels;  ///< locations of label files
  std::string classes;                   ///< location of a list of classes
  std::string key_prefix;
  std::vector<std::string> extensions{".jpg", ".jpeg", ".png"};  ///< lower case
  Index label_column = 0;                                        ///< which of several labels
  bool coarse = false;                                           ///< cifar100: its 20 superclasses
  SyntheticSpec synthetic;                                       ///< samples: those of train
  Index val_samples = 500;                                       ///< synthetic
  TransferSpec transfer;
  Recipe recipe;
  double train_ratio = 1;
  Index partitions = 0, val_partitions = 0;         ///< 0: by max_count and max_bytes
  Index max_count = 0, max_bytes = Index{1} << 30;  ///< limits of one partition; max_count 0: no limit
  Index subset = 0, val_subset = 0;                 ///< 0: all
  bool mean_image = false, keep_names = false, overwrite = false;
  bool ignore_times = false;  ///< of files: only their names and sizes tell whether the source has changed
  Strict strict = Strict::no;
  std::string out, spill;                 ///< spill: where the folder for intermediate files is made; empty: in out
  int threads = 0;                        ///< 0: the node's cores shared by its ranks
  Index memory_bytes = Index{512} << 20;  ///< memory of a rank for images that wait to be written
  double log_seconds = 30;
  StallLimits deadline = patience_of_preparation;
  TimeLimit time_limit;
};

/// `full`, `160`: a size as option and as folder.
std::string size_name(Index size);

}  // namespace convoy::preparation
