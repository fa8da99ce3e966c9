// SPDX-License-Identifier: Apache-2.0
// Image files in class folders or class archives: the folder or the archive names the class, or a label file does.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "preprocess/sources/archive_reader.hpp"
#include "preprocess/sources/archive_tree.hpp"
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
  empty_class,    ///< a folder in an archive
};
enum ShardKind : Index { files, members };
constexpr const char* loose = "images beside the class folders";

/// Returns the class that the folder at a depth on the way to a member names; nothing where there is no such folder.
std::optional<std::string> class_of_member(const std::string& name, Index depth) {
  std::size_t begin = 0, end = name.find('/');
  for (; depth > 0 && end != std::string::npos; --depth) {
    begin = end + 1;
    end = name.find('/', begin);
  }
  if (end == std::string::npos) return std::nullopt;
  return name.substr(begin, end - begin);
}

/// Reads images in an archive.
class MemberReader final : public SampleReader {
 public:
  MemberReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position)
      : spec_(spec), split_(split), shard_(shard), from_(position), tar_(open_archive(split, shard, position)) {}

  bool next(RawSample& sample) override {
    TarMember member;
    while (tar_.next(member, Members::and_links)) {
      if (!shard_.nested && shard_.end >= 0 && member.begin >= shard_.end) return false;
      if (member.begin < from_ || !is_image_name(member.name, spec_.extensions)) continue;
      const auto name = name_inside(member.name, shard_.nested ? "" : split_.source.inside);
      if (!name) continue;
      std::string class_name = shard_.class_name;
      if (shard_.class_depth >= 0) {
        const auto folder = class_of_member(*name, shard_.class_depth);
        if (!folder || !folder->starts_with(spec_.key_prefix)) continue;  // counted
        class_name = named_class(*folder);
      }
      sample.name = join_names(shard_.prefix, *name);
      read_member(split_, shard_, tar_, member, most_file_bytes(spec_.recipe.limits), sample);
      sample.next = tar_.next_begin();
      if (split_.labels) {
        sample.class_text = split_.labels->find(sample.name);
      } else if (sample.class_text.reset(); !class_name.empty()) {
        sample.class_text = class_name;
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
};

[[noreturn]] void fail_without_classes(const std::string& where) {
  fail(
      Exit::data,
      "'{}' holds images without class folders, and nothing says their classes; give --val-labels or --label-file, or use 'convoy-preprocess list'",
      where);
}

bool holds_archives(const Listing& listing) {
  return std::any_of(listing.objects.begin(), listing.objects.end(), [](const auto& o) { return is_tar_name(o.name); });
}

bool is_wanted_class(const PrepareSpec& spec, const ClassList& classes, const std::string& name) {
  if (is_hidden(name) || !name.starts_with(spec.key_prefix)) return false;
  return !classes.closed || classes.number_of(named_class(name)) >= 0;
}

void warn_of_empty_class(const std::string& address) {
  log::warn("'{}' holds no images: the class keeps its number and has no samples", address);
}

/// A shard without samples tells of its class.
void add_empty_class(const OpenSplit& split, Shard shard, ShardList& to) {
  shard.class_name = split.labels ? "" : named_class(base_name(shard.object));
  shard.end = shard.weight = 0;
  to.add(shard);
}

void cut_folder(const PrepareSpec& spec, OpenSplit& split, Shard shard, ShardList& to) {
  LeftOut left_out;
  const auto objects = list_file_objects(*split.store, shard.object, spec.extensions, &left_out);
  to.leave_out(counts_of(left_out));
  to.trace({shard.object, 0, ""});
  std::vector<std::string> found;
  found.reserve(objects.size());
  for (const auto& object : objects) {
    to.note(object.name);
    to.trace(object);
    found.push_back(object.name);
  }
  shard.listing = digest_of(found);
  to.count_objects(static_cast<Index>(found.size()));
  shard.kind = files;
  shard.position_weight = usual_file_bytes;
  shard.class_name = split.labels ? "" : named_class(base_name(shard.object));
  shard.prefix = shard.object;
  if (found.empty()) {
    if (!split.labels) warn_of_empty_class(split.store->address(shard.object));
    return add_empty_class(split, shard, to);
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
  do {
    const auto name = name_inside(member.name, split.source.inside);
    if (!is_tar_name(member.name) || !name) continue;
    if (compression_of(member.name) != Compression::none) {
      fail(Exit::data, "'{}' holds a compressed archive '{}'; unpack it first", address, member.name);
    }
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
}

/// Cuts a local archive, whose headers are soon found, so that several ranks can read it. `tar` is at its first member.
void cut_local_archive(const OpenSplit& split, Shard shard, TarReader& tar, TarMember& member, Index bytes,
                       ShardList& to) {
  const std::string& inside = split.source.inside;
  Index end = -1;  // of what belongs to this split; -1: the archive's
  shard.begin = inside.empty() ? 0 : member.begin;
  do {
    if (!name_inside(member.name, inside)) continue;
    if (!inside.empty()) end = tar.next_begin();
    if (member.begin - shard.begin < bytes_per_shard) continue;
    shard.end = member.begin;
    shard.weight = shard.end - shard.begin;
    to.add(shard);
    shard.begin = member.begin;
  } while (tar.next(member, Members::and_links));
  shard.end = end;
  shard.weight = std::max<Index>((end < 0 ? bytes : end) - shard.begin, 1);
  to.add(shard);
}

void cut_archive(const PrepareSpec& spec, OpenSplit& split, Shard shard, ShardList& to) {
  const Compression compression = compression_of(shard.object);
  const std::string& inside = split.source.inside;
  if (!inside.empty()) {
    to.note(inside);
    to.trace({inside, 0, ""});
  }
  const ObjectInfo object = to.note_object(split, shard.object);
  if (!inside.empty() && split.source.split == Split::val) to.count_objects(-1);  // counted for train
  TarReader tar(split.store->open(shard.object), split.store->address(shard.object), compression);
  TarMember member;
  std::optional<std::string> name;
  while (!name || !(is_image_name(member.name, spec.extensions) || (is_tar_name(member.name) && member.link.empty()))) {
    if (!tar.next(member, Members::and_links)) return;
    name = name_inside(member.name, inside);
  }
  if (is_tar_name(member.name)) return cut_inner_archives(spec, split, shard, tar, member, to);
  if (compression == Compression::none && parse_location(split.source.folder).scheme == Scheme::file) {
    return cut_local_archive(split, shard, tar, member, object.bytes, to);
  }
  shard.weight = std::max<Index>(object.bytes, 1);
  to.add(shard);
}

Index count_images(const PrepareSpec& spec, const Listing& listing) {
  return std::count_if(listing.objects.begin(), listing.objects.end(),
                       [&](const auto& o) { return is_image_name(o.name, spec.extensions); });
}

/// Where the classes of a split are: in folders or archives of one level, beside which other images may lie.
struct Classes {
  std::string level;
  std::vector<std::string> folders, archives;
  Index loose_images = 0;
};

/// Finds class folders or class archives: those of a split, or of the only folder in it and so on. `address` names a
/// folder for people.
Classes find_classes(const PrepareSpec& spec, const ClassList& classes, bool labelled, const Lister& list,
                     const std::function<std::string(const std::string&)>& address) {
  Classes found;
  for (Listing at = list("");;) {
    found.folders.clear();
    std::vector<std::string> shown;
    for (const auto& name : at.folders) {
      if (!is_hidden(name)) shown.push_back(name);
      if (is_wanted_class(spec, classes, name)) found.folders.push_back(name);
    }
    for (const auto& object : at.objects) {
      // With a label file the archives' names mean no classes.
      const bool wanted =
          labelled ? object.name.starts_with(spec.key_prefix) : is_wanted_class(spec, classes, tar_stem(object.name));
      if (is_tar_name(object.name) && wanted) found.archives.push_back(object.name);
    }
    found.loose_images = count_images(spec, at);
    // With labels folders mean nothing, and with --classes or --key-prefix one class may be all that is wanted.
    const bool chosen = (classes.closed || !spec.key_prefix.empty()) && !found.folders.empty();
    if (labelled || chosen || found.loose_images > 0 || !found.archives.empty() || shown.empty()) break;
    // `images` beside `annotations` holds the classes, if it holds folders.
    const auto images = std::find_if(shown.begin(), shown.end(), is_image_folder);
    if (shown.size() > 1 && images == shown.end()) break;
    const std::string next = join_names(found.level, images != shown.end() ? *images : shown.front());
    Listing below = list(next);
    const bool is_class =
        count_images(spec, below) > 0 ||
        (!holds_archives(below) && std::all_of(below.folders.begin(), below.folders.end(),
                                               [](const auto& f) { return is_hidden(f) || is_image_folder(f); }));
    if (is_class) break;
    if (shown.size() > 1) {
      log::warn("'{}' is not read, but for the classes in its '{}'", address(found.level), *images);
    }
    found.level = next;
    at = std::move(below);
    log::info("the classes are taken from '{}'", address(found.level));
  }
  if (labelled) return found;
  if (found.folders.size() == 1 && is_image_folder(found.folders.front())) {
    fail_without_classes(address(join_names(found.level, found.folders.front())));
  }
  if (found.folders.empty() && found.archives.empty() && found.loose_images > 0)
    fail_without_classes(address(found.level));
  require_no_splits(found.folders, address(found.level),
                    [&](const std::string& name) { return !list(join_names(found.level, name)).folders.empty(); });
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
    const SplitSource& source = split.source;
    const bool labelled = split.labels.has_value();
    std::vector<Container> found;
    if (!source.names.empty() && !source.tree) {  // with labels
      for (const auto& name : source.names) found.push_back({archive, name});
      return found;
    }
    const auto list = [&](const std::string& folder) {
      if (source.tree) return source.tree->list(join_names(source.inside, folder));
      Listing listing = split.store->list(folder);
      std::erase_if(listing.folders, [&](const auto& name) {  // what an earlier run made there is no class
        std::error_code reason;
        return std::filesystem::equivalent(split.store->address(join_names(folder, name)), spec.out, reason);
      });
      return listing;
    };
    const auto address = [&](const std::string& folder) {
      if (!source.tree || (folder.empty() && source.inside.empty())) {
        return split.store->address(source.tree ? source.names.front() : folder);
      }
      return fmt::format("{}:{}", split.store->address(source.names.front()), join_names(source.inside, folder));
    };
    if (source.tree) return list_in_archives(spec, source, classes, labelled, list, address);
    const Classes in = find_classes(spec, classes, labelled, list, address);
    if (labelled && in.archives.empty() && in.loose_images > 0) return {{flat_folder, ""}};  // at any depth
    for (const auto& name : in.archives) found.push_back({class_archive, join_names(in.level, name)});
    if (!found.empty()) return found;
    for (const auto& name : in.folders) found.push_back({class_folder, join_names(in.level, name)});
    if (found.empty() && in.loose_images == 0)
      fail_without_containers(spec, split, "class folders or class archives (.tar)");
    if (found.empty()) return {{flat_folder, ""}};
    if (in.loose_images > 0) found.front().left_out.push_back({loose, in.loose_images});
    return found;
  }

  void cut(const PrepareSpec& spec, OpenSplit& split, const Container& container, ShardList& to) const override {
    Shard shard;
    shard.kind = members;
    shard.split = split.source.split;
    shard.object = container.name;
    shard.class_depth = container.class_depth;
    to.leave_out(container.left_out);
    if (container.kind == class_folder || container.kind == flat_folder) return cut_folder(spec, split, shard, to);
    if (container.kind == archive) return cut_archive(spec, split, shard, to);
    if (container.kind == empty_class) return add_empty_class(split, shard, to);
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
  static std::vector<Container> list_in_archives(const PrepareSpec& spec, const SplitSource& source,
                                                 const ClassList& classes, bool labelled, const Lister& list,
                                                 const std::function<std::string(const std::string&)>& address) {
    const ArchiveTree& tree = *source.tree;
    Container container{.kind = archive};
    std::vector<Container> found;
    if (source.inside.empty() && !labelled) require_one_split(list, address(""));
    if (!labelled && !tree.holds_archives(source.inside)) {
      const Classes in = find_classes(spec, classes, labelled, list, address);
      container.class_depth = in.level.empty() ? 0 : std::count(in.level.begin(), in.level.end(), '/') + 1;
      LeftOut left_out;
      if (in.loose_images > 0) left_out[loose] = in.loose_images;
      if (in.folders.empty()) fail(Exit::data, "'{}' has no class folders; check the source", address(""));
      for (const auto& name : in.folders) {
        const std::string folder = join_names(join_names(source.inside, in.level), name);
        for (const auto& [what, files] : tree.left_out(folder)) left_out[what] += files;
        if (tree.holds_images(folder)) continue;
        warn_of_empty_class(address(join_names(in.level, name)));
        found.push_back({empty_class, join_names(in.level, name)});
      }
      container.left_out = counts_of(left_out);
    }
    for (const auto& name : source.names) {
      container.name = name;
      found.push_back(container);
      container.left_out.clear();
    }
    return found;
  }

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
