// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/sample_reader.hpp"
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

constexpr Index files_per_shard = 2048;

/// Counts files that are left out, by extension, or as hidden.
using LeftOut = std::map<std::string, Index>;
/// Lists image files below a folder, as paths from it, sorted.
std::vector<std::string> list_files(Store& store, const std::string& folder, const std::vector<std::string>& extensions,
                                    LeftOut* left_out = nullptr);
/// The same, each with size and version if its store tells them at no great cost.
std::vector<ObjectInfo> list_file_objects(Store& store, const std::string& folder,
                                          const std::vector<std::string>& extensions, LeftOut* left_out);
std::vector<Count> counts_of(const LeftOut& left_out);
/// A digest of names in their order, to tell whether they have changed.
std::string digest_of(const std::vector<std::string>& names);
/// Counts a file that is no image.
void count_left_out(const std::string& name, LeftOut& to);
/// Whether a file or folder is hidden, or one that systems make beside those of users (`@eaDir`, `__MACOSX`).
bool is_hidden(const std::string& name);
/// Whether a folder's name says that images lie in it, and no class: `images`.
bool is_image_folder(const std::string& name);
/// Decides by the extension, whatever its case. Nothing in a hidden folder is an image.
bool is_image_name(const std::string& name, const std::vector<std::string>& extensions);

/// Reads single files: those below the shard's folder, or those that a list names. Several are on their way at once
/// where the store is far.
class FileReader final : public SampleReader {
 public:
  enum class Names : std::uint8_t { folder, list };
  FileReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position, Names names);
  bool next(RawSample& sample) override;

 private:
  const std::vector<std::string>& names() const;

  OpenSplit& split_;
  const Shard& shard_;
  Names kind_;
  std::deque<std::unique_ptr<ByteStream>> streams_;
  Index most_bytes_;
  Index at_, ahead_ = 0;
};

}  // namespace convoy::preparation
