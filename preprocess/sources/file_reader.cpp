// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/file_reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"

namespace convoy::preparation {
namespace {

constexpr std::array system_folders{"@eadir",  "$recycle.bin", "__macosx", "lost+found", "system volume information",
                                    "#recycle"};
constexpr std::array image_folders{"images", "image", "imgs", "img", "pictures", "photos", "jpegimages"};
constexpr const char* hidden_files = "in hidden or system folders";

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_hidden_path(const std::string& path) {
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = path.find('/', begin);
    if (is_hidden(path.substr(begin, end - begin))) return true;
  }
  return false;
}

void list_below(Store& store, const std::string& folder, const std::string& inner,
                const std::vector<std::string>& extensions, std::vector<ObjectInfo>& files, LeftOut* left_out) {
  const Listing listing = store.list(join_names(folder, inner));
  for (const auto& object : listing.objects) {
    if (is_image_name(object.name, extensions)) {
      files.push_back({join_names(inner, object.name), object.bytes, object.version});
    } else if (left_out != nullptr) {
      count_left_out(object.name, *left_out);
    }
  }
  for (const auto& next : listing.folders) {
    if (is_hidden(next)) {
      if (left_out != nullptr) ++(*left_out)[hidden_files];
    } else {
      list_below(store, folder, join_names(inner, next), extensions, files, left_out);
    }
  }
}

/// Where a link of a local folder leads, if nothing is there; else empty.
std::string lost_target(const Store& store, const std::string& name) {
  std::error_code reason;
  const std::filesystem::path path = store.address(name);
  const bool lost = std::filesystem::is_symlink(path, reason) && !std::filesystem::exists(path, reason);
  return lost ? std::filesystem::read_symlink(path, reason).string() : std::string();
}

/// Null: a link that leads nowhere.
std::unique_ptr<ByteStream> open_or_lost(Store& store, const std::string& name) {
  try {
    return store.open(name);
  } catch (const Error&) {
    if (lost_target(store, name).empty()) throw;
    return nullptr;
  }
}

}  // namespace

bool is_hidden(const std::string& name) { return name.starts_with('.') || contains(system_folders, lower(name)); }

bool is_image_folder(const std::string& name) { return contains(image_folders, lower(name)); }

bool is_image_name(const std::string& name, const std::vector<std::string>& extensions) {
  const std::string folded = lower(name);
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& e) { return folded.ends_with(e); }) &&
         !is_hidden_path(name);
}

void count_left_out(const std::string& name, LeftOut& to) {
  const std::string base = base_name(name);
  const auto dot = base.rfind('.');
  ++to[is_hidden_path(name)       ? hidden_files
       : dot == std::string::npos ? "without an extension"
                                  : lower(base.substr(dot))];
}

std::vector<std::string> list_files(Store& store, const std::string& folder, const std::vector<std::string>& extensions,
                                    LeftOut* left_out) {
  std::vector<ObjectInfo> objects;
  list_below(store, folder, "", extensions, objects, left_out);
  std::vector<std::string> files;
  files.reserve(objects.size());
  for (auto& object : objects) files.push_back(std::move(object.name));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<ObjectInfo> list_file_objects(Store& store, const std::string& folder,
                                          const std::vector<std::string>& extensions, LeftOut* left_out) {
  std::vector<ObjectInfo> objects;
  list_below(store, folder, "", extensions, objects, left_out);
  std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (auto& object : objects) {
    if (object.bytes >= 0) continue;
    leave_if_stopped("looking at files");
    const ObjectInfo seen = store.glance_at(join_names(folder, object.name));
    object.bytes = seen.bytes;
    object.version = seen.version;
  }
  return objects;
}

std::vector<Count> counts_of(const LeftOut& left_out) {
  std::vector<Count> counts;
  for (const auto& [what, files] : left_out) counts.push_back({what, files});
  return counts;
}

std::string digest_of(const std::vector<std::string>& names) {
  std::uint64_t digest = 0;
  for (const auto& name : names) digest = hash_text(name, digest + 1);
  return fmt::format("{:016x}", digest);
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
    if (!shard.listing.empty() && digest_of(split.files) != shard.listing) {
      fail(Exit::data, "'{}' has other images than a moment ago; start again when nobody changes it",
           split.store->address(shard.object));
    }
  }
  ahead_ = at_;
}

const std::vector<std::string>& FileReader::names() const {
  return kind_ == Names::list ? split_.labels->paths() : split_.files;
}

bool FileReader::next(RawSample& sample) {
  if (at_ >= shard_.end) return false;
  for (; ahead_ < std::min(shard_.end, at_ + static_cast<Index>(split_.store->streams_ahead())); ++ahead_) {
    streams_.push_back(
        open_or_lost(*split_.store, join_names(shard_.object, names()[static_cast<std::size_t>(ahead_)])));
  }
  const auto entry = static_cast<std::size_t>(at_);
  sample.name = join_names(shard_.prefix, names()[entry]);
  if (streams_.front()) {
    sample.read_file(*streams_.front(), most_bytes_);
  } else {
    const std::string link = join_names(shard_.object, names()[entry]);
    sample.leave_unread(Finding::link, "to " + lost_target(*split_.store, link) + ", which is not there");
  }
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
