// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <tuple>

#include "checkpoint/file.hpp"
#include "core/log.hpp"
#include "io/folder.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {
const std::string suffix = ".h5";

/// `epoch-0003`, `step-00001200`.
bool is_numbered(const std::string& name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string::npos || dash + 1 == name.size()) return false;
  const std::string kind = name.substr(0, dash);
  return (kind == "epoch" || kind == "step") && name.find_first_not_of("0123456789", dash + 1) == std::string::npos;
}

/// Names of checkpoints to resume from: `last` and the numbered ones.
std::vector<std::string> checkpoint_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& file : list_folder(folder)) {
    if (!file.ends_with(suffix)) continue;
    const std::string name = file.substr(0, file.size() - suffix.size());
    if (name == "last" || is_numbered(name)) names.push_back(name);
  }
  return names;
}

void remove_file(const fs::path& path, const Fence& fence) {
  fence.check();
  std::error_code error;
  fs::remove(path, error);
  if (error) log::warn("cannot remove '{}' ({})", path.string(), error.message());
}

/// The first part of a file name, before `.h5`, `.shard-`, `.tmp` ...
std::string name_of(const std::string& file) { return file.substr(0, file.find('.')); }

/// The first FOLDER.old-N that is not there.
std::string free_place_aside(const std::string& folder) {
  std::error_code unknown;
  int number = 1;
  while (fs::exists(fs::symlink_status(fmt::format("{}.old-{}", folder, number), unknown))) ++number;
  return fmt::format("{}.old-{}", folder, number);
}

bool is_shard(const std::string& file) {
  static const std::regex shard(R"([^.]+\.shard-\d+\.a\d+(\.h5)?)");
  return std::regex_match(file, shard);
}
}  // namespace

std::string main_path(const std::string& folder, const std::string& name) { return folder + "/" + name + suffix; }

std::string shard_file(const std::string& name, int replica, Index attempt) {
  return fmt::format("{}.shard-{:04}.a{:04}", name, replica, attempt);
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    files.push_back(entry->path().filename().string());
  if (error) fail(Exit::data, "cannot read the folder '{}' ({}); check its path and rights", folder, error.message());
  std::sort(files.begin(), files.end());
  return files;
}

void remove_shards(const std::string& folder, const std::string& name, const std::vector<ShardRecord>& keep,
                   const Fence& fence) {
  for (const std::string& file : list_folder(folder))
    if (is_shard(file) && name_of(file) == name &&
        std::none_of(keep.begin(), keep.end(), [&](const ShardRecord& shard) { return shard.file == file; }))
      remove_file(fs::path(folder) / file, fence);
}

std::vector<std::string> list_checkpoints(const std::string& folder, const OnDamage& on_damage,
                                          const Lineage& lineage) {
  std::vector<std::pair<Stamp, std::string>> found;
  for (const std::string& name : checkpoint_names(folder)) {
    const std::string path = main_path(folder, name);
    try {
      const Stamp stamp = lineage.known(peek(path));
      if (lineage.holds(stamp.attempt, stamp.step)) found.emplace_back(stamp, path);
    } catch (const Error& error) {
      if (on_damage) on_damage(path, error.what());
    }
  }
  // Of the same step, the last one of a job comes first: it tells that the job had come to its end.
  const std::string last = main_path(folder, "last");
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return std::tuple(a.first.attempt, a.first.step, a.second == last) >
           std::tuple(b.first.attempt, b.first.step, b.second == last);
  });
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [stamp, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> list_abandoned(const std::string& folder, const Lineage* lineage) {
  const auto leaves_line = [&](const std::string& name) {
    try {
      const Stamp stamp = peek(main_path(folder, name));
      return !lineage->holds(lineage->known(stamp.attempt), stamp.step);
    } catch (const Error&) {  // missing or damaged: loading it reports that
      return false;
    }
  };
  std::vector<std::string> files = list_folder(folder);
  std::erase_if(files, [&](const std::string& file) {
    if (!is_checkpoint_file(file)) return true;
    const std::string name = name_of(file);
    return lineage != nullptr && ((file != name + suffix && !is_shard(file)) || !leaves_line(name));
  });
  return files;
}

NewerCheckpoints list_newer(const std::string& folder, const Stamp& than, const Lineage& lineage) {
  NewerCheckpoints newer;
  for (const std::string& file : list_folder(folder)) {
    if (!is_checkpoint_file(file)) continue;
    const std::string name = name_of(file);
    try {
      const Stamp stamp = lineage.known(peek(main_path(folder, name)));
      if (stamp > lineage.known(than))
        newer.files.push_back(file);
      else if (name != "best" && lineage.holds(stamp.attempt, stamp.step))
        newer.leaves_one = true;
    } catch (const Error&) {  // missing or damaged: loading it reports that
      continue;
    }
  }
  return newer;
}

void require_way_aside(const std::string& folder, const Fence& fence) {
  fence.check();
  const std::string aside = free_place_aside(folder), probe = ".way-aside" + fence.suffix();
  std::error_code reason, ignored;
  // A folder beside a mount point may be writable and yet on another file system.
  fs::create_directory(fs::path(folder) / probe, reason);
  if (!reason) fs::create_directory(aside, reason);
  if (!reason) fs::rename(fs::path(folder) / probe, fs::path(aside) / probe, reason);
  for (const fs::path& made : {fs::path(folder) / probe, fs::path(aside) / probe, fs::path(aside)})
    fs::remove(made, ignored);
  if (reason) {
    fail(
        Exit::data,
        "checkpoints of an earlier run or line lie in '{}', and can't move to '{}' when this one saves its first ({}); move them elsewhere, or choose another --checkpoint-dir",
        folder, aside, reason.message());
  }
}

void put_aside(const std::string& folder, const std::vector<std::string>& files, std::string& aside,
               const Fence& fence) {
  fence.check();
  std::error_code reason;
  if (aside.empty()) aside = free_place_aside(folder);
  if (files.empty()) return;
  make_folder(aside, "make room, or choose a writable --checkpoint-dir");
  for (const std::string& file : files) {
    fs::rename(fs::path(folder) / file, fs::path(aside) / file, reason);
    if (reason && reason != std::errc::no_such_file_or_directory)
      fail(Exit::data, "cannot move '{}/{}' of an earlier line to '{}' ({}); move it elsewhere, or make room", folder,
           file, aside, reason.message());
  }
}

std::vector<std::string> list_put_aside(const std::string& folder) {
  const fs::path path(folder);
  std::vector<std::string> found;
  std::error_code unknown;
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  for (fs::directory_iterator entry(parent, unknown), end; !unknown && entry != end; entry.increment(unknown)) {
    const std::string own = entry->path().filename().string();
    if (own.starts_with(path.filename().string() + ".old-") && !checkpoint_names(entry->path().string()).empty())
      found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void drop_old_checkpoints(const std::string& folder, int keep, const Fence& fence) {
  // By attempt, then by steps: a run that was sent back to an earlier epoch must keep what it writes now. Times of
  // files may lie in the future.
  std::vector<std::tuple<Index, Index, std::string>> numbered;
  for (const std::string& name : checkpoint_names(folder)) {
    if (!is_numbered(name)) continue;
    try {
      const Stamp stamp = peek(main_path(folder, name));
      // A copied checkpoint has the number of an attempt elsewhere.
      const bool known = fence.number() == 0 || stamp.attempt <= fence.number();
      numbered.emplace_back(known ? stamp.attempt : 0, stamp.step, name);
    } catch (const Error&) {  // damaged: whoever loads it says so
    }
  }
  std::sort(numbered.rbegin(), numbered.rend());
  for (std::size_t i = static_cast<std::size_t>(std::max(keep, 0)); i < numbered.size(); ++i) {
    // The main file first: without it the shards are no checkpoint, without them it would be a torn one.
    const std::string& name = std::get<2>(numbered[i]);
    remove_file(main_path(folder, name), fence);
    remove_shards(folder, name, {}, fence);
  }
}

void remove_leftovers(const std::string& folder, const Fence& fence) {
  fence.remove_older_temporaries(folder);
  for (const std::string& file : list_folder(folder)) {
    const std::string name = name_of(file);
    const bool ours = is_shard(file) && (name == "last" || is_numbered(name));
    std::error_code unknown;  // what can't be looked at is no leftover
    if (ours && !fs::exists(main_path(folder, name), unknown) && !unknown) remove_file(fs::path(folder) / file, fence);
  }
}

namespace {

/// Where the checkpoints of a run directory lie, then the folder itself, which may be one of checkpoints.
std::vector<std::string> places_below(const std::string& path) {
  std::vector<std::string> folders = checkpoint_folders(path);
  folders.push_back(path);
  return folders;
}

}  // namespace

std::string resolve_checkpoint(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return path;
  const Lineage line(fs::exists(path + "/attempts", unknown) ? path : path + "/..");
  for (const std::string& folder : places_below(path)) {
    if (!fs::is_directory(folder, unknown)) continue;
    for (const std::string& found : list_checkpoints(folder, {}, line))
      if (find_damage(found).empty()) return found;
  }
  const std::string original = tell_original(path);
  fail(Exit::data, "'{}' holds no checkpoint{}; give a checkpoint file or the --output-dir of a training run", path,
       original.empty() ? "" : " (" + original + ")");
}

std::string best_checkpoint(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return path;
  for (const std::string& folder : places_below(path))
    if (fs::exists(folder + "/best.h5", unknown)) return folder + "/best.h5";
  return resolve_checkpoint(path);
}

bool is_checkpoint_file(const std::string& file_name) {
  static const std::regex ours(
      R"((last|best|epoch-\d+|step-\d+)(\.h5|\.shard-\d+\.a\d+(\.h5)?)(\.damaged|(\.a\d+)?\.tmp)?)");
  return std::regex_match(file_name, ours);
}

}  // namespace convoy
