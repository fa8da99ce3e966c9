// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saver.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/wall_clock.hpp"
#include "io/folder.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {

constexpr double slow_bytes_per_second = 5e6, visible_seconds = 30;
constexpr const char* choose_another = "give --checkpoint-dir a writable path";

/// Rank 0 must see every shard as its writer left it, or the set could never be loaded. Network file systems may take
/// a while to show it.
void check_shard(const std::string& folder, const ShardRecord& shard, const Fence& fence, Clock& clock) {
  const std::string path = folder + "/" + shard.file;
  const auto is_there = [&] {
    std::error_code ignored;
    try {
      return fs::exists(path, ignored) && seal_digest(path) == shard.seal;
    } catch (const Error&) {  // not all of it is seen yet
      return false;
    }
  };
  for (const Instant begin = clock.now(); !is_there();) {
    list_folder(folder);  // opening the folder makes NFS look again for files it has seen missing
    if (is_there()) return;
    fence.check();
    if (seconds_between(begin, clock.now()) > visible_seconds) {
      fail(
          Exit::data,
          "shard '{}' can't be seen on rank 0 as replica {} wrote it; put --checkpoint-dir on a file system that all hosts share",
          path, shard.replica);
    }
    clock.sleep(0.1);
  }
}

}  // namespace

Saver::Saver(Communicator& communicator, Place place)
    : communicator_(communicator), place_(std::move(place)), writer_(place_.clock) {}

void Saver::begin(SaveSpec spec) {
  auto save = std::make_unique<Save>();
  save->spec = std::move(spec);
  Save& at = *save;
  saves_.push_back(std::move(save));
  if (at.spec.with_shards) {
    at.part = writer_.submit([this, &at] { write_shards(at); });
  } else {
    begin_main(at);
  }
}

void Saver::begin_main(Save& save) {
  save.main_begun = true;
  std::vector<ShardRecord> shards;
  if (save.spec.with_shards) {
    // Seal and samples of every replica; the names follow from the numbers.
    const auto replicas = static_cast<std::size_t>(save.spec.meta.replicas);
    std::vector<std::int64_t> facts(2 * replicas, 0);
    for (const ShardRecord& own : save.own) {
      facts.at(2 * static_cast<std::size_t>(own.replica)) = own.seal;
      facts.at(2 * static_cast<std::size_t>(own.replica) + 1) = own.samples_since_average;
    }
    communicator_.sum(facts, "seals of the checkpoint's shards");
    for (std::size_t r = 0; r < replicas; ++r) {
      shards.push_back({static_cast<int>(r), facts[2 * r + 1],
                        shard_file(save.spec.name, static_cast<int>(r), place_.fence.number()),
                        static_cast<std::uint32_t>(facts[2 * r])});
    }
  }
  if (communicator_.rank() != 0) {
    save.part = writer_.submit({});
    return;
  }
  save.part = writer_.submit([this, &save, named = std::move(shards)] { write_main(save, named); });
}

void Saver::write_shards(Save& save) const {
  if (!save.spec.shards.empty()) make_folder(place_.folder, choose_another);
  CheckpointMeta meta = save.spec.meta;
  meta.ema_decay = 0;  // the main file's alone
  meta.has_outer = false;
  for (const Shard& shard : save.spec.shards) {
    const std::string file = shard_file(save.spec.name, shard.replica, place_.fence.number());
    const std::string path = place_.folder + "/" + file;
    save.own.push_back({shard.replica, shard.samples_since_average, file, 0});
    write_set_file(
        path, place_.plan, place_.layout, {meta, place_.plan.graph.model, {}, shard.replica, shard.set.first > 0},
        {.set = shard.set, .compressed = meta.compression.is_on() ? &shard.residual : nullptr}, place_.fence);
    save.own.back().seal = seal_digest(path);
  }
}

void Saver::make_way(const std::string& name) {
  const auto rest = name == "best" ? std::partition(abandoned_.begin(), abandoned_.end(),
                                                    [](const std::string& file) { return !file.starts_with("best."); })
                                   : abandoned_.begin();
  if (rest == abandoned_.end()) return;
  put_aside(place_.folder, {rest, abandoned_.end()}, aside_, place_.fence);
  abandoned_.erase(rest, abandoned_.end());
  log::warn("checkpoints of an earlier run or line in '{}' were moved to '{}'", place_.folder, aside_);
}

void Saver::write_main(Save& save, std::vector<ShardRecord> shards) {
  make_folder(place_.folder, choose_another);
  for (const ShardRecord& shard : shards) check_shard(place_.folder, shard, place_.fence, place_.clock);
  const FileMeta meta{save.spec.meta, place_.plan.graph.model, std::move(shards)};
  write_set_file(main_path(place_.folder, save.spec.name), place_.plan, place_.layout, meta,
                 {*save.spec.averaged, save.spec.ema.get(), save.spec.outer.get(), save.spec.bases.get()}, place_.fence,
                 [&] { make_way(save.spec.name); });
  save.in_place = place_.clock.wall_seconds();
  remove_shards(place_.folder, save.spec.name, meta.shards, place_.fence);
  // `best` adds none, and those of an earlier line may still wait to be moved aside.
  if (save.spec.name != "best") drop_old_checkpoints(place_.folder, place_.keep, place_.fence);
}

Exit Saver::outcome(const Save& save) {
  Writer::Failure failure = writer_.take_failure(save.part);
  // A newer attempt removes what this one has half written, so writing fails in ways that blame the file system.
  if (failure.code != Exit::ok && place_.fence.newer() != 0) failure.code = Exit::superseded;
  std::array<std::int64_t, 1> code{static_cast<int>(failure.code)};
  communicator_.maximum(code, "outcome of a checkpoint");
  if (failure.code != Exit::ok && failure.code != Exit::superseded)
    log::warn("{}: checkpoint '{}' was not saved, the one before stays", failure.text, save.spec.name);
  return static_cast<Exit>(code[0]);
}

void Saver::advance(Index agreed) {
  while (!saves_.empty() && agreed >= saves_.front()->part) {
    Save& save = *saves_.front();
    const Exit code = outcome(save);
    if (code == Exit::ok && !save.main_begun) {
      begin_main(save);
    } else {
      conclude(code);
    }
  }
}

void Saver::conclude(Exit code) {
  Save& save = *saves_.front();
  if (code != Exit::ok) {
    // Shards that no main file names.
    for (const ShardRecord& shard : save.own) {
      std::error_code ignored;
      fs::remove(fs::path(place_.folder) / shard.file, ignored);
    }
  }
  const double begun = save.spec.begun;
  results_.push_back({std::move(save.spec), code, std::max(0.0, save.in_place - begun)});
  saves_.pop_front();
}

double Saver::bytes_of(const Save& save) const {
  const int of_main = 1 + (save.spec.meta.ema_decay > 0 ? 1 : 0) + (save.spec.meta.has_outer ? 2 : 0);
  const auto sets = static_cast<double>(save.spec.shards.size()) + of_main;
  return sets * static_cast<double>(place_.layout.count()) * sizeof(float);
}

void Saver::finish() {
  // All ranks come by again and again, so that none of them waits for another's disk within a collective.
  constexpr double round_seconds = 0.2;
  Instant part_begun = place_.clock.now();
  for (Index part = 0; !saves_.empty();) {
    const Save& save = *saves_.front();
    if (part != save.part) part_begun = place_.clock.now();
    part = save.part;
    const bool done = writer_.wait_for(part, round_seconds);
    const double waited = seconds_between(part_begun, place_.clock.now());
    const double limit = place_.timeout_seconds + bytes_of(save) / slow_bytes_per_second;
    if (!done && place_.timeout_seconds > 0 && waited > limit) {
      std::array<char, 512> call{};
      describe_longest_io(call.data(), call.size());
      fail(
          Exit::communication,
          "waited {:.0f} s for the checkpoint '{}' to be written ({}); see whether that file system is alive, or raise --stall-abort-seconds",
          waited, save.spec.name, call[0] == 0 ? "no call to a file system is under way" : call.data());
    }
    std::array<std::int64_t, 1> least{-writer_.finished()};
    communicator_.maximum(least, "checkpoints that are being written");
    advance(-least[0]);
  }
}

std::optional<SaveResult> Saver::take_result() {
  if (results_.empty()) return std::nullopt;
  SaveResult result = std::move(results_.front());
  results_.pop_front();
  return result;
}

}  // namespace convoy
