// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/sources.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/images/fields.hpp"
#include "preprocess/images/split_folders.hpp"

namespace convoy::preparation {
namespace {

constexpr const char *official_train = "ILSVRC2012_img_train.tar", *official_val = "ILSVRC2012_img_val.tar";
/// Names under which the labels of the official validation images are found.
constexpr std::array usual_val_labels{"imagenet_2012_validation_synset_labels.txt", "LOC_val_solution.csv", "val.txt",
                                      "val_labels.txt", "valprep.sh"};

bool has_object(const Listing& listing, const std::string& name) {
  return std::any_of(listing.objects.begin(), listing.objects.end(), [&](const auto& o) { return o.name == name; });
}
bool has_folder(const Listing& listing, const std::string& name) {
  return std::find(listing.folders.begin(), listing.folders.end(), name) != listing.folders.end();
}

bool names_an_object(const std::string& location, ImagesKind kind) {
  return location.find('{') != std::string::npos || is_tar_name(location) ||
         (kind == ImagesKind::recordio && location.ends_with(".rec"));
}

PoolSource pool_at(Pool pool, const std::string& location, const std::string& labels, ImagesKind kind) {
  if (!names_an_object(location, kind)) return {pool, location, {}, labels, ""};
  PoolSource source{pool, "", {}, labels, ""};
  for (const auto& one : expand_braces(location)) {
    const auto [folder, name] = split_location(one);
    if (!source.names.empty() && folder != source.folder) {
      fail(Exit::usage, "'{}' names files of several folders; give one folder, or prepare them apart", location);
    }
    source.folder = folder;
    source.names.push_back(name);
  }
  return source;
}

/// Does this folder hold what pools are made of, rather than images alone?
bool holds_classes(const Listing& folder) {
  return !folder.folders.empty() || std::any_of(folder.objects.begin(), folder.objects.end(), [](const auto& o) {
    return is_tar_name(o.name) || o.name.ends_with(".rec");
  });
}

/// Archives of images: the splits that their members' folders name, or all of it for train.
std::vector<PoolSource> split_archives(const ImagesSpec& spec) {
  PoolSource train = pool_at(Pool::train, spec.source, spec.train_labels, spec.kind);
  if (spec.kind != ImagesKind::imagenet && spec.kind != ImagesKind::folder) return {train};
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
  tell_splits(*splits, spec.source);
  train.inside = join_names(*place, splits->train);
  if (splits->val.empty()) return {train};
  PoolSource val = train;
  val.pool = Pool::val;
  val.labels = spec.val_labels;
  val.inside = join_names(*place, splits->val);
  return {train, val};
}

/// `train.tar` and `val.tar` in one folder, by the rule for folders. Nothing where there is no such `train`.
std::vector<PoolSource> split_beside(const ImagesSpec& spec, const Listing& top, const std::string& val_labels) {
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
  tell_splits(*splits, spec.source);
  const auto at = [&](Pool pool, const std::string& name, const std::string& labels) {
    return pool_at(pool, join_names(spec.source, archives[name]), labels, spec.kind);
  };
  std::vector<PoolSource> sources{at(Pool::train, splits->train, spec.train_labels)};
  if (!splits->val.empty()) sources.push_back(at(Pool::val, splits->val, val_labels));
  return sources;
}

/// Both splits below one place, as they come from image-net.org and from Kaggle, or as train and val folders.
std::vector<PoolSource> split_source(const ImagesSpec& spec) {
  const std::string& at = spec.source;
  if (names_an_object(at, spec.kind)) return split_archives(spec);
  const auto list = [&](const std::string& folder) {
    return open_store(parse_location(folder), spec.transfer)->list("");
  };
  const Listing top = list(at);
  std::string val_labels = spec.val_labels;
  for (const char* name : usual_val_labels) {
    if (val_labels.empty() && has_object(top, name)) val_labels = join_names(at, name);
  }
  std::vector<PoolSource> sources;
  if (has_object(top, official_train)) {
    sources.push_back(pool_at(Pool::train, join_names(at, official_train), spec.train_labels, spec.kind));
    if (has_object(top, official_val)) {
      sources.push_back(pool_at(Pool::val, join_names(at, official_val), val_labels, spec.kind));
    }
    return sources;
  }
  const bool kaggle = has_folder(top, "ILSVRC");
  const std::string inner = kaggle ? join_names(at, "ILSVRC/Data/CLS-LOC") : at;
  const Listing folders = kaggle ? list(inner) : top;
  const auto splits = choose_splits(
      {folders.folders.begin(), folders.folders.end()},
      [&](const auto& name) { return holds_classes(list(join_names(inner, name))); }, spec.train_ratio < 1);
  if (!splits) {
    sources = split_beside(spec, top, val_labels);
    return sources.empty() ? std::vector<PoolSource>{{Pool::train, inner, {}, spec.train_labels, ""}} : sources;
  }
  tell_splits(*splits, inner);
  sources.push_back({Pool::train, join_names(inner, splits->train), {}, spec.train_labels, ""});
  if (!splits->val.empty()) sources.push_back({Pool::val, join_names(inner, splits->val), {}, val_labels, ""});
  return sources;
}

}  // namespace

std::pair<std::string, std::string> split_location(const std::string& location) {
  const auto slash = location.rfind('/');
  if (slash == std::string::npos) return {".", location};
  const std::string name = location.substr(slash + 1);
  const bool encoded = parse_location(location).scheme == Scheme::http;  // its address is encoded as the user gave it
  return {slash == 0 ? "/" : location.substr(0, slash), encoded ? percent_decode(name) : name};
}

std::optional<std::string> name_inside(const std::string& member, const std::string& inside) {
  if (inside.empty()) return member;
  if (!member.starts_with(inside) || member.size() <= inside.size() || member[inside.size()] != '/')
    return std::nullopt;
  return member.substr(inside.size() + 1);
}

std::vector<PoolSource> find_sources(const ImagesSpec& spec) {
  if (spec.kind == ImagesKind::list) {
    std::vector<PoolSource> lists{{Pool::train, spec.root, {}, spec.train, ""}};
    if (!spec.val.empty()) lists.push_back({Pool::val, spec.root, {}, spec.val, ""});
    return lists;
  }
  if (spec.source.empty() == spec.train.empty()) {
    fail(Exit::usage, "give either --source (one place) or --train (and --val)");
  }
  std::vector<PoolSource> sources;
  if (!spec.source.empty()) {
    if (!spec.val.empty()) fail(Exit::usage, "--val goes with --train; --source finds both splits itself");
    sources = split_source(spec);
  } else {
    sources.push_back(pool_at(Pool::train, spec.train, spec.train_labels, spec.kind));
    if (!spec.val.empty()) sources.push_back(pool_at(Pool::val, spec.val, spec.val_labels, spec.kind));
  }
  if (spec.train_ratio < 1 && sources.size() > 1) {
    fail(Exit::usage, "--train-ratio cuts one set into two, and there is a val split already; leave one out");
  }
  return sources;
}

std::string to_text(const std::vector<PoolSource>& sources) {
  FieldWriter fields;
  for (const PoolSource& s : sources) {
    fields.put(static_cast<Index>(s.pool)).put(s.folder).put(s.labels).put(s.inside);
    fields.put(static_cast<Index>(s.names.size()));
    for (const auto& name : s.names) fields.put(name);
  }
  return fields.text();
}

std::vector<PoolSource> sources_from_text(const std::string& text) {
  std::vector<PoolSource> sources;
  for (FieldReader fields(text); !fields.done();) {
    PoolSource s;
    s.pool = static_cast<Pool>(fields.number());
    s.folder = fields.text();
    s.labels = fields.text();
    s.inside = fields.text();
    s.names.resize(static_cast<std::size_t>(fields.number()));
    for (auto& name : s.names) name = fields.text();
    sources.push_back(std::move(s));
  }
  return sources;
}

std::string read_location(const std::string& location, const TransferSpec& spec) {
  const auto [folder, name] = split_location(location);
  return read_object(*open_store(parse_location(folder), spec), name);
}

}  // namespace convoy::preparation
