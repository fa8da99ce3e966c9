// SPDX-License-Identifier: Apache-2.0
#include "preprocess/output.hpp"

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "data/partition.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "io/seal.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;
constexpr Index piece_bytes = Index{8} << 20;

void remove_file(const std::string& path) {
  std::error_code reason;
  if (!fs::remove(path, reason) && reason) fail(Exit::data, "cannot remove '{}' ({})", path, reason.message());
}

}  // namespace

std::vector<std::string> find_faults(const Partition& p, std::size_t limit) {
  const File file(p.path, File::Access::read);
  const PartitionTables tables = read_partition_tables(p, file);
  if (const std::string fault = find_table_fault(p, tables); !fault.empty()) return {fault};

  std::vector<std::string> faults;
  std::size_t more = 0;
  const auto report = [&](const std::string& fault) {
    if (faults.size() < limit) {
      faults.push_back(fault);
    } else {
      ++more;
    }
  };
  const auto check = [&](std::size_t row, const std::uint8_t* bytes, std::size_t size) {
    const std::uint32_t found = crc32c(bytes, size);
    if (found != tables.crc[row]) {
      report(fmt::format("'{}': sample {} (id {}) is damaged (CRC32C {:08x}, stored {:08x})", p.path, row,
                         tables.ids[row], found, tables.crc[row]));
    }
    if (tables.labels[row] < 0 || tables.labels[row] >= p.classes) {
      report(fmt::format("'{}': dataset '/labels' holds {} for sample {}, expected 0 to {}", p.path, tables.labels[row],
                         row, p.classes - 1));
    }
    if (tables.ids[row] != p.first + static_cast<Index>(row)) {
      report(fmt::format("'{}': dataset '/ids' holds {} for sample {}, expected {}", p.path, tables.ids[row], row,
                         p.first + static_cast<Index>(row)));
    }
  };
  const auto count = static_cast<std::size_t>(p.samples);
  std::vector<std::uint8_t> buffer;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const Index from = tables.offsets[begin];
    for (end = begin + 1; end < count && tables.offsets[end + 1] - from <= piece_bytes; ++end) {
    }
    buffer.resize(static_cast<std::size_t>(tables.offsets[end] - from));
    file.read_at(buffer.data(), buffer.size(), p.images_offset + static_cast<std::uint64_t>(from));
    for (std::size_t row = begin; row < end; ++row) {
      check(row, buffer.data() + (tables.offsets[row] - from),
            static_cast<std::size_t>(tables.offsets[row + 1] - tables.offsets[row]));
    }
  }
  if (more > 0) faults.push_back(fmt::format("'{}': and {} faults more", p.path, more));
  return faults;
}

void prepare_folder(const std::string& folder, const std::vector<std::string>& expected_names, bool overwrite) {
  make_folder(folder, "choose a writable --out");
  std::error_code reason;
  fs::directory_iterator entries(folder, reason);
  if (reason) fail(Exit::data, "cannot open the folder '{}' ({}); choose another --out", folder, reason.message());
  std::vector<std::string> others, temporary;
  for (; entries != fs::directory_iterator(); entries.increment(reason)) {
    const fs::directory_entry& entry = *entries;
    std::string name = entry.path().filename().string();
    const bool left_behind = name.ends_with(".tmp");
    if (left_behind) name.erase(name.size() - 4);
    const PartitionName parsed = parse_partition_name(name);
    if (parsed.partitions == 0 || (parsed.split != "train" && parsed.split != "val")) continue;
    if (left_behind) {
      temporary.push_back(entry.path().string());
    } else if (std::find(expected_names.begin(), expected_names.end(), name) == expected_names.end()) {
      others.push_back(entry.path().string());
    }
  }
  if (reason) fail(Exit::data, "cannot list the folder '{}' ({}); check the disk", folder, reason.message());
  std::sort(others.begin(), others.end());
  if (!others.empty() && !overwrite) {
    fail(
        Exit::usage,
        "'{}' is in the way (it belongs to a series of other length, {} such files); choose another --out or give --overwrite",
        others.front(), others.size());
  }
  for (const auto& path : others) remove_file(path);
  for (const auto& path : temporary) remove_file(path);
}

Existing look_for(const Partition& wanted) {
  std::error_code unknown;
  if (!fs::exists(wanted.path, unknown)) return Existing::none;
  try {
    const Partition found = read_partition(wanted.path);
    if (found.parameters != wanted.parameters || found.source_digest != wanted.source_digest ||
        found.class_names != wanted.class_names) {
      return Existing::other;
    }
    if (!find_faults(found, 1).empty()) return Existing::damaged;
    return is_older(found) ? Existing::older : Existing::complete;
  } catch (const Error& e) {
    log::warn("{}; it is made again", e.what());
    return Existing::damaged;
  }
}

bool is_older(const Partition& stored) { return stored.channels == 3 && stored.covariance.empty(); }

bool keeps_older(Index older, Index all, bool overwrite) { return older == all && !overwrite; }

}  // namespace convoy::preparation
