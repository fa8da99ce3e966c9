// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/preflight.hpp"
#include "core/clock.hpp"
#include "core/host_facts.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t written_bytes = 32 << 20;

/// A file that is gone at the end of the scope.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() { ::unlink(path_.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes what is missing of `path`; says what that was, outermost first.
std::vector<fs::path> make_folders(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code reason;
  for (fs::path at = path; !at.empty() && !fs::exists(at, reason); at = at.parent_path())
    missing.insert(missing.begin(), at);
  fs::create_directories(path, reason);
  if (reason)
    fail(Exit::usage, "cannot make '{}' ({}); choose a writable --output-dir", path.string(), reason.message());
  return missing;
}

/// Bytes a second, written and synced.
double measure_writing(const std::string& path) {
  const Scratch scratch(path);
  const std::vector<char> block(std::size_t{4} << 20, 'c');
  const auto begin = real_clock().now();
  File file(path, File::Access::create);
  for (std::size_t at = 0; at < written_bytes; at += block.size()) file.write_at(block.data(), block.size(), at);
  file.sync();
  return static_cast<double>(written_bytes) / seconds_since(begin);
}

/// Another host's new file may take a moment to show on a network file system.
bool appears(const std::string& path) {
  constexpr int attempts = 40;
  for (int i = 0; i < attempts; ++i) {
    std::error_code unknown;
    if (fs::exists(path, unknown)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

/// Errors of writing are about the folder that was chosen.
template <class Body>
void attempt(std::vector<Finding>& findings, const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() == Exit::communication) throw;
    findings.push_back({Exit::usage, e.what(), {}});
  }
}

}  // namespace

void check_run_folder(Communicator& communicator, const TrainConfig& config, Preflight& to) {
  const std::string folder = config.output.folder.empty() ? "runs" : config.output.folder;
  std::string marker = fmt::format("{}/.preflight-{}-{}", folder, communicator.host(), getpid());
  communicator.broadcast(marker, "name of the preflight's file");
  std::vector<Finding> mine;
  std::vector<fs::path> made;
  double bytes_per_second[1] = {0};
  const bool first = communicator.rank() == 0;
  if (first) {
    attempt(mine, [&] {
      made = make_folders(folder);
      bytes_per_second[0] = measure_writing(marker);
      File(marker, File::Access::create);
    });
  }
  // What rank 0 found is known to all before the others look for its file.
  double failed[1] = {mine.empty() ? 0.0 : 1.0};
  communicator.maximum(std::span<double>(failed), "state of the run directory");
  communicator.maximum(std::span<double>(bytes_per_second), "speed of writing");
  if (failed[0] == 0 && communicator.node_rank() == 0 && !first) {
    attempt(mine, [&] {
      if (!appears(marker))
        fail(Exit::usage, "{} does not see '{}' of {}; choose an --output-dir that all hosts share",
             communicator.host(), folder, communicator.hosts().front());
      const Scratch own(fmt::format("{}.{}", marker, communicator.rank()));
      File(own.path(), File::Access::create);
    });
  }
  communicator.barrier("look at the run directory");
  share_findings(communicator, mine, to);
  const Room room = room_at(folder);
  if (first) {
    ::unlink(marker.c_str());
    std::error_code ignored;
    for (auto at = made.rbegin(); at != made.rend(); ++at) fs::remove(*at, ignored);
  }
  constexpr double giga = 1e9, mega = 1e6, little_bytes = 1e9, few_files = 1000;
  std::string text = fmt::format("'{}'", folder), free_text = "0", rate_text = "0";
  if (failed[0] == 0) {
    text += fmt::format(", {:.0f} MB/s written and synced, {:.1f} GB free, seen by all hosts",
                        bytes_per_second[0] / mega, room.free_bytes / giga);
    if (room.free_bytes < little_bytes)
      to.findings.push_back(
          {Exit::ok, fmt::format("'{}' has {:.2f} GB left; make room", folder, room.free_bytes / giga), {}});
    if (room.free_files >= 0 && room.free_files < few_files)
      to.findings.push_back(
          {Exit::ok, fmt::format("'{}' has room for {:.0f} files; make room", folder, room.free_files), {}});
  } else {
    text += " can't be used";
  }
  to.facts.push_back({"run_directory",
                      text,
                      {{"path", nlohmann::json(folder).dump()},
                       {"write_mb_per_sec", nlohmann::json(bytes_per_second[0] / mega).dump()},
                       {"free_gb", nlohmann::json(room.free_bytes / giga).dump()}}});
}

}  // namespace convoy
