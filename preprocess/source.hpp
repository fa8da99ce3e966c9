// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "preprocess/options.hpp"

namespace convoy::preparation {

enum class Split : std::uint8_t { train, val };
constexpr const char* split_name(Split split) { return split == Split::train ? "train" : "val"; }

/// What all samples of a raw data set share.
struct SourceInfo {
  std::string title;   ///< `CIFAR-10 binary version`
  std::string digest;  ///< `crc32c-1a2b3c4d` over names, sizes and bytes of the files read
  Index height = 0, width = 0, channels = 0;
  std::vector<std::string> class_names;
  std::vector<std::string> remarks = {};  ///< worth a warning, said once for the job
  Index image_bytes() const { return height * width * channels; }
};

/// A raw data set: numbered samples of two splits. Reading is safe from several threads.
class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;
  virtual Index samples(Split split) const = 0;
  /// A name that no other sample of the split has and that doesn't depend on where the files lie:
  /// `data_batch_1.bin/123`.
  virtual std::string name(Split split, Index sample) const = 0;
  /// Writes height * width * channels bytes, returns the label. Throws Error(data) naming file and sample.
  virtual std::int32_t read(Split split, Index sample, std::uint8_t* image) const = 0;
};

/// Reads what the kind needs. Throws Error(data): missing, truncated or wrong files.
std::unique_ptr<Source> open_source(const PrepareSpec& spec);

std::unique_ptr<Source> open_cifar10(const PrepareSpec& spec);
std::unique_ptr<Source> open_cifar100(const PrepareSpec& spec);
std::unique_ptr<Source> open_mnist(const PrepareSpec& spec);
std::unique_ptr<Source> open_generated(const PrepareSpec& spec);

}  // namespace convoy::preparation
