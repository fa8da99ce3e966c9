// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/tuning.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "backend/cpu/choices.hpp"
#include "backend/cpu/memory.hpp"
#include "backend/cpu/pass.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"

namespace convoy::cpu {
namespace {

class Measuring {
 public:
  Measuring(const ProgramParts& parts, const lowering::Placement& tensors) : parts_(with_counters(parts)) {
    const ParameterTable& table = parts.plan.table;
    const CompileSpec& spec = parts.spec;
    parts_.norms.bind(block_.allocate(parts_.norms.floats()));
    auto* const base = reinterpret_cast<std::byte*>(block_.allocate(tensors.total_bytes / 4 + 16));
    for (const Index offset : tensors.offsets) memory_.tensors.push_back(base + offset);

    float* const values = block_.allocate(table.parameters.count);
    Random random(1, Stream::synthetic);
    for (Index i = 0; i < table.parameters.count; ++i) values[i] = 0.1F * (random.uniform() - 0.4F);
    memory_.values = values;
    memory_.norm_step.values = values;
    if (spec.mode == Mode::train) memory_.gradients = block_.allocate(table.block());
    memory_.norm_step.gradients = memory_.gradients;
    memory_.norm_step.shared_samples = spec.samples;
    memory_.losses = block_.allocate(spec.samples);
    float* const statistics = block_.allocate(table.running_floats());
    initialise_statistics(table, statistics);
    memory_.norm_step.statistics = statistics;
    if (spec.mode == Mode::evaluate)
      for (std::size_t i = 0; i < parts.lowering.norms.size(); ++i)
        parts_.norms.prepare_evaluation(static_cast<int>(i), memory_.norm_step);

    memory_.samples.resize(static_cast<std::size_t>(spec.samples));
    image_.resize(static_cast<std::size_t>(spec.input.height * spec.input.width * spec.input.channels));
    for (auto& pixel : image_) pixel = static_cast<std::uint8_t>(random.bits() >> 24);
    memory_.images = image_.data();
    memory_.valid = spec.samples;
    memory_.scale = 1.0F / static_cast<float>(spec.samples);
  }

  std::vector<PassChoice> run() {
    std::vector<PassChoice> choices;
    std::map<std::string, PassChoice> known;
    const auto& passes = parts_.schedule.passes;
    for (std::size_t k = 0; k < passes.size(); ++k) {
      prepare_norms(parts_, memory_.norm_step, k);
      if (passes[k].repeats >= 0) {
        choices.push_back(choices[static_cast<std::size_t>(passes[k].repeats)]);
        run(passes[k], choices.back());  // other tensors overwrote its outputs in the gap, so make them again
        continue;
      }
      const std::string signature = signature_of(parts_, passes[k]);
      const auto found = known.find(signature);
      if (found != known.end()) {
        run(passes[k], found->second);  // later passes want its results
        choices.push_back(found->second);
        continue;
      }
      PassChoice best;
      double least = 0;
      for (const PassChoice& candidate : candidates_of(parts_, passes[k])) {
        const double seconds = seconds_of(passes[k], candidate, 3);
        if (least > 0 && seconds >= least) continue;
        least = seconds;
        best = candidate;
      }
      known[signature] = best;
      choices.push_back(best);
    }
    return choices;
  }

 private:
  ProgramParts with_counters(const ProgramParts& p) {
    return {p.plan, p.spec, p.lowering, p.schedule, p.geometry, p.norms, p.onednn, counters_, p.step, p.isa, p.threads};
  }

  void run(const PassPlan& plan, const PassChoice& choice) { seconds_of(plan, choice, 0); }

  /// The least of `runs` after one that warms up.
  double seconds_of(const PassPlan& plan, const PassChoice& choice, int runs) {
    const Pass pass(parts_, plan, choice);
    if (pass.scratch_bytes() > scratch_bytes_) {
      scratch_ = std::make_unique<HostMemory>();
      scratch_bytes_ = pass.scratch_bytes();
      memory_.scratch = reinterpret_cast<std::byte*>(scratch_->allocate(scratch_bytes_ / 4 + 16));
    }
    double least = 0;
    for (int i = 0; i <= runs; ++i) {
      const Instant begin = real_clock().now();
      pass.run(memory_);
      const double seconds = seconds_since(begin);
      if (i == 1 || (i > 1 && seconds < least)) least = seconds;
    }
    return least;
  }

  Counters counters_;
  const ProgramParts parts_;
  HostMemory block_;
  std::unique_ptr<HostMemory> scratch_;
  Index scratch_bytes_ = 0;
  std::vector<std::uint8_t> image_;
  Memory memory_;
};

}  // namespace

std::vector<PassChoice> choose_by_measuring(const ProgramParts& parts, const lowering::Placement& tensors) {
  return Measuring(parts, tensors).run();
}

void prepare_norms(const ProgramParts& parts, const NormStep& step, std::size_t k) {
  if (k == 0) return;
  const PassPlan& before = parts.schedule.passes[k - 1];
  for (const int value : before.statistics_of)
    for (const int norm : parts.lowering.value(value).norms) parts.norms.prepare_forward(norm, step);
  for (const int norm : before.products_of) parts.norms.prepare_backward(norm, step);
}

}  // namespace convoy::cpu
