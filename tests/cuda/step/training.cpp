// SPDX-License-Identifier: Apache-2.0
#include "cuda/step/training.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

constexpr Index classes = 10, channels = 3;

void wait(Backend& backend, Event event) {
  while (!backend.done(event)) std::this_thread::yield();
}

std::vector<float> read(Backend& backend, const float* from, Index n) {
  std::vector<float> host(static_cast<std::size_t>(n));
  wait(backend, backend.download(host.data(), from, n, backend.record()));
  return host;
}

double norm(const float* values, Index count) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(sum);
}

double difference(const float* a, const float* b, Index count) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace

TrainingResult train(Backend& backend, const TrainingSpec& spec) {
  TrainingResult result;
  Plan& plan = result.plan = make_plan(build_graph(spec.model), spec.plan);
  result.layout = backend.layout(plan, spec.optimiser);
  CompileSpec compile;
  compile.samples = spec.batch;
  compile.height = compile.width = spec.image;
  compile.precision = spec.precision;
  compile.input = formula_input(spec.image, spec.image, channels);
  compile.topk = 2;
  compile.tuning = spec.tuning;
  compile.options = spec.options;
  compile.choices = spec.choices;
  compile.recompute = spec.recompute;
  compile.arena_limit = spec.arena_limit;
  const auto program = backend.compile(plan, compile);
  compile.mode = Mode::evaluate;
  compile.choices.clear();
  const auto evaluation = backend.compile(plan, compile);
  const auto updater = backend.compile(plan, spec.optimiser);
  result.description = program->describe();
  result.choices = program->choices();
  result.arena_floats = program->arena_floats();
  result.recomputation = program->recomputation();

  float* const arena = backend.allocate(std::max(program->arena_floats(), evaluation->arena_floats()));
  float* const gradients = backend.allocate(plan.table.block());
  program->bind(arena, gradients);
  evaluation->bind(arena, nullptr);
  updater->bind(backend.allocate(std::max<Index>(16, updater->arena_floats())));

  std::vector<float> host(static_cast<std::size_t>(result.layout.count()), 0.0F);
  const reference::Values values = formula_parameters(plan.table);
  std::transform(values.begin(), values.end(), host.begin(), [](double v) { return static_cast<float>(v); });
  initialise_statistics(plan.table, host.data() + result.layout.statistics.begin);
  host[static_cast<std::size_t>(result.layout.state.begin)] = spec.optimiser.loss_scale.start;
  const ParameterSet set{backend.allocate(result.layout.count()), result.layout.count()};
  wait(backend, backend.upload(set.block, host.data(), set.count));
  backend.refresh(set);

  std::vector<std::vector<std::uint8_t>> images;
  std::vector<const std::uint8_t*> rows;
  const auto called = [&](const char* what, int s) { return what + std::to_string(100 * spec.draw + s); };
  for (int s = 0; s < spec.steps; ++s) {
    const auto& made =
        images.emplace_back(formula_images(called("images", s), spec.batch * spec.image * spec.image * channels));
    auto* const pinned =
        spec.rows == Rows::pinned
            ? reinterpret_cast<std::uint8_t*>(backend.allocate_host(static_cast<Index>(made.size() + 3) / 4))
            : nullptr;
    if (pinned != nullptr) std::copy(made.begin(), made.end(), pinned);
    rows.push_back(pinned != nullptr ? pinned : made.data());
  }
  Batch batch;
  const auto feed = [&](Program& to, int s) {
    const std::vector<SampleSpec> samples = formula_samples(called("labels", s), spec.batch, classes, true);
    batch.samples = samples;
    batch.images = rows[static_cast<std::size_t>(s)];
    batch.valid_count = spec.batch;
    batch.scale = batch.norm_scale = 1.0F / static_cast<float>(spec.batch);
    to.feed(batch);
  };
  const auto step = [&] {
    for (std::size_t stage = 0; stage < program->stages().size(); ++stage) program->launch(stage, set);
    updater->launch(set, gradients);
  };
  const bool everything = spec.reading == Reading::everything;
  for (int s = 0; s < spec.steps; ++s) {
    if (spec.before_step) spec.before_step(s);
    backend.set_step({.learning_rate = spec.rate, .step = s, .options = {{0.9}}});
    feed(*program, s);
    if (spec.launching == Launching::replayed) {
      backend.replay(1, step);
    } else {
      step();
    }
    if (s == 0 && everything) result.first_gradients = read(backend, gradients, plan.table.block());
  }
  if (spec.before_step) spec.before_step(spec.steps);
  if (!everything) {
    result.set = read(backend, set.block, set.count);
    return result;
  }
  result.gradients = read(backend, gradients, plan.table.block());
  result.logits = read(backend, program->logits(), spec.batch * classes);
  result.loss = read(backend, program->loss_per_sample(), spec.batch);
  result.set = read(backend, set.block, set.count);
  feed(*evaluation, spec.steps - 1);
  evaluation->launch(0, set);
  result.evaluated = read(backend, evaluation->logits(), spec.batch * classes);
  wait(backend, backend.counters_ready());
  result.counters = backend.take_counters();
  return result;
}

GraphSpec small_model(const std::string& name, const std::string& activation, const std::string& version) {
  GraphSpec spec;
  spec.model = name;
  spec.classes = classes;
  spec.activation = activation;
  spec.options["resnet-version"] = version;
  return spec;
}

Distance distance(const ParameterTable& table, const std::vector<float>& found, const std::vector<float>& expected) {
  std::map<NodeId, double> scale;
  for (const Parameter& row : table.rows) {
    double& of_node = scale[row.node];
    of_node = std::max(of_node, norm(expected.data() + row.range.begin, row.range.count));
  }
  Distance worst;
  for (const Parameter& row : table.rows) {
    const double share =
        difference(found.data() + row.range.begin, expected.data() + row.range.begin, row.range.count) /
        scale.at(row.node);
    if (!(share <= worst.share)) worst = {share, row.name};  // also takes NaN
  }
  return worst;
}

double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  const auto count = static_cast<Index>(expected.size());
  return difference(found.data(), expected.data(), count) / norm(expected.data(), count);
}

}  // namespace convoy::cuda
