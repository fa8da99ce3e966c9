// SPDX-License-Identifier: Apache-2.0
// Whole training steps through backend, program and updater, against the CPU backend. Everything of ours is the real
// thing; the runtime is a stand-in, and each of cuDNN's graphs is answered by the double reference.
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
  const auto found = results.find(name);
  if (found != results.end()) return found->second;
  return results[name] = train(*make_cpu_backend(2), spec);
}

/// Of the first step's gradients, the updated set, and the logits of an evaluation with it.
struct Limits {
  double gradients = 0, set = 0, logits = 0;
};

void expect_alike(const TrainingResult& found, const TrainingResult& expected, const Limits& limits) {
  const Distance first = distance(expected.plan.table, found.first_gradients, expected.first_gradients);
  EXPECT_LE(first.share, limits.gradients) << "gradient of " << first.name;
  const Range values = expected.layout.values, statistics = expected.layout.statistics;
  const auto slice = [](const std::vector<float>& set, const Range& range) {
    return std::vector<float>(set.begin() + range.begin, set.begin() + range.end());
  };
  const Distance updated = distance(expected.plan.table, slice(found.set, values), slice(expected.set, values));
  EXPECT_LE(updated.share, limits.set) << "updated " << updated.name;
  const double running = distance(slice(found.set, statistics), slice(expected.set, statistics));
  EXPECT_LE(running, limits.set) << "running statistics";
  const double logits = distance(found.logits, expected.logits),
               evaluated = distance(found.evaluated, expected.evaluated);
  EXPECT_LE(logits, limits.logits) << "logits of the last step";
  EXPECT_LE(evaluated, limits.logits) << "logits of the evaluation";
  EXPECT_EQ(found.counters.samples, expected.counters.samples);
  EXPECT_NEAR(found.counters.sums[Counter::loss], expected.counters.sums[Counter::loss],
              limits.logits * std::abs(expected.counters.sums[Counter::loss]));
  EXPECT_EQ(found.counters.skipped, 0);
  std::printf("  gradients %.2g (%s), set %.2g, running %.2g, logits %.2g, evaluated %.2g\n", first.share,
              first.name.c_str(), updated.share, running, logits, evaluated);
}

TrainingSpec basic() { return {.model = small_model("resnet20"), .batch = 3}; }
TrainingSpec bottleneck() { return {.model = small_model("resnet20_bottleneck", "relu", "v1.5"), .batch = 3}; }
TrainingSpec pre_activation() { return {.model = small_model("resnet8", "relu", "v2"), .batch = 3}; }

/// fp32 has 24 bits; what grows is the number of layers, and a kink that falls on the other side.
constexpr Limits tight{.gradients = 2e-4, .set = 1e-5, .logits = 1e-4};

void expect_text(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in:\n" << text;
}

/// The fused paths in fp32: masks, sums, finishing and the order of calls, without the noise of half precision.
TEST(Step, FusedFormsGiveTheCpusStepInFp32) {
  for (const int sm : {80, 90}) {
    const TrainingResult blocks = on_host(bottleneck(), sm, Fusing::everything);
    expect_text(blocks.description, sm == 90 ? "5 with a join in front" : "0 with a join in front");
    expect_text(blocks.description,
                sm == 90 ? "13 through a norm, 5 through a join" : "0 through a norm, 0 through a join");
    expect_alike(blocks, on_cpu("bottleneck", bottleneck()), tight);
    expect_alike(on_host(basic(), sm, Fusing::everything), on_cpu("basic", basic()), tight);
    expect_alike(on_host(pre_activation(), sm, Fusing::everything), on_cpu("pre-activation", pre_activation()), tight);
  }
}

TEST(Step, PlainFormsGiveTheCpusStepInFp32) {
  expect_alike(on_host(bottleneck()), on_cpu("bottleneck", bottleneck()), tight);
  expect_alike(on_host(basic()), on_cpu("basic", basic()), tight);
  for (const char* const activation : {"leaky_relu", "tanh"}) {
    TrainingSpec spec{.model = small_model("resnet8", activation), .batch = 3};
    expect_alike(on_host(spec), on_cpu(activation, spec), tight);
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
    expect_alike(on_host(in(bottleneck(), Precision::fp16), sm), on_cpu("bottleneck", bottleneck()), limits);
    expect_alike(on_host(in(basic(), Precision::fp16), sm), on_cpu("basic", basic()), limits);
  }
  expect_alike(on_host(in(bottleneck(), Precision::fp16, "no-fusion")), on_cpu("bottleneck", bottleneck()), limits);
  expect_alike(on_host(in(basic(), Precision::fp16, "no-fusion")), on_cpu("basic", basic()), limits);
  expect_alike(on_host(in(basic(), Precision::bf16)), on_cpu("basic", basic()), rounded(bf16_unit, 20));
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
  const TrainingResult& expected = on_cpu("small bottleneck", spec);
  spec.tuning = Tuning::measured;
  const TrainingResult measured = on_host(spec, 90, Fusing::everything);
  expect_alike(measured, expected, tight);
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
