// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/places.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/sources/split_folders.hpp"

namespace convoy::preparation {
namespace {

constexpr const char *official_train = "ILSVRC2012_img_train.tar", *official_val = "ILSVRC2012_img_val.tar";
/// Names under which the labels of the official validation images are found.
constexpr std::array usual_val_labels{"imagenet_2012_validation_synset_labels.txt", "LOC_val_solution.csv", "val.txt",
                                      "val_labels.txt", "valprep.sh"};

/// The labels of Tiny ImageNet's val split, in its folder.
constexpr const char* split_annotations = "val_annotations.txt";

bool has_object(const Listing& listing, const std::string& name) {
  return std::any_of(listing.objects.begin(), listing.objects.end(), [&](const auto& o) { return o.name == name; });
}
bool has_folder(const Listing& listing, const std::string& name) {
  return std::find(listing.folders.begin(), listing.folders.end(), name) != listing.folders.end();
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

/// Returns whether a folder holds what splits are made of, rather than images alone.
bool holds_classes(const Listing& folder) {
  return !folder.folders.empty() || std::any_of(folder.objects.begin(), folder.objects.end(), [](const auto& o) {
    return is_tar_name(o.name) || o.name.ends_with(".rec");
  });
}

/// Finds the splits that the folders of archives' members name; without such folders all is train.
std::vector<SplitSource> split_archives(const PrepareSpec& spec) {
  SplitSource train = split_at_location(Split::train, spec.source, spec.train_labels, *spec.kind);
  if (!spec.kind->has_class_folders()) return {train};
  const Location location = parse_location(train.folder);
  const auto store = open_store(location, spec.transfer);
  ArchiveSplits found;
  for (const auto& name : train.names) {
    const bool near = location.scheme == Scheme::file && compression_of(name) == Compression::none;
    look_for_splits(*store, name, near, spec.extensions, found);
  }
  const auto place = found.place();
  if (!place) return {train};
  const auto with_classes = found.names(*place, true);
  const auto splits = choose_splits(
      found.names(*place, false), [&](const auto& name) { return with_classes.contains(name); }, spec.train_ratio < 1);
  report_splits(*splits, spec.source);
  train.inside = join_names(*place, splits->train);
  if (splits->val.empty()) return {train};
  SplitSource val = train;
  val.split = Split::val;
  val.labels = spec.val_labels;
  val.inside = join_names(*place, splits->val);
  return {train, val};
}

/// `train.tar` and `val.tar` in one folder, by the rule for folders. Nothing where there is no such `train`.
std::vector<SplitSource> split_beside(const PrepareSpec& spec, const Listing& top, const std::string& val_labels) {
  std::map<std::string, std::string> archives;
  std::set<std::string> names;
  for (const auto& object : top.objects) {
    if (!is_tar_name(object.name)) continue;
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

/// Finds both splits below one place, as they come from image-net.org and from Kaggle, or as train and val folders.
std::vector<SplitSource> split_source(const PrepareSpec& spec) {
  const std::string& at = spec.source;
  if (spec.kind->names_container(at)) return split_archives(spec);
  const auto list = [&](const std::string& folder) {
    return open_store(parse_location(folder), spec.transfer)->list("");
  };
  const Listing top = list(at);
  std::string val_labels = spec.val_labels;
  for (const char* name : usual_val_labels) {
    if (val_labels.empty() && has_object(top, name)) val_labels = join_names(at, name);
  }
  std::vector<SplitSource> sources;
  if (has_object(top, official_train)) {
    sources.push_back(split_at_location(Split::train, join_names(at, official_train), spec.train_labels, *spec.kind));
    if (has_object(top, official_val)) {
      sources.push_back(split_at_location(Split::val, join_names(at, official_val), val_labels, *spec.kind));
    }
    return sources;
  }
  const bool kaggle = has_folder(top, "ILSVRC");
  std::string inner = kaggle ? join_names(at, "ILSVRC/Data/CLS-LOC") : at;
  const auto splits_in = [&](const std::string& place, const Listing& listing) {
    return choose_splits(
        {listing.folders.begin(), listing.folders.end()},
        [&](const auto& name) { return holds_classes(list(join_names(place, name))); }, spec.train_ratio < 1);
  };
  Listing folders = kaggle ? list(inner) : top;
  auto splits = splits_in(inner, folders);
  // The splits may lie in the only folder, as where an archive was unpacked.
  for (std::string below = inner; !splits && folders.folders.size() == 1 && !is_hidden(folders.folders.front());) {
    below = join_names(below, folders.folders.front());
    folders = list(below);
    splits = splits_in(below, folders);
    if (splits) inner = below;
  }
  if (!splits) {
    sources = split_beside(spec, top, val_labels);
    return sources.empty() ? std::vector<SplitSource>{{Split::train, inner, {}, spec.train_labels, ""}} : sources;
  }
  report_splits(*splits, inner);
  sources.push_back({Split::train, join_names(inner, splits->train), {}, spec.train_labels, ""});
  if (!splits->val.empty()) sources.push_back({Split::val, join_names(inner, splits->val), {}, val_labels, ""});
  return sources;
}

/// Finds the label table that lies in a split's folder.
void look_for_labels(const PrepareSpec& spec, SplitSource& source) {
  if (!spec.kind->has_class_folders() || !source.names.empty() || !source.labels.empty()) return;
  if (has_object(open_store(parse_location(source.folder), spec.transfer)->list(""), split_annotations)) {
    source.labels = join_names(source.folder, split_annotations);
    log::info("the labels of {} are taken from '{}'", split_name(source.split), source.labels);
  }
}

}  // namespace

std::vector<SplitSource> find_places(const PrepareSpec& spec) {
  if (spec.source.empty() == spec.train.empty()) {
    fail(Exit::usage, "give either --source (one place) or --train (and --val)");
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
    if (source.split == Split::val) look_for_labels(spec, source);
  }
  if (spec.train_ratio < 1 && sources.size() > 1) {
    fail(Exit::usage, "--train-ratio cuts one set into two, and there is a val split already; leave one out");
  }
  return sources;
}

}  // namespace convoy::preparation
