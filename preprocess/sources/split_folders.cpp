// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/split_folders.hpp"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

/// Names in the order in which they are looked for.
constexpr std::array train_folders{"train", "training"};
constexpr std::array val_folders{"val", "validation", "valid"};
constexpr std::array test_folders{"test", "testing"};

template <class Aliases>
bool is_one_of(const Aliases& aliases, const std::string& name) {
  return std::find(aliases.begin(), aliases.end(), lower(name)) != aliases.end();
}

bool names_a_split(const std::string& name) {
  return is_one_of(train_folders, name) || is_one_of(val_folders, name) || is_one_of(test_folders, name);
}

/// Returns the first of several names for one split; empty: none is there.
template <class Aliases>
std::string pick(const std::set<std::string>& names, const Aliases& aliases) {
  for (const char* alias : aliases) {
    if (names.contains(alias)) return alias;
    for (const auto& name : names) {
      if (lower(name) == alias) return name;
    }
  }
  return "";
}

}  // namespace

bool holds_classes(const Listing& folder) {
  return !folder.folders.empty() || std::any_of(folder.objects.begin(), folder.objects.end(), [](const auto& o) {
    return is_tar_name(o.name) || o.name.ends_with(".rec");
  });
}

std::optional<SplitFolders> choose_splits(const std::set<std::string>& names,
                                          const std::function<bool(const std::string&)>& holds_classes,
                                          bool cuts_train) {
  SplitFolders splits{"", pick(names, train_folders), pick(names, val_folders), ""};
  if (splits.train.empty()) return std::nullopt;
  const bool alone = std::all_of(names.begin(), names.end(), names_a_split);
  if (!alone && !holds_classes(splits.train)) return std::nullopt;
  const std::string test = pick(names, test_folders);
  if (!splits.val.empty() || test.empty()) return splits;
  const bool used = !cuts_train && holds_classes(test);
  (used ? splits.val : splits.unread) = test;
  return splits;
}

void require_no_splits(const std::vector<std::string>& names, const std::string& where,
                       const std::function<bool(const std::string&)>& holds_classes) {
  std::vector<std::string> found;
  for (const auto& name : names) {
    if (names_a_split(name) && holds_classes(name)) found.push_back(name);
  }
  if (found.size() < 2) return;
  fail(Exit::usage,
       "'{}' holds several splits ({}), which would be mixed; give it as --source, or give --train and --val", where,
       fmt::join(found, ", "));
}

void require_one_split(const Lister& list, const std::string& where) {
  const auto splits = find_splits(list, where, false);
  if (!splits || (splits->val.empty() && splits->unread.empty())) return;
  fail(
      Exit::usage,
      "'{}' holds several splits ({}, {}), which would be mixed; give it as --source, which separates them, or unpack it and give --train and --val",
      where, splits->train, splits->val.empty() ? splits->unread : splits->val);
}

void report_splits(const SplitFolders& splits, const std::string& where) {
  if (is_one_of(test_folders, splits.val)) log::info("'{}' has no val split: its '{}' becomes it", where, splits.val);
  if (!splits.unread.empty()) {
    log::warn("'{}' in '{}' is not read: {}", splits.unread, where,
              "--train-ratio cuts val from train, or it has no class folders; to use it give --train and --val");
  }
}

bool is_official_tree(const Listing& top) {
  return std::find(top.folders.begin(), top.folders.end(), "ILSVRC") != top.folders.end();
}

std::optional<SplitFolders> find_splits(const Lister& list, const std::string& where, bool cuts_train) {
  constexpr std::size_t most_listed = 64, few = 8;  // of classes there are more
  const Listing top = list("");
  std::optional<SplitFolders> found;
  std::vector<std::string> places{is_official_tree(top) ? official_images : ""};
  for (std::size_t i = 0; i < std::min(places.size(), most_listed); ++i) {
    const std::string place = places[i];
    const Index level = std::count(place.begin(), place.end(), '/');
    if (found && level > std::count(found->place.begin(), found->place.end(), '/')) break;
    const Listing here = place.empty() ? top : list(place);
    std::set<std::string> names;
    for (const auto& name : here.folders) {
      if (!is_hidden(name)) names.insert(name);
    }
    auto splits = choose_splits(
        names, [&](const auto& name) { return holds_classes(list(join_names(place, name))); }, cuts_train);
    if (splits && found) {
      fail(Exit::usage, "'{}' holds splits in several folders ('{}', '{}'); give one of them as --source", where,
           found->place, place);
    }
    if (splits) {
      found = std::move(splits);
      found->place = place;
    } else if (names.size() <= few) {
      for (const auto& name : names) places.push_back(join_names(place, name));
    }
  }
  return found;
}

}  // namespace convoy::preparation
