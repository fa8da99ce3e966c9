// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/journal.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "io/seal.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;
constexpr const char *job_file = "job.json", *preparation_file = "preparation.json";

void write_json(const std::string& path, const nlohmann::json& json) { publish_text(path, json.dump(2) + "\n"); }

/// Discarded (null) where the file is missing or no JSON.
nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) return nullptr;
  auto json = nlohmann::json::parse(file, nullptr, false);
  return json.is_discarded() ? nullptr : json;
}

std::string text_of(const nlohmann::json& json, const char* name) {
  return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
}

std::string sizes_text(const std::vector<Index>& sizes) {
  std::string text;
  for (const Index size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ",", size_name(size));
  return text;
}

}  // namespace

std::string recipe_text(const ImagesSpec& spec) {
  const Recipe& r = spec.recipe;
  std::string extensions;
  for (const auto& e : spec.extensions) extensions += fmt::format("{}{}", extensions.empty() ? "" : ",", e);
  std::string text =
      fmt::format("kind={} encoding={} sizes={} color={} seed={} exts={} max_side={} max_pixels={} max_scans={}",
                  images_kind_name(spec.kind), r.encoding == Encoding::raw ? "raw" : "jpeg", sizes_text(r.sizes),
                  r.channels == Channels::rgb ? "rgb" : "grey", r.seed, extensions, r.limits.max_side,
                  r.limits.max_pixels, r.limits.max_scans);
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

std::string layout_text(const ImagesSpec& spec) {
  return fmt::format(
      "partitions={} val_partitions={} maxcount={} maxsize={} train_ratio={:g} subset={} val_subset={} mean_image={} "
      "names={}",
      spec.partitions, spec.val_partitions, spec.max_count, spec.max_bytes >> 20, spec.train_ratio, spec.subset,
      spec.val_subset, spec.mean_image ? 1 : 0, spec.keep_names ? 1 : 0);
}

void prepare_spill(const std::string& folder, const JobIdentity& identity, bool overwrite) {
  std::error_code reason;
  const std::string path = (fs::path(folder) / job_file).string();
  const auto json = read_json(path);
  const JobIdentity found{text_of(json, "recipe"), text_of(json, "source")};
  if (found == identity) return;
  const bool used = fs::exists(folder, reason) && !list_runs(folder).empty();
  if (used && !overwrite) {
    fail(
        Exit::usage,
        "'{}' is in the way (it belongs to an unfinished preparation {}); choose another --out, or give --overwrite to "
        "start anew",
        folder, found.recipe == identity.recipe ? "of a source that has changed since" : "with other options");
  }
  remove_spill(folder);
  fs::create_directories(folder, reason);
  if (reason) fail(Exit::data, "cannot make the folder '{}' ({}); choose a writable --out", folder, reason.message());
  write_json(path, {{"recipe", identity.recipe}, {"source", identity.source}});
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
    if (name.ends_with(".run") || name.ends_with(".tmp") || name == job_file) fs::remove(entry.path(), ignored);
  }
  fs::remove(folder, ignored);
}

std::vector<std::string> keep_sound_runs(const std::string& folder, std::size_t units) {
  std::map<std::string, std::vector<Piece>> runs;
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
      runs[name] = RunReader((fs::path(folder) / name).string()).tables().pieces;
    } catch (const Error& e) {
      remove(name, e.what());
    }
  }
  for (bool again = true; again;) {
    again = false;
    std::vector<std::set<Index>> ends(units, {-1});  // positions that are a beginning or an end of some piece
    for (const auto& [name, pieces] : runs) {
      for (const Piece& p : pieces) ends[static_cast<std::size_t>(p.unit)].insert(p.to);
    }
    for (const auto& [name, pieces] : std::map(runs)) {
      const bool loose = std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) {
        return !ends[static_cast<std::size_t>(p.unit)].contains(p.from);
      });
      if (!loose) continue;
      remove(name, "the run before it is missing");
      again = true;
    }
  }
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (const auto& [name, pieces] : runs) names.push_back(name);
  return names;
}

std::vector<Assignment> find_left(const std::vector<Unit>& units, const std::vector<RunReader>& runs) {
  std::vector<std::map<Index, Piece>> pieces(units.size());
  for (const RunReader& run : runs) {
    for (const Piece& piece : run.tables().pieces) pieces[static_cast<std::size_t>(piece.unit)][piece.from] = piece;
  }
  std::vector<Assignment> all;
  for (std::size_t u = 0; u < units.size(); ++u) {
    Assignment assignment{static_cast<Index>(u), -1, units[u].weight};
    for (auto next = pieces[u].find(-1); next != pieces[u].end(); next = pieces[u].find(assignment.from)) {
      assignment.from = next->second.to;
      if (next->second.done) assignment.left = 0;
      if (next->second.done || next->second.to == next->second.from) break;
    }
    if (assignment.left > 0 && assignment.from > 0) {
      const Index passed = units[u].kind == UnitKind::files || units[u].kind == UnitKind::listed
                               ? (assignment.from - units[u].begin) * usual_file_bytes
                               : assignment.from - (units[u].nested ? 0 : units[u].begin);
      assignment.left = std::max<Index>(assignment.left - passed, 1);
    }
    all.push_back(assignment);
  }
  return all;
}

void write_preparation(const std::string& folder, const Preparation& p) {
  nlohmann::json findings = nlohmann::json::object();
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    if (p.findings[kind] > 0) findings[finding_name(static_cast<Finding>(kind))] = p.findings[kind];
  }
  write_json((fs::path(folder) / preparation_file).string(), {{"recipe", p.identity.recipe},
                                                              {"source", p.identity.source},
                                                              {"layout", p.layout},
                                                              {"source_digest", p.source_digest},
                                                              {"images_read", p.images_read},
                                                              {"findings", findings},
                                                              {"files", p.files}});
}

bool read_preparation(const std::string& folder, Preparation& p) {
  const auto json = read_json((fs::path(folder) / preparation_file).string());
  if (!json.is_object()) return false;
  p.identity = {text_of(json, "recipe"), text_of(json, "source")};
  p.layout = text_of(json, "layout");
  p.source_digest = text_of(json, "source_digest");
  if (!json.contains("files") || !json["files"].is_array()) return false;
  for (const auto& file : json["files"]) {
    if (file.is_string()) p.files.push_back(file.get<std::string>());
  }
  return true;
}

}  // namespace convoy::preparation
