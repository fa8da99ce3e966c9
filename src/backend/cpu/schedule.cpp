// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/schedule.hpp"

#include <algorithm>
#include <utility>

#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

struct Actions {
  ActionKind forward{}, backward{};
};
Actions actions_of(ValueKind operation) {
  switch (operation) {
    case ValueKind::convolution:
      return {ActionKind::convolve, ActionKind::data_gradient};
    case ValueKind::pool:
      return {ActionKind::pool, ActionKind::pool_gradient};
    case ValueKind::local_response:
      return {ActionKind::local_response, ActionKind::local_response_gradient};
    case ValueKind::dropout:
      return {ActionKind::dropout, ActionKind::dropout_gradient};
    case ValueKind::global_pool:
      return {ActionKind::global_pool, ActionKind::global_pool_gradient};
    case ValueKind::convert:
      return {ActionKind::convert, ActionKind::convert_gradient};
    case ValueKind::linear:
      return {ActionKind::linear, ActionKind::linear_gradient};
    case ValueKind::input:
    case ValueKind::group:
      break;
  }
  fail(Exit::internal, "internal error: not an operation");
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, const Lowering& lowering, Mode mode)
      : plan_(plan), values_(lowering.values), norms_(lowering.norms), logits_(lowering.logits), mode_(mode) {
    const std::size_t n = values_.size();
    result_.value_buffers.resize(n);
    done_.assign(n, false);
    statistics_phase_.assign(n, -1);
    gradients_.resize(n);
    partial_.resize(n);
    differentiated_.assign(n, false);
  }

  Schedule run() {
    run_forward();
    if (mode_ == Mode::train) run_backward();
    find_lifetimes(result_);
    return std::move(result_);
  }

 private:
  void run_forward() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (!value.used || done_[i] || value.kind == ValueKind::group) continue;
      if (value.kind == ValueKind::input) {
        begin_phase();
        phase().whole = true;
        act({.kind = ActionKind::input, .value = 0, .out = store(0)});
        done_[0] = true;
        continue;
      }
      settle(value.source);
      begin_phase();
      const Buffer source = evaluated(value.source);
      for (const int operation : siblings(static_cast<int>(i))) run_operation(operation, source);
      evaluate_early();
    }
    settle(logits_);
    begin_phase();
    phase().whole = true;
    Action loss{.kind = ActionKind::loss, .value = logits_};
    loss.in[0] = evaluated(logits_);
    if (mode_ == Mode::train && at(logits_).wants_gradient) {
      loss.out = partial_[index(logits_)] = new_tensor(logits_);
    }
    act(loss);
  }

  /// Convolutions of one value share a phase: its tile is read once.
  std::vector<int> siblings(int operation) const {
    const Value& value = at(operation);
    if (value.kind != ValueKind::convolution) return {operation};
    std::vector<int> result;
    for (const int reader : at(value.source).operations)
      if (at(reader).kind == ValueKind::convolution) result.push_back(reader);
    return result;
  }

  void run_operation(int id, Buffer source) {
    const Value& value = at(id);
    Action action{.kind = actions_of(value.kind).forward, .value = id};
    action.in[0] = source;
    action.out = store(id);
    if (value.kind == ValueKind::pool) {
      const auto& pool = std::get<Pool>(plan_.graph.nodes[static_cast<std::size_t>(value.node)].attributes);
      if (pool.mode == Pool::Mode::max && mode_ == Mode::train && value.wants_gradient)
        winners_of(id) = action.extra = new_tensor(id, true);
    }
    if (value.kind == ValueKind::linear) phase().whole = true;
    act(action);
    done_[index(id)] = true;
    gather_statistics(id);
  }

  void gather_statistics(int id) {
    if (mode_ == Mode::evaluate || at(id).norms.empty()) return;
    Action action{.kind = ActionKind::statistics, .value = id};
    action.in[0] = result_.value_buffers[index(id)];
    act(action);
    phase().statistics_of.push_back(id);
    statistics_phase_[index(id)] = current();
  }

  bool needs_own_statistics(int id) const { return mode_ != Mode::evaluate && !at(id).norms.empty(); }

  /// Groups that batch norms look at must be complete, statistics included, before the phase that uses them.
  void settle(int id) {
    if (done_[index(id)] || at(id).kind != ValueKind::group) return;
    for (const Term& term : at(id).terms) settle(term.value);
    if (!needs_own_statistics(id)) return;
    begin_phase();
    evaluated(id);
    gather_statistics(id);
  }

  /// The value's buffer in the current phase; groups that nobody evaluated yet are evaluated here.
  Buffer evaluated(int id) {
    const Value& value = at(id);
    if (value.kind != ValueKind::group || done_[index(id)]) return result_.value_buffers[index(id)];
    Action action{.kind = ActionKind::evaluate, .value = id};
    for (std::size_t i = 0; i < value.terms.size(); ++i) action.in[i] = evaluated(value.terms[i].value);
    if (value.stored) {
      action.out = store(id);
      done_[index(id)] = true;
    } else {
      action.out = new_tile(id);
    }
    act(action);
    return action.out;
  }

  /// A sum of finished terms that a batch norm looks at next (pre-activation networks) is made while its last term is
  /// still in cache.
  void evaluate_early() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int id = static_cast<int>(i);
      const Value& value = values_[i];
      if (!value.used || value.kind != ValueKind::group || done_[i] || !needs_own_statistics(id)) continue;
      const bool ready = std::all_of(value.terms.begin(), value.terms.end(), [&](const Term& term) {
        const int phase_of_norm = statistics_phase_[index(term.value)];
        return done_[index(term.value)] && (term.norm < 0 || phase_of_norm < current());
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
        if (values_[i].wants_gradient && !gradients_[i]) collect_group(id);
        continue;
      }
      const auto together = siblings(id);
      const bool wanted = std::any_of(together.begin(), together.end(), [&](int s) { return at(s).wants_gradient; });
      if (wanted && together.front() == id) differentiate(id);
    }
    if (!waiting_.empty()) {
      begin_phase();
      flush_waiting();
    }
  }

  void differentiate(int first) {
    const Value& value = at(first);
    const int source = value.source;
    if (source < 0) return;
    begin_phase();
    flush_waiting();
    const bool wants = at(source).wants_gradient;
    // A group that lives in tiles only is computed again, for the weight gradient and for its own derivative.
    Buffer input = result_.value_buffers[index(source)];
    const bool reads_input = value.kind == ValueKind::convolution || value.kind == ValueKind::linear ||
                             value.kind == ValueKind::local_response;
    if (!at(source).stored && (reads_input || (wants && at(source).curve != CurveShape::identity)))
      input = evaluated(source);
    std::vector<Contribution> made;
    for (const int operation : siblings(first)) {
      if (!at(operation).wants_gradient) continue;
      const Buffer dy = gradient_of_result(operation);
      const Buffer dx = wants ? new_tile(source) : Buffer{};
      differentiate_one(operation, input, dy, dx);
      differentiated_[index(operation)] = true;
      if (wants) made.push_back({dx, -1});
    }
    if (wants) hand_on(source, input, std::move(made));
  }

  void differentiate_one(int id, Buffer source, Buffer dy, Buffer dx) {
    const Value& value = at(id);
    Action action{.kind = actions_of(value.kind).backward, .value = id};
    action.in[0] = dy;
    action.out = dx;
    if (value.kind == ValueKind::convolution) {
      Action weights{.kind = ActionKind::weight_gradient, .value = id};
      weights.in = {source, dy};
      if (add_final_rows(value.node)) act(weights);
      if (!dx) return;
    } else if (value.kind == ValueKind::linear || value.kind == ValueKind::local_response) {
      action.in = {source, dy};
      add_final_rows(value.node);
      if (value.kind == ValueKind::linear) phase().whole = true;
    } else if (value.kind == ValueKind::pool) {
      action.extra = winners_of(id);
    }
    act(action);
  }

  bool add_final_rows(NodeId node) {
    bool any = false;
    for (std::size_t i = 0; i < plan_.table.rows.size(); ++i) {
      if (plan_.table.rows[i].node != node || !plan_.table.rows[i].trainable) continue;
      phase().final_rows.push_back(static_cast<int>(i));
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

  /// Gradients that operations of this phase made for `id`: finished here when nothing else is missing, else kept.
  void hand_on(int id, Buffer output, std::vector<Contribution> made) {
    if (all_readers_done(id)) {
      for (const Contribution& other : contributions_of(id)) made.push_back(other);
      finish_gradient(id, output, std::move(made));
      return;
    }
    Buffer& kept = partial_[index(id)];
    if (kept) made.push_back({kept, -1});
    if (!kept) kept = new_tensor(id);
    collect(id, kept, made, {}, false);
  }

  void collect_group(int id) {
    const Value& value = at(id);
    const auto contributions = contributions_of(id);
    const bool has_norms =
        std::any_of(value.terms.begin(), value.terms.end(), [](const Term& t) { return t.norm >= 0; });
    if (value.curve == CurveShape::identity && !has_norms && contributions.size() == 1 && contributions[0].norm < 0) {
      gradients_[index(id)] = contributions[0].gradient;
      return;
    }
    if (!has_norms) {  // nothing waits for the whole batch: in front of the next phase
      waiting_.push_back(id);
      gradients_[index(id)] = new_tensor(id);
      return;
    }
    begin_phase();
    flush_waiting();
    finish_gradient(id, result_.value_buffers[index(id)], contributions);
  }

  void flush_waiting() {
    for (const int id : std::exchange(waiting_, {}))
      collect(id, gradients_[index(id)], contributions_of(id), result_.value_buffers[index(id)], true);
  }

  /// Stores the gradient with respect to the sum inside a group (before its curve), or to an operation's result.
  void finish_gradient(int id, Buffer output, std::vector<Contribution> contributions) {
    Buffer& out = gradients_[index(id)];
    out = new_tensor(id);
    collect(id, out, std::move(contributions), output, true);
  }

  /// dy of an operation, in a tile unless it lies somewhere already.
  Buffer gradient_of_result(int id) {
    if (gradients_[index(id)]) return gradients_[index(id)];
    const auto contributions = contributions_of(id);
    if (contributions.size() == 1 && contributions[0].norm < 0) return contributions[0].gradient;
    const Buffer out = new_tile(id);
    collect(id, out, contributions, {}, true);
    return out;
  }

  /// out = curve' * sum of contributions, two at a time; the last step applies the curve and sums for batch norms.
  void collect(int id, Buffer out, std::vector<Contribution> rest, Buffer output, bool complete) {
    const Value& value = at(id);
    require(!rest.empty(), "a gradient without contributions");
    std::stable_partition(rest.begin(), rest.end(), [](const Contribution& c) { return c.norm >= 0; });
    bool started = false;
    while (!rest.empty()) {
      Action action{.kind = ActionKind::collect, .value = id};
      action.in[collect_gradient] = rest.front().gradient;
      action.norm = rest.front().norm;
      if (action.norm >= 0) action.in[collect_self] = result_.value_buffers[index(id)];
      rest.erase(rest.begin());
      if (started) {
        action.in[collect_second] = out;
      } else if (!rest.empty() && rest.back().norm < 0) {
        action.in[collect_second] = rest.back().gradient;
        rest.pop_back();
      }
      started = true;
      action.out = out;
      if (rest.empty() && complete && value.kind == ValueKind::group) {
        if (value.curve != CurveShape::identity) action.in[collect_output] = output;
        std::size_t place = 0;
        for (const Term& term : value.terms) {
          if (term.norm < 0) continue;
          action.in[collect_norm0 + place] = result_.value_buffers[index(term.value)];
          action.norms[place++] = term.norm;
          phase().products_of.push_back(term.norm);
          add_final_rows(norms_[index(term.norm)].node);
        }
      }
      act(action);
    }
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Value& at(int id) const { return values_[index(id)]; }
  int current() const { return static_cast<int>(result_.phases.size()) - 1; }
  PhasePlan& phase() { return result_.phases.back(); }
  void begin_phase() { result_.phases.push_back({.backward = in_backward_}); }
  void act(const Action& action) {
    in_backward_ = in_backward_ || action.kind == ActionKind::loss;
    phase().actions.push_back(action);
  }

  Buffer new_tensor(int id, bool winners = false) {
    result_.tensors.push_back({.value = id, .winners = winners});
    return {Buffer::Where::stored, static_cast<int>(result_.tensors.size()) - 1};
  }
  Buffer store(int id) { return result_.value_buffers[index(id)] = new_tensor(id); }
  Buffer new_tile(int id) {
    phase().tiles.push_back(id);
    return {Buffer::Where::tile, static_cast<int>(phase().tiles.size()) - 1};
  }
  Buffer& winners_of(int id) {
    winners_.resize(values_.size());
    return winners_[index(id)];
  }

  const Plan& plan_;
  const std::vector<Value>& values_;
  const std::vector<Norm>& norms_;
  const int logits_;
  const Mode mode_;
  Schedule result_;
  bool in_backward_ = false;
  std::vector<bool> done_, differentiated_;
  std::vector<int> statistics_phase_;
  std::vector<Buffer> gradients_;  ///< complete ones
  std::vector<Buffer> partial_;    ///< kept sums of values whose other readers come later
  std::vector<Buffer> winners_;
  std::vector<int> waiting_;  ///< groups whose gradient is made at the start of the next phase
};

}  // namespace

Schedule make_schedule(const Plan& plan, const Lowering& lowering, Mode mode) {
  return Scheduler(plan, lowering, mode).run();
}

}  // namespace convoy::cpu
