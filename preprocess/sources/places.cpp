// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/places.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/archive_tree.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/sources/split_folders.hpp"

namespace convoy::preparation {
namespace {

constexpr const char *official_train = "ILSVRC2012_img_train.tar", *official_val = "ILSVRC2012_img_val.tar";
/// Names under which the labels of the official validation images are found.
constexpr std::array usual_val_labels{"imagenet_2012_validation_synset_labels.txt", "LOC_val_solution.csv", "val.txt",
                                      "val_labels.txt", "valprep.sh"};

bool has_object(const Listing& listing, const std::string& name) {
  return std::any_of(listing.objects.begin(), listing.objects.end(), [&](const auto& o) { return o.name == name; });
}
SplitSource split_at_location(Split split, const std::string& location, const std::string& labels, const Source& kind) {
  if (!kind.names_container(location)) return {split, location, {}, labels, ""};
  SplitSource source{split, "", {}, labels, ""};
  for (const auto& one : expand_braces(location)) {
    const auto [folder, name] = split_location(one);
    if (!source.names.empty() && folder != source.folder) {
      fail(Exit::usage, "'{}' names files of several folders; give one folder, or prepare them separately", location);
    }
    source.folder = folder;
    source.names.push_back(name);
  }
  return source;
}

/// Finds out what lies in a split's archives, where folders in them may name its classes.
void look_into_archives(const PrepareSpec& spec, SplitSource& source) {
  if (source.tree || source.names.empty() || !spec.kind->has_class_folders()) return;
  const Location location = parse_location(source.folder);
  const auto store = open_store(location, spec.transfer);
  const auto tree = std::make_shared<ArchiveTree>();
  for (const auto& name : source.names) {
    if (location.scheme != Scheme::file || compression_of(name) != Compression::none) {
      log::info("looking into '{}'", store->address(name));  // all of it is read
    }
    tree->read(*store, name, spec.extensions);
  }
  source.tree = tree;
}

/// `train.tar` and `val.tar` in one folder, by the rule for folders. Nothing where there is no such `train`.
std::vector<SplitSource> split_beside(const PrepareSpec& spec, const Listing& top, const std::string& val_labels) {
  std::map<std::string, std::string> archives;
  std::set<std::string> names;
  for (const auto& object : top.objects) {
    if (!is_tar_name(object.name) || is_hidden(object.name)) continue;
    archives[tar_stem(object.name)] = object.name;
    names.insert(tar_stem(object.name));
  }
  const auto splits = choose_splits(
      names, [](const auto&) { return true; }, spec.train_ratio < 1);
  if (!splits) return {};
  report_splits(*splits, spec.source);
  const auto at = [&](Split split, const std::string& name, const std::string& labels) {
    return split_at_location(split, join_names(spec.source, archives[name]), labels, *spec.kind);
  };
  std::vector<SplitSource> sources{at(Split::train, splits->train, spec.train_labels)};
  if (!splits->val.empty()) sources.push_back(at(Split::val, splits->val, val_labels));
  return sources;
}

/// Finds both splits below one place, as they come from image-net.org and from Kaggle, or as train and val folders, in
/// archives too.
std::vector<SplitSource> split_source(const PrepareSpec& spec) {
  const std::string& at = spec.source;
  SplitSource all = split_at_location(Split::train, at, spec.train_labels, *spec.kind);
  const bool in_archives = !all.names.empty();
  if (in_archives && !spec.kind->has_class_folders()) return {all};
  look_into_archives(spec, all);
  const auto store = open_store(parse_location(all.folder), spec.transfer);
  const auto list = [&](const std::string& folder) {
    return in_archives ? all.tree->list(folder) : store->list(folder);
  };
  const Listing top = list("");
  std::string val_labels = spec.val_labels;
  for (const char* name : usual_val_labels) {
    if (val_labels.empty() && has_object(top, name)) val_labels = join_names(at, name);
  }
  if (!in_archives && has_object(top, official_train)) {
    const auto official = [&](Split split, const char* name, const std::string& labels) {
      return split_at_location(split, join_names(at, name), labels, *spec.kind);
    };
    std::vector<SplitSource> sources{official(Split::train, official_train, spec.train_labels)};
    if (has_object(top, official_val)) sources.push_back(official(Split::val, official_val, val_labels));
    return sources;
  }
  const auto splits = find_splits(list, at, spec.train_ratio < 1);
  if (!splits) {
    if (in_archives) return {all};
    if (auto beside = split_beside(spec, top, val_labels); !beside.empty()) return beside;
    if (is_official_tree(top)) all.folder = join_names(at, official_images);
    return {all};
  }
  report_splits(*splits, join_names(at, splits->place));
  const auto split_in = [&](Split split, const std::string& name, const std::string& labels) {
    SplitSource source = all;
    source.split = split;
    source.labels = labels;
    const std::string folder = join_names(splits->place, name);
    (in_archives ? source.inside : source.folder) = in_archives ? folder : join_names(at, folder);
    return source;
  };
  std::vector<SplitSource> sources{split_in(Split::train, splits->train, spec.train_labels)};
  if (!splits->val.empty()) sources.push_back(split_in(Split::val, splits->val, val_labels));
  return sources;
}

/// Finds the label table that lies in a split's folder.
void look_for_labels(const PrepareSpec& spec, SplitSource& source) {
  if (!spec.kind->has_class_folders() || !source.labels.empty()) return;
  if (source.tree) {
    const std::string member = join_names(source.inside, val_annotations);
    source.label_text = source.tree->label_table(member);
    if (!source.label_text.empty()) source.labels = member;
  } else if (has_object(open_store(parse_location(source.folder), spec.transfer)->list(""), val_annotations)) {
    source.labels = join_names(source.folder, val_annotations);
  }
  if (source.labels.empty()) return;
  log::info("the labels of {} are taken from '{}'", split_name(source.split), source.labels);
}

}  // namespace

std::vector<SplitSource> find_places(const PrepareSpec& spec) {
  if (spec.source.empty() == spec.train.empty()) {
    fail(Exit::usage, "give either --source (one place) or --train (and --val)");
  }
  for (const std::string& place : {spec.source, spec.train, spec.val}) {
    for (const char* suffix : {".zip", ".rar", ".7z"}) {
      if (!lower(place).ends_with(suffix)) continue;
      fail(Exit::usage, "'{}' is no tar archive, and others can't be read; unpack it and give the folder", place);
    }
  }
  std::vector<SplitSource> sources;
  if (!spec.source.empty()) {
    if (!spec.val.empty()) fail(Exit::usage, "--val goes with --train; --source finds both splits itself");
    sources = split_source(spec);
  } else {
    sources.push_back(split_at_location(Split::train, spec.train, spec.train_labels, *spec.kind));
    if (!spec.val.empty()) sources.push_back(split_at_location(Split::val, spec.val, spec.val_labels, *spec.kind));
  }
  for (auto& source : sources) {
    if (source.labels.empty()) look_into_archives(spec, source);
    if (source.split == Split::val) look_for_labels(spec, source);
  }
  if (spec.train_ratio < 1 && sources.size() > 1) {
    fail(Exit::usage, "--train-ratio cuts one set into two, and there is a val split already; leave one out");
  }
  return sources;
}

}  // namespace convoy::preparation
