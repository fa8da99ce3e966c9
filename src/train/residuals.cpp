// SPDX-License-Identifier: Apache-2.0
#include "train/residuals.hpp"

#include <algorithm>

#include "backend/compression_layout.hpp"
#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "train/training_job.hpp"

namespace convoy {

namespace {

/// Why a checkpoint's residuals are of no use; empty: they are.
std::string why_dropped(const CheckpointMeta& meta, const JobShape& shape, const ParameterTable& table) {
  const CompressionSpec &then = meta.compression, &now = shape.sync.compression;
  if (meta.replicas != shape.replicas) return "this job has a different number of replicas";
  if (then.kind != now.kind) return "this job has a different --wire";
  if (!have_equal_state(compression_layout(table, then), compression_layout(table, now)))
    return fmt::format("this job has a different --{}", words_of(now.kind).setting);
  return {};
}

/// Collective. `best.h5` and means of checkpoints have no shards.
bool has_all_residuals(TrainingJob& job, const Checkpoint& loaded) {
  std::int64_t missing = 0;
  for (int i = 0; i < job.shape.run.count; ++i)
    if (std::none_of(loaded.shards.begin(), loaded.shards.end(), [&](const Shard& shard) {
          return shard.replica == job.shape.run.first + i && !shard.residual.block.empty();
        }))
      missing = 1;
  job.communicator.maximum(std::span(&missing, 1), "residuals of a checkpoint");
  return missing == 0;
}

}  // namespace

void load_residuals(TrainingJob& job, const Checkpoint* loaded) {
  const CompressionSpec& spec = job.shape.sync.compression;
  const ParameterTable& table = job.engine->plan().table;
  bool same = false;
  if (loaded != nullptr && loaded->meta.compression.is_on()) {
    std::string why = why_dropped(loaded->meta, job.shape, table);
    if (why.empty() && !has_all_residuals(job, *loaded)) why = "the checkpoint has no residuals (no shards)";
    same = why.empty();
    if (!same)
      log::info("'{}': the residuals of --wire {} are not used: {}", loaded->path,
                name_of(loaded->meta.compression.kind), why);
  }
  if (!spec.is_on()) return;
  run_agreed(job.communicator, "loading what replicas have not sent", [&] {
    Backend& device = job.engine->backend();
    const auto fill = [&](const ParameterSet& to, const std::vector<float>& values) {
      job.collectives->await(device.upload(to.block, values.data(), to.count), "upload of residuals");
    };
    const auto residuals = job.sync->residuals();
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      device.fill(residuals[i].block, residuals[i].count, 0.0F);
      if (!same) continue;
      for (const Shard& shard : loaded->shards)
        if (shard.replica == job.shape.run.first + static_cast<int>(i)) fill(residuals[i], shard.residual.block);
    }
    const ParameterSet bases = job.sync->bases();
    if (bases.count == 0) return;
    fill(bases, same ? loaded->bases.block : first_bases(compression_layout(table, spec)));
  });
}

}  // namespace convoy
