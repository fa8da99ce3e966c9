// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/program.hpp"

#include <utility>
#include <vector>

#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/lowering/memory_plan.hpp"
#include "backend/cuda/lowering/recipe.hpp"
#include "backend/cuda/lowering/table.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/feed.hpp"
#include "backend/cuda/tuning.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

constexpr Index device_state_floats = 16;
constexpr Index arena_alignment = 256;

/// The recipe as told (choices), as measured, or by the rule.
Recipe compile(const Context& context, const Plan& plan, const CompileSpec& spec, const CopyLayout& copies) {
  CompileSpec told = spec;
  if (spec.tuning == Tuning::measured && spec.choices.empty() && spec.mode == Mode::train)
    told.choices = choose_by_measuring(context, {plan, spec, copies, context.library});
  return make_recipe({plan, told, copies, context.library});
}

class CudaProgram final : public Program {
 public:
  CudaProgram(const Context& context, const Plan& plan, const CompileSpec& spec)
      : context_(context),
        graph_(plan.graph),
        spec_(spec),
        statistics_(plan.table.statistics.count),
        flags_(plan.table.flags),
        copies_(context.copies.use(plan, spec.precision)),
        recipe_(compile(context, plan, spec, *copies_)),
        placement_(plan_memory(recipe_)),
        feed_({.samples = spec.samples, .image_bytes = spec.input.height * spec.input.width * spec.input.channels}) {
    for (const RecipeStage& stage : recipe_.stages) ready_ranges_.push_back(stage.ready);
    frame_.offsets = placement_.offsets.data();
  }

  Index arena_floats() const override { return (feed_bytes() + placement_.total_bytes + arena_alignment + 3) / 4; }

  void bind(float* arena, float* gradients) override {
    require(spec_.mode != Mode::train || gradients != nullptr, "a training program needs a gradient block");
    auto address = reinterpret_cast<std::uintptr_t>(arena);
    address = (address + arena_alignment - 1) / arena_alignment * arena_alignment;
    auto* const memory = reinterpret_cast<std::byte*>(address);
    feed_.bind(context_.queue, memory);
    frame_.arena = memory + feed_bytes();
    frame_.gradients = spec_.mode == Mode::train ? gradients : nullptr;
    frame_.feed = feed_.numbers();
    frame_.rows = feed_.rows();
    frame_.step = context_.step;
    frame_.tally = context_.tally;
    frame_.stream = context_.queue.stream();
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
    frame_.set = set.block;
    frame_.copies = context_.copies.at(set, *copies_);
    const bool scales = spec_.precision == Precision::fp16 && spec_.mode == Mode::train;
    frame_.loss_scale = scales ? set.block + set.count - device_state_floats : nullptr;
    if (stage == 0) start(set);
    const std::size_t begin = stage == 0 ? 0 : recipe_.stages[stage - 1].end_step;
    for (std::size_t k = begin; k < recipe_.stages[stage].end_step; ++k) recipe_.steps[k].run(frame_);
    if (spec_.mode == Mode::train) finish(stage);
  }

  const float* logits() const override { return fixed<float>(recipe_.logits); }
  const float* loss_per_sample() const override { return fixed<float>(recipe_.losses); }
  const std::string& choices() const override { return recipe_.choices; }
  std::string describe() const override { return cuda::describe(recipe_, graph_); }

 private:
  Index feed_bytes() const { return (feed_.device_bytes() + arena_alignment - 1) / arena_alignment * arena_alignment; }

  template <class T>
  T* fixed(int buffer) const {
    return reinterpret_cast<T*>(frame_.arena + frame_.offsets[buffer]);
  }

  /// What doesn't change lies outside of the arena, which other programs use between steps.
  void keep_tables() {
    if (!gaps_ && !recipe_.gaps.empty() && spec_.mode == Mode::train) {
      std::vector<FloatRange> ranges;
      for (const Range& gap : recipe_.gaps) ranges.push_back({gap.begin, gap.count});
      gaps_ = reinterpret_cast<FloatRange*>(keep(ranges.data(), ranges.size() * sizeof(FloatRange), "ranges to clear"));
    }
    if (frame_.mean_image == nullptr && !spec_.input.mean_image.empty()) {
      const auto& image = spec_.input.mean_image;
      frame_.mean_image = reinterpret_cast<float*>(keep(image.data(), image.size() * sizeof(float), "the mean image"));
    }
  }

  std::byte* keep(const void* from, std::size_t bytes, const char* what) {
    std::byte* const to = context_.queue.allocate(static_cast<Index>(bytes), what);
    context_.queue.upload_now(to, from, static_cast<Index>(bytes));
    return to;
  }

  /// Where running statistics lie depends on the optimiser's slots, which the first set shows.
  void keep_norms(const ParameterSet& set) {
    if (recipe_.evaluation_norms.empty() || norms_of_ == set.count) return;
    std::vector<EvaluationNorm> norms;
    const Index begin = set.count - device_state_floats - statistics_;
    for (const RecipeNorm& norm : recipe_.evaluation_norms) {
      norms.push_back({.gamma = norm.gamma,
                       .beta = norm.beta,
                       .mean = begin + norm.mean,
                       .variance = begin + norm.variance,
                       .channels = static_cast<std::int32_t>(norm.channels),
                       .epsilon = norm.epsilon,
                       .vectors = {.scale = frame_.floats(norm.scale),
                                   .shift = frame_.floats(norm.shift),
                                   .low_scale = frame_.at(norm.low_scale),
                                   .low_shift = frame_.at(norm.low_shift)}});
    }
    frame_.norms = reinterpret_cast<EvaluationNorm*>(
        keep(norms.data(), norms.size() * sizeof(EvaluationNorm), "norms of an evaluation"));
    norms_of_ = set.count;
  }

  void start(const ParameterSet& set) {
    if (spec_.mode == Mode::evaluate) keep_norms(set);
    if (spec_.mode != Mode::train) return;
    if (gaps_ != nullptr)
      check(clear_ranges(frame_.gradients, gaps_, static_cast<int>(recipe_.gaps.size()), frame_.stream),
            "the clearing of gradients");
    check(forget_worst(fixed<std::int32_t>(recipe_.worst), frame_.stream), "the start of a step");
  }

  /// The flags of the other replicas stay as they are; the last stage gives them away.
  void finish(std::size_t stage) {
    Range range = ready_ranges_[stage].range;
    const bool last = range.count > 0 && range.end() == flags_.end();
    if (last) range.count = flags_.begin - range.begin;
    auto* const worst = fixed<std::int32_t>(recipe_.worst);
    if (range.count > 0)
      check(note_not_finite(frame_.gradients + range.begin, range.count, static_cast<std::int32_t>(stage), worst,
                            frame_.stream),
            "the check of gradients");
    if (last) check(give_flag(worst, frame_.feed, frame_.gradients + flags_.begin, frame_.stream), "a replica's flag");
  }

  const Context context_;
  const Graph graph_;
  const CompileSpec spec_;
  const Index statistics_;
  const Range flags_;
  const std::shared_ptr<const CopyLayout> copies_;
  const Recipe recipe_;
  const Placement placement_;
  std::vector<ReadyRange> ready_ranges_;
  Feed feed_;
  Frame frame_;
  FloatRange* gaps_ = nullptr;
  Index norms_of_ = 0;  ///< count of the set whose offsets are kept
};

}  // namespace

std::unique_ptr<Program> make_program(const Context& context, const Plan& plan, const CompileSpec& spec) {
  return std::make_unique<CudaProgram>(context, plan, spec);
}

std::string describe_program(Library& library, const Plan& plan, const CompileSpec& spec) {
  const CopyLayout copies = make_copy_layout(plan, spec.precision);
  return describe(make_recipe({plan, spec, copies, library}), plan.graph);
}

}  // namespace convoy::cuda
