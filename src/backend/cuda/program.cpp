// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/program.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/lowering/execution_plan.hpp"
#include "backend/cuda/lowering/summary.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/feed.hpp"
#include "backend/cuda/runtime/timing.hpp"
#include "backend/cuda/tuning.hpp"
#include "backend/set_layout.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// What a feed takes of the arena, and the whole arena.
Index bytes_of(const Feed& feed) {
  return (feed.device_bytes() + block_alignment - 1) / block_alignment * block_alignment;
}
Index arena_with(const Feed& feed, Index buffer_bytes) {
  return (bytes_of(feed) + buffer_bytes + block_alignment + 3) / 4;
}
Index arena_of(const Feed& feed, const ExecutionPlan& execution) {
  return arena_with(feed, execution.placement.total_bytes);
}

Feed::Spec feed_of(const CompileSpec& spec) {
  return {.samples = spec.samples, .image_bytes = spec.input.height * spec.input.width * spec.input.channels};
}

/// The arena's limit is one for the buffers of the execution.
CompileSpec beside_feed(CompileSpec spec) {
  spec.arena_limit -= arena_with(Feed(feed_of(spec)), 0);
  return spec;
}

/// The execution as told (choices), as measured, or by the rule.
ExecutionPlan compile(const Context& context, const Plan& plan, const CompileSpec& spec, const CopyLayout& copies) {
  CompileSpec told = beside_feed(spec);
  if (spec.tuning == Tuning::measured && spec.choices.empty() && spec.mode == Mode::train)
    told.choices = choose_by_measuring(context, {plan, told, copies, context.cudnn});
  return make_execution_plan({plan, told, copies, context.cudnn});
}

class CudaProgram final : public Program {
 public:
  CudaProgram(const Context& context, const Plan& plan, const CompileSpec& spec)
      : context_(context),
        graph_(plan.graph),
        spec_(spec),
        statistics_(plan.table.running_floats()),
        copies_(context.copies.use(plan, spec.precision)),
        execution_(compile(context, plan, spec, *copies_)),
        feed_(feed_of(spec)) {
    for (const lowering::Stage& stage : execution_.stages) ready_ranges_.push_back(stage.ready);
    launch_.offsets = execution_.placement.offsets.data();
  }

  Index arena_floats() const override { return arena_of(feed_, execution_); }

  void bind(float* arena, float* gradients) override {
    require(spec_.mode != Mode::train || gradients != nullptr, "a training program needs a gradient block");
    auto address = reinterpret_cast<std::uintptr_t>(arena);
    address = (address + block_alignment - 1) / block_alignment * block_alignment;
    auto* const memory = reinterpret_cast<std::byte*>(address);
    feed_.bind(context_.queue, memory);
    launch_.arena = memory + bytes_of(feed_);
    launch_.gradients = spec_.mode == Mode::train ? gradients : nullptr;
    launch_.feed = feed_.numbers();
    launch_.rows = feed_.rows();
    launch_.step = context_.step;
    launch_.counters = context_.counters;
    launch_.stream = context_.queue.stream();
    norms_of_ = 0;  // what is kept of them names places in the arena
    keep_tables();
  }

  std::span<const ReadyRange> stages() const override { return ready_ranges_; }

  void feed(const Batch& batch) override {
    require(static_cast<Index>(batch.samples.size()) == spec_.samples, "a batch of another size than compiled for");
    require(spec_.mode != Mode::train || batch.valid_count == spec_.samples, "training batches are full");
    const auto set = static_cast<std::size_t>(batch.resident);
    require(batch.images != nullptr || set < context_.resident.size(), "a batch without images, and no resident set");
    feed_.send(batch, batch.images != nullptr ? nullptr : context_.resident[set]);
  }

  void launch(std::size_t stage, const ParameterSet& set) override {
    context_.queue.deliver();
    launch_.set = set.block;
    launch_.copies = context_.copies.at(set, *copies_);
    const bool scales = spec_.precision == Precision::fp16 && spec_.mode == Mode::train;
    launch_.loss_scale = scales ? &set_end(set.count, statistics_).device_state(set.block)->loss_scale : nullptr;
    if (stage == 0) start(set);
    const std::size_t begin = stage == 0 ? 0 : execution_.stages[stage - 1].end;
    const std::size_t end = execution_.stages[stage].end;
    bool forked = false;
    for (std::size_t k = begin; k < end; ++k) {
      if (k + 1 == end && forked) context_.queue.follow(Stream::compute, context_.queue.record(Stream::beside));
      if (execution_.steps[k].beside && !timer_) {  // parts are timed one after the other
        run_beside(k);
        forked = true;
      } else {
        run_step(k);
      }
    }
  }

  const float* logits() const override { return fixed<float>(execution_.logits); }
  const float* loss_per_sample() const override { return fixed<float>(execution_.losses); }
  const std::string& choices() const override { return execution_.choices; }
  std::string describe() const override { return cuda::describe(execution_, graph_); }
  Recomputation recomputation() const override {
    Recomputation result = execution_.recomputation;
    if (result.found > 0) result.floats_without = arena_with(feed_, result.floats_without * 4);
    return result;
  }
  std::vector<ProgramPart> parts() const override { return parts_of(execution_, graph_); }
  void time_parts() override {
    if (!timer_) timer_.emplace(execution_.steps.size());
  }
  std::vector<double> part_seconds() override {
    require(timer_.has_value(), "times of a program whose parts are not timed");
    context_.queue.wait(context_.queue.record());
    return timer_->seconds();
  }

 private:
  template <class T>
  T* fixed(int buffer) const {
    return reinterpret_cast<T*>(launch_.arena + launch_.offsets[buffer]);
  }

  /// What doesn't change lies outside of the arena, which other programs use between steps.
  void keep_tables() {
    if (!execution_.pieces.empty() && launch_.pieces == nullptr) {
      launch_.pieces = reinterpret_cast<const GradientPiece*>(
          keep(execution_.pieces.data(), execution_.pieces.size() * sizeof(GradientPiece), "pieces of gradients"));
      launch_.worst = reinterpret_cast<std::int32_t*>(keep(&no_stage, sizeof no_stage, "the first bad stage"));
    }
    if (launch_.arrivals == nullptr && execution_.arrivals > 0)
      launch_.arrivals = reinterpret_cast<unsigned*>(
          context_.queue.allocate(execution_.arrivals * static_cast<Index>(sizeof(unsigned)), "counters of blocks"));
    if (!gaps_ && !execution_.gaps.empty() && spec_.mode == Mode::train) {
      std::vector<FloatRange> ranges;
      for (const Range& gap : execution_.gaps) {
        ranges.push_back({gap.begin, gap.count});
        longest_gap_ = std::max(longest_gap_, gap.count);
      }
      gaps_ = reinterpret_cast<FloatRange*>(keep(ranges.data(), ranges.size() * sizeof(FloatRange), "ranges to clear"));
    }
    if (launch_.mean_image == nullptr && !spec_.input.mean_image.empty()) {
      const auto& image = spec_.input.mean_image;
      launch_.mean_image = reinterpret_cast<float*>(keep(image.data(), image.size() * sizeof(float), "the mean image"));
    }
    if (launch_.class_weights == nullptr && spec_.mode == Mode::train && !spec_.class_weights.empty()) {
      const auto& weights = spec_.class_weights;
      launch_.class_weights =
          reinterpret_cast<float*>(keep(weights.data(), weights.size() * sizeof(float), "the class weights"));
    }
  }

  std::byte* keep(const void* from, std::size_t bytes, const char* what) {
    std::byte* const to = context_.queue.allocate(static_cast<Index>(bytes), what);
    context_.queue.upload_now(to, from, static_cast<Index>(bytes));
    return to;
  }

  /// Where running statistics lie depends on the optimiser's slots, which the first set shows.
  void keep_norms(const ParameterSet& set) {
    if (execution_.evaluation_norms.empty() || norms_of_ == set.count) return;
    std::vector<EvaluationNorm> norms;
    const Index begin = set_end(set.count, statistics_).statistics.begin;
    for (const EvaluationNormRefs& norm : execution_.evaluation_norms) {
      norms.push_back({.gamma = norm.gamma,
                       .beta = norm.beta,
                       .mean = begin + norm.mean,
                       .variance = begin + norm.variance,
                       .channels = static_cast<std::int32_t>(norm.channels),
                       .epsilon = norm.epsilon,
                       .vectors = {.scale = launch_.floats(norm.scale),
                                   .shift = launch_.floats(norm.shift),
                                   .low_scale = launch_.at(norm.low_scale),
                                   .low_shift = launch_.at(norm.low_shift)}});
    }
    launch_.norms = reinterpret_cast<EvaluationNorm*>(
        keep(norms.data(), norms.size() * sizeof(EvaluationNorm), "norms of an evaluation"));
    norms_of_ = set.count;
  }

  void run_step(std::size_t k) {
    if (timer_) timer_->begin(k, launch_.stream);
    execution_.steps[k].run(launch_);
    if (timer_) timer_->end(k, launch_.stream);
  }

  void run_beside(std::size_t k) {
    Queue& queue = context_.queue;
    if (execution_.steps[k].waits) queue.follow(Stream::beside, queue.record());
    LaunchContext now = launch_;
    now.stream = queue.stream(Stream::beside);
    execution_.steps[k].run(now);
  }

  void start(const ParameterSet& set) {
    keep_norms(set);
    if (spec_.mode != Mode::train) return;
    if (gaps_ != nullptr)
      check(clear_ranges(launch_.gradients, gaps_, static_cast<int>(execution_.gaps.size()), longest_gap_,
                         launch_.stream),
            "the clearing of gradients");
  }

  const Context context_;
  const Graph graph_;
  const CompileSpec spec_;
  const Index statistics_;
  const std::shared_ptr<const CopyLayout> copies_;
  const ExecutionPlan execution_;
  std::vector<ReadyRange> ready_ranges_;
  Feed feed_;
  LaunchContext launch_;
  std::optional<PartTimer> timer_;  ///< none: no part is timed
  FloatRange* gaps_ = nullptr;
  Index longest_gap_ = 0;
  Index norms_of_ = 0;  ///< count of the set whose offsets are kept
};

}  // namespace

std::unique_ptr<Program> make_program(const Context& context, const Plan& plan, const CompileSpec& spec) {
  return std::make_unique<CudaProgram>(context, plan, spec);
}

Index program_arena_floats(Library& library, const Plan& plan, const CompileSpec& spec) {
  const CopyLayout copies = make_copy_layout(plan, spec.precision);
  const CompileSpec own = beside_feed(spec);
  const ExecutionPlan execution = make_execution_plan({plan, own, copies, library});
  return arena_of(Feed(feed_of(spec)), execution);
}

std::string describe_program(Library& library, const Plan& plan, const CompileSpec& spec) {
  const CopyLayout copies = make_copy_layout(plan, spec.precision);
  return describe(make_execution_plan({plan, beside_feed(spec), copies, library}), plan.graph);
}

}  // namespace convoy::cuda
