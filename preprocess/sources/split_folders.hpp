// SPDX-License-Identifier: Apache-2.0
// Which folders of one place, or of an archive, are its splits: the same rule for both.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// Names below one place; empty: none.
struct SplitFolders {
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
/// Says which folder becomes val though its name says otherwise, and which is not read. `where`: the place.
void report_splits(const SplitFolders& splits, const std::string& where);

/// Split folders that show in the names of an archive's members, at its top or below other folders.
class ArchiveSplits {
 public:
  /// An image or an inner archive.
  void note(const std::string& member);
  /// The folder (empty: the archive's top) in which `train` lies with class folders in it.
  std::optional<std::string> place() const;
  /// Names of the split folders in `place`; those with class folders in them, where `with_classes`.
  std::set<std::string> names(const std::string& place, bool with_classes) const;
  bool empty() const { return places_.empty(); }
  /// Throws Error(usage) where what is taken for one split holds several.
  void require_one(const std::string& archive) const;

 private:
  std::map<std::string, std::map<std::string, bool>> places_;  ///< place, name, whether class folders are in it
};

/// All of a local plain archive, where headers are soon found; of others only where the first image lies in a split.
void look_for_splits(Store& store, const std::string& object, bool headers_are_near,
                     const std::vector<std::string>& extensions, ArchiveSplits& to);

}  // namespace convoy::preparation
