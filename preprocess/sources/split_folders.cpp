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

constexpr const char *train_folder = "train", *test_folder = "test";
constexpr std::array usual_val_folders{"val", "validation", "valid"};

bool names_a_split(const std::string& name) {
  return name == train_folder || name == test_folder ||
         std::find(usual_val_folders.begin(), usual_val_folders.end(), name) != usual_val_folders.end();
}

}  // namespace

std::optional<SplitFolders> choose_splits(const std::set<std::string>& names,
                                          const std::function<bool(const std::string&)>& holds_classes,
                                          bool cuts_train) {
  if (!names.contains(train_folder)) return std::nullopt;
  SplitFolders splits{train_folder, "", ""};
  for (const char* name : usual_val_folders) {
    if (splits.val.empty() && names.contains(name)) splits.val = name;
  }
  if (!splits.val.empty() || !names.contains(test_folder)) return splits;
  const bool used = !cuts_train && holds_classes(test_folder);
  (used ? splits.val : splits.unread) = test_folder;
  return splits;
}

void report_splits(const SplitFolders& splits, const std::string& where) {
  if (splits.val == test_folder) log::info("'{}' has no val split: its '{}' becomes it", where, splits.val);
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
    const auto train = names.find(train_folder);
    if (train == names.end() || !train->second) continue;
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
      "'{}' holds several splits ({}), which would be mixed; give it as --source, which tells them apart, or unpack it "
      "and give --train and --val",
      archive, fmt::join(found, ", "));
}

void look_for_splits(Store& store, const std::string& object, bool headers_are_near,
                     const std::vector<std::string>& extensions, ArchiveSplits& to) {
  TarReader tar(store.open(object), store.address(object), compression_of(object));
  for (TarMember member; tar.next(member);) {
    leave_if_stopped("looking for splits");
    if (!is_image_name(member.name, extensions) && !is_tar_name(member.name)) continue;
    to.note(member.name);
    if (to.empty() && !headers_are_near) return;
  }
}

}  // namespace convoy::preparation
