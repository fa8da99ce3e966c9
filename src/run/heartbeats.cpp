// SPDX-License-Identifier: Apache-2.0
#include "run/heartbeats.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/json.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {

/// Of a line, its end included: every rank has its own place, so that ranks never wait for each other.
constexpr std::size_t line_bytes = 384;
const std::string suffix = ".jsonl";

/// As JSON needs it: what would have to be escaped is replaced.
template <std::size_t N>
std::array<char, N> plain(const std::string& text) {
  std::array<char, N> copy{};
  for (std::size_t i = 0; i < std::min(text.size(), N - 1); ++i) {
    const char c = text[i];
    copy.at(i) = c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?';
  }
  return copy;
}

/// `START-000012.jsonl`; empty where it is no such name.
std::string start_of(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  return name.ends_with(suffix) && dash != std::string::npos ? name.substr(0, dash) : std::string();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename().string();
    if (!start_of(name).empty()) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <class T>
void take(const Json& record, const char* name, T& to) {
  const Json* found = record.find(name);
  if (found != nullptr && (std::is_same_v<T, std::string> ? found->is_text() : found->is_number())) to = found->as<T>();
}

/// False where the line is not (or not yet) a heartbeat.
bool parse(const std::string& line, Heartbeat& to) {
  const Json record = Json::parse_or_null(line);
  if (record.find("rank") == nullptr) return false;
  to = {};
  take(record, "rank", to.rank);
  take(record, "ranks", to.ranks);
  take(record, "host", to.host);
  take(record, "pid", to.pid);
  take(record, "count", to.count);
  take(record, "time", to.time);
  take(record, "period", to.period);
  take(record, "phase", to.phase);
  take(record, "epoch", to.epoch);
  take(record, "step", to.step);
  take(record, "operation", to.operation);
  take(record, "waiting", to.waiting);
  take(record, "quiet", to.quiet);
  take(record, "signal", to.signal);
  take(record, "exit", to.exit);
  return true;
}

}  // namespace

std::string heartbeat_path(const HeartbeatPlace& place) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "-%06d", place.first_rank);
  return place.folder + "/" + place.start + number.data() + suffix;
}

bool write_heartbeat(const std::string& path, int slot, const Heartbeat& beat, IfMissing if_missing) {
  std::array<char, line_bytes + 1> line{};
  int used = std::snprintf(
      line.data(), line_bytes,
      R"({"rank":%d,"ranks":%d,"host":"%s","pid":%lld,"count":%lld,"time":%.3f,"period":%g,"phase":"%s","epoch":%lld,)"
      R"("step":%lld,"operation":"%s","waiting":%.1f,"quiet":%.1f,"signal":%d,"exit":%d})",
      beat.rank, beat.ranks, plain<64>(beat.host).data(), static_cast<long long>(beat.pid),
      static_cast<long long>(beat.count), beat.time, beat.period, plain<24>(beat.phase).data(),
      static_cast<long long>(beat.epoch), static_cast<long long>(beat.step), plain<64>(beat.operation).data(),
      beat.waiting, beat.quiet, beat.signal, beat.exit);
  used = std::clamp(used, 0, static_cast<int>(line_bytes) - 1);
  std::memset(line.data() + used, ' ', line_bytes - static_cast<std::size_t>(used));
  line[line_bytes - 1] = '\n';
  // Opened and closed each time: that is when network file systems pass on what was written.
  const int create = if_missing == IfMissing::create ? O_CREAT : 0;
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | create, 0666);
  if (file < 0) return false;
  const auto offset = static_cast<off_t>(line_bytes) * slot;
  const bool written = ::pwrite(file, line.data(), line_bytes, offset) == static_cast<ssize_t>(line_bytes);
  return ::close(file) == 0 && written;
}

void read_heartbeats(const std::string& folder, const std::string& start, std::vector<Heartbeat>& to) {
  to.clear();
  for (const std::string& name : names_in(folder)) {
    if (start_of(name) != start) continue;
    std::ifstream file(folder + "/" + name, std::ios::binary);
    Heartbeat beat;
    // Places that nobody has written yet are zero bytes before the first line that somebody has.
    for (std::string line; std::getline(file, line);) {
      if (parse(line.substr(std::min(line.find_first_not_of('\0'), line.size())), beat)) to.push_back(beat);
    }
  }
  std::sort(to.begin(), to.end(), [](const Heartbeat& a, const Heartbeat& b) { return a.rank < b.rank; });
}

std::vector<Heartbeat> read_heartbeats(const std::string& folder) {
  const auto names = names_in(folder);
  std::vector<Heartbeat> found;
  if (!names.empty()) read_heartbeats(folder, start_of(names.back()), found);
  return found;
}

void remove_old_heartbeats(const std::string& folder, const std::string& start) {
  for (const std::string& name : names_in(folder)) {
    std::error_code failed;
    if (start_of(name) != start) fs::remove(folder + "/" + name, failed);
  }
}

}  // namespace convoy
