// SPDX-License-Identifier: Apache-2.0
#include "scaling/prediction.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "scaling/fit.hpp"

namespace convoy {
namespace {

/// Of a step: forward takes a third of the computation, backward two thirds.
constexpr double forward_part = 1.0 / 3;
/// How far the part of the sums that computation hides may be off.
constexpr double overlap_error = 0.1, assumed_overlap_error = 0.3;
/// A step's time is taken to grow with its batch; off by this for each factor of two from what was measured.
constexpr double error_of_doubling = 0.1;

std::string link_text(const char* where, const Link& link) {
  const std::string origin = link.ranks > 0 ? fmt::format(" between {} ranks", link.ranks) : std::string();
  return fmt::format("{}: {:.1f} us per message (within {:.0f} %), {:.2f} GB/s (within {:.0f} %){}", where,
                     link.seconds_per_message.value * 1e6, link.seconds_per_message.error * 100,
                     link.seconds_per_byte.value > 0 ? 1e-9 / link.seconds_per_byte.value : 0.0,
                     link.seconds_per_byte.error * 100, origin);
}

}  // namespace

double Predictor::at(const Term& term, At end) {
  switch (end) {
    case At::low:
      return term.low();
    case At::value:
      return term.value;
    case At::high:
      return term.high();
  }
  fail(Exit::internal, "an end of a range that there is not");
}

void Predictor::choose_steps() {
  const bool shares_cores = machine_.cores_per_host > 0;
  const int threads = shares_cores ? job_.threads : 0;
  for (const StepTime& step : machine_.steps)
    if (step.model == job_.model && step.precision == job_.precision && step.image_size == job_.image_size &&
        step.conditions == job_.conditions && (threads == 0 || step.threads == 0 || step.threads == threads))
      steps_.push_back(step);
  if (steps_.empty()) {
    std::string words = threads > 0 ? fmt::format(" --threads {}", threads) : std::string();
    words += job_.conditions.words();
    fail(
        Exit::usage,
        "the machine '{}' knows no step time of {} on {} x {} pixels in {}{}{}; add one by 'convoy bench compute --no-gradients --machine FILE{}' with this network, size, precision and batch",
        machine_.name, job_.model, job_.image_size, job_.image_size, job_.precision, words.empty() ? "" : " with",
        words, words);
  }
  const auto keep_nearest = [&](const auto& distance, int StepTime::*key) {
    const int nearest =
        (*std::min_element(steps_.begin(), steps_.end(),
                           [&](const StepTime& x, const StepTime& y) { return distance(x) < distance(y); })).*
        key;
    std::erase_if(steps_, [&](const StepTime& step) { return step.*key != nearest; });
  };
  // Measured with as many ranks on the host, or nearly so; more before fewer.
  const int ranks = machine_.ranks_per_host;
  keep_nearest(
      [&](const StepTime& step) {
        return 2 * std::abs(step.ranks_per_host - ranks) - (step.ranks_per_host > ranks ? 1 : 0);
      },
      &StepTime::ranks_per_host);
  // Then with the threads that a rank has by itself.
  const double own = threads > 0 ? threads : std::max(1.0, static_cast<double>(machine_.cores_per_host) / ranks);
  keep_nearest([&](const StepTime& step) { return std::abs(std::log2(std::max(step.threads, 1) / own)); },
               &StepTime::threads);
}

Predictor::Predictor(const Machine& machine, const PredictedJob& job) : machine_(machine), job_(job) {
  choose_steps();
  std::sort(steps_.begin(), steps_.end(), [](const StepTime& a, const StepTime& b) { return a.batch < b.batch; });
  for (const StepTime& step : steps_) {
    std::string conditions = step.threads > 0 ? fmt::format(" with {} each", counted(step.threads, "thread")) : "";
    conditions += step.conditions.words();
    basis_.push_back({step.measured, fmt::format("a step of {} images in {:.2f} ms (within {:.0f} %), {} per host{}",
                                                 step.batch, step.seconds.value * 1e3, step.seconds.error * 100,
                                                 counted(step.ranks_per_host, "rank"), conditions)});
  }
  if (machine.inside) basis_.push_back({machine.inside->measured, link_text("inside a host", *machine.inside)});
  if (machine.between) basis_.push_back({machine.between->measured, link_text("between hosts", *machine.between)});
  basis_.push_back(
      {machine.overlap_measured,
       fmt::format("computation hides {:.0f} % of the all-reduces that go on beside it", machine.overlap * 100)});
  basis_.push_back({false, "forward takes a third of a step, and all layers take equal parts of backward"});
  if (steps_.size() == 1) basis_.push_back({false, "the time of a step is in proportion to its batch"});
  if (machine.cores_per_host > 0)
    basis_.push_back({false, fmt::format("ranks of a host share {}: more threads than cores take longer in proportion",
                                         counted(machine.cores_per_host, "core"))});
}

double Predictor::sharing(int ranks, int threads) const {
  if (machine_.cores_per_host == 0) return 1;
  return std::max(1.0, static_cast<double>(ranks) * std::max(threads, 1) / machine_.cores_per_host);
}

double Predictor::compute_seconds(double batch, At end) const {
  const StepTime* nearest = &steps_.front();
  for (const StepTime& step : steps_)
    if (std::abs(std::log2(batch / static_cast<double>(step.batch))) <
        std::abs(std::log2(batch / static_cast<double>(nearest->batch))))
      nearest = &step;
  const auto seconds = [&](const StepTime& step) {
    const double shared = sharing(machine_.ranks_per_host, step.threads) / sharing(step.ranks_per_host, step.threads);
    return at(step.seconds, end) * shared;
  };
  const auto known = static_cast<double>(nearest->batch);
  double error = error_of_doubling * std::abs(std::log2(batch / known)), found = seconds(*nearest) * batch / known;
  // Between two that were measured, or beyond them, along their line.
  if (steps_.size() > 1) {
    auto upper = std::find_if(steps_.begin() + 1, steps_.end() - 1,
                              [&](const StepTime& step) { return static_cast<double>(step.batch) >= batch; });
    const StepTime &a = *(upper - 1), &b = *upper;
    const double part = (batch - static_cast<double>(a.batch)) / static_cast<double>(b.batch - a.batch);
    const double line = seconds(a) + part * (seconds(b) - seconds(a));
    // Beyond them a line may fall to nothing: a smaller batch takes its part of the time, a larger one all of it.
    if (b.batch > a.batch) found = part < 0 ? std::max(found, line) : part > 1 ? std::max(seconds(b), line) : line;
    if (part >= 0 && part <= 1) error = 0;
  }
  return found * (end == At::value ? 1 : end == At::low ? 1 - std::min(error, 0.5) : 1 + error);
}

double Predictor::sum_seconds(const Traffic::Sum& sum, bool in_a_tree, int nodes) const {
  return sum_seconds(sum, in_a_tree, {machine_.ranks_per_host, nodes}, At::value);
}

double Predictor::sum_seconds(const Traffic::Sum& sum, bool in_a_tree, const Place& place, At end) const {
  const int own = place.own, hosts = place.hosts, ranks = place.ranks();
  double seconds = 0;
  if (own > 1) {
    const Link& link = *machine_.inside;
    const double messages = in_a_tree ? tree_messages(own) : library_messages(own);
    seconds += (at(link.seconds_per_message, end) * messages +
                at(link.seconds_per_byte, end) * share_of_ring(own) * sum.bytes()) *
               sharing(machine_.ranks_per_host, 1) / sharing(link.ranks, 1);
  }
  if (hosts > 1) {
    const Link& link = *machine_.between;
    // Along a ring every byte leaves a host once. In a tree each rank sends to all others itself, over the one link
    // that it shares with the others of its host.
    const double messages = in_a_tree ? 2.0 * (ranks - own) : library_messages(hosts);
    const double share = in_a_tree ? 2.0 * own * (ranks - own) / ranks : share_of_ring(hosts);
    seconds += at(link.seconds_per_message, end) * messages + at(link.seconds_per_byte, end) * share * sum.bytes();
  }
  return seconds;
}

Predictor::Place Predictor::place_of_group(int ranks) const {
  const int own = machine_.ranks_per_host;
  if (own % ranks == 0) return {ranks, 1};
  if (ranks % own == 0) return {own, ranks / own};
  fail(
      Exit::usage,
      "averages of {} can't be predicted on hosts of {} (groups lie on parts of several hosts); give a --node-replicas "
      "that divides the number of ranks per host or is a multiple of it",
      counted(ranks, "replica"), counted(own, "rank"));
}

double Predictor::hidden_part(At end) const {
  const double error = machine_.overlap_measured ? overlap_error : assumed_overlap_error;
  return std::clamp(machine_.overlap + (end == At::value ? 0 : end == At::low ? error : -error), 0.0, 1.0);
}

Predictor::Sums Predictor::sums_at_once(const Traffic& traffic, double compute, int nodes, At end) const {
  Sums found;
  double free_at = 0;
  for (const Traffic::Sum& sum : traffic.sums) {
    const double ready = traffic.beside_backward ? compute * (forward_part + (1 - forward_part) * sum.ready) : compute;
    const double seconds = sum_seconds(sum, traffic.in_a_tree, {machine_.ranks_per_host, nodes}, end);
    free_at = std::max(free_at, ready) + seconds;
    found.all += seconds;
  }
  const double behind = std::max(0.0, free_at - compute), beside = std::max(0.0, found.all - behind);
  found.exposed = behind + (1 - hidden_part(end)) * beside;
  return found;
}

Predictor::Sums Predictor::sums_late(const Traffic& traffic, double compute, int nodes, At end) const {
  double waited = 0, others = 0;
  for (const Traffic::Sum& sum : traffic.sums)
    (sum.waited ? waited : others) += sum_seconds(sum, traffic.in_a_tree, {machine_.ranks_per_host, nodes}, end);
  // The next average starts when this one has come: what does not fit beside the steps of a period is waited for.
  const double behind = std::max(0.0, others - compute * static_cast<double>(traffic.steps));
  return {.all = waited + others, .exposed = waited + behind + (1 - hidden_part(end)) * (others - behind)};
}

Predictor::Sums Predictor::sums_of_group(const Traffic& traffic, At end) const {
  Sums found;
  if (traffic.group.sums.empty()) return found;
  const Place place = place_of_group(traffic.group.ranks);
  for (const Traffic::Sum& sum : traffic.group.sums) found.all += sum_seconds(sum, traffic.group.in_a_tree, place, end);
  found.all *= static_cast<double>(traffic.group.times);
  found.exposed = found.all;
  return found;
}

Predictor::Times Predictor::times(const Traffic& traffic, double batch, double steps, int nodes, At end) const {
  Times found{.compute = compute_seconds(batch, end)};
  const Sums at_once = sums_at_once(traffic, found.compute, nodes, end), group = sums_of_group(traffic, end);
  const Sums one = traffic.beside_steps ? sums_late(traffic, found.compute, nodes, end) : at_once;
  const double early = traffic.start > 0 ? std::min(1.0, static_cast<double>(traffic.start) / steps) : 0;
  const auto mean = [&](double of_early_step, double of_period) {
    return early * of_early_step + (1 - early) * of_period / static_cast<double>(traffic.steps);
  };
  found.sums = mean(at_once.all, one.all + group.all);
  found.exposed = mean(at_once.exposed, one.exposed + group.exposed);
  return found;
}

ScalePrediction Predictor::predict(const Traffic& traffic, int nodes, ScalingKind scaling) const {
  const int ranks = nodes * machine_.ranks_per_host;
  if (nodes > 1 && !machine_.between)
    fail(
        Exit::usage,
        "the description of '{}' has no links between hosts; run 'convoy bench comm --machine FILE' on two hosts, or give --nodes 1",
        machine_.name);
  if (machine_.ranks_per_host > 1 && !machine_.inside)
    fail(
        Exit::usage,
        "the description of '{}' has no links inside a host; run 'convoy bench comm --machine FILE' with several ranks on one, or give --ranks-per-node 1",
        machine_.name);
  ScalePrediction p{.nodes = nodes, .ranks = ranks};
  p.global_batch = scaling == ScalingKind::weak ? job_.batch * ranks : job_.global_batch;
  // The slowest rank has one image more than others if they can't be dealt evenly.
  p.batch = (p.global_batch + ranks - 1) / ranks;
  const auto batch = static_cast<double>(p.batch);
  const double steps = std::ceil(static_cast<double>(job_.samples) / static_cast<double>(p.global_batch)) * job_.epochs;
  const Times found = times(traffic, batch, steps, nodes, At::value);
  p.compute = found.compute;
  p.sums = found.sums;
  p.exposed = found.exposed;
  p.step = found.step();
  p.low = times(traffic, batch, steps, nodes, At::low).step();
  p.high = times(traffic, batch, steps, nodes, At::high).step();
  p.hours = steps * p.step / 3600;
  p.node_hours = p.hours * nodes;
  return p;
}

std::vector<ScalePrediction> predict_all(const Predictor& predictor, const std::vector<Traffic>& traffic,
                                         const std::vector<int>& nodes, ScalingKind scaling) {
  std::vector<ScalePrediction> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ScalePrediction p = predictor.predict(traffic[i], nodes[i], scaling);
    if (p.global_batch < p.ranks) break;  // some would have no image
    const ScalePrediction& first = all.empty() ? p : all.front();
    p.efficiency = p.images_per_second() / p.nodes / (first.images_per_second() / first.nodes);
    all.push_back(p);
  }
  return all;
}

namespace {

constexpr int most_nodes = 1 << 20;

int node_count(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > most_nodes)
    throw std::invalid_argument(fmt::format("'{}' is no number of nodes from 1 to {}", text, most_nodes));
  return count;
}

}  // namespace

std::vector<int> node_counts(const std::string& text) {
  std::vector<int> counts;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const int first = node_count(text.substr(0, dots)), last = node_count(text.substr(dots + 2));
    if (last < first) throw std::invalid_argument(fmt::format("'{}' ends before it begins", text));
    for (int count = first; count < last; count *= 2) counts.push_back(count);
    counts.push_back(last);
    return counts;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(node_count(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace convoy
