// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: everything is done when a call returns, so events are always in the past.
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "backend/cpu/ceilings.hpp"
#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/memory.hpp"
#include "backend/cpu/program.hpp"
#include "backend/cpu/updater.hpp"
#include "backend/factory.hpp"
#include "backend/rules/moving_average.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Cores that this process may run on.
int allowed_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return omp_get_num_procs();
  return std::max(1, CPU_COUNT(&set));
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads)
      : threads_(threads > 0 ? threads : allowed_cores()), isa_(find_instruction_set()), library_(threads_) {
    omp_set_num_threads(threads_);
  }

  float* allocate(Index floats) override { return memory_.allocate(floats); }
  bool host_reads() const override { return true; }
  Event record() override { return {}; }
  bool done(Event) override { return true; }
  void follow(Event) override {}
  Event download(float* host, const float* from, Index n, Event) override {
    copy_floats(host, from, n, 1.0F);
    return {};
  }
  Event upload(float* to, const float* host, Index n) override {
    copy_floats(to, host, n, 1.0F);
    return {};
  }
  void copy(float* to, const float* from, Index n, float factor) override { copy_floats(to, from, n, factor); }
  void add(float* to, const float* from, Index n) override { add_floats(to, from, n); }
  void fill(float* to, Index n, float value) override { fill_floats(to, n, value); }
  void round(float* values, Index n, Wire wire) override { round_floats(values, n, wire); }

  std::unique_ptr<Program> compile(const Plan& plan, const CompileSpec& spec) override {
    check_precision(spec.precision);
    return make_program({library_, isa_.isa, threads_, isa_.fp32_format, isa_.bf16_format, counters_, step_, resident_},
                        plan, spec);
  }
  std::unique_ptr<Updater> compile(const Plan& plan, const OptimiserSpec& spec) override {
    layout_ = set_layout(plan.table, spec);
    return make_updater(plan, spec, step_, counters_);
  }
  SetLayout layout(const Plan& plan, const OptimiserSpec& spec) const override { return set_layout(plan.table, spec); }
  void set_step(const StepParams& params) override { step_ = params; }

  void blend(const ParameterSet& to, const ParameterSet& from) override {
    require(to.count == layout_.count(), "sets to blend that no updater was compiled for");
    blend_range(to.block, from.block, layout_.trained);
    blend_range(to.block, from.block, layout_.moving);
  }
  void refresh(const ParameterSet&) override {}  // kernels take the canonical master and reorder it each step
  void replay(std::uint64_t, FunctionRef body) override { body(); }
  int keep_resident(const std::uint8_t* images, Index, Index) override {
    resident_.push_back(images);
    return static_cast<int>(resident_.size()) - 1;
  }
  Event counters_ready() override { return {}; }
  Counters take_counters() override { return std::exchange(counters_, {}); }
  std::string describe() const override {
    return fmt::format("cpu {} {} {} threads", onednn_version(), name_of(isa_.isa), threads_);
  }
  Ceilings measure_ceilings(const CeilingSpec& spec) override {
    check_precision(spec.precision);
    const bool low = spec.precision == Precision::bf16;
    return cpu::measure_ceilings(library_, isa_.isa, threads_, low ? isa_.bf16_format : isa_.fp32_format, spec);
  }

 private:
  void check_precision(Precision precision) const {
    if (precision == Precision::bf16 && !has_avx512(isa_.isa))
      fail(
          Exit::device,
          "precision bf16 needs AVX-512, which this CPU (or its limit CONVOY_MAX_CPU_ISA or ONEDNN_MAX_CPU_ISA) doesn't have; use fp32");
  }

  void blend_range(float* to, const float* from, Range range) const {
    const float keep = step_.ema_decay;
#pragma omp parallel for simd schedule(static)
    for (Index i = range.begin; i < range.end(); ++i) to[i] = convoy::blend(to[i], from[i], keep);
  }

  int threads_;
  InstructionSet isa_;
  Onednn library_;
  HostMemory memory_;
  StepParams step_;
  SetLayout layout_;
  Counters counters_;
  std::vector<const std::uint8_t*> resident_;
};

}  // namespace
}  // namespace convoy::cpu

namespace convoy {

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<cpu::CpuBackend>(threads); }

}  // namespace convoy
