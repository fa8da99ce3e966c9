// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/schedule.hpp"

#include <algorithm>
#include <utility>

#include "backend/cpu/operation.hpp"
#include "backend/rules/activation.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Backward recognises an activation by the value that it is given, so a derivative that reads nothing (scale) is given
/// the output.
DerivativeNeeds read_by_derivative(ActivationKind kind) {
  DerivativeNeeds needs = derivative_needs(kind);
  needs.output = needs.output || (kind != ActivationKind::identity && !needs.input);
  return needs;
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, const Lowering& lowering, Mode mode)
      : plan_(plan), lowering_(lowering), values_(lowering.values), mode_(mode) {
    const std::size_t n = values_.size();
    result_.value_buffers.resize(n);
    for (const Value& value : values_) stored_.push_back(must_be_stored(value));
    done_.assign(n, false);
    statistics_pass_.assign(n, -1);
    gradients_.resize(n);
    partial_.resize(n);
    argmax_.resize(n);
    differentiated_.assign(n, false);
  }

  Schedule run() {
    run_forward();
    if (mode_ == Mode::train) run_backward();
    result_.find_lifetimes();
    return std::move(result_);
  }

 private:
  OperationTraits traits(const Value& value) const {
    return value.kind == ValueKind::group ? OperationTraits{} : operation_of(plan_, value).traits(node_of(value));
  }

  /// Else the group only ever exists as a tile in front of the pass that reads it.
  bool must_be_stored(const Value& value) const {
    const auto from_tile = [&](int reader) {
      const ReadsTile reads = traits(at(reader)).reads_tile;
      return reads == ReadsTile::always || (reads == ReadsTile::only_reader && value.operations.size() == 1);
    };
    return value.kind != ValueKind::group || value.terms.size() > 1 || value.operations.empty() ||
           !value.groups.empty() || !value.norms.empty() ||
           !std::all_of(value.operations.begin(), value.operations.end(), from_tile);
  }

  void run_forward() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (!value.used || done_[i] || value.kind == ValueKind::group) continue;
      for (const int source : value.sources) settle(source);
      for (const Term& logits : value.terms) settle(logits.value);
      begin_pass();
      if (value.kind == ValueKind::loss) {
        run_loss(static_cast<int>(i));
        continue;
      }
      std::vector<Buffer> sources;
      for (const int source : value.sources) sources.push_back(evaluated(source));
      for (const int operation : siblings(static_cast<int>(i))) run_operation(operation, sources);
      evaluate_early();
    }
  }

  void run_loss(int id) {
    const int logits = at(id).terms[0].value;
    pass().whole = true;
    Instruction loss{.kind = InstructionKind::forward, .value = id};
    loss[Slot::source] = evaluated(logits);
    if (mode_ == Mode::train && at(id).wants_gradient) loss.out = gradients_[index(id)] = new_tensor(logits);
    add(loss);
    in_backward_ = index(id) + 1 == values_.size();
  }

  /// Convolutions of one value share a pass, for example.
  std::vector<int> siblings(int operation) const {
    const Value& value = at(operation);
    if (!traits(value).shares_pass) return {operation};
    std::vector<int> result;
    for (const int reader : at(value.sources[0]).operations)
      if (traits(at(reader)).shares_pass) result.push_back(reader);
    return result;
  }

  /// One instruction for each source; the input has none and gets one, too.
  void run_operation(int id, const std::vector<Buffer>& sources) {
    const OperationTraits traits = this->traits(at(id));
    Instruction instruction{.kind = InstructionKind::forward, .value = id, .out = store(id)};
    if (traits.keeps_argmax && mode_ == Mode::train && at(id).wants_gradient)
      argmax_[index(id)] = instruction.argmax = new_tensor(id, true);
    pass().whole = pass().whole || traits.whole_batch;
    if (traits.reads_together) instruction[Slot::other] = sources.at(1);
    const std::size_t instructions = traits.reads_together ? 1 : std::max<std::size_t>(sources.size(), 1);
    for (std::size_t i = 0; i < instructions; ++i) {
      instruction.source = static_cast<int>(i);
      if (!sources.empty()) instruction[Slot::source] = sources[i];
      add(instruction);
    }
    done_[index(id)] = true;
    gather_statistics(id);
  }

  void gather_statistics(int id) {
    if (mode_ == Mode::evaluate || at(id).norms.empty()) return;
    Instruction instruction{.kind = InstructionKind::statistics, .value = id};
    instruction[Slot::source] = result_.value_buffers[index(id)];
    add(instruction);
    pass().statistics_of.push_back(id);
    statistics_pass_[index(id)] = current();
  }

  bool needs_own_statistics(int id) const { return mode_ != Mode::evaluate && !at(id).norms.empty(); }

  /// Groups that batch norms look at must be complete, statistics included, before the pass that uses them.
  void settle(int id) {
    if (done_[index(id)] || at(id).kind != ValueKind::group) return;
    for (const Term& term : at(id).terms) settle(term.value);
    if (!needs_own_statistics(id)) return;
    begin_pass();
    evaluated(id);
    gather_statistics(id);
  }

  /// The value's buffer in the current pass; groups that nobody evaluated yet are evaluated here.
  Buffer evaluated(int id) {
    const Value& value = at(id);
    if (value.kind != ValueKind::group || done_[index(id)]) return result_.value_buffers[index(id)];
    Instruction instruction{.kind = InstructionKind::evaluate, .value = id};
    for (std::size_t i = 0; i < value.terms.size(); ++i) instruction[term_slot(i)] = evaluated(value.terms[i].value);
    if (stored_[index(id)]) {
      instruction.out = store(id);
      done_[index(id)] = true;
    } else {
      instruction.out = new_tile(id);
    }
    add(instruction);
    return instruction.out;
  }

  /// A sum of finished terms that a batch norm looks at next (pre-activation networks) is made while its last term is
  /// still in cache.
  void evaluate_early() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int id = static_cast<int>(i);
      const Value& value = values_[i];
      if (!value.used || value.kind != ValueKind::group || done_[i] || !needs_own_statistics(id)) continue;
      const bool ready = std::all_of(value.terms.begin(), value.terms.end(), [&](const Term& term) {
        const int pass_of_norm = statistics_pass_[index(term.value)];
        return done_[index(term.value)] && (term.norm < 0 || pass_of_norm < current());
      });
      if (!ready) continue;
      evaluated(id);
      gather_statistics(id);
    }
  }

  struct Contribution {
    Buffer gradient;
    int norm = -1;
  };

  void run_backward() {
    for (std::size_t i = values_.size(); i-- > 0;) {
      const int id = static_cast<int>(i);
      if (!values_[i].used) continue;
      if (values_[i].kind == ValueKind::group) {
        if (values_[i].wants_gradient && !gradients_[i]) accumulate_group(id);
        continue;
      }
      const auto together = siblings(id);
      const bool wanted = std::any_of(together.begin(), together.end(), [&](int s) { return at(s).wants_gradient; });
      if (wanted && together.front() == id) differentiate(id);
    }
    if (!waiting_.empty()) {
      begin_pass();
      flush_waiting();
    }
  }

  void differentiate(int first) {
    const std::vector<int>& sources = at(first).sources;
    if (sources.empty()) return;
    begin_pass();
    flush_waiting();
    std::vector<Buffer> inputs;
    inputs.reserve(sources.size());
    for (const int source : sources) inputs.push_back(input_of(source, traits(at(first)).backward_reads_source));
    std::vector<std::vector<Contribution>> made(sources.size());  // at the first place of each source
    for (const int operation : siblings(first)) {
      if (!at(operation).wants_gradient) continue;
      const Buffer dy = gradient_of_result(operation);
      const bool makes_weights = !differentiate_weights(operation, inputs[0], dy);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const bool wants = at(sources[i]).wants_gradient;
        const Buffer dx = wants ? new_tile(sources[i]) : Buffer{};
        if (dx || makes_weights) differentiate_source(operation, i, inputs, dy, dx);
        const auto place = std::find(sources.begin(), sources.end(), sources[i]) - sources.begin();
        if (wants) made[static_cast<std::size_t>(place)].push_back({dx, -1});
      }
      differentiated_[index(operation)] = true;
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!made[i].empty()) hand_on(sources[i], inputs[i], std::move(made[i]));
  }

  /// A group that lives in tiles only is computed again, for the operation and for its own derivative.
  Buffer input_of(int id, bool reads_source) {
    const Value& value = at(id);
    const bool reads_output = value.wants_gradient && read_by_derivative(value.activation).output;
    if (!stored_[index(id)] && (reads_source || reads_output)) return evaluated(id);
    return result_.value_buffers[index(id)];
  }

  /// False: the instruction that makes dx makes them, too.
  bool differentiate_weights(int id, Buffer source, Buffer dy) {
    const OperationTraits traits = this->traits(at(id));
    pass().whole = pass().whole || traits.whole_batch;
    if (!add_final_rows(at(id).node)) return true;
    if (!traits.weight_gradient_apart) return false;
    Instruction weights{.kind = InstructionKind::weight_gradient, .value = id};
    weights[Slot::dy] = dy;
    weights[Slot::x] = source;
    add(weights);
    return true;
  }

  void differentiate_source(int id, std::size_t place, const std::vector<Buffer>& inputs, Buffer dy, Buffer dx) {
    const OperationTraits traits = this->traits(at(id));
    Instruction instruction{.kind = InstructionKind::backward, .value = id, .source = static_cast<int>(place)};
    instruction[Slot::dy] = dy;
    if (traits.backward_reads_source) instruction[Slot::x] = inputs[traits.reads_together ? 0 : place];
    if (traits.reads_together) instruction[Slot::other] = inputs[1];
    instruction.out = dx;
    instruction.argmax = argmax_[index(id)];
    add(instruction);
  }

  bool add_final_rows(NodeId node) {
    bool any = false;
    for (std::size_t i = 0; i < plan_.table.rows.size(); ++i) {
      if (plan_.table.rows[i].node != node || !plan_.table.rows[i].trainable) continue;
      pass().final_rows.push_back(static_cast<int>(i));
      any = true;
    }
    return any;
  }

  std::vector<Contribution> contributions_of(int id) {
    std::vector<Contribution> result;
    if (partial_[index(id)]) result.push_back({partial_[index(id)], -1});
    for (const int group : at(id).groups) {
      if (!at(group).wants_gradient) continue;
      for (const Term& term : at(group).terms)
        if (term.value == id) result.push_back({gradients_[index(group)], term.norm});
    }
    return result;
  }

  bool all_readers_done(int id) const {
    const Value& value = at(id);
    const auto missing = [&](int reader, bool done) { return at(reader).wants_gradient && !done; };
    for (const int reader : value.operations)
      if (missing(reader, differentiated_[index(reader)])) return false;
    for (const int reader : value.groups)
      if (missing(reader, static_cast<bool>(gradients_[index(reader)]))) return false;
    return true;
  }

  /// Whether this pass still sums for a batch norm of the value, whose gradient comes through it: a concatenation may
  /// read both the value and the group with its norm.
  bool sums_for_norm_of(int id) {
    const auto& norms = pass().products_of;
    return std::any_of(norms.begin(), norms.end(), [&](int norm) { return lowering_.norm(norm).value == id; });
  }

  /// Gradients that operations of this pass made for `id`: finished here when nothing else is missing, else kept.
  void hand_on(int id, Buffer output, std::vector<Contribution> made) {
    if (all_readers_done(id) && !sums_for_norm_of(id)) {
      for (const Contribution& other : contributions_of(id)) made.push_back(other);
      finish_gradient(id, output, std::move(made));
      return;
    }
    Buffer& kept = partial_[index(id)];
    if (kept) made.push_back({kept, -1});
    if (!kept) kept = new_tensor(id);
    accumulate(id, kept, made, {}, false);
  }

  void accumulate_group(int id) {
    const Value& value = at(id);
    const auto contributions = contributions_of(id);
    const bool has_norms =
        std::any_of(value.terms.begin(), value.terms.end(), [&](const Term& t) { return lowering_.moves(t); });
    const bool is_sum = value.activation == ActivationKind::identity && !has_norms;
    if (is_sum && contributions.size() == 1 && contributions[0].norm < 0) {
      gradients_[index(id)] = contributions[0].gradient;
      return;
    }
    if (!has_norms) {  // nothing waits for the whole batch: in front of the next pass
      waiting_.push_back(id);
      gradients_[index(id)] = new_tensor(id);
      return;
    }
    begin_pass();
    flush_waiting();
    finish_gradient(id, result_.value_buffers[index(id)], contributions);
  }

  void flush_waiting() {
    for (const int id : std::exchange(waiting_, {}))
      accumulate(id, gradients_[index(id)], contributions_of(id), result_.value_buffers[index(id)], true);
  }

  /// Stores the gradient with respect to the sum inside a group (before its activation), or to an operation's result.
  void finish_gradient(int id, Buffer output, std::vector<Contribution> contributions) {
    Buffer& out = gradients_[index(id)];
    out = new_tensor(id);
    accumulate(id, out, std::move(contributions), output, true);
  }

  /// dy of an operation, in a tile unless it lies somewhere already.
  Buffer gradient_of_result(int id) {
    if (gradients_[index(id)]) return gradients_[index(id)];
    const auto contributions = contributions_of(id);
    if (contributions.size() == 1 && contributions[0].norm < 0) return contributions[0].gradient;
    const Buffer out = new_tile(id);
    accumulate(id, out, contributions, {}, true);
    return out;
  }

  /// out = activation' * sum of contributions, two at a time; the last instruction applies the derivative and sums for
  /// batch norms. Where the derivative reads the input of the activation, the sum of the terms is computed again from
  /// them: they are stored anyway, and a kept copy would cost as much memory as the output.
  void accumulate(int id, Buffer out, std::vector<Contribution> rest, Buffer output, bool complete) {
    require(!rest.empty(), "a gradient without contributions");
    std::stable_partition(rest.begin(), rest.end(), [](const Contribution& c) { return c.norm >= 0; });
    bool started = false;
    while (!rest.empty()) {
      Instruction instruction{.kind = InstructionKind::accumulate, .value = id};
      instruction[Slot::gradient] = rest.front().gradient;
      instruction.norm = rest.front().norm;
      // A frozen norm passes its gradient on times a factor. It gets some tensor of the value's form to read, so that
      // the value needn't be kept.
      if (instruction.norm >= 0)
        instruction[Slot::self] =
            lowering_.norm(instruction.norm).frozen ? instruction[Slot::gradient] : result_.value_buffers[index(id)];
      rest.erase(rest.begin());
      if (started) {
        instruction[Slot::second] = out;
      } else if (!rest.empty() && rest.back().norm < 0) {
        instruction[Slot::second] = rest.back().gradient;
        rest.pop_back();
      }
      started = true;
      instruction.out = out;
      if (rest.empty() && complete && at(id).kind == ValueKind::group) pass_through_group(instruction, at(id), output);
      add(instruction);
    }
  }

  /// The derivative of the group's activation, and the sums that the norms of its terms need.
  void pass_through_group(Instruction& instruction, const Value& group, Buffer output) {
    const DerivativeNeeds needs = read_by_derivative(group.activation);
    if (needs.output) instruction[Slot::output] = output;
    std::size_t norms = 0;
    for (std::size_t i = 0; i < group.terms.size(); ++i) {
      const Term& term = group.terms[i];
      const Buffer value = result_.value_buffers[index(term.value)];
      if (needs.input) instruction[term_slot(i)] = value;
      if (!lowering_.moves(term)) continue;
      instruction[norms == 0 ? Slot::norm0 : Slot::norm1] = value;
      instruction.norms[norms++] = term.norm;
      pass().products_of.push_back(term.norm);
      add_final_rows(lowering_.norm(term.norm).node);
    }
  }

  static Slot term_slot(std::size_t i) { return i == 0 ? Slot::term0 : Slot::term1; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Value& at(int id) const { return values_[index(id)]; }
  const Node& node_of(const Value& value) const { return plan_.graph.nodes[index(value.node)]; }
  int current() const { return static_cast<int>(result_.passes.size()) - 1; }
  PassPlan& pass() { return result_.passes.back(); }
  void begin_pass() { result_.passes.push_back({.backward = in_backward_}); }
  void add(const Instruction& instruction) { pass().instructions.push_back(instruction); }

  Buffer new_tensor(int id, bool argmax = false) {
    result_.tensors.push_back({.value = id, .argmax = argmax});
    return {Buffer::Where::stored, static_cast<int>(result_.tensors.size()) - 1};
  }
  Buffer store(int id) { return result_.value_buffers[index(id)] = new_tensor(id); }
  Buffer new_tile(int id) {
    pass().tiles.push_back(id);
    return {Buffer::Where::tile, static_cast<int>(pass().tiles.size()) - 1};
  }
  const Plan& plan_;
  const Lowering& lowering_;
  const std::vector<Value>& values_;
  const Mode mode_;
  Schedule result_;
  bool in_backward_ = false;
  std::vector<bool> stored_, done_, differentiated_;
  std::vector<int> statistics_pass_;
  std::vector<Buffer> gradients_;  ///< complete ones
  std::vector<Buffer> partial_;    ///< kept sums of values whose other readers come later
  std::vector<Buffer> argmax_;
  std::vector<int> waiting_;  ///< groups whose gradient is made at the start of the next pass
};

}  // namespace

const Operation& operation_of(const Plan& plan, const Value& value) {
  if (value.kind == ValueKind::conversion) return conversion();
  return operation_of(plan.graph.nodes[static_cast<std::size_t>(value.node)]);
}

Schedule make_schedule(const Plan& plan, const Lowering& lowering, Mode mode) {
  return Scheduler(plan, lowering, mode).run();
}

void Schedule::find_lifetimes(const std::vector<bool>& made_again) {
  for (StoredTensor& tensor : tensors) tensor.lifetime = {};
  for (std::size_t k = 0; k < passes.size(); ++k) {
    const auto touch = [&](const Buffer& buffer) {
      if (buffer.where != Buffer::Where::stored) return;
      const auto i = static_cast<std::size_t>(buffer.index);
      lowering::Lifetime& lifetime = tensors[i].lifetime;
      const bool resumes = passes[k].repeats >= 0 && i < made_again.size() && made_again[i] && lifetime.resumes == 0;
      if (resumes)
        lifetime.resume(static_cast<int>(k));
      else
        lifetime.touch(static_cast<int>(k));
    };
    for (const Instruction& instruction : passes[k].instructions) {
      for (const Buffer& buffer : instruction.in) touch(buffer);
      touch(instruction.out);
      touch(instruction.argmax);
    }
  }
}

std::vector<lowering::FinalRow> Schedule::final_rows() const {
  std::vector<lowering::FinalRow> rows;
  for (std::size_t k = 0; k < passes.size(); ++k)
    for (const int row : passes[k].final_rows) rows.push_back({k + 1, row});
  return rows;
}

std::vector<lowering::Stage> stages_of(const Plan& plan, const Lowering& lowering, const Schedule& schedule,
                                       Mode mode) {
  const std::size_t passes = schedule.passes.size();
  if (mode != Mode::train) return {{passes, {}}};
  const std::vector<lowering::ExchangeRanges> ranges = lowering::exchange_ranges(plan, lowering);
  std::vector<lowering::Exchange> exchanges;
  const auto exchange = [&](std::size_t k, int norm, bool backward) {
    const lowering::ExchangeRanges& of = ranges[static_cast<std::size_t>(norm)];
    if (plan.sync_bn) exchanges.push_back({k + 1, backward ? of.backward : of.forward});
  };
  for (std::size_t k = 0; k < passes; ++k) {
    for (const int value : schedule.passes[k].statistics_of)
      for (const int norm : lowering.value(value).norms) exchange(k, norm, false);
    for (const int norm : schedule.passes[k].products_of) exchange(k, norm, true);
  }
  return lowering::make_stages(plan, passes, schedule.final_rows(), exchanges);
}

}  // namespace convoy::cpu
