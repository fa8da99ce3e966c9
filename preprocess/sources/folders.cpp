// SPDX-License-Identifier: Apache-2.0
// Image files in class folders or class archives: the folder or the archive names the class, or a label file does.
#include <algorithm>

#include <fmt/ranges.h>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "preprocess/sources/archive_reader.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/sources/split_folders.hpp"

namespace convoy::preparation {
namespace {

constexpr Index bytes_per_shard = Index{256} << 20;

enum ContainerKind : Index {
  class_folder,
  flat_folder,    ///< images without class folders
  class_archive,  ///< the images of one class
  archive,        ///< archives of classes, or images in class folders
};
enum ShardKind : Index { files, members };

/// Returns the folders on the way to a file, without those at their end that only say that images lie in them.
std::vector<std::string> class_folders(const std::string& name) {
  std::vector<std::string> folders;
  for (std::string folder = folder_name(name); !folder.empty(); folder = folder_name(folder)) {
    if (!folders.empty() || !is_image_folder(base_name(folder))) folders.insert(folders.begin(), base_name(folder));
  }
  return folders;
}

/// Returns the class that the folder at a depth names; -1: the last folder. Nothing for an image without class folders.
std::optional<ClassText> class_of_member(const std::string& name, Index depth) {
  const auto folders = class_folders(name);
  if (folders.empty() || depth >= static_cast<Index>(folders.size())) return std::nullopt;
  return named_class(depth < 0 ? folders.back() : folders[static_cast<std::size_t>(depth)]);
}

/// Finds the depth at which folders name classes: below those that all images share.
class ClassDepth {
 public:
  void note(const std::string& name) {
    const auto folders = class_folders(name);
    if (fresh_) shared_ = folders;
    fresh_ = false;
    std::size_t same = 0;
    while (same < std::min(shared_.size(), folders.size()) && shared_[same] == folders[same]) ++same;
    shared_.resize(same);
    shallowest_ = std::min(shallowest_, folders.size());
  }
  Index depth() const {
    return static_cast<Index>(std::min(shared_.size(), std::max<std::size_t>(shallowest_, 1) - 1));
  }

 private:
  bool fresh_ = true;
  std::vector<std::string> shared_;
  std::size_t shallowest_ = ~std::size_t{0};
};

/// Reads images in an archive.
class MemberReader final : public SampleReader {
 public:
  MemberReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position)
      : spec_(spec), split_(split), shard_(shard), from_(position), tar_(open_archive(split, shard, position)) {}

  bool next(RawSample& sample) override {
    TarMember member;
    while (tar_.next(member, Links::show)) {
      if (!shard_.nested && shard_.end >= 0 && member.begin >= shard_.end) return false;
      if (member.begin < from_ || !is_image_name(member.name, spec_.extensions)) continue;
      const std::string& inside = split_.source.inside;
      const auto name = name_inside(member.name, shard_.nested ? "" : inside);
      if (!name) continue;
      if (inside.empty() && !shard_.nested && shard_.class_name.empty() && !split_.labels) {
        splits_.note(member.name);
        splits_.require_one(split_.store->address(shard_.object));
      }
      sample.name = join_names(shard_.prefix, *name);
      read_member(split_, shard_, tar_, member, most_file_bytes(spec_.recipe.limits), sample);
      sample.next = tar_.next_begin();
      if (split_.labels) {
        sample.class_text = split_.labels->find(sample.name);
      } else if (!shard_.class_name.empty()) {
        sample.class_text = shard_.class_name;
      } else {
        sample.class_text = class_of_member(*name, shard_.class_depth);
      }
      return true;
    }
    return false;
  }

 private:
  const PrepareSpec& spec_;
  OpenSplit& split_;
  const Shard& shard_;
  Index from_;
  TarReader tar_;
  ArchiveSplits splits_;  ///< met so far
};

bool is_wanted_class(const PrepareSpec& spec, const ClassList& classes, const std::string& name) {
  if (is_hidden(name) || !name.starts_with(spec.key_prefix)) return false;
  return !classes.closed || classes.number_of(named_class(name)) >= 0;
}

void cut_folder(const PrepareSpec& spec, OpenSplit& split, Shard shard, ShardList& to) {
  LeftOut left_out;
  const auto found = list_files(*split.store, shard.object, spec.extensions, &left_out);
  to.leave_out(left_out);
  for (const auto& name : found) to.note(name);
  if (found.empty()) {
    log::warn("'{}' holds no images ({}): the class keeps its number and has no samples",
              split.store->address(shard.object), fmt::join(spec.extensions, ", "));
  }
  to.count_objects(static_cast<Index>(found.size()));
  shard.kind = files;
  shard.position_weight = usual_file_bytes;
  shard.class_name = split.labels ? "" : named_class(base_name(shard.object));
  shard.prefix = shard.object;
  if (found.empty()) {
    shard.end = shard.weight = 0;
    return to.add(shard);  // for its class
  }
  to.add_slices(shard, static_cast<Index>(found.size()), files_per_shard);
}

/// Makes a shard of each archive in an archive, from the member at which `tar` is on.
void cut_inner_archives(const PrepareSpec& spec, const OpenSplit& split, Shard shard, TarReader& tar, TarMember& member,
                        ShardList& to) {
  const std::string address = split.store->address(shard.object);
  if (compression_of(shard.object) != Compression::none) {
    fail(Exit::data, "'{}' is a compressed archive of archives, which can't be read in parts; unpack its outer layer",
         address);
  }
  ArchiveSplits splits;
  do {
    const auto name = name_inside(member.name, split.source.inside);
    if (!is_tar_name(member.name) || !name) continue;
    if (compression_of(member.name) != Compression::none) {
      fail(Exit::data, "'{}' holds a compressed archive '{}'; unpack it first", address, member.name);
    }
    if (split.source.inside.empty() && !split.labels) splits.note(member.name);
    const std::string stem = tar_stem(*name);
    if (!stem.starts_with(spec.key_prefix)) continue;
    shard.nested = true;
    shard.class_name = split.labels ? "" : named_class(stem);
    shard.prefix = stem;
    shard.begin = tar.data_begin();
    shard.end = shard.begin + member.bytes;
    shard.weight = std::max<Index>(member.bytes, 1);
    to.add(shard);
  } while (tar.next(member));
  splits.require_one(address);
}

/// Cuts a local archive, whose headers are soon found, so that several ranks can read it. `tar` is at its first member.
void cut_local_archive(const PrepareSpec& spec, const OpenSplit& split, Shard shard, TarReader& tar, TarMember& member,
                       Index bytes, ShardList& to) {
  const std::string& inside = split.source.inside;
  ArchiveSplits splits;
  ClassDepth depth;
  LeftOut left_out;
  std::vector<Shard> shards;
  Index end = -1;  // of what belongs to this split; -1: the archive's
  shard.begin = inside.empty() ? 0 : member.begin;
  do {
    const bool image = is_image_name(member.name, spec.extensions);
    if (inside.empty() && !split.labels && image) splits.note(member.name);
    const auto name = name_inside(member.name, inside);
    if (!name) continue;
    if (image) depth.note(*name);
    if (!image && member.link.empty()) count_left_out(member.name, left_out);
    if (!inside.empty()) end = tar.next_begin();
    if (member.begin - shard.begin < bytes_per_shard) continue;
    shard.end = member.begin;
    shard.weight = shard.end - shard.begin;
    shards.push_back(shard);
    shard.begin = member.begin;
  } while (tar.next(member, Links::show));
  splits.require_one(split.store->address(shard.object));
  to.leave_out(left_out);
  shard.end = end;
  shard.weight = std::max<Index>((end < 0 ? bytes : end) - shard.begin, 1);
  shards.push_back(shard);
  for (Shard& each : shards) {
    each.class_depth = inside.empty() ? depth.depth() : 0;
    to.add(each);
  }
}

void cut_archive(const PrepareSpec& spec, OpenSplit& split, Shard shard, ShardList& to) {
  const Compression compression = compression_of(shard.object);
  const std::string& inside = split.source.inside;
  if (!inside.empty()) to.note(inside);
  const ObjectInfo object = to.note_object(split, shard.object);
  if (!inside.empty() && split.source.split == Split::val) to.count_objects(-1);  // counted for train
  const std::string address = split.store->address(shard.object);
  TarReader tar(split.store->open(shard.object), address, compression);
  TarMember member;
  std::optional<std::string> name;
  while (!name || !(is_image_name(member.name, spec.extensions) || (is_tar_name(member.name) && member.link.empty()))) {
    if (!tar.next(member, Links::show)) return;
    name = name_inside(member.name, inside);
  }
  if (is_tar_name(member.name)) return cut_inner_archives(spec, split, shard, tar, member, to);
  if (class_folders(*name).empty() && !split.labels) {
    fail(Exit::data,
         "'{}' holds images without class folders{}, and nothing says their classes; give --val-labels or --label-file",
         address, inside.empty() ? "" : fmt::format(" in '{}'", inside));
  }
  if (compression == Compression::none && parse_location(split.source.folder).scheme == Scheme::file) {
    return cut_local_archive(spec, split, shard, tar, member, object.bytes, to);
  }
  shard.weight = std::max<Index>(object.bytes, 1);
  if (!inside.empty()) shard.class_depth = 0;
  to.add(shard);
}

/// Lists class folders: those of a split, or of the only folder in it and so on, where it has one folder alone.
std::vector<Container> list_class_folders(const PrepareSpec& spec, OpenSplit& split, const ClassList& classes,
                                          Listing at) {
  std::string level;
  const auto wanted = [&] {
    std::vector<std::string> names;
    for (const auto& name : at.folders) {
      if (is_wanted_class(spec, classes, name)) names.push_back(name);
    }
    return names;
  };
  const auto has_images = [&](const Listing& listing) {
    return std::any_of(listing.objects.begin(), listing.objects.end(),
                       [&](const auto& o) { return is_image_name(o.name, spec.extensions); });
  };
  auto names = wanted();
  // With labels folders mean nothing, and with --classes or --key-prefix one class may be all that is wanted.
  while (!split.labels && !classes.closed && spec.key_prefix.empty() && names.size() == 1 && !has_images(at)) {
    const std::string next = join_names(level, names.front());
    Listing below = split.store->list(next);
    const bool is_class =
        has_images(below) || std::all_of(below.folders.begin(), below.folders.end(),
                                         [](const auto& f) { return is_hidden(f) || is_image_folder(f); });
    if (is_class) break;
    level = next;
    at = std::move(below);
    names = wanted();
    log::info("the class folders are taken from '{}'", split.store->address(level));
  }
  if (!split.labels && names.size() == 1 && is_image_folder(names.front())) {
    fail(Exit::data,
         "'{}' holds images without class folders, and nothing says their classes; give --val-labels or --label-file",
         split.store->address(join_names(level, names.front())));
  }
  require_no_splits(names, split.store->address(level), [&](const std::string& name) {
    return !split.store->list(join_names(level, name)).folders.empty();
  });
  std::vector<Container> found;
  found.reserve(names.size());
  for (const auto& name : names) found.push_back({class_folder, join_names(level, name)});
  return found;
}

class FolderSource final : public Source {
 public:
  explicit FolderSource(const char* name) : name_(name) {}
  const char* name() const override { return name_; }
  bool has_class_folders() const override { return true; }
  const char* train_help() const override {
    return "class folders, a folder of class archives, or an archive (of class archives, or with class folders)";
  }

  std::vector<Container> list(const PrepareSpec& spec, OpenSplit& split, const ClassList& classes) const override {
    std::vector<Container> found;
    for (const auto& name : split.source.names) found.push_back({archive, name});
    if (!found.empty()) return found;
    const Listing top = split.store->list("");
    for (const auto& object : top.objects) {
      // With a label file the archives' names mean no classes.
      const bool wanted = split.labels ? object.name.starts_with(spec.key_prefix)
                                       : is_wanted_class(spec, classes, tar_stem(object.name));
      if (is_tar_name(object.name) && wanted) found.push_back({class_archive, object.name});
    }
    if (!found.empty()) return found;
    found = list_class_folders(spec, split, classes, top);
    if (!found.empty()) return found;
    const bool flat = std::any_of(top.objects.begin(), top.objects.end(),
                                  [&](const auto& o) { return is_image_name(o.name, spec.extensions); });
    if (!flat) fail_without_containers(spec, split, "class folders or class archives (.tar)");
    if (!split.labels) {
      fail(
          Exit::data,
          "'{}' holds images without class folders, and nothing says their classes; give --val-labels or --label-file, or use 'convoy-preprocess list'",
          split.store->address(""));
    }
    return {{flat_folder, ""}};
  }

  void cut(const PrepareSpec& spec, OpenSplit& split, const Container& container, ShardList& to) const override {
    Shard shard;
    shard.kind = members;
    shard.split = split.source.split;
    shard.object = container.name;
    if (container.kind == class_folder || container.kind == flat_folder) return cut_folder(spec, split, shard, to);
    if (container.kind == archive) return cut_archive(spec, split, shard, to);
    shard.prefix = tar_stem(container.name);
    shard.class_name = split.labels ? "" : named_class(shard.prefix);
    to.add_object(split, shard);
  }

  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override {
    if (shard.kind == members) return std::make_unique<MemberReader>(spec, split, shard, position);
    return std::make_unique<FileReader>(spec, split, shard, position, FileReader::Names::folder);
  }

 private:
  const char* name_;
};

}  // namespace

const Source& imagenet_source() {
  static const FolderSource source("imagenet");
  return source;
}

const Source& folder_source() {
  static const FolderSource source("folder");
  return source;
}

}  // namespace convoy::preparation
