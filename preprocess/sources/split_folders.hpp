// SPDX-License-Identifier: Apache-2.0
// Which folders of one place, or of an archive, are its splits: the same rule for both.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// Lists a folder of a place or of archives.
using Lister = std::function<Listing(const std::string& folder)>;
/// The labels of Tiny ImageNet's val split, in its folder.
constexpr const char* val_annotations = "val_annotations.txt";
/// Where Kaggle's ILSVRC tree has its splits.
constexpr const char* official_images = "ILSVRC/Data/CLS-LOC";
bool is_official_tree(const Listing& top);
/// Returns whether a folder holds what splits are made of, rather than images alone.
bool holds_classes(const Listing& folder);

/// Names below one place; empty: none.
struct SplitFolders {
  std::string place;  ///< folder in which they lie
  std::string train, val;
  std::string unread;  ///< a `test` that becomes no split
};

/// Finds `train` (or `training`), and beside it `val`, `validation` or `valid`, in upper or lower case; where there is
/// none of these a `test` (or `testing`) that `holds_classes`, unless `cuts_train` says that val is cut from train.
/// Nothing without `train`, or where it holds no classes and lies among others: then it is a class.
std::optional<SplitFolders> choose_splits(const std::set<std::string>& names,
                                          const std::function<bool(const std::string&)>& holds_classes,
                                          bool cuts_train);
/// Throws Error(usage) where several of these class folders are splits, which would be mixed.
void require_no_splits(const std::vector<std::string>& names, const std::string& where,
                       const std::function<bool(const std::string&)>& holds_classes);
/// Throws Error(usage) where a place that is taken for one split holds several.
void require_one_split(const Lister& list, const std::string& where);
/// Says which folder becomes val though its name says otherwise, and which is not read. `where`: the place.
void report_splits(const SplitFolders& splits, const std::string& where);

/// Looks for the folder in which splits lie: the place itself, or a folder further inside where there are few. Throws
/// Error(usage) where several do. `where`: the place.
std::optional<SplitFolders> find_splits(const Lister& list, const std::string& where, bool cuts_train);

}  // namespace convoy::preparation
