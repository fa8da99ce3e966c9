// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/tuning.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/kernel_selector.hpp"
#include "backend/cuda/lowering/layouts.hpp"
#include "backend/cuda/runtime/timing.hpp"
#include "core/errors.hpp"
#include "core/progress.hpp"

namespace convoy::cuda {
namespace {

/// Of those that can be built, beside the rule's own.
constexpr std::size_t engines_tried = 8;

/// A way to fuse: its execution, its letters by convolution, and how long each part takes.
struct Variant {
  ExecutionPlan execution;
  std::vector<std::string> letters;  ///< what each convolution takes, in the order of values
  std::map<int, double> forward;     ///< seconds by Step::serves: forward, each time, and weight gradients
  std::map<int, double> data;        ///< the same of data gradients
};

std::vector<std::string> letters_of(const std::string& choices) {
  std::istringstream words(choices.substr(0, choices.find('|')));
  std::vector<std::string> letters;
  for (std::string word; words >> word;) letters.push_back(word);
  return letters;
}

class Measuring {
 public:
  Measuring(const Context& context, const ExecutionSpec& spec) : context_(context), spec_(spec) {}

  std::string run() {
    for (const std::string& options : ways()) {
      Variant variant{make({.options = options})};
      variant.letters = letters_of(variant.execution.choices);
      const auto same = [&](const Variant& other) { return other.letters == variant.letters; };
      if (std::none_of(variants_.begin(), variants_.end(), same)) variants_.push_back(std::move(variant));
    }
    tune_engines();
    if (variants_.size() > 1)
      for (Variant& variant : variants_) time_steps(variant);
    return text_of(combine());
  }

 private:
  struct Choice {
    std::string options, choices;
  };

  std::vector<std::string> ways() const {
    if (!spec_.compile.options.empty()) return {spec_.compile.options};
    return {std::string(), std::string(statistics_only), std::string(no_fusion)};
  }

  ExecutionPlan make(const Choice& choice) const {
    CompileSpec compile = spec_.compile;
    compile.options = choice.options;
    compile.choices = choice.choices;
    return make_execution_plan({spec_.plan, compile, spec_.copies, spec_.cudnn});
  }

  void tune_engines() {
    for (const Variant& variant : variants_)
      for (const Step& step : variant.execution.steps)
        if (step.operation && engines_.count(describe(step.graph)) == 0)
          engines_[describe(step.graph)] = best_engine(step.graph, *step.operation);
  }

  /// Never one that needs more workspace than what the rule would take and a tensor's worth.
  std::string best_engine(const ConvolutionGraph& graph, const Operation& rule) {
    std::string best = rule.engine();
    std::vector<std::string> engines = spec_.cudnn.engines(graph, rule.workspace_bytes() + workspace_floor);
    engines.erase(std::remove(engines.begin(), engines.end(), best), engines.end());
    engines.insert(engines.begin(), best);
    double least = 0;
    std::size_t tried = 0;
    for (const std::string& engine : engines) {
      if (tried > engines_tried) break;
      const auto operation = spec_.cudnn.find(graph, {rule.workspace_bytes() + workspace_floor, engine});
      if (!operation) continue;  // the list has also those that are barred
      ++tried;
      const double seconds = seconds_of_form(graph, *operation);
      if (least > 0 && seconds >= least) continue;
      least = seconds;
      best = engine;
    }
    return best;
  }

  /// The operands change places from run to run, so that no cache holds those of the run before, and they are random: a
  /// card draws less power for zeros, and runs faster.
  double seconds_of_form(const ConvolutionGraph& graph, Operation& operation) const {
    progress().mark();
    const Index workspace = rounded(operation.workspace_bytes());
    const std::vector<Operand> operands = operands_of(graph);
    const auto size_of = [&](const Operand& operand) {
      return rounded(operand.count() * (operand.is_float ? 4 : storage_bytes(graph.precision)));
    };
    Index bytes = 0;
    for (const Operand& operand : operands) bytes += size_of(operand);
    const auto places =
        static_cast<int>(std::clamp<Index>(beyond_caches / std::max<Index>(bytes, 1) + 1, 1, most_places));
    const Scratch scratch(context_.queue, workspace + places * bytes);
    std::vector<Pointers> pointers(static_cast<std::size_t>(places));
    Index at = workspace;
    for (Pointers& place : pointers) {
      place.workspace = scratch.at(0);
      for (const Operand& operand : operands) {
        place[operand.role] = scratch.at(at);
        fill_with_noise(context_.queue, scratch.at(at), size_of(operand),
                        operand.is_float ? Precision::fp32 : graph.precision);
        at += size_of(operand);
      }
    }
    return seconds_of(context_.queue, [&](int run) {
      operation.execute(pointers[static_cast<std::size_t>(run % places)], context_.queue.stream());
    });
  }

  /// Runs the execution with its best engines on zeros, one step after another.
  void time_steps(Variant& variant) {
    std::vector<std::string> words = variant.letters;
    variant.execution = make({.options = spec_.compile.options, .choices = text_of(words)});
    const ExecutionPlan& execution = variant.execution;
    const InputSpec& input = spec_.compile.input;
    const ParameterTable& table = spec_.plan.table;
    const Index set_floats = 2 * std::max(table.block(), table.parameters.count + table.running_floats());
    const std::array<Index, 9> sizes{rounded(execution.placement.total_bytes),
                                     rounded(set_floats * 4),
                                     rounded(spec_.plan.table.block() * 4),
                                     rounded(spec_.copies.elements * bytes_of(spec_.copies.storage)),
                                     rounded(sizeof(FeedNumbers)),
                                     rounded(spec_.compile.samples * static_cast<Index>(sizeof(SampleRow))),
                                     rounded(input.height * input.width * input.channels * 5),
                                     rounded(sizeof(Counters)),
                                     rounded((execution.arrivals + 1) * 4)};
    std::array<Index, 9> begins{};
    Index total = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      begins[i] = total;
      total += sizes[i];
    }
    const Scratch scratch(context_.queue, total);
    FeedNumbers numbers;
    numbers.valid = spec_.compile.samples;
    numbers.scale = 1.0F / static_cast<float>(spec_.compile.samples);
    numbers.weight = 1;
    numbers.shared = static_cast<double>(spec_.compile.samples);
    numbers.images = reinterpret_cast<const std::uint8_t*>(scratch.at(begins[6]));
    context_.queue.upload_now(scratch.at(begins[4]), &numbers, sizeof numbers);
    LaunchContext launch;
    launch.arena = scratch.at(begins[0]);
    launch.offsets = execution.placement.offsets.data();
    launch.set = reinterpret_cast<const float*>(scratch.at(begins[1]));
    launch.gradients = reinterpret_cast<float*>(scratch.at(begins[2]));
    launch.copies = scratch.at(begins[3]);
    launch.feed = reinterpret_cast<const FeedNumbers*>(scratch.at(begins[4]));
    launch.rows = reinterpret_cast<const SampleRow*>(scratch.at(begins[5]));
    launch.mean_image = reinterpret_cast<const float*>(scratch.at(begins[6]));
    launch.counters = reinterpret_cast<Counters*>(scratch.at(begins[7]));
    launch.arrivals = reinterpret_cast<unsigned*>(scratch.at(begins[8]));
    launch.worst = reinterpret_cast<std::int32_t*>(launch.arrivals + execution.arrivals);
    launch.step = context_.step;
    launch.stream = context_.queue.stream();
    for (const Step& step : execution.steps) {
      if (step.serves < 0) {
        step.run(launch);
        continue;
      }
      (step.makes_data_gradient() ? variant.data : variant.forward)[step.serves] +=
          seconds_of(context_.queue, [&](int) { step.run(launch); });
    }
  }

  /// Returns for each value the fastest way to convolve it, and to get its gradient.
  std::vector<std::string> combine() const {
    std::vector<std::string> words = variants_.front().letters;
    if (variants_.size() == 1) return words;
    const Lowering lowering = lower(spec_.plan, spec_.copies, spec_.compile);
    std::size_t word = 0;
    for (const Value& value : lowering.values) {
      if (!is_convolution(spec_.plan, value) || !value.used) continue;
      const std::string& forward = fastest(&Variant::forward, value.sources[0]).letters[word];
      const std::string& data = fastest(&Variant::data, value.sources[0]).letters[word];
      words[word] = {forward[0], data[1], forward[2]};
      ++word;
    }
    return words;
  }

  const Variant& fastest(std::map<int, double> Variant::*part, int value) const {
    const auto seconds = [&](const Variant& variant) {
      const auto found = (variant.*part).find(value);
      return found == (variant.*part).end() ? 0.0 : found->second;
    };
    return *std::min_element(variants_.begin(), variants_.end(),
                             [&](const Variant& a, const Variant& b) { return seconds(a) < seconds(b); });
  }

  std::string text_of(const std::vector<std::string>& words) const {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    for (const auto& [graph, engine] : engines_) text += '|' + graph + '=' + engine;
    return text;
  }

  static constexpr Index workspace_floor = 8 << 20;
  static constexpr Index beyond_caches = Index{128} << 20;  ///< more than the L2 of any card
  static constexpr Index most_places = 8;

  const Context& context_;
  const ExecutionSpec& spec_;
  std::vector<Variant> variants_;
  std::map<std::string, std::string> engines_;  ///< the key is the graph's description
};

}  // namespace

std::string choose_by_measuring(const Context& context, const ExecutionSpec& spec) {
  return Measuring(context, spec).run();
}

}  // namespace convoy::cuda
