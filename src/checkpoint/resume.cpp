// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/resume.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "backend/compression_layout.hpp"
#include "backend/set_layout.hpp"
#include "comm/agree.hpp"
#include "core/descriptor.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {

void mark_damaged(const std::string& path, const std::string& reason) {
  std::error_code error;
  fs::rename(path, path + ".damaged", error);
  std::string said = fmt::format("'{}' is damaged", path);
  said = reason.starts_with(said) ? reason : fmt::format("{} ({})", said, reason);
  log::warn("checkpoint {}; {}", said,
            error ? "it cannot be renamed (" + error.message() + ")" : "renamed to '" + path + ".damaged'");
}

/// What makes a file readable that the system does not open.
std::string remedy_of(int reason, bool is_link) {
  if (is_link && reason == ENOENT) return "mount what the link leads to";
  if (reason == EACCES || reason == EPERM) return "give yourself the right to read it";
  if (reason == EMFILE || reason == ENFILE) return "raise the limit on open files (ulimit -n)";
  return "repair the file system";
}

/// Throws Error(data) for a file that the system does not open, since it may be whole. A file that is gone is no error.
void require_opens(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const int reason = errno;
  std::error_code unknown;
  const bool is_link = fs::is_symlink(path, unknown);
  if (file.number() >= 0 || (reason == ENOENT && !is_link)) return;
  fail(Exit::data,
       "checkpoint '{}' can't be opened ({}), so it may be whole; {}, or move it away to continue from an older one",
       path, std::generic_category().message(reason), remedy_of(reason, is_link));
}

/// Renames a damaged file. Throws Error(data) for one that can't even be opened.
void set_aside(const std::string& path, const std::string& reason) {
  require_opens(path);
  mark_damaged(path, reason);
}

/// Rank 0's search: candidates that others may still find torn are asked for one after another.
class Search {
 public:
  Search(const std::string& folder, const WhyForeign& why_foreign, const Lineage& lineage)
      : folder_(folder), why_foreign_(why_foreign), candidates_(list_checkpoints(folder, set_aside, lineage)) {}

  /// Path and meta text of the next whole main file, in two lines; empty: there is none.
  std::string next() {
    while (next_ < candidates_.size()) {
      const std::string& path = candidates_[next_++];
      try {
        check_seal(path);
      } catch (const Error& error) {
        set_aside(path, error.what());
        continue;
      }
      const FileMeta file = read_whole_meta(path);  // one that another version wrote is no damaged one
      const std::string foreign = file.replica >= 0 ? fmt::format("it is the shard of replica {}", file.replica)
                                  : why_foreign_    ? why_foreign_(file)
                                                    : std::string();
      if (foreign.empty()) return path + "\n" + to_text(file);
      log::warn("checkpoint '{}' is not of this run ({}): left alone", path, foreign);
      ++foreign_;
    }
    if (foreign_ > 0) {
      fail(
          Exit::data,
          "'{}' holds no checkpoint of this run ({} foreign); give the network it was trained with, name one of them with --resume, or choose another --output-dir",
          folder_, foreign_);
    }
    return {};
  }

 private:
  const std::string folder_;
  const WhyForeign& why_foreign_;
  const std::vector<std::string> candidates_;
  std::size_t next_ = 0;
  int foreign_ = 0;
};

FoundCheckpoint parse_found(const std::string& answer) {
  const std::size_t end = answer.find('\n');
  FoundCheckpoint found{.path = answer.substr(0, end), .file = {}};
  found.file = parse_meta(answer.substr(end + 1), found.path);
  return found;
}

/// Of this rank's share of the shards: every shard is read by one rank.
std::string find_damaged_shard(const Communicator& communicator, const FoundCheckpoint& found) {
  const auto& shards = found.file.shards;
  for (auto i = static_cast<std::size_t>(communicator.rank()); i < shards.size();
       i += static_cast<std::size_t>(communicator.size())) {
    // A file that rank 0 sees and this rank doesn't is no damage: the folder isn't shared.
    std::error_code unknown;
    if (!fs::exists(found.path, unknown))
      fail(Exit::data,
           "'{}' can't be seen here (but on rank 0); put --checkpoint-dir on a file system that all hosts share",
           found.path);
    if (std::string damage = find_damage(found.path, shards[i]); !damage.empty()) {
      require_opens(shard_path(found.path, shards[i]));
      return damage;
    }
  }
  return {};
}

std::vector<Shard> load_shards(const FoundCheckpoint& found, const Plan& plan, const SetLayout& layout,
                               const LoadSpec& spec, const HostSet& averaged) {
  std::vector<Shard> shards;
  for (const ShardRecord& record : found.file.shards) {
    if (record.replica < spec.first_replica || record.replica >= spec.first_replica + spec.replica_count) continue;
    const std::string path = shard_path(found.path, record);
    if (seal_digest(path) != record.seal)
      fail(Exit::data, "shard '{}' doesn't belong to '{}' (it is of another save); resume from another checkpoint",
           path, found.path);
    SetFile file = read_set_file(path, plan, layout, Content::all, Head::must_fit, record.replica);
    if (file.meta.values_in_main)
      std::copy_n(averaged.block.begin() + layout.values.begin, layout.values.count,
                  file.set.block.begin() + layout.values.begin);
    shards.push_back({record.replica, record.samples_since_average, std::move(file.set), std::move(file.compressed)});
  }
  return shards;
}

}  // namespace

std::optional<FoundCheckpoint> find_checkpoint(Communicator& communicator, const std::string& folder,
                                               const WhyForeign& why_foreign, const Lineage& lineage) {
  std::optional<Search> search;
  for (;;) {
    const std::string answer = ask_first_rank(communicator, "looking for checkpoints", [&] {
      if (!search) search.emplace(folder, why_foreign, lineage);
      return search->next();
    });
    if (answer.empty()) return std::nullopt;
    FoundCheckpoint found = parse_found(answer);
    std::string own;
    together_or_throw(communicator, "checking a checkpoint", [&] { own = find_damaged_shard(communicator, found); });
    const FirstText damage = first_text(communicator, own, "state of a checkpoint");
    if (damage.rank < 0) return found;
    if (communicator.rank() == 0) mark_damaged(found.path, damage.text);
  }
}

FoundCheckpoint open_checkpoint(Communicator& communicator, const std::string& path,
                                const std::function<std::string(const std::string&)>& resolve) {
  return parse_found(ask_first_rank(communicator, "opening a checkpoint", [&] {
    const std::string file = resolve(path);
    return file + "\n" + to_text(read_main_meta(file));
  }));
}

FoundCheckpoint open_to_resume(Communicator& communicator, const std::string& path) {
  FoundCheckpoint found = open_checkpoint(communicator, path);
  if (found.file.meta.texts.count("average_of") > 0)
    fail(Exit::data,
         "'{}' is an average of checkpoints, from which no run can resume (it has no optimizer state and no place in a "
         "run); start a new run from its weights: --weights {} in place of --resume",
         found.path, shell_word(found.path));
  return found;
}

Checkpoint load_checkpoint(Communicator& communicator, const FoundCheckpoint& found, const Plan& plan,
                           const SetLayout& layout, const LoadSpec& spec) {
  Checkpoint checkpoint{.path = found.path, .meta = found.file.meta};
  const bool has_ema = !spec.weights_only && found.file.meta.ema_decay > 0,
             has_outer = !spec.weights_only && found.file.meta.has_outer;
  if (spec.weights_only) checkpoint.meta.position = {};
  std::istringstream unread(ask_first_rank(communicator, "reading a checkpoint", [&] {
    const Content content = !spec.weights_only                     ? Content::all
                            : spec.choice == WeightChoice::trained ? Content::trained_weights
                                                                   : Content::weights;
    SetFile file = read_set_file(found.path, plan, layout, content, spec.head);
    checkpoint.set = std::move(file.set);
    checkpoint.ema = std::move(file.ema);
    checkpoint.outer = std::move(file.outer);
    checkpoint.bases = std::move(file.compressed);
    return fmt::format("{}", fmt::join(file.unread, " "));
  }));
  for (std::string name; unread >> name;) checkpoint.unread.push_back(name);
  const auto send = [&](std::vector<float>& block, Index floats) {
    block.resize(static_cast<std::size_t>(floats));
    communicator.broadcast(std::as_writable_bytes(std::span(block)), 0, "values of a checkpoint");
  };
  send(checkpoint.set.block, layout.count());
  if (has_ema) send(checkpoint.ema.block, layout.count());
  if (has_outer) send(checkpoint.outer.block, outer_layout(layout).count());
  if (!spec.weights_only && found.file.meta.compression.is_on())
    send(checkpoint.bases.block, compression_layout(plan.table, found.file.meta.compression).basis_floats);
  if (!spec.weights_only && spec.shards && !found.file.shards.empty())
    together_or_throw(communicator, "reading the shards of a checkpoint",
                      [&] { checkpoint.shards = load_shards(found, plan, layout, spec, checkpoint.set); });
  return checkpoint;
}

}  // namespace convoy
