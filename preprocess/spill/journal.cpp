// SPDX-License-Identifier: Apache-2.0
#include "preprocess/spill/journal.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "io/folder.hpp"
#include "io/seal.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;
constexpr const char *job_file = "job.json", *preparation_file = "preparation.json";

void write_json(const std::string& path, const Json& json) {
  publish_text(path, json.text(2, Json::Order::sorted) + "\n");
}

/// Null if the file is missing or no JSON.
Json read_json(const std::string& path) {
  std::ifstream file(path);
  return Json::parse_or_null({std::istreambuf_iterator<char>(file), {}});
}

std::string text_of(const Json& json, const char* name) {
  const Json* found = json.find(name);
  return found != nullptr && found->is_text() ? found->as<std::string>() : "";
}

std::string sizes_text(const std::vector<Index>& sizes) {
  std::string text;
  for (const Index size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ",", size_name(size));
  return text;
}

/// Everything but the bytes of a pixel set that decides the bytes of its partitions.
std::string pixel_parameters(const PrepareSpec& spec) {
  const std::string kind = spec.kind->name();
  std::string text = fmt::format("kind={} partitions={} val_partitions={} seed={} mean_image={}", kind, spec.partitions,
                                 spec.val_partitions, spec.recipe.seed, spec.mean_image ? 1 : 0);
  if (kind == "cifar100") text += fmt::format(" coarse={}", spec.coarse ? 1 : 0);
  if (kind == "synthetic") {
    const SyntheticSpec& s = spec.synthetic;
    text += fmt::format(" samples={} val_samples={} image_size={}x{} channels={} classes={}", s.samples,
                        spec.val_samples, s.height, s.width, s.channels, s.classes);
  }
  return text;
}

/// What `job.json` tells of intermediate files.
struct SpillJob {
  JobIdentity identity;     ///< the preparation to which they belong; empty: none
  bool overwrites = false;  ///< it was begun with --overwrite
  bool cleared = false;     ///< and has removed the partitions that it replaces
};

bool is_set(const Json& json, const char* name) {
  const Json* found = json.find(name);
  return found != nullptr && found->kind() == Json::Kind::boolean && found->as<bool>();
}

SpillJob spill_job_in(const std::string& folder) {
  const auto json = read_json((fs::path(folder) / job_file).string());
  return {identity_from(json), is_set(json, "overwrites"), is_set(json, "cleared")};
}

void write_spill_job(const std::string& folder, const SpillJob& job) {
  Json json = Json::object({{"overwrites", job.overwrites}, {"cleared", job.cleared}});
  write_identity(job.identity, json);
  write_json((fs::path(folder) / job_file).string(), json);
}

}  // namespace

std::string recipe_text(const PrepareSpec& spec) {
  const Recipe& r = spec.recipe;
  if (r.pixels) return pixel_parameters(spec);
  std::string extensions;
  for (const auto& e : spec.extensions) extensions += fmt::format("{}{}", extensions.empty() ? "" : ",", e);
  std::string text = fmt::format(
      "kind={} encoding={} sizes={} color={} seed={} exts={} max_side={} max_pixels={} max_scans={}", spec.kind->name(),
      r.encoding == Encoding::raw ? "raw" : "jpeg", sizes_text(r.sizes), r.channels == Channels::rgb ? "rgb" : "grey",
      r.seed, extensions, r.limits.max_side, r.limits.max_pixels, r.limits.max_scans);
  if (r.encoding == Encoding::raw) {
    text += fmt::format(" resize={}", r.fit == Fit::squash ? "squash" : "crop");
  } else {
    text += fmt::format(" max_resolution={} quality={} compress_probability={:g}", r.max_resolution, r.quality,
                        r.compress_probability);
  }
  if (!spec.key_prefix.empty()) text += fmt::format(" key_prefix={}", spec.key_prefix);
  if (spec.label_column != 0) text += fmt::format(" label_column={}", spec.label_column);
  return text;
}

std::string layout_text(const PrepareSpec& spec) {
  if (spec.recipe.pixels) return "";  // it stands in the recipe
  return fmt::format(
      "partitions={} val_partitions={} maxcount={} maxsize={} train_ratio={:g} subset={} val_subset={} mean_image={} names={}",
      spec.partitions, spec.val_partitions, spec.max_count, spec.max_bytes >> 20, spec.train_ratio, spec.subset,
      spec.val_subset, spec.mean_image ? 1 : 0, spec.keep_names ? 1 : 0);
}

bool is_spill_of(const std::string& folder, const SpillRequest& request) {
  const JobIdentity found = spill_job_in(folder).identity;
  return !found.is_of_earlier_version() && difference_of(found, request.identity, request.times).empty();
}

void prepare_spill(const std::string& folder, const SpillRequest& request) {
  std::error_code reason;
  const SpillJob found = spill_job_in(folder);
  if (is_spill_of(folder, request) && (found.overwrites || !request.overwrite)) {
    if (found.identity != request.identity)  // the times, which from here on are these
      write_spill_job(folder, {request.identity, found.overwrites, found.cleared});
    return;
  }
  const bool used = fs::exists(folder, reason) && !list_runs(folder).empty();
  if (used && !request.overwrite) {
    const std::string difference = difference_of(found.identity, request.identity, request.times);
    if (!difference.empty()) {
      fail(Exit::usage, "'{}' is in the way (it belongs to an unfinished preparation {}); {} to start anew", folder,
           difference, advice_on(found.identity, request.identity));
    }
    log::warn("'{}' was left by an earlier version, which did not note sizes and times of files: all is read again",
              folder);
  }
  remove_spill(folder);
  make_folder(folder, "choose a writable --out");
  write_spill_job(folder, {request.identity, request.overwrite, false});
}

void remove_replaced(const std::string& folder, const std::vector<std::string>& partitions) {
  SpillJob job = spill_job_in(folder);
  if (!job.overwrites || job.cleared) return;
  for (const auto& path : partitions) {
    std::error_code reason;
    if (!fs::remove(path, reason) && reason)
      fail(Exit::data, "cannot remove '{}' ({}); check its permissions and the disk", path, reason.message());
  }
  job.cleared = true;
  write_spill_job(folder, job);
}

std::vector<std::string> list_runs(const std::string& folder) {
  std::error_code reason;
  fs::directory_iterator entries(folder, reason);
  if (reason) fail(Exit::data, "cannot open the folder '{}' ({})", folder, reason.message());
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".run")) names.push_back(name);
    if (name.ends_with(".run.tmp")) fs::remove(entry.path(), reason);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void remove_spill(const std::string& folder) {
  std::error_code ignored;  // it is of no more use; what stays is in nobody's way
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".run") || name.ends_with(".tmp")) fs::remove(entry.path(), ignored);
  }
  const fs::path job = fs::path(folder) / job_file;
  if (fs::exists(job, ignored)) fs::remove(job, ignored);  // last: until then it says whose folder this is
  fs::remove(folder, ignored);
}

std::vector<std::string> keep_sound_runs(const std::string& folder, std::size_t shards) {
  std::map<std::string, std::vector<Slice>> runs;
  const auto remove = [&](const std::string& name, const std::string& why) {
    log::warn("'{}': {}; what it held is read again", (fs::path(folder) / name).string(), why);
    std::error_code reason;
    if (!fs::remove(fs::path(folder) / name, reason) && reason) {
      fail(Exit::data, "cannot remove '{}' ({})", (fs::path(folder) / name).string(), reason.message());
    }
    runs.erase(name);
  };
  for (const auto& name : list_runs(folder)) {
    try {
      runs[name] = RunReader((fs::path(folder) / name).string()).tables().slices;
    } catch (const Error& e) {
      remove(name, e.what());
    }
  }
  for (bool again = true; again;) {
    again = false;
    std::vector<std::set<Index>> ends(shards, {-1});  // positions that are a beginning or an end of some slice
    for (const auto& [name, slices] : runs) {
      for (const Slice& p : slices) ends[static_cast<std::size_t>(p.shard)].insert(p.to);
    }
    for (const auto& [name, slices] : std::map(runs)) {
      const bool loose = std::any_of(slices.begin(), slices.end(), [&](const Slice& p) {
        return !ends[static_cast<std::size_t>(p.shard)].contains(p.from);
      });
      if (!loose) continue;
      remove(name, "the run before it is missing");
      again = true;
    }
  }
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (const auto& [name, slices] : runs) names.push_back(name);
  return names;
}

std::vector<PendingShard> find_pending(const std::vector<Shard>& shards, const std::vector<RunReader>& runs) {
  std::vector<std::map<Index, Slice>> slices(shards.size());
  for (const RunReader& run : runs) {
    for (const Slice& slice : run.tables().slices) slices[static_cast<std::size_t>(slice.shard)][slice.from] = slice;
  }
  std::vector<PendingShard> all;
  for (std::size_t u = 0; u < shards.size(); ++u) {
    PendingShard pending{static_cast<Index>(u), -1, shards[u].weight};
    for (auto next = slices[u].find(-1); next != slices[u].end(); next = slices[u].find(pending.from)) {
      pending.from = next->second.to;
      if (next->second.done) pending.left = 0;
      if (next->second.done || next->second.to == next->second.from) break;
    }
    if (pending.left > 0 && pending.from > 0) {
      const Index passed = (pending.from - (shards[u].nested ? 0 : shards[u].begin)) * shards[u].position_weight;
      pending.left = std::max<Index>(pending.left - passed, 1);
    }
    all.push_back(pending);
  }
  return all;
}

void write_preparation(const std::string& folder, const Preparation& p) {
  Json findings = Json::object();
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    if (p.findings[kind] > 0) findings[finding_name(static_cast<Finding>(kind))] = p.findings[kind];
  }
  Json json = Json::object({{"layout", p.layout},
                            {"source_digest", p.source_digest},
                            {"images_read", p.images_read},
                            {"findings", findings},
                            {"files", p.files}});
  write_identity(p.identity, json);
  write_json((fs::path(folder) / preparation_file).string(), json);
}

void remove_preparation(const std::string& folder) {
  const fs::path path = fs::path(folder) / preparation_file;
  std::error_code reason;
  if (!fs::remove(path, reason) && reason)
    fail(Exit::data, "cannot remove '{}' ({}); check its permissions and the disk", path.string(), reason.message());
}

bool read_preparation(const std::string& folder, Preparation& p) {
  const auto json = read_json((fs::path(folder) / preparation_file).string());
  if (!json.is_object()) return false;
  const auto number = [](const Json* of, const char* name) {
    const Json* found = of != nullptr && of->is_object() ? of->find(name) : nullptr;
    return found != nullptr && found->is_integer() ? found->as<Index>() : Index{0};
  };
  p.identity = identity_from(json);
  p.layout = text_of(json, "layout");
  p.source_digest = text_of(json, "source_digest");
  p.images_read = number(&json, "images_read");
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    p.findings[kind] = number(json.find("findings"), finding_name(static_cast<Finding>(kind)));
  }
  const Json* files = json.find("files");
  if (files == nullptr || !files->is_list()) return false;
  for (const Json& file : files->items()) {
    if (file.is_text()) p.files.push_back(file.as<std::string>());
  }
  return true;
}

}  // namespace convoy::preparation
