// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/archive_tree.hpp"

#include "core/stop.hpp"
#include "preprocess/sources/split_folders.hpp"

namespace convoy::preparation {
ArchiveTree::Folder* ArchiveTree::open(const std::string& folder) {
  if (const auto found = folders_.find(folder); found != folders_.end()) return &found->second;
  Folder* parent = open(folder_name(folder));
  if (parent == nullptr) return nullptr;
  const std::string name = base_name(folder);
  const bool fresh = parent->folders.insert(name).second;
  if (!is_hidden(name)) return &folders_[folder];
  if (fresh) count_left_out(name, parent->left_out);
  return nullptr;
}

void ArchiveTree::read(Store& store, const std::string& object, const std::vector<std::string>& extensions) {
  constexpr Index most_table_bytes = Index{64} << 20;
  TarReader tar(store.open(object), store.address(object), compression_of(object));
  std::vector<std::uint8_t> bytes;
  for (TarMember member; tar.next(member, Members::and_folders);) {
    leave_if_stopped("looking into archives");
    Folder* folder = open(member.folder ? member.name : folder_name(member.name));
    if (folder == nullptr || member.folder) continue;
    const std::string name = base_name(member.name);
    if (is_image_name(name, extensions)) {
      folder->image = name;
      ++folder->images;
    } else if (!member.link.empty()) {
      ++folder->left_out["links to other files or to folders"];
    } else if (is_tar_name(name)) {
      folder->archives.push_back(name);
    } else if (name == val_annotations && tar.read(bytes, most_table_bytes)) {
      folder->tables.push_back(name);
      texts_[member.name].assign(bytes.begin(), bytes.end());
    } else {
      count_left_out(name, folder->left_out);
    }
  }
}

Listing ArchiveTree::list(const std::string& folder) const {
  Listing listing;
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return listing;
  const Folder& f = found->second;
  listing.folders.assign(f.folders.begin(), f.folders.end());
  listing.objects.assign(static_cast<std::size_t>(f.images), {f.image, -1, ""});
  for (const auto* names : {&f.archives, &f.tables}) {
    for (const auto& name : *names) listing.objects.push_back({name, -1, ""});
  }
  return listing;
}

template <class Body>
void ArchiveTree::for_each_below(const std::string& folder, const Body& body) const {
  const std::string inside = folder.empty() ? "" : folder + "/";
  if (const auto found = folders_.find(folder); found != folders_.end() && !folder.empty()) body(found->second);
  for (auto at = folders_.lower_bound(inside); at != folders_.end() && at->first.starts_with(inside); ++at) {
    body(at->second);
  }
}

bool ArchiveTree::holds_images(const std::string& folder) const {
  bool any = false;
  for_each_below(folder, [&](const Folder& f) { any = any || f.images > 0; });
  return any;
}

bool ArchiveTree::holds_archives(const std::string& folder) const {
  bool any = false;
  for_each_below(folder, [&](const Folder& f) { any = any || !f.archives.empty(); });
  return any;
}

LeftOut ArchiveTree::left_out(const std::string& folder) const {
  LeftOut sum;
  for_each_below(folder, [&](const Folder& f) {
    for (const auto& [what, files] : f.left_out) sum[what] += files;
  });
  return sum;
}

std::string ArchiveTree::label_table(const std::string& member) const {
  const auto found = texts_.find(member);
  return found == texts_.end() ? "" : found->second;
}

}  // namespace convoy::preparation
