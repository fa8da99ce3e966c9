// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "backend/factory.hpp"
#include "backend/recomputation.hpp"
#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "engine/memory_use.hpp"
#include "engine/placement.hpp"

namespace convoy {

CompileSpec training_spec(const EngineSpec& spec, const ProgramSizes& sizes) {
  return {.height = sizes.height,
          .width = sizes.width,
          .mode = Mode::train,
          .precision = spec.device.precision,
          .input = sizes.input,
          .topk = spec.topk,
          .class_weights = sizes.class_weights,
          .options = spec.device.options,
          .recompute = spec.device.recompute,
          .arena_limit = spec.arena_limit};
}

std::vector<CompileSpec> evaluation_specs(const ProgramSizes& sizes, CompileSpec to) {
  if (sizes.eval_size == 0) return {};
  to.samples = sizes.eval_size;
  to.input = sizes.eval_input;
  to.mode = Mode::evaluate;
  to.tuning = Tuning::rule;
  to.choices.clear();
  to.class_weights.clear();
  to.recompute = Recompute::off;
  if (sizes.eval_crop.height > 0) {
    to.height = sizes.eval_crop.height;
    to.width = sizes.eval_crop.width;
  }
  if (sizes.eval_shapes.empty()) return {to};
  std::vector<CompileSpec> specs;
  specs.reserve(sizes.eval_shapes.size());
  for (const ImageSize& shape : sizes.eval_shapes) {  // images are made at that size
    to.height = to.input.height = shape.height;
    to.width = to.input.width = shape.width;
    specs.push_back(to);
  }
  return specs;
}

namespace {

/// What ranks must share, and all sizes: who submits which sum when.
std::string order_of(std::span<const ReadyRange> stages) {
  std::string text;
  for (const ReadyRange& ready : stages)
    text +=
        fmt::format("{}{}+{}", ready.timing == SumTiming::blocking ? '!' : ' ', ready.range.begin, ready.range.count);
  return text;
}

/// Collective. Kernels of another card or library need not exist here.
void drop_foreign_choices(Communicator& communicator, const Backend& backend, EngineSpec& spec) {
  std::int64_t foreign = backend.describe() == spec.choices_device ? 0 : 1;
  communicator.maximum(std::span(&foreign, 1), "devices of the kernel choices");
  if (foreign == 0) return;
  spec.choices.clear();
  if (communicator.rank() != 0) return;
  log::warn(
      "the checkpoint's kernels were chosen for '{}', and not all ranks have that: they are chosen anew, and bits will differ",
      spec.choices_device);
}

}  // namespace

Engine::Engine(const Graph& graph, const EngineSpec& spec, std::unique_ptr<Backend> backend, std::string chosen)
    : backend_(std::move(backend)), chosen_(std::move(chosen)) {
  threads_ = spec.device.threads;
  plan_ = make_plan(graph, spec.plan);
  layout_ = backend_->layout(plan_, spec.optimiser);
  loss_scale_ = spec.optimiser.loss_scale;
  recompute_ = spec.device.recompute;

  memory_ = spec.memory ? *spec.memory : memory_of(*backend_, spec.node_size);
  require_room_for_parameters(spec, plan_, layout_, memory_);
  if (convoy::trains(spec)) updater_ = backend_->compile(plan_, spec.optimiser);
  std::optional<Index> update_floats;
  if (updater_ != nullptr) update_floats = updater_->arena_floats();
  const Index others = other_floats(spec, plan_, layout_, update_floats, backend_->host_reads());
  EngineSpec limited = spec;
  if (spec.device.recompute == Recompute::automatic) limited.arena_limit = arena_limit(memory_, others);
  for (std::size_t i = 0; i < spec.sizes.size(); ++i) compile(limited, spec.sizes[i], i);
  for (const auto& [key, program] : training_) {
    if (order_of(program->stages()) == order_of(stages())) continue;
    fail(
        Exit::device,
        "the kernels for batches of {} and {} images make the gradients in different orders, and ranks can't all-reduce those; take --tuning rule or a larger --fusion-threshold-mb",
        training_.begin()->first.second, key.second);
  }
  allocate(limited, others);
}

void Engine::allocate(const EngineSpec& spec, Index others) {
  const auto advice = [&] {
    const auto arena = [&](const CompileSpec& each) { return backend_->compile(plan_, each)->arena_floats(); };
    return tell_largest_batch(spec, static_cast<Index>(memory_.bytes / sizeof(float)) - others, arena);
  };
  constexpr double giga = 1e9;
  const double needed = static_cast<double>(others + arena_floats_) * sizeof(float);
  if (memory_.bytes > 0 && needed > memory_.bytes)
    fail(Exit::device, "the network needs {:.1f} GB, more than {}; {}", needed / giga, memory_.name, advice());
  try {
    float* arena = backend_->allocate(std::max<Index>(arena_floats_, 16));
    if (!training_.empty()) {
      gradients_ = backend_->allocate(plan_.table.block());
      updater_->bind(backend_->allocate(std::max<Index>(updater_->arena_floats(), 16)));
    }
    for (auto& [key, program] : training_) program->bind(arena, gradients_);
    for (auto& [key, program] : evaluation_) program->bind(arena, nullptr);
  } catch (const Error& error) {
    if (error.code() != Exit::device || memory_.bytes == 0) throw;
    fail(error.code(), "{}; {}", error.what(), advice());
  }
}

void Engine::compile(const EngineSpec& spec, const ProgramSizes& sizes, std::size_t phase) {
  CompileSpec compile = training_spec(spec, sizes);
  bool usual = phase == 0;
  for (const Index samples : sizes.train_sizes) {
    leave_if_stopped("compiling the network");
    compile.samples = samples;
    compile.choices = usual ? spec.choices : std::string();
    compile.tuning = usual && spec.choices.empty() ? spec.device.tuning : Tuning::rule;
    auto program = backend_->compile(plan_, compile);
    if (usual) {
      choices_ = program->choices();
      usual_ = {phase, samples};
    }
    usual = false;
    arena_floats_ = std::max(arena_floats_, program->arena_floats());
    training_.emplace(std::pair(phase, samples), std::move(program));
  }
  const std::vector<CompileSpec> evaluated = evaluation_specs(sizes, compile);
  for (std::size_t shape = 0; shape < evaluated.size(); ++shape) {
    leave_if_stopped("compiling the network");
    std::unique_ptr<Program> program;
    try {
      program = backend_->compile(plan_, evaluated[shape]);
    } catch (const Error& e) {
      if (sizes.eval_shapes.empty()) throw;
      fail(e.code(), "{}; --rectangular-validation needs a network that ends in global pooling", e.what());
    }
    arena_floats_ = std::max(arena_floats_, program->arena_floats());
    evaluation_.emplace(std::pair(phase, shape), std::move(program));
  }
}

std::string Engine::recomputation() const {
  if (recompute_ == Recompute::off || training_.empty()) return {};
  const Program& usual = *training_.at(usual_);
  return tell(usual.recomputation(), usual.arena_floats());
}

void Engine::feed(const ReplayKey& key, const Batch& batch) {
  if (key.samples > 0) training(key.samples, key.phase).feed(batch);
}

void Engine::launch(const ReplayKey& key, std::size_t stage, const ParameterSet& set) {
  if (key.samples == 0) {
    if (stage == 0) backend_->fill(gradients_, plan_.table.block(), 0.F);
    return;
  }
  progress().mark();
  const TraceSpan span(stage == 0 ? "forward and loss" : "backward, stage", trace_row::main,
                       stage == 0 ? -1 : static_cast<Index>(stage));
  Program& program = training(key.samples, key.phase);
  backend_->replay(key.of_stage(stage).hash(), [&] { program.launch(stage, set); });
}

std::unique_ptr<Engine> make_engine(Communicator& communicator, const Graph& graph, EngineSpec spec) {
  spec.node_rank = communicator.node_rank();
  spec.node_size = communicator.node_size();
  if (spec.device.threads == 0 || communicator.size() == 1) {
    const JobPlacement placement = place_ranks(communicator, spec.device);
    spec.device.threads = placement.threads;
    if (communicator.size() == 1)
      for (const std::string& problem : find_overbooked_cores(placement))
        log::warn("{}: threads that take turns make every step slow; lower --threads, or give 0 for one per core",
                  problem);
  }
  std::unique_ptr<Backend> backend;
  std::string chosen;
  run_agreed(communicator, "starting the device", [&] {
    backend = make_backend({.device = spec.device.device,
                            .threads = spec.device.threads,
                            .node_rank = spec.node_rank,
                            .node_size = spec.node_size},
                           chosen);
  });
  spec.memory = share_device_memory(communicator, *backend);
  if (!spec.choices.empty()) drop_foreign_choices(communicator, *backend, spec);
  std::unique_ptr<Engine> engine;
  const auto build = [&] { engine = std::make_unique<Engine>(graph, spec, std::move(backend), std::move(chosen)); };
  if (spec.device.tuning == Tuning::measured && spec.choices.empty()) {
    // However long it takes: rank 0's own watchdog sees whether it gets on.
    const auto patient = communicator.first_ranks(communicator.size(), {.abort_seconds = 0});
    run_agreed(*patient, "measuring kernels", [&] {
      if (communicator.rank() == 0) build();
    });
    if (engine) spec.choices = engine->choices();
    patient->broadcast(spec.choices, "broadcast of the kernel choices");
  }
  run_agreed(communicator, "building the network", [&] {
    if (!engine) build();
  });
  communicator.require_equal(fmt::format("{:016x}", engine->plan().digest), "the network's plan");
  communicator.require_equal(engine->trains() ? order_of(engine->stages()) : std::string(), "the order of gradients");
  return engine;
}

std::vector<float> Engine::initial_set(std::uint64_t seed) const {
  std::vector<float> set(static_cast<std::size_t>(layout_.count()), 0.F);
  initialise_parameters(plan_.table, seed, set.data() + layout_.values.begin);
  initialise_statistics(plan_.table, set.data() + layout_.statistics.begin);
  layout_.device_state(set.data())->loss_scale = loss_scale_.start;
  return set;
}

void Engine::adopt_loss_scale(std::vector<float>& set) const {
  float& scale = layout_.device_state(set.data())->loss_scale;
  if (loss_scale_.grow_every == 0 || scale == 1) scale = loss_scale_.start;
}

void Engine::upload(const ParameterSet& set, const std::vector<float>& host, Collectives& collectives) {
  collectives.await(backend_->upload(set.block, host.data(), layout_.count()), "upload of the parameters");
  backend_->refresh(set);
}

std::vector<float> Engine::download(const ParameterSet& set, Collectives& collectives) {
  std::vector<float> host;
  download(set, host, collectives);
  return host;
}

void Engine::download(const ParameterSet& set, std::vector<float>& host, Collectives& collectives) {
  host.resize(static_cast<std::size_t>(layout_.count()));
  collectives.await(backend_->download(host.data(), set.block, layout_.count(), backend_->record()),
                    "download of the parameters");
}

}  // namespace convoy
