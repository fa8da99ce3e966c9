// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/scan.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "preprocess/containers/record_reader.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/images/agree.hpp"
#include "preprocess/images/fields.hpp"
#include "preprocess/images/split_folders.hpp"

namespace convoy::preparation {
namespace {

constexpr Index files_per_unit = 2048;
constexpr Index bytes_per_unit = Index{256} << 20;

/// Something that rank 0 found, and that one rank looks into.
struct Item {
  enum class What : std::uint8_t { folder, flat, listed, class_tar, archive, shard, records };
  What what = What::folder;
  std::size_t pool = 0;
  std::string name;
};

std::string items_to_text(const std::vector<Item>& items) {
  FieldWriter fields;
  for (const Item& i : items) fields.put(static_cast<Index>(i.what)).put(static_cast<Index>(i.pool)).put(i.name);
  return fields.text();
}

std::vector<Item> items_from_text(const std::string& text) {
  std::vector<Item> items;
  for (FieldReader fields(text); !fields.done();) {
    const auto what = static_cast<Item::What>(fields.number());
    const auto pool = static_cast<std::size_t>(fields.number());
    items.push_back({what, pool, fields.text()});
  }
  return items;
}

bool wanted_class(const ImagesSpec& spec, const ClassList& classes, const std::string& name) {
  if (name.starts_with('.') || !name.starts_with(spec.key_prefix)) return false;
  return !classes.closed || classes.number_of(name) >= 0;
}

std::vector<Item> find_items(const ImagesSpec& spec, std::size_t number, OpenPool& pool, const ClassList& classes) {
  std::vector<Item> items;
  const auto add = [&](Item::What what, const std::string& name) { items.push_back({what, number, name}); };
  if (spec.kind == ImagesKind::list) {
    add(Item::What::listed, "");
    return items;
  }
  for (const auto& name : pool.source.names) {
    if (spec.kind == ImagesKind::webdataset) {
      add(Item::What::shard, name);
    } else {
      add(spec.kind == ImagesKind::recordio ? Item::What::records : Item::What::archive, name);
    }
  }
  if (!items.empty()) return items;
  const Listing top = pool.store->list("");
  const char* expected = "class folders or class archives (.tar)";
  if (spec.kind == ImagesKind::webdataset || spec.kind == ImagesKind::recordio) {
    const bool shards = spec.kind == ImagesKind::webdataset;
    expected = shards ? "shards (.tar)" : "record files (.rec)";
    for (const auto& object : top.objects) {
      if (!object.name.starts_with(spec.key_prefix)) continue;
      if (shards ? is_tar_name(object.name) : object.name.ends_with(".rec")) {
        add(shards ? Item::What::shard : Item::What::records, object.name);
      }
    }
  } else {
    for (const auto& object : top.objects) {
      // With a label file the archives' names mean no classes.
      const bool wanted =
          pool.labels ? object.name.starts_with(spec.key_prefix) : wanted_class(spec, classes, tar_stem(object.name));
      if (is_tar_name(object.name) && wanted) add(Item::What::class_tar, object.name);
    }
    if (items.empty()) {
      for (const auto& folder : top.folders) {
        if (wanted_class(spec, classes, folder)) add(Item::What::folder, folder);
      }
    }
    const bool flat = std::any_of(top.objects.begin(), top.objects.end(),
                                  [&](const auto& o) { return is_image_name(o.name, spec.extensions); });
    if (items.empty() && flat && !pool.labels) {
      fail(Exit::data,
           "'{}' holds images without class folders, and nothing says their classes; give --val-labels or "
           "--label-file, or use 'convoy-preprocess list'",
           pool.store->address(""));
    }
    if (items.empty() && flat) add(Item::What::flat, "");
  }
  if (items.empty()) {
    fail(Exit::data, "'{}' has no {}{}; check the source", pool.store->address(""), expected,
         spec.key_prefix.empty() ? "" : fmt::format(" that begin with '{}'", spec.key_prefix));
  }
  return items;
}

/// Looks into items and collects units; one a rank.
class Finder {
 public:
  Finder(const ImagesSpec& spec, std::vector<OpenPool>& pools) : spec_(spec), pools_(pools) {}

  void look_into(const Item& item) {
    OpenPool& pool = pools_[item.pool];
    Unit unit;
    unit.pool = pool.source.pool;
    unit.object = item.name;
    switch (item.what) {
      case Item::What::folder:
      case Item::What::flat:
        return add_folder(pool, unit);
      case Item::What::listed:
        unit.kind = UnitKind::listed;
        note(pool.source.labels);
        return add_slices(unit, static_cast<Index>(pool.labels->paths().size()));
      case Item::What::class_tar:
        unit.kind = UnitKind::tar;
        unit.class_name = pool.labels ? "" : tar_stem(item.name);
        unit.prefix = tar_stem(item.name);
        return add_object(pool, unit);
      case Item::What::archive:
        return add_archive(pool, unit);
      case Item::What::shard:
        unit.kind = UnitKind::shard;
        unit.prefix = tar_stem(item.name);
        return add_object(pool, unit);
      case Item::What::records:
        return add_records(pool, unit);
    }
  }

  /// Of the last item: units, digest, objects; then it is empty again.
  std::string take() {
    FieldWriter fields;
    fields.put(to_text(units_)).put(digest_).put(objects_);
    units_.clear();
    digest_.clear();
    objects_ = 0;
    return fields.text();
  }

 private:
  void note(const std::string& what) { digest_ = fmt::format("{:016x}", hash_text(what + "\n" + digest_)); }

  ObjectInfo note_object(OpenPool& pool, const std::string& name) {
    ObjectInfo object = pool.store->look_up(name);
    note(fmt::format("{} {} {}", object.name, object.bytes, object.version));
    ++objects_;
    return object;
  }

  void add_slices(Unit unit, Index files) {
    for (Index begin = 0; begin < files; begin += files_per_unit) {
      unit.begin = begin;
      unit.end = std::min(begin + files_per_unit, files);
      unit.weight = (unit.end - unit.begin) * usual_file_bytes;
      units_.push_back(unit);
    }
  }

  void add_folder(OpenPool& pool, Unit unit) {
    const auto files = list_files(*pool.store, unit.object, spec_.extensions);
    for (const auto& name : files) note(name);
    if (files.empty()) {
      log::warn("'{}' holds no images ({}): it is no class", pool.store->address(unit.object),
                fmt::join(spec_.extensions, ", "));
    }
    objects_ += static_cast<Index>(files.size());
    unit.class_name = pool.labels ? "" : unit.object;
    unit.prefix = unit.object;
    add_slices(unit, static_cast<Index>(files.size()));
  }

  void add_object(OpenPool& pool, Unit unit) {
    unit.weight = std::max<Index>(note_object(pool, unit.object).bytes, 1);
    units_.push_back(unit);
  }

  /// One archive: of archives, or of images.
  void add_archive(OpenPool& pool, Unit unit) {
    unit.kind = UnitKind::tar;
    const Compression compression = compression_of(unit.object);
    const std::string& inside = pool.source.inside;
    if (!inside.empty()) note(inside);
    const ObjectInfo object = note_object(pool, unit.object);
    if (!inside.empty() && pool.source.pool == Pool::val) --objects_;  // counted for train
    const std::string address = pool.store->address(unit.object);
    TarReader tar(pool.store->open(unit.object), address, compression);
    TarMember member;
    std::optional<std::string> name;
    while (!name) {
      if (!tar.next(member)) return;
      name = name_inside(member.name, inside);
    }
    if (is_tar_name(member.name)) {
      if (compression != Compression::none) {
        fail(Exit::data,
             "'{}' is a compressed archive of archives, which can't be entered here and there; unpack its "
             "outer layer",
             address);
      }
      return add_inner_tars(pool, unit, tar, member, address);
    }
    if (folder_name(*name).empty() && !pool.labels) {
      fail(Exit::data,
           "'{}' holds images without class folders{}, and nothing says their classes; give --val-labels or "
           "--label-file",
           address, inside.empty() ? "" : fmt::format(" in '{}'", inside));
    }
    unit.weight = std::max<Index>(object.bytes, 1);
    if (compression != Compression::none || parse_location(pool.source.folder).scheme != Scheme::file) {
      units_.push_back(unit);
      return;
    }
    // Of a local archive the headers are soon found: several ranks can read it.
    ArchiveSplits splits;
    Index end = -1;  // of what belongs to this pool; -1: the archive's
    unit.begin = inside.empty() ? 0 : member.begin;
    do {
      if (inside.empty() && !pool.labels && is_image_name(member.name, spec_.extensions)) splits.note(member.name);
      if (!name_inside(member.name, inside)) continue;
      if (!inside.empty()) end = tar.next_begin();
      if (member.begin - unit.begin < bytes_per_unit) continue;
      unit.end = member.begin;
      unit.weight = unit.end - unit.begin;
      units_.push_back(unit);
      unit.begin = member.begin;
    } while (tar.next(member));
    splits.require_one(address);
    unit.end = end;
    unit.weight = std::max<Index>((end < 0 ? object.bytes : end) - unit.begin, 1);
    units_.push_back(unit);
  }

  void add_inner_tars(const OpenPool& pool, Unit unit, TarReader& tar, TarMember& member, const std::string& address) {
    ArchiveSplits splits;
    do {
      const auto name = name_inside(member.name, pool.source.inside);
      if (!is_tar_name(member.name) || !name) continue;
      if (compression_of(member.name) != Compression::none) {
        fail(Exit::data, "'{}' holds a compressed archive '{}'; unpack it first", address, member.name);
      }
      if (pool.source.inside.empty() && !pool.labels) splits.note(member.name);
      const std::string stem = tar_stem(*name);
      if (!stem.starts_with(spec_.key_prefix)) continue;
      unit.nested = true;
      unit.class_name = pool.labels ? "" : stem;
      unit.prefix = stem;
      unit.begin = tar.data_begin();
      unit.end = unit.begin + member.bytes;
      unit.weight = std::max<Index>(member.bytes, 1);
      units_.push_back(unit);
    } while (tar.next(member));
    splits.require_one(address);
  }

  void add_records(OpenPool& pool, Unit unit) {
    unit.kind = UnitKind::records;
    const ObjectInfo object = note_object(pool, unit.object);
    const std::string stem = unit.object.substr(0, unit.object.rfind('.'));
    unit.prefix = base_name(stem);
    std::vector<Index> cuts;
    if (const std::string index = stem + ".idx"; has_index(pool, index)) {
      cuts = parse_record_index(read_object(*pool.store, index), pool.store->address(index));
    }
    for (const Index cut : cuts) {
      if (cut - unit.begin < bytes_per_unit || cut >= object.bytes) continue;
      unit.end = cut;
      unit.weight = unit.end - unit.begin;
      units_.push_back(unit);
      unit.begin = cut;
    }
    unit.end = -1;
    unit.weight = std::max<Index>(object.bytes - unit.begin, 1);
    units_.push_back(unit);
  }

  /// A folder is listed once: thousands of record files may lie in it.
  bool has_index(OpenPool& pool, const std::string& index) {
    // Of files that were named on a web server nothing tells what lies beside them.
    if (!pool.source.names.empty() && parse_location(pool.source.folder).scheme == Scheme::http) return false;
    const std::string folder = folder_name(index);
    const auto [at, fresh] = beside_.try_emplace({&pool, folder});
    if (fresh) at->second = pool.store->list(folder).objects;
    return std::binary_search(at->second.begin(), at->second.end(), ObjectInfo{base_name(index), 0, ""},
                              [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
  }

  const ImagesSpec& spec_;
  std::vector<OpenPool>& pools_;
  std::map<std::pair<const OpenPool*, std::string>, std::vector<ObjectInfo>> beside_;
  std::vector<Unit> units_;
  std::string digest_;
  Index objects_ = 0;
};

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

Scan scan_pools(Communicator& comm, const ImagesSpec& spec, std::vector<OpenPool>& pools, const ClassList& classes) {
  std::string text;
  agree(comm, "listing the source", [&] {
    if (comm.rank() != 0) return;
    std::vector<Item> items;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const auto found = find_items(spec, i, pools[i], classes);
      items.insert(items.end(), found.begin(), found.end());
    }
    text = items_to_text(items);
  });
  comm.broadcast(text, "list of the source");
  const auto items = items_from_text(text);
  FieldWriter own;
  agree(comm, "looking into the source", [&] {
    Finder finder(spec, pools);
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < items.size();
         i += static_cast<std::size_t>(comm.size())) {
      finder.look_into(items[i]);
      own.put(finder.take());
    }
  });
  const auto texts = comm.all_gather(own.text(), "units of the source");
  std::vector<FieldReader> readers(texts.begin(), texts.end());
  Scan scan;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FieldReader fields(std::string_view{});
    const std::string found = readers[i % readers.size()].text();
    fields = FieldReader(found);
    const auto units = units_from_text(fields.text());
    scan.units.insert(scan.units.end(), units.begin(), units.end());
    scan.digest = fmt::format("{:016x}", hash_text(scan.digest + fields.text()));
    scan.objects += fields.number();
  }
  return scan;
}

}  // namespace convoy::preparation
