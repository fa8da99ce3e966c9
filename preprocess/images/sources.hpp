// SPDX-License-Identifier: Apache-2.0
// From what the user named to units: which stores, which layout, which labels.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "preprocess/images/images_spec.hpp"
#include "preprocess/images/labels.hpp"
#include "preprocess/images/unit.hpp"

namespace convoy::preparation {

/// One pool as it was found.
struct PoolSource {
  Pool pool = Pool::train;
  std::string folder;              ///< location of its store
  std::vector<std::string> names;  ///< objects in it; empty: what lies in the folder
  std::string labels;              ///< location of its label file; empty: none
  std::string inside;              ///< folder in its archives, whose members alone belong to it; empty: all do
};

/// Looks at --source, --train and --val. Throws Error(usage) where they make no sense together, Error(data) where
/// nothing fits.
std::vector<PoolSource> find_sources(const ImagesSpec& spec);

std::string to_text(const std::vector<PoolSource>& sources);
std::vector<PoolSource> sources_from_text(const std::string& text);

/// A pool ready to be read.
struct OpenPool {
  PoolSource source;
  std::unique_ptr<Store> store;
  std::optional<LabelFile> labels;
  /// The folder listed last and its files: the slices of a folder are read one after the other, and may be many.
  std::optional<std::string> listed{};
  std::vector<std::string> files{};
};

/// A small text file anywhere.
std::string read_location(const std::string& location, const TransferSpec& spec);
/// The part of an archive's member name below `inside`; nothing for a member that lies elsewhere.
std::optional<std::string> name_inside(const std::string& member, const std::string& inside);
/// The store of a location's folder, and the object's name in it.
std::pair<std::string, std::string> split_location(const std::string& location);

}  // namespace convoy::preparation
