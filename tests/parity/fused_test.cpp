// SPDX-License-Identifier: Apache-2.0
// What a GPU fuses in fp16 against the same network without fusion, at a state that training has made: every tensor of
// gradients, and the statistics that convolutions and our own kernels make. CONVOY_FUSED_CASE="MODEL BATCH SIZE STEPS"
// names a network; without it a small one is taken, which the host's stand-in can compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "network/models.hpp"
#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

struct Case {
  std::string model = "resnet11_bottleneck";
  Index batch = 4, size = 16;
  int steps = 4;
};

Case named_case() {
  Case made;
  if (const char* const text = std::getenv("CONVOY_FUSED_CASE")) {
    std::istringstream words(text);
    words >> made.model >> made.batch >> made.size >> made.steps;
  }
  return made;
}

constexpr Index classes = 10;

/// A set of a backend's, and the programs that compute with it.
class Job {
 public:
  explicit Job(const Case& from) : case_(from), backend_(make_test_backend()) {
    GraphSpec model;
    model.model = from.model;
    model.classes = classes;
    model.channels = 3;
    model.image_size = from.size;
    model.options["resnet-version"] =
        "v1.5";  // its strided blocks begin with a convolution that a join can be fused to
    plan_ = make_plan(build_graph(model), {});
    optimiser_.loss_scale.start = 1024;
    layout_ = backend_->layout(plan_, optimiser_);
    updater_ = backend_->compile(plan_, optimiser_);
    updater_->bind(backend_->allocate(std::max<Index>(16, updater_->arena_floats())));
    gradients_ = backend_->allocate(plan_.table.block());
    images_ = formula_images("images", from.batch * from.size * from.size * 3);
    samples_ = formula_samples("labels", from.batch, classes, false);
    block_.assign(static_cast<std::size_t>(layout_.count()), 0.0F);
    initialise_parameters(plan_.table, 1, block_.data() + layout_.values.begin);
    initialise_statistics(plan_.table, block_.data() + layout_.statistics.begin);
    layout_.device_state(block_.data())->loss_scale = 1024;
    set_ = {backend_->allocate(layout_.count()), layout_.count()};
  }

  struct Result {
    std::vector<float> gradients;
    std::string description;
  };
  /// The gradient block after one step from the set as it is.
  Result run(Precision precision, const std::string& options) {
    const auto program = start(precision, options);
    step(*program, 0);
    return {download(*backend_, gradients_, plan_.table.block()), program->describe()};
  }

  /// Moves the set on.
  void train(int steps) {
    const auto program = start(Precision::fp16, "no-fusion");
    for (int i = 0; i < steps; ++i) {
      step(*program, i);
      updater_->launch(set_, gradients_);
    }
    block_ = download(*backend_, set_.block, layout_.count());
  }

  const Plan& plan() const { return plan_; }

 private:
  std::unique_ptr<Program> start(Precision precision, const std::string& options) {
    CompileSpec spec;
    spec.samples = case_.batch;
    spec.height = spec.width = case_.size;
    spec.precision = precision;
    spec.input = formula_input(case_.size, case_.size, 3);
    spec.options = options;
    auto program = backend_->compile(plan_, spec);
    program->bind(backend_->allocate(program->arena_floats()), gradients_);
    const Event uploaded = backend_->upload(set_.block, block_.data(), layout_.count());
    while (!backend_->done(uploaded)) {
    }
    backend_->refresh(set_);
    return program;
  }

  void step(Program& program, Index number) {
    backend_->set_step({.learning_rate = 0.02F, .step = number, .options = {{0.9}}});
    program.feed({.samples = samples_,
                  .images = images_.data(),
                  .valid_count = case_.batch,
                  .scale = 1.0F / static_cast<float>(case_.batch),
                  .norm_scale = 1.0F / static_cast<float>(case_.batch)});
    for (std::size_t stage = 0; stage < program.stages().size(); ++stage) program.launch(stage, set_);
  }

  const Case case_;
  std::unique_ptr<Backend> backend_;
  Plan plan_;
  OptimiserSpec optimiser_;
  SetLayout layout_;
  std::unique_ptr<Updater> updater_;
  std::vector<std::uint8_t> images_;
  std::vector<SampleSpec> samples_;
  std::vector<float> block_;
  ParameterSet set_;
  float* gradients_ = nullptr;
};

/// Euclidean distance of a part of two blocks, and the norm of the second.
struct Distance {
  double apart = 0, norm = 0;
  Distance(const std::vector<float>& a, const std::vector<float>& b, const Range& range) {
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end()); ++i) {
      apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    apart = std::sqrt(apart);
    norm = std::sqrt(norm);
  }
};

/// Both ways round in fp16, so neither is the other's truth: fp32 is. Rounding moves each element before a ReLU by some
/// share of it, and those near 0 to the other side; of independent errors the squares add up. Without fusion each block
/// rounds a convolution's output, the norm's and the sum's: 3 roundings of 2^-12 at most. The prologues of fused
/// kernels also round the norm's scale and shift to fp16, and multiply in fp16: 4 more, which at a mean of up to a
/// deviation count as much each. So the errors of a fused gradient are up to sqrt(7 / 3) = 1.5 times those of an
/// unfused one. Each is estimated from one draw, off by some tens of percent for tensors of 16 elements and more: 3
/// times are allowed, and half the storage's u of the gradient of the whole node, below which nothing is known. A mask,
/// a sum or a branch that is wrong is off by the gradient's own size.
TEST(Fused, GradientsAreAsCloseToFp32AsWithoutFusion) {
  if (test_device() != "cuda") GTEST_SKIP() << "only a GPU fuses in fp16";
  const Case made = named_case();
  Job job(made);
  job.train(made.steps);
  const Job::Result exact = job.run(Precision::fp32, ""), unfused = job.run(Precision::fp16, "no-fusion"),
                    fused = job.run(Precision::fp16, "");
  ASSERT_NE(fused.description.find("[join"), std::string::npos) << fused.description;
  ASSERT_EQ(unfused.description.find("[norm]"), std::string::npos);
  const ParameterTable& table = job.plan().table;
  std::map<NodeId, double> of_node;
  for (const Parameter& row : table.rows) {
    double& norm = of_node[row.node];
    norm = std::max(norm, Distance(exact.gradients, exact.gradients, row.range).norm);
  }
  double worst = 0;
  std::string worst_name;
  for (const Parameter& row : table.rows) {
    const Distance with(fused.gradients, exact.gradients, row.range),
        without(unfused.gradients, exact.gradients, row.range);
    const double limit = 3 * without.apart + 0x1p-12 * of_node.at(row.node);
    EXPECT_LE(with.apart, limit) << 'd' << row.name << ": unfused " << without.apart / with.norm << ", fused "
                                 << with.apart / with.norm << " of its norm";
    if (with.apart / limit > worst) worst = with.apart / limit, worst_name = row.name;
  }
  std::printf("%s, batch %d, %d pixels: %.2f of the limit at %s\n", made.model.c_str(), static_cast<int>(made.batch),
              static_cast<int>(made.size), worst, worst_name.c_str());
  EXPECT_EQ(fused.gradients[static_cast<std::size_t>(table.flags.begin)], 0) << "flagged as not finite";
}

/// cuDNN's sums against ours, of the same network: a channel's coherent error is that of its rounded scale, 2^-12, in
/// each of the layers before, and the variance feels it twice; 16 of these are allowed for.
TEST(Fused, StatisticsOfConvolutionsAreOurs) {
  if (test_device() != "cuda") GTEST_SKIP() << "only a GPU fuses in fp16";
  const Case made = named_case();
  Job job(made);
  job.train(made.steps);
  const Job::Result ours = job.run(Precision::fp16, "no-fusion"), theirs = job.run(Precision::fp16, "statistics-only"),
                    fused = job.run(Precision::fp16, "");
  ASSERT_NE(theirs.description.find("+statistics"), std::string::npos);
  const ParameterTable& table = job.plan().table;
  constexpr double limit = 32 * 0x1p-12;
  for (const Job::Result* const result : {&theirs, &fused}) {
    for (const NormStatistics& norm : table.norms) {
      for (Index c = 0; c < norm.mean.count; ++c) {
        const auto mean = static_cast<std::size_t>(table.statistics.begin + norm.mean.begin + c);
        const auto variance = static_cast<std::size_t>(table.statistics.begin + norm.variance.begin + c);
        const double square = ours.gradients[variance], around = ours.gradients[mean];
        ASSERT_NEAR(result->gradients[variance], square, limit * (square + around * around)) << norm.name << ' ' << c;
        ASSERT_NEAR(result->gradients[mean], around, limit * std::sqrt(square + around * around))
            << norm.name << ' ' << c;
      }
    }
  }
}

}  // namespace
}  // namespace convoy
