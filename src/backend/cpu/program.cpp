// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/program.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "backend/cpu/choices.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/pass.hpp"
#include "backend/cpu/pass_cost.hpp"
#include "backend/cpu/recomputation.hpp"
#include "backend/cpu/tuning.hpp"
#include "backend/lowering/memory_plan.hpp"
#include "backend/set_layout.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

Storage storage_of(Precision precision) {
  if (precision == Precision::fp32) return Storage::f32;
  if (precision == Precision::bf16) return Storage::bf16;
  fail(Exit::device, "precision {} is not possible on a CPU (it has fp32 and bf16); choose one of them",
       precision == Precision::tf32 ? "tf32" : "fp16");
}

std::vector<Index> norm_pixels(const Lowering& lowering, const Geometry& geometry) {
  std::vector<Index> result;
  for (const Norm& norm : lowering.norms)
    result.push_back(geometry.layouts[static_cast<std::size_t>(norm.value)].pixels());
  return result;
}

class CpuProgram final : public Program {
 public:
  CpuProgram(const Context& context, const Plan& plan, const CompileSpec& spec)
      : plan_(plan),
        spec_(spec),
        context_(context),
        lowering_(lower(plan_, spec_.mode)),
        schedule_(make_schedule(plan_, lowering_, spec.mode)),
        geometry_(make_geometry(plan_, lowering_, spec.height, spec.width,
                                spec.precision == Precision::bf16 ? context.bf16_format : context.fp32_format,
                                storage_of(spec.precision))),
        norms_(plan_, lowering_, norm_pixels(lowering_, geometry_), kernels_for<ArrayKernels>(context.isa)),
        parts_{plan_,        spec_,       lowering_,      schedule_,
               geometry_,    norms_,      context.onednn, context.counters,
               context.step, context.isa, context.threads},
        arrays_(kernels_for<ArrayKernels>(context.isa)) {
    recompute();
    stages_ = stages_of(plan_, lowering_, schedule_, spec.mode);
    for (const lowering::Stage& stage : stages_) ready_ranges_.push_back(stage.ready);
    if (spec.mode == Mode::train) gaps_ = lowering::find_gaps(plan_, lowering_, schedule_.final_rows());
    memory_.tensors.resize(schedule_.tensors.size());
    memory_.samples.reserve(static_cast<std::size_t>(spec.samples));
    make_passes();
    std::vector<Index> scratch;
    for (const auto& pass : passes_) scratch.push_back(pass->scratch_bytes());
    place_ = place(schedule_, scratch);
    floats_ = floats_with(place_.total_bytes);
    if (recomputation_.found > 0) recomputation_.floats_without = floats_with(plain_bytes_);
  }

  Index arena_floats() const override { return floats_; }

  void bind(float* arena, float* gradients) override {
    require(spec_.mode != Mode::train || gradients, "a training program needs a gradient block");
    memory_.gradients = spec_.mode == Mode::train ? gradients : nullptr;
    norms_.bind(arena);
    memory_.losses = arena + norms_.floats();
    auto* const base = reinterpret_cast<std::byte*>(arena + fixed_floats());
    for (std::size_t i = 0; i < memory_.tensors.size(); ++i) memory_.tensors[i] = base + place_.offsets[i];
    scratch_.clear();
    for (std::size_t k = 0; k < passes_.size(); ++k)
      scratch_.push_back(base + place_.offsets[memory_.tensors.size() + k]);
  }

  std::span<const ReadyRange> stages() const override { return ready_ranges_; }

  void feed(const Batch& batch) override {
    require(static_cast<Index>(batch.samples.size()) == spec_.samples, "a batch of another size than compiled for");
    require(spec_.mode != Mode::train || batch.valid_count == spec_.samples, "training batches are full");
    memory_.samples.assign(batch.samples.begin(), batch.samples.end());
    memory_.images = batch.images != nullptr ? batch.images : resident(batch.resident);
    memory_.valid = batch.valid_count;
    memory_.scale = batch.scale;
    replica_ = batch.replica;
    memory_.norm_step.weight = static_cast<double>(batch.valid_count) * static_cast<double>(batch.scale);
    memory_.norm_step.shared_samples =
        batch.norm_scale > 0 ? std::llround(1 / static_cast<double>(batch.norm_scale)) : spec_.samples;
  }

  void launch(std::size_t stage, const ParameterSet& set) override {
    omp_set_num_threads(context_.threads);
    memory_.values = set.block;
    memory_.norm_step.values = set.block;
    memory_.norm_step.gradients = memory_.gradients;
    if (stage == 0) start(set);
    const std::size_t begin = stage == 0 ? 0 : stages_[stage - 1].end;
    for (std::size_t k = begin; k < stages_[stage].end; ++k) run_pass(k);
    if (spec_.mode == Mode::train) finish_stage(stage);
  }

  const float* logits() const override { return reinterpret_cast<const float*>(memory_.tensors[logits_tensor()]); }
  const float* loss_per_sample() const override { return memory_.losses; }
  const std::string& choices() const override { return choices_; }

  std::string describe() const override {
    std::string text;
    std::size_t stage = 0;
    for (std::size_t k = 0; k < passes_.size(); ++k) {
      while (stage < stages_.size() && stages_[stage].end <= k) ++stage;
      const PassPlan& plan = schedule_.passes[k];
      text += fmt::format("stage {:2} {} | {} | {}\n", stage,
                          plan.repeats >= 0 ? "again   " : (plan.backward ? "backward" : "forward "),
                          passes_[k]->nodes(), passes_[k]->kernels());
    }
    return text;
  }

  std::vector<ProgramPart> parts() const override {
    const std::vector<Shape> shapes = infer_shapes(plan_.graph, spec_.height, spec_.width);
    std::vector<ProgramPart> parts;
    for (std::size_t k = 0; k < passes_.size(); ++k) {
      const PassCost cost = cost_of(parts_, schedule_.passes[k], shapes);
      parts.push_back({.backward = schedule_.passes[k].backward,
                       .again = schedule_.passes[k].repeats >= 0,
                       .nodes = passes_[k]->nodes(),
                       .kernels = passes_[k]->kernels(),
                       .flops = cost.flops,
                       .bytes = cost.bytes});
    }
    return parts;
  }
  Recomputation recomputation() const override { return recomputation_; }
  void time_parts() override { seconds_.assign(passes_.size(), 0.0); }
  std::vector<double> part_seconds() override {
    require(!seconds_.empty(), "times of a program whose parts are not timed");
    return seconds_;
  }

 private:
  std::size_t logits_tensor() const {
    return static_cast<std::size_t>(schedule_.value_buffers[static_cast<std::size_t>(lowering_.logits())].index);
  }

  Index fixed_floats() const { return align_floats(norms_.floats()) + align_floats(spec_.samples); }

  Index floats_with(Index placed_bytes) const { return fixed_floats() + placed_bytes / 4 + 16; }

  /// The tensors, and after them the scratch memory of each pass, which it needs while it runs. `scratch`: bytes of the
  /// passes; empty: it lies elsewhere.
  lowering::Placement place(const Schedule& schedule, const std::vector<Index>& scratch) const {
    std::vector<lowering::Lifetime> lifetimes;
    for (const StoredTensor& tensor : schedule.tensors) {
      lifetimes.push_back(tensor.lifetime);
      lifetimes.back().bytes = bytes_of(parts_, tensor);
    }
    lifetimes[logits_tensor()].touch(static_cast<int>(schedule.passes.size()));  // the program's caller reads them
    for (std::size_t k = 0; k < scratch.size(); ++k) {
      const int pass = scratch[k] > 0 ? static_cast<int>(k) : -1;
      lifetimes.push_back({.bytes = scratch[k], .first = pass, .last = pass});
    }
    return lowering::place(lifetimes);
  }

  /// Adds the passes that run blocks again.
  void recompute() {
    if (spec_.mode != Mode::train || spec_.recompute == Recompute::off) return;
    const Schedule plain = schedule_;
    const std::vector<lowering::RepeatedBlock> blocks = find_blocks(parts_, plain);
    const bool limited = spec_.recompute == Recompute::automatic;
    const std::vector<Index> scratch = scratch_of(plain);
    const Index limit = limited ? (spec_.arena_limit - floats_with(0)) * 4 : 0;
    const auto chosen = lowering::choose_blocks(spec_.recompute, blocks, limit, [&](const auto& some) {
      const Schedule schedule = repeat_blocks(plain, some);
      return place(schedule, for_each_pass(schedule, scratch)).total_bytes;
    });
    schedule_ = repeat_blocks(plain, chosen);
    plain_bytes_ = place(plain, scratch).total_bytes;
    recomputation_ = {.blocks = static_cast<int>(chosen.size()), .found = static_cast<int>(blocks.size())};
    const std::vector<Shape> shapes = infer_shapes(plan_.graph, spec_.height, spec_.width);
    double once = 0, again = 0;
    for (const PassPlan& pass : schedule_.passes)
      (pass.repeats >= 0 ? again : once) += cost_of(parts_, pass, shapes).flops;
    if (once > 0) recomputation_.more_flops = again / once;
  }

  /// Scratch of each pass for the kernels that the rule chooses; measured kernels may need more or less.
  std::vector<Index> scratch_of(const Schedule& schedule) const {
    const std::vector<PassChoice> choices = told_choices(schedule);
    std::vector<Index> bytes;
    for (std::size_t k = 0; k < schedule.passes.size(); ++k)
      bytes.push_back(Pass(parts_, schedule.passes[k], choices[k]).scratch_bytes());
    return bytes;
  }

  /// `own`: one for each pass that repeats none, in order. A pass that repeats another takes that one's.
  template <class T>
  static std::vector<T> for_each_pass(const Schedule& schedule, const std::vector<T>& own) {
    std::vector<T> all;
    std::size_t next = 0;
    for (const PassPlan& pass : schedule.passes)
      all.push_back(pass.repeats >= 0 ? all[static_cast<std::size_t>(pass.repeats)] : own[next++]);
    return all;
  }

  /// Returns the kernel choice of each pass, given or by the rule. A pass that repeats another takes its kernels, so
  /// that the bits are the same.
  std::vector<PassChoice> told_choices(const Schedule& schedule) const {
    const auto& passes = schedule.passes;
    std::vector<PassChoice> own;
    if (spec_.choices.empty()) {
      for (const PassPlan& pass : passes)
        if (pass.repeats < 0) own.push_back(choose_by_rule(parts_, pass));
    } else {
      const auto count = std::count_if(passes.begin(), passes.end(), [](const auto& pass) { return pass.repeats < 0; });
      own = read_choices(spec_.choices, static_cast<std::size_t>(count), spec_.samples);
    }
    return for_each_pass(schedule, own);
  }

  void make_passes() {
    std::vector<PassChoice> choices;
    if (spec_.choices.empty() && spec_.tuning == Tuning::measured) {
      omp_set_num_threads(context_.threads);
      choices = choose_by_measuring(parts_, place(schedule_, {}));
    } else {
      choices = told_choices(schedule_);
    }
    std::vector<PassChoice> own;
    for (std::size_t k = 0; k < schedule_.passes.size(); ++k) {
      const PassPlan& plan = schedule_.passes[k];
      passes_.push_back(std::make_unique<Pass>(parts_, plan, choices[k]));
      if (plan.repeats < 0) own.push_back(choices[k]);
    }
    choices_ = write_choices(own);
  }

  const std::uint8_t* resident(int set) const {
    const auto& sets = context_.resident;
    require(set >= 0 && set < static_cast<int>(sets.size()), "a batch without images, and no resident set");
    return sets[static_cast<std::size_t>(set)];
  }

  void start(const ParameterSet& set) {
    worst_stage_ = -1;
    memory_.norm_step.statistics = set.block + set_end(set.count, plan_.table.running_floats()).statistics.begin;
    for (std::size_t i = 0; i < lowering_.norms.size(); ++i)
      if (spec_.mode == Mode::evaluate || lowering_.norms[i].frozen)
        norms_.prepare_evaluation(static_cast<int>(i), memory_.norm_step);
    for (const Range& gap : gaps_) std::fill(memory_.gradients + gap.begin, memory_.gradients + gap.end(), 0.0F);
  }

  void run_pass(std::size_t k) {
    prepare_norms(parts_, memory_.norm_step, k);
    memory_.scratch = scratch_[k];
    if (seconds_.empty()) {
      passes_[k]->run(memory_);
    } else {
      const Instant begin = real_clock().now();
      passes_[k]->run(memory_);
      seconds_[k] = seconds_since(begin);
    }
    if (!memory_.gradients) return;
    const int last = schedule_.passes[k].instructions.back().value;
    if (lowering_.value(last).kind == ValueKind::loss && !arrays_.all_finite(memory_.losses, spec_.samples))
      note_not_finite(0);
  }

  /// The flag names the first stage that made something not finite: stage + 1.
  void note_not_finite(std::size_t stage) {
    if (worst_stage_ < 0) worst_stage_ = static_cast<int>(stage);
  }

  void finish_stage(std::size_t stage) {
    const ReadyRange& ready = stages_[stage].ready;
    const Range& flags = plan_.table.flags;
    if (ready.range.contains(flags.begin) || ready.range.end() == flags.end()) {
      check(stage, {ready.range.begin, flags.begin - ready.range.begin});
    } else {
      check(stage, ready.range);
    }
    // The last stage gives the flags away; each earlier one may have set it.
    memory_.gradients[flags.begin + replica_] = static_cast<float>(worst_stage_ + 1);
  }

  void check(std::size_t stage, const Range& range) {
    std::atomic<bool> finite{true};
    split_units((range.count + 15) / 16, lanes, [&](Index begin, Index end) {
      const Index from = begin * 16, to = std::min(end * 16, range.count);
      if (!arrays_.all_finite(memory_.gradients + range.begin + from, to - from)) finite = false;
    });
    if (!finite) note_not_finite(stage);
  }

  const Plan plan_;
  const CompileSpec spec_;
  const Context context_;
  const Lowering lowering_;
  Schedule schedule_;
  std::vector<lowering::Stage> stages_;
  const Geometry geometry_;
  Norms norms_;
  const ProgramParts parts_;
  const ArrayKernels& arrays_;
  std::vector<ReadyRange> ready_ranges_;
  std::vector<Range> gaps_;
  std::vector<std::unique_ptr<Pass>> passes_;
  std::vector<double> seconds_;  ///< what each pass took when it last ran; empty: nobody asked
  lowering::Placement place_;
  Memory memory_;
  std::string choices_;
  Recomputation recomputation_;
  std::vector<std::byte*> scratch_;  ///< of each pass
  Index plain_bytes_ = 0;            ///< placed, if nothing were computed again
  Index floats_ = 0;
  int replica_ = 0, worst_stage_ = -1;
};

}  // namespace

std::unique_ptr<Program> make_program(const Context& context, const Plan& plan, const CompileSpec& spec) {
  const bool in_bf16 = spec.options == winograd_bf16;
  if (!spec.options.empty() && spec.options != no_winograd && !in_bf16)
    fail(Exit::usage, "the CPU backend has no kernel option '{}' (it has {} and {}); leave it out", spec.options,
         no_winograd, winograd_bf16);
  if (in_bf16 && spec.precision != Precision::bf16)
    fail(Exit::usage,
         "kernel option '{}' multiplies in bf16, and the precision is not bf16; leave it out, or use precision bf16",
         spec.options);
  return std::make_unique<CpuProgram>(context, plan, spec);
}

}  // namespace convoy::cpu
