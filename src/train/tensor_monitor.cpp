// SPDX-License-Identifier: Apache-2.0
#include "train/tensor_monitor.hpp"

#include "train/training_job.hpp"

namespace convoy {

void TensorMonitor::step_done(LoopState& state) {
  const Index every = job_.config.output.monitor;
  if (every == 0 || state.position.step % every != 0 || job_.metrics == nullptr) return;
  Engine& engine = *job_.engine;
  const ParameterTable& table = engine.plan().table;
  const auto set = engine.download(job_.sync->set(job_.shape.run.first), *job_.collectives);
  std::vector<float> gradients(static_cast<std::size_t>(table.trained_floats()));
  job_.collectives->await(engine.backend().download(gradients.data(), engine.gradients(), table.trained_floats(),
                                                    engine.backend().record()),
                          "download of the gradients");
  std::vector<TensorSummary> values, slopes;
  for (const Parameter& row : table.rows) {
    values.push_back(summarise(row.name, set.data() + row.range.begin, row.range.count));
    if (row.trainable) slopes.push_back(summarise(row.name, gradients.data() + row.range.begin, row.range.count));
  }
  job_.metrics->tensors("parameters", state.position.step, values);
  job_.metrics->tensors("gradients", state.position.step, slopes);
}

}  // namespace convoy
