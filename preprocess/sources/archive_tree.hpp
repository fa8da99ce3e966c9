// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/file_reader.hpp"

namespace convoy::preparation {

/// What lies in archives, listed as if they were unpacked: the rules for folders find splits and classes in both.
class ArchiveTree {
 public:
  /// Reads an archive from its beginning to its end.
  void read(Store& store, const std::string& object, const std::vector<std::string>& extensions);
  /// Lists a folder; in place of each image stands one of them.
  Listing list(const std::string& folder) const;
  bool holds_images(const std::string& folder) const;  ///< at any depth
  bool holds_archives(const std::string& folder) const;
  /// Counts the files at any depth of a folder that are no images.
  LeftOut left_out(const std::string& folder) const;
  /// Returns the text of a label table; empty: there is none of this name.
  std::string label_table(const std::string& member) const;

 private:
  struct Folder {
    std::set<std::string> folders;
    std::vector<std::string> archives, tables;
    std::string image;  ///< name of one
    Index images = 0;
    LeftOut left_out;
  };
  /// Returns a folder that nothing hides; null: it lies in a hidden one.
  Folder* open(const std::string& folder);
  template <class Body>
  void for_each_below(const std::string& folder, const Body& body) const;

  std::map<std::string, Folder> folders_{{"", {}}};
  std::map<std::string, std::string> texts_;
};

}  // namespace convoy::preparation
