// SPDX-License-Identifier: Apache-2.0
// The CUDA updater and the CPU's make the same of the same numbers; and the filters' copies follow.
#include "backend/cuda/updater.hpp"

#include <cuda_fp16.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "backend/cpu/updater.hpp"
#include "backend/set_layout.hpp"
#include "cuda/runtime/fixture.hpp"
#include "network/models.hpp"
#include "support/formula.hpp"
#include "support/golden.hpp"
#include "support/matrix_plan.hpp"

namespace convoy::cuda {
namespace {

Plan plan_of(int replicas) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 10;
  spec.norm_momentum = 0.25F;
  PlanSpec plan;
  plan.replicas = replicas;
  plan.weight_decay = 0.01F;
  Plan made = make_plan(build_graph(spec), plan);
  made.table.rows[4].trainable = false;
  made.table.rows[2].rate_multiplier = 0.5F;
  made.table.rows[3].rate_ends = 2;
  return made;
}

std::vector<float> numbers(const std::string& name, Index count) {
  const reference::Values values = formula_values(name, count);
  return {values.begin(), values.end()};
}

/// A set whose device state is that of a new one, and whose slots are not negative, as AdamW's second one.
std::vector<float> start_of(const SetLayout& layout) {
  std::vector<float> set = numbers("set", layout.count());
  const auto slots = set.begin() + layout.optimiser.begin;
  std::transform(slots, slots + layout.optimiser.count, slots, [](float v) { return std::abs(v); });
  *layout.device_state(set.data()) = {};
  return set;
}

struct Steps {
  std::vector<float> block;
  Counters counters;
};

bool has_matrices(Rule rule) {
  return with_optimiser(rule, [](auto chosen) { return is_matrix_rule<decltype(chosen)>; });
}

StepParams params_of(Rule rule, int step) {
  StepParams params{
      .learning_rate = 0.1F / static_cast<float>(step + 1), .step = step, .options = {{0.875, 0.75, 0x1p-10}}};
  if (has_matrices(rule)) {  // the momentum of matrices, the scale, the others' rate
    params.options.value[3] = 0.625;
    params.options.value[4] = 1;
    params.options.value[5] = 0.5;
  }
  return params;
}

void flag(std::vector<float>& gradients, const Plan& plan, int step) {
  for (Index i = 0; i < plan.table.flags.count; ++i)
    gradients[static_cast<std::size_t>(plan.table.flags.begin + i)] = step == 1 && i == 2 ? 4.0F : 0.0F;
}

/// Three steps, of which the second is skipped.
Steps run_on_cpu(const Plan& plan, const OptimiserSpec& spec) {
  const SetLayout layout = set_layout(plan.table, spec);
  StepParams step;
  Steps result;
  const auto updater = cpu::make_updater(plan, spec, step, result.counters);
  std::vector<float> arena(static_cast<std::size_t>(updater->arena_floats() + 16));
  std::size_t space = arena.size() * sizeof(float);
  void* start = arena.data();
  updater->bind(static_cast<float*>(std::align(64, 0, start, space)));
  result.block = start_of(layout);
  for (int i = 0; i < 3; ++i) {
    std::vector<float> gradients = numbers(fmt::format("g{}", i), plan.table.block());
    flag(gradients, plan, i);
    step = params_of(spec.rule, i);
    updater->launch({result.block.data(), layout.count()}, gradients.data());
  }
  return result;
}

Steps run_on_cuda(const Plan& plan, const OptimiserSpec& spec, bool replayed) {
  const auto backend = make_backend();
  const SetLayout layout = backend->layout(plan, spec);
  const auto updater = backend->compile(plan, spec);
  updater->bind(backend->allocate(updater->arena_floats()));
  const ParameterSet set{backend->allocate(layout.count()), layout.count()};
  float* const gradients = backend->allocate(plan.table.block());
  backend->upload(set.block, start_of(layout).data(), layout.count());
  for (int i = 0; i < 3; ++i) {
    std::vector<float> host = numbers(fmt::format("g{}", i), plan.table.block());
    flag(host, plan, i);
    backend->upload(gradients, host.data(), plan.table.block());
    backend->set_step(params_of(spec.rule, i));
    if (replayed) {
      backend->replay(1, [&] { updater->launch(set, gradients); });
    } else {
      updater->launch(set, gradients);
    }
  }
  const Event ready = backend->counters_ready();
  Steps result;
  result.block = read_back(*backend, set.block, layout.count());
  while (!backend->done(ready)) {
  }
  result.counters = backend->take_counters();
  return result;
}

/// Both updaters make orthogonal matrices that are off by less than 4^5 u of their norm
/// (cuda/kernels/orthogonal_test.cpp and unit/backend/muon_test.cpp), and the norm is below 1.3 sqrt(side). A step
/// takes learning rate times 0.2 sqrt(length) of that from the weights; two steps of rates 0.1 and 0.1 / 3 count.
/// Weights round on the way.
double matrix_tolerance(const Parameter& row) {
  const double rows = static_cast<double>(row.shape.front()), columns = static_cast<double>(row.range.count) / rows;
  constexpr double unit = 0x1p-24, rates = 0.1 + 0.1 / 3;
  const double orthogonal = 2 * 1024 * unit * 1.3 * std::sqrt(std::min(rows, columns));
  return rates * 0.2 * std::sqrt(std::max(rows, columns)) * orthogonal + 4 * unit * std::sqrt(rows * columns);
}

/// Weights of matrices by the norm of their distance, all else one by one.
void expect_alike(const Plan& plan, Rule rule, const std::vector<float>& cuda, const std::vector<float>& cpu) {
  ASSERT_EQ(cuda.size(), cpu.size());
  std::vector<bool> in_matrix(cpu.size(), false);
  for (const Parameter& row : plan.table.rows) {
    if (!has_matrices(rule) || !row.is_matrix()) continue;
    double squares = 0;
    for (Index i = row.range.begin; i < row.range.end(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      in_matrix[at] = true;
      const double off = static_cast<double>(cuda[at]) - static_cast<double>(cpu[at]);
      squares += off * off;
    }
    EXPECT_LE(std::sqrt(squares), matrix_tolerance(row)) << row.name << ' ' << row.range.begin;
  }
  for (std::size_t i = 0; i < cpu.size(); ++i)
    ASSERT_TRUE(in_matrix[i] || std::abs(cuda[i] - cpu[i]) <= 4e-7F) << i << ": " << cuda[i] << ", " << cpu[i];
}

TEST(CudaUpdater, EqualsTheCpusForEveryRule) {
  const Plan plan = plan_of(4);
  for (const Rule rule : all_rules) {
    for (const float clip : {0.0F, 3.0F}) {
      const OptimiserSpec spec{.rule = rule, .clip_norm = clip};
      const Steps cpu = run_on_cpu(plan, spec);
      in_all_orders([&] {
        for (const bool replayed : {false, true}) {
          const Steps cuda = run_on_cuda(plan, spec, replayed);
          SCOPED_TRACE(replayed ? "replayed" : "launched");
          expect_alike(plan, rule, cuda.block, cpu.block);
          EXPECT_EQ(cuda.counters.skipped, 1);
          EXPECT_EQ(cuda.counters.skipped, cpu.counters.skipped);
          EXPECT_EQ(cuda.counters.bad_replica, 2);
          EXPECT_EQ(cuda.counters.bad_replica, cpu.counters.bad_replica);
        }
      });
    }
  }
}

/// Wide, tall, of one row and of one element, convolutions, and more than one tile; beside them one that doesn't train.
TEST(CudaUpdater, EqualsTheCpusForMatricesOfAllShapes) {
  Plan plan =
      matrix_plan({{1, 1}, {63, 65}, {64, 64, 3, 3}, {576, 64}, {130, 17}, {1, 30}, {9, 1, 5, 5}, {20, 30}}, 0.0625F);
  plan.table.flags = {plan.table.parameters.count, 4};
  plan.table.exchange = {align_floats(plan.table.flags.end()), 0};
  plan.table.rows[1].rate_multiplier = 0.5F;
  plan.table.rows[4].rate_ends = 2;
  plan.table.rows[7].trainable = false;
  const OptimiserSpec spec{.rule = Rule::muon, .clip_norm = 3};
  const Steps cpu = run_on_cpu(plan, spec);
  std::vector<float> first;
  in_all_orders([&] {
    const Steps cuda = run_on_cuda(plan, spec, true);
    expect_alike(plan, spec.rule, cuda.block, cpu.block);
    if (first.empty()) first = cuda.block;
    EXPECT_TRUE(cuda.block == first) << "other bits in another order";
  });
}

/// A set whose momentum has overflowed gets weights that are no numbers; another set of the same updater doesn't.
TEST(CudaUpdater, AMatrixThatOverflowsLeavesNothingBehind) {
  Plan plan = matrix_plan({{5, 7}}, 0);
  plan.table.flags = {plan.table.parameters.count, 1};
  plan.table.exchange = {align_floats(plan.table.flags.end()), 0};
  const OptimiserSpec spec{.rule = Rule::muon};
  std::vector<std::vector<float>> others, sets;
  for (const float momentum : {0.0F, std::numeric_limits<float>::infinity()}) {
    const auto backend = make_backend();
    const SetLayout layout = backend->layout(plan, spec);
    const auto updater = backend->compile(plan, spec);
    updater->bind(backend->allocate(updater->arena_floats()));
    float* const gradients = backend->allocate(plan.table.block());
    backend->upload(gradients, numbers("g", plan.table.parameters.count).data(), plan.table.parameters.count);
    backend->set_step(params_of(spec.rule, 0));
    const ParameterSet other{backend->allocate(layout.count()), layout.count()},
        set{backend->allocate(layout.count()), layout.count()};
    backend->fill(other.block + layout.slot(0).begin, 1, momentum);
    updater->launch(other, gradients);
    updater->launch(set, gradients);
    others.push_back(read_back(*backend, other.block, layout.count()));
    sets.push_back(read_back(*backend, set.block, layout.count()));
  }
  EXPECT_EQ(others[0], sets[0]);
  EXPECT_TRUE(std::isnan(others[1][34]));
  EXPECT_EQ(sets[1], sets[0]);
  EXPECT_NE(sets[0][34], 0);
}

TEST(CudaUpdater, EqualsPyTorch) {
  for (const GoldenOptimiser& golden : load_golden_optimisers()) {
    SCOPED_TRACE(golden.name);
    const Plan plan = golden_optimiser_plan(golden);
    in_all_orders([&] {
      const auto backend = make_backend();
      const SetLayout layout = backend->layout(plan, golden.spec);
      const auto updater = backend->compile(plan, golden.spec);
      updater->bind(backend->allocate(updater->arena_floats()));
      const ParameterSet set{backend->allocate(layout.count()), layout.count()};
      float* const gradients = backend->allocate(plan.table.block());
      backend->fill(set.block, set.count, 0);
      const auto upload = [&](float* block, std::size_t row, const std::string& name) {
        const Range& range = plan.table.rows[row].range;
        backend->upload(block + range.begin, numbers(name, range.count).data(), range.count);
      };
      upload(set.block, 0, "optimiser/a");
      upload(set.block, 1, "optimiser/b");
      for (std::size_t i = 0; i < golden.rates.size(); ++i) {
        backend->fill(gradients, plan.table.block(), 0);
        upload(gradients, 0, fmt::format("optimiser/da{}", i));
        upload(gradients, 1, fmt::format("optimiser/db{}", i));
        if (golden.skipped.count(i) > 0) {
          backend->fill(gradients, 1, std::numeric_limits<float>::quiet_NaN());
          backend->fill(gradients + plan.table.flags.begin + 1, 1, 1);
        }
        backend->set_step({.learning_rate = golden.rates[i], .options = golden.options});
        updater->launch(set, gradients);
      }
      const std::vector<float> values = read_back(*backend, set.block, layout.count());
      for (const auto& [row, name] : {std::pair{0, "a"}, {1, "b"}}) {
        const Range& range = plan.table.rows[static_cast<std::size_t>(row)].range;
        expect_golden(golden.results.at(name), std::string("optimiser/") + name,
                      {values.begin() + range.begin, values.begin() + range.end()}, golden.tolerance());
      }
    });
  }
}

TEST(CudaUpdater, ADynamicLossScaleIsHalvedInsteadOfNamingAReplica) {
  const Plan plan = plan_of(4);
  const OptimiserSpec spec{.loss_scale = {.start = 4, .grow_every = 2}};
  in_all_orders([&] {
    const auto backend = make_backend();
    const SetLayout layout = backend->layout(plan, spec);
    const auto updater = backend->compile(plan, spec);
    updater->bind(backend->allocate(updater->arena_floats()));
    const ParameterSet set{backend->allocate(layout.count()), layout.count()};
    float* const gradients = backend->allocate(plan.table.block());
    float* const scale = &layout.device_state(set.block)->loss_scale;
    backend->fill(scale, 1, spec.loss_scale.start);
    const auto step = [&](float flag) {
      backend->fill(gradients + plan.table.flags.begin, 1, flag);
      updater->launch(set, gradients);
      const Event ready = backend->counters_ready();
      while (!backend->done(ready)) {
      }
      const Counters counters = backend->take_counters();
      EXPECT_EQ(counters.skipped, flag > 0 ? 1 : 0);
      const float now = read_back(*backend, scale, 1)[0];
      return std::pair(now, counters.bad_replica);
    };
    using Result = std::pair<float, int>;
    EXPECT_EQ(step(1), Result(2, -1));
    EXPECT_EQ(step(0), Result(2, -1));
    EXPECT_EQ(step(0), Result(4, -1));
    EXPECT_EQ(step(1), Result(2, -1));
    EXPECT_EQ(step(1), Result(1, -1));
    EXPECT_EQ(step(1), Result(1, 0)) << "nothing is left to lower";
  });
}

/// As convolutions read them, after refresh and after updates.
TEST(FilterCopies, FollowTheMaster) {
  const Plan plan = plan_of(1);
  in_all_orders([&] {
    Queue queue;
    NoForms library;
    FilterCopies copies(queue);
    const StepNumbers* const step = reinterpret_cast<StepNumbers*>(queue.allocate(sizeof(StepNumbers), "step"));
    auto* const counters = reinterpret_cast<Counters*>(queue.allocate(sizeof(Counters), "counters"));
    const std::vector<const std::uint8_t*> resident;
    const Context context{queue, library, copies, step, counters, resident};
    const OptimiserSpec spec{.rule = Rule::sgd};
    const SetLayout layout = set_layout(plan.table, spec);
    const std::vector<float> values = numbers("w", layout.count());
    const auto new_set = [&] {
      auto* const block = reinterpret_cast<float*>(queue.allocate(layout.count() * 4, "a set"));
      queue.upload_now(block, values.data(), layout.count() * 4);
      return ParameterSet{block, layout.count()};
    };
    const ParameterSet first = new_set(), second = new_set();
    copies.refresh(first);
    EXPECT_EQ(copies.find(first.block), nullptr) << "no program, no copies";
    const auto copy_layout = copies.use(plan, Precision::fp16);
    EXPECT_EQ(copies.use(plan, Precision::fp16), copy_layout);
    copies.refresh(first);
    copies.refresh(second);
    EXPECT_NE(copies.at(first, *copy_layout), copies.at(second, *copy_layout));
    EXPECT_EQ(copies.find(first.block)->pieces, copies.find(second.block)->pieces);
    EXPECT_ANY_THROW(copies.at({first.block + 16, first.count}, *copy_layout));

    auto* const host = reinterpret_cast<__half*>(queue.allocate_host(copy_layout->elements * 2, "a test"));
    const auto expect_copies_of = [&](const ParameterSet& set, double added) {
      queue.to_host(host, copies.at(set, *copy_layout), copy_layout->elements * 2, Stream::compute);
      queue.wait(queue.record());
      for (std::size_t r = 0; r < plan.table.rows.size(); ++r) {
        const FilterCopy& copy = copy_layout->rows[r];
        if (copy.offset < 0) continue;
        for (Index k = 0; k < copy.k; ++k)
          for (Index c = 0; c < copy.stored_c; ++c)
            for (Index s = 0; s < copy.rs; ++s) {
              const Index at = plan.table.rows[r].range.begin + (k * copy.c + c) * copy.rs + s;
              const double want = c < copy.c ? static_cast<double>(values[static_cast<std::size_t>(at)]) +
                                                   (plan.table.rows[r].trainable ? added : 0)
                                             : 0;
              ASSERT_NEAR(static_cast<double>(__half2float(host[copy.offset + (k * copy.rs + s) * copy.stored_c + c])),
                          want, 0x1p-10)
                  << plan.table.rows[r].name;
            }
      }
    };
    expect_copies_of(first, 0);
    const auto updater = make_updater(context, plan, spec);
    updater->bind(reinterpret_cast<float*>(queue.allocate(updater->arena_floats() * 4, "arena")));
    const StepNumbers numbers_of_step{1, 0};
    queue.upload_now(const_cast<StepNumbers*>(step), &numbers_of_step, sizeof numbers_of_step);
    std::vector<float> gradients(static_cast<std::size_t>(plan.table.block()), 0.0F);
    for (const Parameter& row : plan.table.rows)  // w - (g + decay * w) = w + 1
      for (Index i = row.range.begin; i < row.range.end(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        gradients[at] = -row.decay * values[at] - 1 / row.rate_multiplier;
      }
    auto* const device = reinterpret_cast<float*>(queue.allocate(plan.table.block() * 4, "gradients"));
    queue.upload_now(device, gradients.data(), plan.table.block() * 4);
    updater->launch(second, device);
    expect_copies_of(second, 1);
    expect_copies_of(first, 0);
    updater->launch(first, device);
    expect_copies_of(first, 1);
  });
}

}  // namespace
}  // namespace convoy::cuda
