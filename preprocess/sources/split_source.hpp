// SPDX-License-Identifier: Apache-2.0
// A split as it was found in a source: which store, which objects in it, which labels.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/labels.hpp"
#include "preprocess/sources/pixel_set.hpp"
#include "preprocess/sources/shard.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

class ArchiveTree;

struct SplitSource {
  Split split = Split::train;
  std::string folder;              ///< location of its store
  std::vector<std::string> names;  ///< objects in it; empty: what lies in the folder
  std::string labels;              ///< location of its label file; empty: none
  std::string inside;              ///< folder in its archives, whose members alone belong to it; empty: all do
  /// Rank 0: what lies in its archives, and the text of a label table there.
  std::shared_ptr<const ArchiveTree> tree = {};
  std::string label_text = {};

  void fields(auto&& visit) { visit(split, folder, names, labels, inside); }
};

/// A split ready to be read.
struct OpenSplit {
  SplitSource source;
  std::unique_ptr<Store> store;
  std::optional<LabelFile> labels;
  std::shared_ptr<const PixelSet> set = {};
  /// The folder listed last and its files: the shards of a folder are read one after the other, and may be many.
  std::optional<std::string> listed = {};
  std::vector<std::string> files = {};
  /// The archive in which links were followed last, and its members: where a header begins, or where a link leads.
  std::optional<std::string> indexed = {};
  std::map<std::string, std::pair<Index, std::string>> members = {};
  std::unique_ptr<TarReader> follower = {};  ///< reads the files to which links lead
  Index followed = -1;                       ///< where the last of them begins
  /// Folders listed once for all files in them.
  std::map<std::string, std::vector<ObjectInfo>> listings = {};
};

/// Reads a small text file anywhere.
std::string read_location(const std::string& location, const TransferSpec& spec);
/// Returns the part of an archive's member name below `inside`; nothing for a member that lies elsewhere.
std::optional<std::string> name_inside(const std::string& member, const std::string& inside);
/// Returns the location of an object's folder, and the object's name in it.
std::pair<std::string, std::string> split_location(const std::string& location);

}  // namespace convoy::preparation
