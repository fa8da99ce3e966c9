// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/sources.hpp"

#include <algorithm>
#include <array>

#include "core/errors.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/images/fields.hpp"

namespace convoy {
namespace {

constexpr const char *official_train = "ILSVRC2012_img_train.tar", *official_val = "ILSVRC2012_img_val.tar";
/// Names under which the labels of the official validation images are found.
constexpr std::array usual_val_labels{"imagenet_2012_validation_synset_labels.txt", "LOC_val_solution.csv", "val.txt",
                                      "val_labels.txt", "valprep.sh"};
constexpr std::array usual_val_folders{"val", "validation", "valid"};

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
  if (!names_an_object(location, kind)) return {pool, location, {}, labels};
  PoolSource source{pool, "", {}, labels};
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

/// Both splits below one place, as they come from image-net.org and from Kaggle, or as train and val folders.
std::vector<PoolSource> split_source(const ImagesSpec& spec) {
  const std::string& at = spec.source;
  if (names_an_object(at, spec.kind)) {
    return {pool_at(Pool::train, at, spec.train_labels, spec.kind)};
  }
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
  if (!has_folder(folders, "train")) return {{Pool::train, inner, {}, spec.train_labels}};
  sources.push_back({Pool::train, join_names(inner, "train"), {}, spec.train_labels});
  for (const char* name : usual_val_folders) {
    if (sources.size() == 1 && has_folder(folders, name)) {
      sources.push_back({Pool::val, join_names(inner, name), {}, val_labels});
    }
  }
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

std::vector<PoolSource> find_sources(const ImagesSpec& spec) {
  if (spec.kind == ImagesKind::list) {
    std::vector<PoolSource> lists{{Pool::train, spec.root, {}, spec.train}};
    if (!spec.val.empty()) lists.push_back({Pool::val, spec.root, {}, spec.val});
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
    fields.put(static_cast<Index>(s.pool)).put(s.folder).put(s.labels).put(static_cast<Index>(s.names.size()));
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

}  // namespace convoy
