// SPDX-License-Identifier: Apache-2.0
// What only the CPU backend promises: no allocation in a step, bits that don't depend on tiles, choices by measuring.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/instruction_set.hpp"
#include "backend/factory.hpp"
#include "network/models.hpp"
#include "support/allocations.hpp"
#include "support/rounding.hpp"

namespace convoy {
namespace {

constexpr Index samples = 8, image = 16, classes = 5;

Plan plan_of(const char* model, const char* version = "") {
  GraphSpec spec;
  spec.model = model;
  spec.options["resnet-version"] = version;
  spec.classes = classes;
  spec.image_size = image;
  return make_plan(build_graph(spec), PlanSpec{.bucket_floats = 4000});
}

/// A program with its memory, fed with the same images each time.
class Trained {
 public:
  /// `before`: what the arena holds.
  Trained(Backend& backend, const Plan& plan, const CompileSpec& spec, float before = 0)
      : plan_(plan), program_(backend.compile(plan, spec)), gradients_(backend.allocate(plan.table.block())) {
    const SetLayout layout = backend.layout(plan, {});
    set_ = {backend.allocate(layout.count()), layout.count()};
    initialise_parameters(plan.table, 7, set_.block);
    initialise_statistics(plan.table, set_.block + layout.statistics.begin);
    float* const arena = backend.allocate(program_->arena_floats());
    std::fill_n(arena, program_->arena_floats(), before);
    program_->bind(arena, gradients_);
    for (std::size_t i = 0; i < images_.size(); ++i) images_[i] = static_cast<std::uint8_t>((i * 2654435761U) >> 17);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      samples_[i].sample = static_cast<Index>(i);
      samples_[i].a = samples_[i].b = static_cast<std::int32_t>(i % classes);
    }
  }

  static CompileSpec spec() {
    CompileSpec spec{.samples = samples, .height = image, .width = image};
    spec.topk = 2;
    spec.input = {.height = image, .width = image, .channels = 3};
    spec.input.mean = {127, 127, 127, 127};
    spec.input.std = {60, 60, 60, 60};
    return spec;
  }

  void step() {
    Batch batch{.samples = samples_, .images = images_.data(), .valid_count = samples};
    batch.scale = batch.norm_scale = 1.0F / samples;
    program_->feed(batch);
    for (std::size_t s = 0; s < program_->stages().size(); ++s) program_->launch(s, set_);
  }

  Program& program() { return *program_; }
  const ParameterSet& set() const { return set_; }
  const float* gradients() const { return gradients_; }
  std::vector<float> gradient_block() const { return {gradients_, gradients_ + plan_.table.block()}; }
  std::vector<float> logits() const { return {program_->logits(), program_->logits() + samples * classes}; }
  std::vector<float> gradient(const std::string& name) const {
    const Range range = plan_.table.find(name)->range;
    return {gradients_ + range.begin, gradients_ + range.end()};
  }

 private:
  const Plan& plan_;
  std::unique_ptr<Program> program_;
  float* gradients_;
  ParameterSet set_;
  std::vector<std::uint8_t> images_ = std::vector<std::uint8_t>(samples * image * image * 3);
  std::vector<SampleSpec> samples_ = std::vector<SampleSpec>(samples);
};

/// As many passes as in `choices`, each with the words of `choice`.
std::string each_pass(const std::string& choices, const std::string& choice) {
  std::string result = choice;
  for (const char c : choices)
    if (c == ';') result += "; " + choice;
  return result;
}
/// Each in tiles of `tile` by direct kernels, but for the gradients of weights.
std::string in_tiles(const std::string& choices, int tile, const std::string& weights = "direct") {
  return each_pass(choices, "tile " + std::to_string(tile) + " direct direct " + weights);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class CpuPrograms : public testing::TestWithParam<const char*> {};

TEST_P(CpuPrograms, AllocateNothingInAStep) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of(GetParam());
  const OptimiserSpec optimiser;
  Trained trained(*backend, plan, Trained::spec());
  const auto updater = backend->compile(plan, optimiser);
  updater->bind(backend->allocate(updater->arena_floats()));
  backend->set_step({.learning_rate = 0.01F, .options = {{0.9}}});
  const auto whole_step = [&] {
    trained.step();
    updater->launch(trained.set(), trained.gradients());
    backend->take_counters();
  };
  whole_step();
  whole_step();
  const long before = count_allocations();
  whole_step();
  EXPECT_EQ(count_allocations() - before, 0);
}

TEST_P(CpuPrograms, ForwardBitsDontDependOnTiles) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of(GetParam());
  CompileSpec spec = Trained::spec();
  const std::string rule = Trained(*backend, plan, spec).program().choices();
  std::vector<std::vector<float>> logits, statistics;
  for (const int tile : {1, 2, 4}) {
    spec.choices = in_tiles(rule, tile);
    Trained trained(*backend, plan, spec);
    trained.step();
    logits.push_back(trained.logits());
    const float* const tail = trained.gradients() + plan.table.statistics.begin;
    statistics.emplace_back(tail, tail + plan.table.statistics.count);
  }
  for (std::size_t i = 1; i < logits.size(); ++i) {
    EXPECT_TRUE(same_bits(logits[i], logits[0])) << "tiles of " << (1 << i);
    EXPECT_TRUE(same_bits(statistics[i], statistics[0])) << "tiles of " << (1 << i);
  }
}

TEST_P(CpuPrograms, MeasuredChoicesComputeTheSame) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of(GetParam());
  CompileSpec spec = Trained::spec();
  Trained by_rule(*backend, plan, spec);
  spec.tuning = Tuning::measured;
  Trained measured(*backend, plan, spec);
  by_rule.step();
  measured.step();
  const std::vector<float> a = by_rule.logits(), b = measured.logits();
  // Each deviates from the exact values by what rounding may do.
  float size = 0;
  for (const float logit : a) size = std::max(size, std::abs(logit));
  const double error = winograd_gain * rounding_bound(plan.graph, reference::Tensor(samples, 3, image, image)) *
                       static_cast<double>(size);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2 * error) << i;
  EXPECT_EQ(std::count(measured.program().choices().begin(), measured.program().choices().end(), ';'),
            std::count(by_rule.program().choices().begin(), by_rule.program().choices().end(), ';'));
  EXPECT_EQ(backend->take_counters().samples, 2 * samples) << "measuring must not count";
}

/// Tensors and the scratch memory of passes lie where others lay before. Tiles of 4 make two threads add their sums.
TEST_P(CpuPrograms, WhatTheArenaHeldDoesNotMatter) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of(GetParam());
  const std::string rule = Trained(*backend, plan, Trained::spec()).program().choices();
  constexpr std::pair<Precision, const char*> cases[] = {{Precision::fp32, "whole 8 direct direct direct"},
                                                         {Precision::fp32, "tile 4 direct direct direct"},
                                                         {Precision::fp32, "whole 8 winograd winograd winograd"},
                                                         {Precision::fp32, "tile 4 winograd winograd gemm"},
                                                         {Precision::bf16, "whole 8 winograd-bf16 direct winograd"},
                                                         {Precision::bf16, "tile 4 direct winograd-bf16 direct"}};
  for (const auto& [precision, choice] : cases) {
    if (precision == Precision::bf16 && !cpu::has_avx512(cpu::find_instruction_set().isa)) continue;
    CompileSpec spec = Trained::spec();
    spec.precision = precision;
    spec.choices = each_pass(rule, choice);
    Trained clean(*backend, plan, spec), used(*backend, plan, spec, std::numeric_limits<float>::quiet_NaN());
    clean.step();
    used.step();
    const std::vector<float> logits = clean.logits();
    EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) << choice;
    EXPECT_TRUE(same_bits(used.logits(), logits)) << choice;
    EXPECT_TRUE(same_bits(used.gradient_block(), clean.gradient_block())) << choice;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CpuPrograms, testing::Values("resnet8", "lenet"),
                         [](const auto& test) { return std::string(test.param); });

TEST(CpuProgram, DataGradientBitsDontDependOnThreads) {
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  std::vector<float> logits[2], shift[2];
  for (const int threads : {1, 2}) {
    const auto backend = make_cpu_backend(threads);
    spec.choices = in_tiles(Trained(*backend, plan, Trained::spec()).program().choices(), 2);
    Trained trained(*backend, plan, spec);
    trained.step();
    logits[threads - 1] = trained.logits();
    shift[threads - 1] = trained.gradient("bn1.bias");  // the last thing that data gradients reach
  }
  EXPECT_TRUE(same_bits(logits[0], logits[1]));
  EXPECT_TRUE(same_bits(shift[0], shift[1]));
}

/// Largest distance of a parameter's gradient from `exact`, relative to its norm, among those of convolutions.
double distance_of_filters(const Trained& trained, const Trained& exact, const Plan& plan) {
  double largest = 0;
  for (const Parameter& row : plan.table.rows) {
    if (row.name.find("conv") == std::string::npos) continue;
    const std::vector<float> a = trained.gradient(row.name), b = exact.gradient(row.name);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      size += std::pow(static_cast<double>(b[i]), 2);
    }
    largest = std::max(largest, std::sqrt(error / size));
  }
  return largest;
}

/// Forward pass and data gradients are the same, so no activation's sign differs. Each weight gradient sums at most
/// 8 x 16 x 16 = 2048 terms. Roundings behave like a random walk: u sqrt(2048) per program. The factor 4 allows for a
/// sum smaller than its terms, since they differ in sign.
TEST(CpuProgram, ProductsOverPixelsMakeTheSameGradients) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  const std::string rule = Trained(*backend, plan, spec).program().choices();
  for (const int tile : {1, 4}) {
    spec.choices = in_tiles(rule, tile);
    Trained direct(*backend, plan, spec);
    spec.choices = in_tiles(rule, tile, "gemm");
    Trained products(*backend, plan, spec);
    EXPECT_EQ(products.program().choices(), spec.choices);
    direct.step();
    products.step();
    EXPECT_TRUE(same_bits(products.logits(), direct.logits()));
    const double distance = distance_of_filters(products, direct, plan);
    EXPECT_NE(products.program().describe().find("weights gemm"), std::string::npos);
    EXPECT_LT(distance, 2 * 4 * std::sqrt(2048.0) * fp32_unit);
  }
}

/// Winograd's kernels in tiles of images and with the whole batch, of stride 1 and 2: the same forward pass and data
/// gradients, and weight gradients that add the same terms in another order. The bound is the one above times
/// winograd_gain.
TEST(CpuProgram, WinogradInTilesMakesTheSameGradients) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  const std::string rule = Trained(*backend, plan, spec).program().choices();
  spec.choices = each_pass(rule, "whole " + std::to_string(samples) + " winograd winograd winograd");
  Trained whole(*backend, plan, spec);
  whole.step();
  for (const int tile : {1, 2, 4}) {
    SCOPED_TRACE("tiles of " + std::to_string(tile));
    spec.choices = each_pass(rule, "tile " + std::to_string(tile) + " winograd winograd winograd");
    Trained tiles(*backend, plan, spec);
    EXPECT_EQ(tiles.program().choices(), spec.choices);
    tiles.step();
    EXPECT_TRUE(same_bits(tiles.logits(), whole.logits()));
    EXPECT_TRUE(same_bits(tiles.gradient("bn1.bias"), whole.gradient("bn1.bias")));
    EXPECT_LT(distance_of_filters(tiles, whole, plan), winograd_gain * 2 * 4 * std::sqrt(2048.0) * fp32_unit);
  }
}

/// Returns how the `direction` pass of the 3x3 convolution in ResNet-50's block `layer` divides the batch.
std::string tiles_of(const Program& program, const std::string& direction, const std::string& layer) {
  const std::string text = program.describe();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find(direction) == std::string::npos || line.find(layer + ".conv2 ") == std::string::npos) continue;
    for (const char* const tiles : {"whole batch", "tiles of 32", "tiles of 16", "tiles of 4"})
      if (line.find(tiles) != std::string::npos) return tiles;
  }
  return "no such pass in " + text;
}

TEST(CpuProgram, ThreadsTakeImagesOfTheirOwnWhereItPays) {
  GraphSpec network;
  network.model = "resnet50";
  const Plan plan = make_plan(build_graph(network), PlanSpec{});
  const auto compiled = [&](Backend& backend, Index count) {
    CompileSpec spec = Trained::spec();
    spec.samples = count;
    spec.height = spec.width = spec.input.height = spec.input.width = 224;
    return backend.compile(plan, spec);
  };
  const auto two = make_cpu_backend(2), sixteen = make_cpu_backend(16);
  const auto large = compiled(*two, 128), small = compiled(*two, 8), shared = compiled(*sixteen, 64);
  EXPECT_EQ(tiles_of(*large, "backward", "layer3.1"), "tiles of 32");
  EXPECT_EQ(tiles_of(*large, "backward", "layer4.1"), "whole batch") << "two sums of 37.7 MB don't fit";
  EXPECT_EQ(tiles_of(*large, "forward", "layer4.1"), "tiles of 32");
  EXPECT_EQ(tiles_of(*small, "backward", "layer2.1"), "tiles of 4");
  EXPECT_EQ(tiles_of(*small, "backward", "layer3.1"), "whole batch") << "64 tiles per thread aren't worth a sum";
  EXPECT_EQ(tiles_of(*small, "forward", "layer3.1"), "tiles of 4");
  EXPECT_EQ(tiles_of(*shared, "backward", "layer1.1"), "tiles of 4");
  EXPECT_EQ(tiles_of(*shared, "backward", "layer2.1"), "whole batch") << "sixteen sums of 2.4 MB don't fit";
}

/// Convolutions with bias, and the one that reads the image.
TEST(CpuProgram, ProductsOverPixelsLeaveWhatDoesNotFit) {
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of("lenet");
  CompileSpec spec = Trained::spec();
  const std::string rule = Trained(*backend, plan, spec).program().choices();
  spec.choices = in_tiles(rule, 2);
  Trained direct(*backend, plan, spec);
  spec.choices = in_tiles(rule, 2, "gemm");
  Trained left(*backend, plan, spec);
  direct.step();
  left.step();
  for (const Parameter& row : plan.table.rows)
    EXPECT_TRUE(same_bits(left.gradient(row.name), direct.gradient(row.name))) << row.name;
}

/// Only the gradients of weights differ: by what products of factors in bf16 may be off (ADR 0022).
TEST(CpuProgram, WinogradInBf16ForGradientsAlone) {
  if (cpu::find_instruction_set().isa != cpu::Isa::avx512_bf16) GTEST_SKIP() << "products in bf16 need AVX512_BF16";
  const auto backend = make_cpu_backend(2);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  spec.precision = Precision::bf16;
  spec.options = "winograd-bf16";
  const std::string rule = Trained(*backend, plan, spec).program().choices();
  spec.choices = in_tiles(rule, 4);
  Trained direct(*backend, plan, spec);
  spec.choices = in_tiles(rule, 4, "winograd-bf16");
  Trained winograd(*backend, plan, spec);
  direct.step();
  winograd.step();
  EXPECT_TRUE(same_bits(winograd.logits(), direct.logits()));
  const double distance = distance_of_filters(winograd, direct, plan);
  EXPECT_GT(distance, 1e-4) << "other kernels";
  EXPECT_LT(distance, 14.0 / 3 * std::sqrt(2.0) / 256);
}

TEST(CpuProgram, RefusesChoicesOfAnotherBatch) {
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  spec.choices = in_tiles(Trained(*backend, plan, spec).program().choices(), 3);
  EXPECT_THROW(backend->compile(plan, spec), std::exception);
  spec.choices = "tile 1 direct direct direct";
  EXPECT_THROW(backend->compile(plan, spec), std::exception);
}

TEST(CpuProgram, OptionLeavesWinogradOut) {
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  spec.options = "no-winograd";
  EXPECT_EQ(backend->compile(plan, spec)->choices().find("winograd"), std::string::npos);
  spec.options = "no-such-thing";
  EXPECT_THROW(backend->compile(plan, spec), std::exception);
}

TEST(CpuProgram, WinogradInBf16IsForBf16) {
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  spec.options = "winograd-bf16";
  EXPECT_THROW(backend->compile(plan, spec), std::exception);
  if (!cpu::has_avx512(cpu::find_instruction_set().isa)) GTEST_SKIP() << "bf16 kernels need AVX-512";
  spec.precision = Precision::bf16;
  const auto program = backend->compile(plan, spec);
  EXPECT_NE(program->choices().find("winograd-bf16"), std::string::npos);
  spec.choices = program->choices();
  EXPECT_EQ(backend->compile(plan, spec)->choices(), spec.choices);
}

/// Machines with a matrix unit, whose tensors are nhwc, take direct kernels.
TEST(CpuProgram, WeightGradientsOfBf16MultiplyInBf16) {
  const cpu::InstructionSet machine = cpu::find_instruction_set();
  if (!cpu::has_avx512(machine.isa)) GTEST_SKIP() << "bf16 kernels need AVX-512";
  const bool wanted = machine.isa == cpu::Isa::avx512_bf16 && machine.bf16_format == cpu::MemoryFormat::blocked;
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  spec.precision = Precision::bf16;
  const std::string choices = backend->compile(plan, spec)->choices();
  EXPECT_EQ(choices.find("winograd winograd winograd-bf16") != std::string::npos, wanted) << choices;
  EXPECT_EQ(choices.find("winograd-bf16 winograd"), std::string::npos) << choices;
}

/// resnet8 ends with maps of 3x3 for images of 12 pixels, and of 4x4 for 16. On 3x3 its products in bf16 are slower
/// than direct ones but for the gradient of the weights.
TEST(CpuProgram, WinogradInBf16LeavesTheSmallestMaps) {
  if (!cpu::has_avx512(cpu::find_instruction_set().isa)) GTEST_SKIP() << "bf16 kernels need AVX-512";
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  for (const auto& [size, left] : {std::pair<Index, bool>{12, true}, {16, false}}) {
    CompileSpec spec = Trained::spec();
    spec.height = spec.width = spec.input.height = spec.input.width = size;
    spec.options = "winograd-bf16";
    spec.precision = Precision::bf16;
    const std::string choices = backend->compile(plan, spec)->choices();
    EXPECT_NE(choices.find("winograd-bf16 winograd-bf16 winograd-bf16"), std::string::npos) << choices;
    EXPECT_EQ(choices.find("direct direct winograd-bf16") != std::string::npos, left) << choices;
  }
}

TEST(CpuProgram, RefusesPrecisionsItDoesNotHave) {
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of("resnet8");
  CompileSpec spec = Trained::spec();
  for (const Precision precision : {Precision::tf32, Precision::fp16}) {
    spec.precision = precision;
    EXPECT_THROW(backend->compile(plan, spec), std::exception);
  }
}

}  // namespace
}  // namespace convoy
