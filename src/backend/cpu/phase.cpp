// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/phase.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/cpu/convolution_steps.hpp"
#include "backend/cpu/dense_steps.hpp"
#include "backend/cpu/loop_steps.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {

/// Turns actions into steps and hands out scratch memory.
class Phase::Builder {
 public:
  Builder(const ProgramParts& parts, const PhasePlan& plan, Phase& phase)
      : parts_(parts),
        plan_(plan),
        phase_(phase),
        tile_(phase.choice_.inner ? parts.spec.samples : phase.choice_.tile) {
    for (const int value : plan.tiles) tiles_.push_back(in_thread(tile_ * field(value).image_bytes()));
  }

  void build() {
    for (const Action& action : plan_.actions) add(action);
  }

 private:
  void add(const Action& action) {
    switch (action.kind) {
      case ActionKind::input:
        return add_input(action);
      case ActionKind::evaluate:
        return add_evaluate(action);
      case ActionKind::statistics:
        return add_statistics(action);
      case ActionKind::collect:
        return add_collect(action);
      case ActionKind::convolve:
        return add_convolution(action, Direction::forward);
      case ActionKind::data_gradient:
        return add_convolution(action, Direction::data);
      case ActionKind::weight_gradient:
        return add_weight_gradient(action);
      case ActionKind::pool:
      case ActionKind::pool_gradient:
        return add_pool(action);
      case ActionKind::local_response:
      case ActionKind::local_response_gradient:
        return add_local_response(action);
      case ActionKind::dropout:
      case ActionKind::dropout_gradient:
        return add_dropout(action);
      case ActionKind::global_pool:
        push(std::make_unique<GlobalPoolStep>(parts_.kernels, Way::forward, field(source_of(action.value)),
                                              operand(action.in[0], source_of(action.value)),
                                              operand(action.out, action.value)));
        return;
      case ActionKind::global_pool_gradient:
        push(std::make_unique<GlobalPoolStep>(parts_.kernels, Way::backward, field(source_of(action.value)),
                                              operand(action.in[0], action.value),
                                              operand(action.out, source_of(action.value))));
        return;
      case ActionKind::convert:
      case ActionKind::convert_gradient:
        return add_convert(action);
      case ActionKind::linear:
      case ActionKind::linear_gradient:
        return add_linear(action);
      case ActionKind::loss: {
        const auto& loss = std::get<Loss>(parts_.plan.graph.nodes.back().attributes);
        push(std::make_unique<LossStep>(LossStep::Spec{.classes = field(action.value).channels,
                                                       .smoothing = loss.label_smoothing,
                                                       .topk = parts_.spec.topk,
                                                       .logits = operand(action.in[0], action.value),
                                                       .gradient = operand(action.out, action.value)},
                                        parts_.counters));
        return;
      }
    }
  }

  void add_input(const Action& action) {
    const CompileSpec& spec = parts_.spec;
    const Operand x = operand(action.out, action.value);
    if (plain(action.value)) {
      push(std::make_unique<InputStep>(spec.input, spec.height, spec.width, x));
      return;
    }
    const Operand made = in_shared(spec.samples * field(action.value).channels * spec.height * spec.width * 4);
    push(std::make_unique<InputStep>(spec.input, spec.height, spec.width, made));
    push(std::make_unique<OrderStep>(field(action.value), OrderStep::To::field, made, x));
  }

  void add_evaluate(const Action& action) {
    const Value& group = value(action.value);
    EvaluateStep::Spec spec;
    spec.args.field = field(action.value);
    spec.args.curve = group.curve;
    spec.args.slope = group.slope;
    spec.first = operand(action.in[0], action.value);
    spec.second = operand(action.in[1], action.value);
    spec.out = operand(action.out, action.value);
    const auto vectors = [&](std::size_t i) -> const NormVectors* {
      return i < group.terms.size() && group.terms[i].norm >= 0 ? &parts_.norms.vectors(group.terms[i].norm) : nullptr;
    };
    spec.norm0 = vectors(0);
    spec.norm1 = vectors(1);
    push(std::make_unique<EvaluateStep>(parts_.kernels, spec));
  }

  void add_statistics(const Action& action) {
    const Field& f = field(action.value);
    push(std::make_unique<StatisticsStep>(parts_.kernels, parts_.norms,
                                          StatisticsStep::Spec{.field = f,
                                                               .value = operand(action.in[0], action.value),
                                                               .sums = partial_sums(f),
                                                               .squares = partial_sums(f),
                                                               .norms = value(action.value).norms,
                                                               .images = parts_.spec.samples}));
  }

  void add_collect(const Action& action) {
    const Value& v = value(action.value);
    const Field& f = field(action.value);
    CollectStep::Spec spec;
    spec.args.field = f;
    spec.args.curve = v.curve;
    spec.args.slope = v.slope;
    spec.gradient = operand(action.in[collect_gradient], action.value);
    spec.self = operand(action.in[collect_self], action.value);
    spec.second = operand(action.in[collect_second], action.value);
    spec.output = operand(action.in[collect_output], action.value);
    spec.out = operand(action.out, action.value);
    spec.images = parts_.spec.samples;
    if (action.norm >= 0) spec.through = &parts_.norms.vectors(action.norm);
    for (std::size_t i = 0; i < 2 && action.norms[i] >= 0; ++i) {
      ++spec.args.norms;
      spec.norms[i] = action.norms[i];
      spec.value[i] = operand(action.in[collect_norm0 + i], action.value);
      spec.products[i] = partial_sums(f);
    }
    if (spec.args.norms > 0) spec.sums = partial_sums(f);
    push(std::make_unique<CollectStep>(parts_.kernels, parts_.norms, spec));
  }

  std::unique_ptr<ConvolutionKernel> kernel(int id, Direction direction) {
    ConvolutionSpec spec;
    spec.shape = convolution_of(parts_.plan, parts_.lowering, parts_.geometry, id, tile_);
    spec.direction = direction;
    spec.threads = phase_.choice_.inner ? parts_.threads : 1;
    spec.copies = phase_.threads_;
    spec.algorithm = phase_.choice_.algorithms[static_cast<std::size_t>(direction)];
    const ConvolutionShape& s = spec.shape;
    if (s.kernel != 3 || s.stride != 1 || s.groups != 1 || s.storage != Storage::f32)
      spec.algorithm = Algorithm::direct;
    if (auto made = ConvolutionKernel::make(parts_.library, spec)) return made;
    spec.algorithm = Algorithm::direct;
    return ConvolutionKernel::make(parts_.library, spec);
  }

  /// The convolution reads the image in fp32 while its result is bf16: through a tile in fp32.
  bool through_fp32(int id) const { return plain(source_of(id)) && field(id).storage != Storage::f32; }
  Field in_fp32(int id) const {
    Field f = field(id);
    f.storage = Storage::f32;
    return f;
  }

  void add_convolution(const Action& action, Direction direction) {
    const int id = action.value, source = source_of(id);
    const bool forward = direction == Direction::forward;
    auto made = kernel(id, direction);
    ConvolutionStep::Spec spec;
    spec.direction = direction;
    spec.weight = parameter(id, 0);
    if (forward) spec.bias = parameter(id, 1);
    spec.from = operand(action.in[0], forward ? source : id);
    spec.to = operand(action.out, forward ? id : source);
    spec.packed = in_shared(made->packed_bytes());
    spec.scratch = in_thread(made->scratch_bytes());
    if (through_fp32(id)) {
      require(forward, "the image has no gradient");
      const Operand result = spec.to, wide = in_thread(tile_ * in_fp32(id).image_bytes());
      spec.to = wide;
      push(std::make_unique<ConvolutionStep>(std::move(made), spec));
      push(std::make_unique<StorageStep>(parts_.kernels, in_fp32(id), wide, result));
      return;
    }
    push(std::make_unique<ConvolutionStep>(std::move(made), spec));
  }

  void add_weight_gradient(const Action& action) {
    const int id = action.value;
    auto made = kernel(id, Direction::weights);
    WeightGradientStep::Spec spec;
    if (trains(id, 0)) spec.weight = parameter(id, 0);
    if (trains(id, 1)) spec.bias = parameter(id, 1);
    spec.source = operand(action.in[0], source_of(id));
    spec.dy = operand(action.in[1], id);
    if (through_fp32(id)) {
      const Operand wide = in_thread(tile_ * in_fp32(id).image_bytes());
      push(std::make_unique<StorageStep>(parts_.kernels, field(id), spec.dy, wide));
      spec.dy = wide;
    }
    spec.scratch = in_thread(made->scratch_bytes());
    spec.sum = in_thread(made->packed_bytes());
    spec.part = in_thread(made->packed_bytes());
    spec.bias_floats = parameter(id, 1).count;
    if (spec.bias_floats > 0) {
      spec.bias_sum = in_thread(spec.bias_floats * 4);
      spec.bias_part = in_thread(spec.bias_floats * 4);
    }
    push(std::make_unique<WeightGradientStep>(std::move(made), parts_.kernels, spec));
  }

  void add_pool(const Action& action) {
    const int id = action.value, source = source_of(id);
    const bool forward = action.kind == ActionKind::pool;
    const auto& pool = std::get<Pool>(node(id).attributes);
    PoolArgs args{.x = field(source), .y = field(id), .kernel = pool.kernel, .stride = pool.stride, .pad = pool.pad};
    args.count_padding = pool.count_padding;
    Operand winners = operand(action.extra, id);
    if (winners) winners.image_bytes = field(id).image * 2;
    if (pool.mode == Pool::Mode::max && !winners) winners = in_thread(tile_ * field(id).image * 2);
    push(std::make_unique<PoolStep>(parts_.kernels, forward ? Way::forward : Way::backward, args,
                                    operand(action.in[0], forward ? source : id),
                                    operand(action.out, forward ? id : source), winners));
  }

  void add_local_response(const Action& action) {
    const int id = action.value;
    const bool forward = action.kind == ActionKind::local_response;
    const auto& norm = std::get<LocalResponseNorm>(node(id).attributes);
    if (norm.size > 2 * lanes)
      fail(Exit::device, "node '{}' normalises over {} channels (the CPU backend: at most {}); use a smaller window",
           node(id).name, norm.size, 2 * lanes);
    LocalResponseArgs args{.field = field(id),
                           .rule = {norm.size, norm.alpha / static_cast<float>(norm.size), norm.beta, norm.k}};
    push(std::make_unique<LocalResponseStep>(parts_.kernels, args, operand(action.in[0], source_of(id)),
                                             forward ? Operand{} : operand(action.in[1], id),
                                             operand(action.out, forward ? id : source_of(id))));
  }

  void add_dropout(const Action& action) {
    const int id = action.value;
    const bool forward = action.kind == ActionKind::dropout;
    push(std::make_unique<DropoutStep>(
        DropoutStep::Spec{.field = field(id),
                          .rate = parts_.spec.mode == Mode::train ? std::get<Dropout>(node(id).attributes).rate : 0,
                          .node = value(id).node,
                          .from = operand(action.in[0], forward ? source_of(id) : id),
                          .to = operand(action.out, forward ? id : source_of(id))},
        parts_.step));
  }

  void add_convert(const Action& action) {
    const int id = action.value, source = source_of(id);
    const bool forward = action.kind == ActionKind::convert;
    const Operand from = operand(action.in[0], forward ? source : id), to = operand(action.out, forward ? id : source);
    if (plain(source) && plain(id)) {  // an image or features, flattened: nothing moves
      push(std::make_unique<OrderStep>(field(id), OrderStep::To::plain, from, to));
    } else if (!plain(source) && !plain(id)) {
      push(std::make_unique<EvaluateStep>(parts_.kernels,
                                          EvaluateStep::Spec{.args = {.field = field(id)}, .first = from, .out = to}));
    } else {
      const bool to_plain = plain(forward ? id : source);
      push(std::make_unique<OrderStep>(plain(source) ? field(id) : field(source),
                                       to_plain ? OrderStep::To::plain : OrderStep::To::field, from, to));
    }
  }

  void add_linear(const Action& action) {
    const int id = action.value;
    const auto& linear = std::get<Linear>(node(id).attributes);
    LinearStep::Spec spec{.images = parts_.spec.samples, .in = linear.in, .out = linear.out};
    spec.weight = parameter(id, 0);
    spec.bias = parameter(id, 1);
    spec.x = operand(action.in[0], source_of(id));
    if (action.kind == ActionKind::linear) {
      spec.y = operand(action.out, id);
      push(std::make_unique<LinearStep>(spec));
      return;
    }
    spec.y = operand(action.in[1], id);
    push(std::make_unique<LinearGradientStep>(LinearGradientStep::Spec{.forward = spec,
                                                                       .dx = operand(action.out, source_of(id)),
                                                                       .weight_trains = trains(id, 0),
                                                                       .bias_trains = trains(id, 1)}));
  }

  void push(std::unique_ptr<Step> step) { phase_.steps_.push_back(std::move(step)); }

  const Value& value(int id) const { return parts_.lowering.values[static_cast<std::size_t>(id)]; }
  const Field& field(int id) const { return parts_.geometry.fields[static_cast<std::size_t>(id)]; }
  bool plain(int id) const { return parts_.geometry.plain(value(id).form); }
  int source_of(int id) const { return value(id).source; }
  const Node& node(int id) const { return parts_.plan.graph.nodes[static_cast<std::size_t>(value(id).node)]; }
  const Parameter* row(int id, std::size_t index) const {
    const int found = parameter_row(parts_.plan.table, value(id).node, index, parts_.plan.graph);
    return found < 0 ? nullptr : &parts_.plan.table.rows[static_cast<std::size_t>(found)];
  }
  Range parameter(int id, std::size_t index) const { return row(id, index) ? row(id, index)->range : Range{}; }
  bool trains(int id, std::size_t index) const { return row(id, index) && row(id, index)->trainable; }

  Operand operand(const Buffer& buffer, int id) const {
    if (buffer.where == Buffer::Where::none) return {};
    if (buffer.where == Buffer::Where::tile) return tiles_[static_cast<std::size_t>(buffer.index)];
    return {.where = Operand::Where::stored,
            .tensor = static_cast<std::size_t>(buffer.index),
            .image_bytes = field(id).image_bytes()};
  }
  /// The odd line keeps buffers of equal size off the same cache sets.
  static Index padded(Index bytes) { return (bytes + 63) / 64 * 64 + 64; }
  Operand in_thread(Index bytes) {
    const Operand result{.where = Operand::Where::thread, .offset = phase_.thread_bytes_};
    phase_.thread_bytes_ += padded(bytes);
    return result;
  }
  Operand in_shared(Index bytes) {
    const Operand result{.where = Operand::Where::shared, .offset = phase_.shared_bytes_};
    phase_.shared_bytes_ += padded(bytes);
    return result;
  }
  Operand partial_sums(const Field& f) {
    Operand result = in_shared(parts_.spec.samples * f.padded_channels() * 4);
    result.image_bytes = f.padded_channels() * 4;
    return result;
  }

  const ProgramParts& parts_;
  const PhasePlan& plan_;
  Phase& phase_;
  Index tile_;
  std::vector<Operand> tiles_;
};

Phase::Phase(const ProgramParts& parts, const PhasePlan& plan, const PhaseChoice& choice)
    : choice_(choice), images_(parts.spec.samples) {
  if (plan.whole) choice_.inner = true;
  if (!choice_.inner) {
    require(choice_.tile > 0 && images_ % choice_.tile == 0, "a tile must divide the batch");
    threads_ = static_cast<int>(std::min<Index>(parts.threads, images_ / choice_.tile));
  }
  Builder(parts, plan, *this).build();
  for (const Action& action : plan.actions) {
    const bool names = action.kind != ActionKind::statistics && action.kind != ActionKind::collect;
    if (!names) continue;
    for (const NodeId node : parts.lowering.values[static_cast<std::size_t>(action.value)].nodes) {
      const std::string& name = parts.plan.graph.nodes[static_cast<std::size_t>(node)].name;
      if (nodes_.find(name) == std::string::npos) nodes_ += (nodes_.empty() ? "" : " + ") + name;
    }
  }
}

void Phase::run(Memory& memory) const {
  memory.thread_scratch = memory.scratch + shared_bytes_;
  memory.thread_bytes = thread_bytes_;
  for (const auto& step : steps_) step->open(memory);
  std::atomic<bool> good{true};
  int working = 1;
  if (choice_.inner) {
    const Tile tile{.thread = 0, .first = 0, .count = images_};
    for (const auto& step : steps_) good = good && step->run(memory, tile);
  } else {
    const Index tiles = images_ / choice_.tile;
#pragma omp parallel num_threads(threads_)
    {
      const int t = omp_get_thread_num(), team = omp_get_num_threads();
      if (t == 0) working = team;  // OpenMP may give fewer than asked for
      const Index begin = tiles * t / team, end = tiles * (t + 1) / team;
      for (Index i = begin; i < end && good; ++i) {
        const Tile tile{.thread = t, .first = i * choice_.tile, .count = choice_.tile, .opening = i == begin};
        for (const auto& step : steps_)
          if (!step->run(memory, tile)) good = false;
      }
    }
  }
  if (!good) fail(Exit::device, "oneDNN failed to run {}; report it with the output of `convoy inspect build`", nodes_);
  for (const auto& step : steps_) step->close(memory, working);
}

std::string Phase::describe() const {
  std::string kernels;
  for (const auto& step : steps_) {
    const std::string text = step->describe();
    if (!text.empty()) kernels += (kernels.empty() ? "" : ", ") + text;
  }
  return fmt::format("{} | {} | {}", nodes_, choice_.inner ? "whole batch" : fmt::format("tiles of {}", choice_.tile),
                     kernels);
}

}  // namespace convoy::cpu
