// SPDX-License-Identifier: Apache-2.0
// Checkpoint files of a network against plain files of as many bytes, by turns on one disk.
//   checkpoint_speed FOLDER [MODEL [ROUNDS]]
// Prints medians and ranges of seconds, and in brackets the median of what the processor spent: a set written and
// verified against write + fsync of its bytes and against that plus reading them back from the disk; a set read and
// checked against reading its bytes, both from memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <vector>

#include "backend/set_layout.hpp"
#include "checkpoint/file.hpp"
#include "io/file.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Line {
  const char* what;
  std::function<void()> body;
  std::vector<double> seconds = {}, core_seconds = {};

  void take() {
    const double begin = now(CLOCK_MONOTONIC), core_begin = now(CLOCK_PROCESS_CPUTIME_ID);
    body();
    seconds.push_back(now(CLOCK_MONOTONIC) - begin);
    core_seconds.push_back(now(CLOCK_PROCESS_CPUTIME_ID) - core_begin);
  }
};

void run(const std::string& folder, const std::string& model, int rounds) {
  const Plan plan = make_plan(build_graph({.model = model}), {});
  const SetLayout layout = set_layout(plan.table, OptimiserSpec{});
  HostSet set;
  set.block.resize(static_cast<std::size_t>(layout.count()));
  for (std::size_t i = 0; i < set.block.size(); ++i) set.block[i] = static_cast<float>(i % 9973) * 1e-3F;
  const auto bytes = set.block.size() * sizeof(float);
  const std::string ours = folder + "/ours.h5", plain = folder + "/plain";
  std::vector<float> read(set.block.size());

  std::vector<Line> lines{
      {"plain write, fsync",
       [&] {
         File file(plain, File::Access::create);
         file.write_at(set.block.data(), bytes, 0);
         file.sync();
       }},
      {"plain read from the disk",
       [&] {
         forget_cached(plain);
         File(plain, File::Access::read).read_at(read.data(), bytes, 0);
       }},
      {"plain read from memory", [&] { File(plain, File::Access::read).read_at(read.data(), bytes, 0); }},
      {"set written and verified", [&] { write_set_file(ours, plan, layout, {.model = plan.graph.model}, {set}); }},
      {"set checked", [&] { read_file_meta(ours); }},
      {"set read and checked", [&] { read_set_file(ours, plan, layout, Content::all); }},
  };
  for (int round = 0; round < rounds; ++round) {
    std::filesystem::remove(plain);
    for (Line& line : lines) line.take();
  }
  std::printf("%s, %.0f MB, %d rounds\n", model.c_str(), static_cast<double>(bytes) / 1e6, rounds);
  for (Line& line : lines) {
    for (auto* seconds : {&line.seconds, &line.core_seconds}) std::sort(seconds->begin(), seconds->end());
    const std::size_t middle = line.seconds.size() / 2;
    std::printf("%-26s %.2f s (%.2f to %.2f) [%.2f s]\n", line.what, line.seconds[middle], line.seconds.front(),
                line.seconds.back(), line.core_seconds[middle]);
  }
  std::filesystem::remove(plain);
  std::filesystem::remove(ours);
}

}  // namespace
}  // namespace convoy

int main(int count, char** words) {
  if (count < 2) return 2;
  convoy::run(words[1], count > 2 ? words[2] : "resnet152", count > 3 ? std::atoi(words[3]) : 5);
}
