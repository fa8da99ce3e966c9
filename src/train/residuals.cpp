// SPDX-License-Identifier: Apache-2.0
#include "train/residuals.hpp"

#include "backend/compression_layout.hpp"
#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "train/training_job.hpp"

namespace convoy {

void load_residuals(TrainingJob& job, const Checkpoint* loaded) {
  const CompressionSpec& spec = job.shape.sync.compression;
  const CompressionSpec then = loaded != nullptr ? loaded->meta.compression : CompressionSpec{};
  const bool same = then.kind == spec.kind && loaded != nullptr && loaded->meta.replicas == job.shape.replicas &&
                    (spec.kind != Compression::power_sgd || then.rank == spec.rank);
  if (then.is_on() && !same)
    log::info(
        "what the replicas of '{}' have not sent of their gradients (--wire {}) is dropped: this job has another {}",
        loaded->path, name_of(then.kind), then.kind == spec.kind ? "number of replicas, or rank" : "--wire");
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
    fill(bases, same ? loaded->bases.block : first_bases(compression_layout(job.engine->plan().table, spec)));
  });
}

}  // namespace convoy
