// SPDX-License-Identifier: Apache-2.0
// Whole training steps through backend, program and updater, against the CPU backend. Everything of ours is the real
// thing; the runtime is a stand-in, and each of cuDNN's graphs is answered by the double reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/factory.hpp"
#include "cuda/step/training.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

TrainingResult on_host(const TrainingSpec& spec, int sm = 90, Fusing fusing = Fusing::fp16) {
  return train(*make_cuda_backend(make_reference_library(sm, fusing)), spec);
}

/// In fp32, whatever the other side has.
const TrainingResult& on_cpu(const std::string& name, TrainingSpec spec) {
  static std::map<std::string, TrainingResult> results;
  spec.precision = Precision::fp32;
  spec.options.clear();
  spec.tuning = Tuning::rule;
  const auto found = results.find(name);
  if (found != results.end()) return found->second;
  return results[name] = train(*make_cpu_backend(2), spec);
}

/// Of the first step's gradients, the updated set, and the logits of an evaluation with it.
struct Limits {
  double gradients = 0, set = 0, logits = 0;
};

/// What lies beyond a limit, a line each; nothing if the two are alike.
std::string differences(const TrainingResult& found, const TrainingResult& expected, const Limits& limits) {
  std::string text;
  const auto check = [&](double share, double limit, const std::string& what) {
    if (!(share <= limit)) text += fmt::format("{}: {:.3g} beyond {:.3g}\n", what, share, limit);  // also takes NaN
  };
  const Distance first = distance(expected.plan.table, found.first_gradients, expected.first_gradients);
  check(first.share, limits.gradients, "gradient of " + first.name);
  const Range values = expected.layout.values, statistics = expected.layout.statistics;
  const auto slice = [](const std::vector<float>& set, const Range& range) {
    return std::vector<float>(set.begin() + range.begin, set.begin() + range.end());
  };
  const Distance updated = distance(expected.plan.table, slice(found.set, values), slice(expected.set, values));
  check(updated.share, limits.set, "updated " + updated.name);
  check(distance(slice(found.set, statistics), slice(expected.set, statistics)), limits.set, "running statistics");
  check(distance(found.logits, expected.logits), limits.logits, "logits of the last step");
  check(distance(found.evaluated, expected.evaluated), limits.logits, "logits of the evaluation");
  const double loss = expected.counters.sums[Counter::loss];
  check(std::abs(found.counters.sums[Counter::loss] - loss) / std::abs(loss), limits.logits, "sum of losses");
  check(std::abs(static_cast<double>(found.counters.samples - expected.counters.samples)), 0, "samples");
  check(static_cast<double>(found.counters.skipped), 0, "skipped steps");
  return text;
}

void expect_alike(const TrainingResult& found, const TrainingResult& expected, const Limits& limits) {
  EXPECT_EQ(differences(found, expected, limits), "");
}

TrainingSpec basic() { return {.model = small_model("resnet20"), .batch = 3}; }
TrainingSpec bottleneck() { return {.model = small_model("resnet20_bottleneck", "relu", "v1.5"), .batch = 3}; }
TrainingSpec pre_activation() { return {.model = small_model("resnet8", "relu", "v2"), .batch = 3}; }

/// fp32 has 24 bits; what grows is the number of layers, and a kink that falls on the other side.
constexpr Limits tight{.gradients = 2e-4, .set = 1e-5, .logits = 1e-4};

void expect_text(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in:\n" << text;
}

/// Returns what the backend describes. Two orders of a sum may put an input of a rectifier on different sides of its
/// kink, which moves gradients by more than rounding does. That happens with few images, a mistake shows with all: one
/// of three draws must be alike.
std::string expect_alike_in_fp32(const std::string& name, TrainingSpec spec, int sm = 90,
                                 Fusing fusing = Fusing::fp16) {
  std::string found;
  for (spec.draw = 0; spec.draw < 3; ++spec.draw) {
    const TrainingResult result = on_host(spec, sm, fusing);
    const std::string beyond = differences(result, on_cpu(fmt::format("{} {}", name, spec.draw), spec), tight);
    if (beyond.empty()) return result.description;
    found += fmt::format("{}, sm {}, draw {}:\n{}", name, sm, spec.draw, beyond);
  }
  ADD_FAILURE() << found;
  return {};
}

/// The fused paths in fp32: masks, sums, finishing and the order of calls, without the noise of half precision.
TEST(Step, FusedFormsGiveTheCpusStepInFp32) {
  for (const int sm : {80, 90}) {
    const std::string blocks = expect_alike_in_fp32("bottleneck", bottleneck(), sm, Fusing::everything);
    expect_text(blocks, sm == 90 ? "5 with a join in front" : "0 with a join in front");
    expect_text(blocks, sm == 90 ? "13 through a norm, 5 through a join" : "0 through a norm, 0 through a join");
    expect_alike_in_fp32("basic", basic(), sm, Fusing::everything);
    expect_alike_in_fp32("pre-activation", pre_activation(), sm, Fusing::everything);
  }
}

TEST(Step, PlainFormsGiveTheCpusStepInFp32) {
  expect_alike_in_fp32("bottleneck", bottleneck());
  expect_alike_in_fp32("basic", basic());
  for (const char* const activation : {"leaky_relu", "tanh"}) {
    expect_alike_in_fp32(activation, {.model = small_model("resnet8", activation), .batch = 3});
  }
}

TrainingSpec in(TrainingSpec spec, Precision precision, const std::string& options = "") {
  spec.precision = precision;
  spec.options = options;
  if (precision == Precision::fp16) spec.optimiser.loss_scale.start = 1024;
  return spec;
}

/// A rounded input of a rectifier falls on the other side about once in 1 / unit; over `depth` layers that moves
/// gradients by the root of the share of such elements. Updates are small beside weights, logits meet fewer kinks.
Limits rounded(double unit, double depth) {
  const double kinks = std::sqrt(4 * depth * unit);
  return {.gradients = 2 * kinks, .set = kinks / 2, .logits = kinks};
}
constexpr double fp16_unit = 0x1p-11, bf16_unit = 0x1p-8;

TEST(Step, HalfPrecisionIsTheCpusStepRounded) {
  const Limits limits = rounded(fp16_unit, 20);
  for (const int sm : {80, 90}) {
    expect_alike(on_host(in(bottleneck(), Precision::fp16), sm), on_cpu("bottleneck 0", bottleneck()), limits);
    expect_alike(on_host(in(basic(), Precision::fp16), sm), on_cpu("basic 0", basic()), limits);
  }
  expect_alike(on_host(in(bottleneck(), Precision::fp16, "no-fusion")), on_cpu("bottleneck 0", bottleneck()), limits);
  expect_alike(on_host(in(basic(), Precision::fp16, "no-fusion")), on_cpu("basic 0", basic()), limits);
  expect_alike(on_host(in(basic(), Precision::bf16)), on_cpu("basic 0", basic()), rounded(bf16_unit, 20));
}

/// Powers of two change no bits but those of the smallest gradients.
TEST(Step, LossScaleDoesntShow) {
  TrainingSpec spec = in(bottleneck(), Precision::fp16);
  const TrainingResult scaled = on_host(spec);
  spec.optimiser.loss_scale.start = 4096;
  const TrainingResult more = on_host(spec);
  EXPECT_LE(distance(scaled.plan.table, more.first_gradients, scaled.first_gradients).share, 1e-3);
  const auto state = static_cast<std::size_t>(scaled.layout.state.begin);
  EXPECT_EQ(scaled.set[state], 1024);
  EXPECT_EQ(more.set[state], 4096);
}

/// Times mean nothing here; whatever they choose must compute the same, and nothing of the measuring may be left.
TEST(Step, MeasuredChoicesComputeTheSame) {
  TrainingSpec spec{.model = small_model("resnet11_bottleneck", "relu", "v1.5"), .batch = 2, .image = 8};
  spec.tuning = Tuning::measured;
  expect_alike_in_fp32("small bottleneck", spec, 90, Fusing::everything);
  const TrainingResult measured = on_host(spec, 90, Fusing::everything);
  spec.tuning = Tuning::rule;
  spec.choices = measured.choices;
  EXPECT_EQ(on_host(spec, 90, Fusing::everything).set, measured.set) << "what rank 0 measured, another rank computes";
}

TEST(Step, ChoicesRepeatTheProgram) {
  TrainingSpec spec = in(bottleneck(), Precision::fp16);
  const TrainingResult first = on_host(spec);
  spec.choices = first.choices;
  const TrainingResult again = on_host(spec);
  EXPECT_EQ(again.choices, first.choices);
  EXPECT_EQ(again.set, first.set);
  // A card without the joins can't follow, and says so.
  EXPECT_THROW(on_host(spec, 80), std::exception);
  for (const char* const wrong : {"-", "s.- s.-", "nonsense|x=y"}) {
    spec.choices = wrong;
    EXPECT_THROW(on_host(spec), std::exception) << wrong;
  }
  // Unfused choices hold on a card that could fuse.
  spec.choices.clear();
  spec.options = "no-fusion";
  const TrainingResult plain = on_host(spec);
  spec.choices = plain.choices;
  spec.options.clear();
  EXPECT_EQ(on_host(spec).set, plain.set);
}

}  // namespace
}  // namespace convoy::cuda
