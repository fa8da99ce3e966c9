// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/split_folders.hpp"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
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

std::optional<SplitFolders> choose_splits(const std::set<std::string>& names,
                                          const std::function<bool(const std::string&)>& holds_classes,
                                          bool cuts_train) {
  SplitFolders splits{pick(names, train_folders), pick(names, val_folders), ""};
  if (splits.train.empty()) return std::nullopt;
  const bool alone = std::all_of(names.begin(), names.end(),
                                 [](const auto& name) { return name.starts_with('.') || names_a_split(name); });
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

void report_splits(const SplitFolders& splits, const std::string& where) {
  if (is_one_of(test_folders, splits.val)) log::info("'{}' has no val split: its '{}' becomes it", where, splits.val);
  if (!splits.unread.empty()) {
    log::warn("'{}' in '{}' is not read: {}", splits.unread, where,
              "--train-ratio cuts val from train, or it has no class folders; to use it give --train and --val");
  }
}

void ArchiveSplits::note(const std::string& member) {
  for (std::size_t begin = 0, end = 0; (end = member.find('/', begin)) != std::string::npos; begin = end + 1) {
    const std::string name = member.substr(begin, end - begin);
    if (!names_a_split(name)) continue;
    const bool class_inside = is_tar_name(member) || member.find('/', end + 1) != std::string::npos;
    bool& known = places_[begin == 0 ? "" : member.substr(0, begin - 1)][name];
    known = known || class_inside;
  }
}

std::optional<std::string> ArchiveSplits::place() const {
  std::optional<std::string> shortest;
  for (const auto& [place, names] : places_) {
    const bool has_train = std::any_of(names.begin(), names.end(), [](const auto& name) {
      return name.second && is_one_of(train_folders, name.first);
    });
    if (!has_train) continue;
    if (!shortest || place.size() < shortest->size()) shortest = place;
  }
  return shortest;
}

std::set<std::string> ArchiveSplits::names(const std::string& place, bool with_classes) const {
  std::set<std::string> names;
  for (const auto& [name, classes] : places_.at(place)) {
    if (classes || !with_classes) names.insert(name);
  }
  return names;
}

void ArchiveSplits::require_one(const std::string& archive) const {
  const auto where = place();
  if (!where) return;
  const auto found = names(*where, true);
  if (found.size() < 2) return;
  fail(
      Exit::usage,
      "'{}' holds several splits ({}), which would be mixed; give it as --source, which separates them, or unpack it and give --train and --val",
      archive, fmt::join(found, ", "));
}

void look_for_splits(Store& store, const std::string& object, bool headers_are_near,
                     const std::vector<std::string>& extensions, ArchiveSplits& to) {
  TarReader tar(store.open(object), store.address(object), compression_of(object));
  for (TarMember member; tar.next(member, Links::show);) {
    leave_if_stopped("looking for splits");
    if (!is_image_name(member.name, extensions) && (!is_tar_name(member.name) || !member.link.empty())) continue;
    to.note(member.name);
    if (to.empty() && !headers_are_near) return;
  }
}

}  // namespace convoy::preparation
