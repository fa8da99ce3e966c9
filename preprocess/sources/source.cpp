// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/places.hpp"

namespace convoy::preparation {

const Source& cifar10_source();
const Source& cifar100_source();
const Source& mnist_source();
const Source& synthetic_source();
const Source& imagenet_source();
const Source& folder_source();
const Source& list_source();
const Source& webdataset_source();
const Source& record_source();

const std::vector<const Source*>& all_sources() {
  static const std::vector<const Source*> all{
      &cifar10_source(), &cifar100_source(), &mnist_source(),      &synthetic_source(), &imagenet_source(),
      &folder_source(),  &list_source(),     &webdataset_source(), &record_source(),
  };
  return all;
}

const Source* find_source(const std::string& name) {
  const auto& all = all_sources();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Source* source) { return name == source->name(); });
  return found == all.end() ? nullptr : *found;
}

bool Source::names_container(const std::string& location) const {
  return location.find('{') != std::string::npos || is_tar_name(location);
}

std::vector<SplitSource> Source::find(const PrepareSpec& spec) const { return find_places(spec); }

std::vector<Container> list_objects(const PrepareSpec& spec, OpenSplit& split, const char* expected,
                                    bool (*is_container)(const std::string& name)) {
  std::vector<Container> found;
  for (const auto& name : split.source.names) found.push_back({0, name});
  if (!found.empty()) return found;
  for (const auto& object : split.store->list("").objects) {
    if (object.name.starts_with(spec.key_prefix) && is_container(object.name)) found.push_back({0, object.name});
  }
  if (found.empty()) fail_without_containers(spec, split, expected);
  return found;
}

void fail_without_containers(const PrepareSpec& spec, OpenSplit& split, const char* expected) {
  fail(Exit::data, "'{}' has no {}{}; check the source", split.store->address(""), expected,
       spec.key_prefix.empty() ? "" : fmt::format(" that begin with '{}'", spec.key_prefix));
}

void SourceTrace::add(const ObjectInfo& object) {
  names = hash_text(object.name, names + 1);
  if (object.bytes >= 0) sizes = hash_text(std::to_string(object.bytes), sizes + 1);
  if (!object.version.empty()) times = hash_text(object.version, times + 1);
  if (object.bytes < 0 && object.version.empty()) ++unsized;
}

void SourceTrace::add_contents(const std::string& digest) { sizes = hash_text(digest, sizes + 1); }

void SourceTrace::append(const SourceTrace& next) {
  names = mix_bits(names + 1) ^ next.names;
  sizes = mix_bits(sizes + 1) ^ next.sizes;
  times = mix_bits(times + 1) ^ next.times;
  unsized += next.unsized;
}

void ShardList::add_slices(Shard shard, Index entries, Index per_shard) {
  for (Index begin = 0; begin < entries; begin += per_shard) {
    shard.begin = begin;
    shard.end = std::min(begin + per_shard, entries);
    shard.weight = (shard.end - shard.begin) * shard.position_weight;
    add(shard);
  }
}

void ShardList::add_object(OpenSplit& split, Shard shard) {
  shard.weight = std::max<Index>(note_object(split, shard.object).bytes, 1);
  add(shard);
}

void ShardList::note(const std::string& what) { digest_ = fmt::format("{:016x}", hash_text(what + "\n" + digest_)); }

ObjectInfo ShardList::note_object(OpenSplit& split, const std::string& name) {
  ObjectInfo object = split.store->look_up(name);
  note(fmt::format("{} {} {}", object.name, object.bytes, object.version));
  trace(object);
  ++objects_;
  return object;
}

}  // namespace convoy::preparation
