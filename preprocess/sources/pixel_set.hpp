// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "preprocess/sources/shard.hpp"

namespace convoy::preparation {

/// What all samples of a set share.
struct SetInfo {
  std::string title;   ///< `CIFAR-10 binary version`
  std::string digest;  ///< `crc32c-1a2b3c4d` over names, sizes and bytes of the files read
  Index height = 0, width = 0, channels = 0;
  std::vector<std::string> class_names;
  std::vector<std::string> warnings = {};  ///< for rank 0 to print
  Index image_bytes() const { return height * width * channels; }
};

/// A published or generated data set whose samples are pixels, all of one size: numbered samples of two splits.
class PixelSet {
 public:
  virtual ~PixelSet() = default;
  virtual const SetInfo& info() const = 0;
  virtual Index samples(Split split) const = 0;
  /// Returns a name that no other sample of the split has and that doesn't depend on where the files lie:
  /// `data_batch_1.bin/123`.
  virtual std::string name(Split split, Index sample) const = 0;
  /// Writes height * width * channels bytes, returns the label. Throws Error(data) naming file and sample.
  virtual std::int32_t read(Split split, Index sample, std::uint8_t* image) const = 0;
};

}  // namespace convoy::preparation
