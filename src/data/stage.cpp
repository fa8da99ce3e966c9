// SPDX-License-Identifier: Apache-2.0
#include "data/stage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "data/sample_table.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = std::size_t{8} << 20;

constexpr const char* copying = "copying partitions to this host";

/// Held while one process copies; freed with the descriptor, also when the process dies.
class CopyLock {
 public:
  /// Waits for as long as another process copies, which has a watchdog of its own. Throws Error(stopped) if this one is
  /// asked to stop meanwhile.
  explicit CopyLock(const std::string& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) refuse(path);
    try {
      while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) refuse(path);
        progress().doing("waiting for another process to copy");
        leave_if_stopped(copying);
        constexpr double nap_seconds = 0.05;
        real_clock().sleep(nap_seconds);
      }
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
    progress().doing(copying);
  }
  ~CopyLock() { ::close(descriptor_); }
  CopyLock(const CopyLock&) = delete;
  CopyLock& operator=(const CopyLock&) = delete;

 private:
  [[noreturn]] static void refuse(const std::string& path) {
    fail(Exit::data, "cannot lock '{}' ({}); choose another --stage-dir", path, std::strerror(errno));
  }

  int descriptor_;
};

/// Whether a file is there and sealed as the original is. Its samples are checked whenever they are read.
bool is_copy(const std::string& path, std::uint32_t seal_crc, std::uint64_t bytes) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return false;
  try {
    const Seal seal = check_seal(path);
    return seal.crc == seal_crc && seal.file_bytes == bytes;
  } catch (const Error&) {
    return false;
  }
}

void verify_samples(const DatasetInfo& info, const PartitionInfo& part, const std::string& copy) {
  DatasetInfo alone = info;
  alone.partitions = {part};
  alone.partitions[0].path = copy;
  const SampleTable table(alone, part.samples);
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < table.extents.size(); ++i) {
    leave_if_stopped(copying);
    bytes.resize(table.extents[i].bytes);
    table.read(i, i + 1, bytes.data());
    if (crc32c(bytes.data(), bytes.size()) == table.extents[i].crc) continue;
    fail(
        Exit::data,
        "sample {} of the copy '{}' is damaged (its CRC32C differs), so '{}' or the copy's disk is; run convoy-preprocess verify '{}'",
        i, copy, part.path, info.folder);
  }
}

void copy(const DatasetInfo& info, const PartitionInfo& part, const std::string& to) {
  const File source(part.path, File::Access::read);
  const std::uint64_t size = source.size();
  std::error_code unknown;
  const fs::space_info space = fs::space(fs::path(to).parent_path(), unknown);
  if (!unknown && space.available < size)
    fail(Exit::usage,
         "'{}' has {:.1f} MB free and a partition takes {:.1f} MB; choose another --stage-dir or --data-cache stream",
         fs::path(to).parent_path().string(), static_cast<double>(space.available) / 1e6,
         static_cast<double>(size) / 1e6);
  const std::string temporary = to + ".tmp";
  try {
    File target(temporary, File::Access::create);
    std::vector<std::uint8_t> buffer(std::min<std::size_t>(piece_bytes, size));
    for (std::uint64_t at = 0; at < size; at += buffer.size()) {
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at));
      leave_if_stopped(copying);
      source.read_at(buffer.data(), bytes, at);
      target.write_at(buffer.data(), bytes, at);
    }
    verify_samples(info, part, temporary);
    publish_file(temporary, to);
  } catch (...) {
    std::error_code ignored;  // what matters is the first error
    fs::remove(temporary, ignored);
    throw;
  }
}

}  // namespace

std::string stage_folder(const std::string& folder) {
  if (!folder.empty()) return folder;
  const char* temporary = std::getenv("TMPDIR");
  return fmt::format("{}/convoy-data-{}", temporary != nullptr && *temporary != '\0' ? temporary : "/tmp", getuid());
}

void stage_partitions(DatasetInfo& info, Range range, const std::string& folder) {
  const std::string own = fmt::format("{}/{:016x}", folder, info.digest);
  make_folder(own, "choose another --stage-dir");
  for (PartitionInfo& part : info.partitions) {
    if (range.count == 0 || part.samples.begin >= range.end() || range.begin >= part.samples.end()) continue;
    const std::string to = (fs::path(own) / fs::path(part.path).filename()).string();
    const CopyLock lock(to + ".lock");
    const Seal seal = check_seal(part.path);
    if (!is_copy(to, seal.crc, seal.file_bytes)) {
      copy(info, part, to);
      log::debug("staged '{}' as '{}'", part.path, to);
    }
    part.path = to;
  }
}

}  // namespace convoy
