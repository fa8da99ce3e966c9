// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/file_reader.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy::preparation {
namespace {

void list_below(Store& store, const std::string& folder, const std::string& inner,
                const std::vector<std::string>& extensions, std::vector<std::string>& files) {
  const Listing listing = store.list(join_names(folder, inner));
  for (const auto& object : listing.objects) {
    if (is_image_name(object.name, extensions)) files.push_back(join_names(inner, object.name));
  }
  for (const auto& next : listing.folders) {
    if (!next.starts_with('.')) list_below(store, folder, join_names(inner, next), extensions, files);
  }
}

}  // namespace

bool is_image_name(const std::string& name, const std::vector<std::string>& extensions) {
  if (base_name(name).starts_with('.')) return false;
  const std::string folded = lower(name);
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& e) { return folded.ends_with(e); });
}

std::vector<std::string> list_files(Store& store, const std::string& folder,
                                    const std::vector<std::string>& extensions) {
  std::vector<std::string> files;
  list_below(store, folder, "", extensions, files);
  std::sort(files.begin(), files.end());
  return files;
}

FileReader::FileReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position, Names names)
    : split_(split),
      shard_(shard),
      kind_(names),
      most_bytes_(most_file_bytes(spec.recipe.limits)),
      at_(std::max(position, shard.begin)) {
  if (kind_ == Names::folder && split.listed != shard.object) {
    split.listed.reset();
    split.files = list_files(*split.store, shard.object, spec.extensions);
    split.listed = shard.object;
  }
  if (static_cast<Index>(this->names().size()) < shard.end) {
    fail(Exit::data, "'{}' has {} images, a moment ago it had {} or more; start again when nobody changes it",
         split.store->address(shard.object), this->names().size(), shard.end);
  }
  ahead_ = at_;
}

const std::vector<std::string>& FileReader::names() const {
  return kind_ == Names::list ? split_.labels->paths() : split_.files;
}

bool FileReader::next(RawSample& sample) {
  if (at_ >= shard_.end) return false;
  for (; ahead_ < std::min(shard_.end, at_ + static_cast<Index>(split_.store->streams_ahead())); ++ahead_) {
    streams_.push_back(split_.store->open(join_names(shard_.object, names()[static_cast<std::size_t>(ahead_)])));
  }
  const auto entry = static_cast<std::size_t>(at_);
  sample.name = join_names(shard_.prefix, names()[entry]);
  sample.read_file(*streams_.front(), most_bytes_);
  streams_.pop_front();
  if (kind_ == Names::list) {
    sample.class_text = split_.labels->class_of(entry);
  } else if (split_.labels) {
    sample.class_text = split_.labels->find(sample.name);
  } else {
    sample.class_text = shard_.class_name;
  }
  sample.next = ++at_;
  return true;
}

}  // namespace convoy::preparation
