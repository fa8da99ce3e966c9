// SPDX-License-Identifier: Apache-2.0
// Compiles the programs of every shipped configuration, of resnet50 at batch 256, and of each family of networks for
// described cards: heuristics, support check and compilation of every graph. What the programs are made of is compared
// with plan/expected; after a change that is meant, CONVOY_WRITE_EXPECTED=1 plan_check writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "backend/cuda/lowering/summary.hpp"
#include "config/parse.hpp"
#include "cuda/plan/expectation.hpp"
#include "data/shapes.hpp"
#include "network/models.hpp"
#include "support/case_graph.hpp"

namespace convoy::cuda {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether the expectation lists the graphs of training, with their engines, or the programs alone.
enum class Graphs : std::uint8_t { listed, compiled };

struct Case {
  std::string name;
  GraphSpec model;
  std::string line;  ///< a network of support/case_graph.hpp instead of a model
  Index batch = 0, eval_batch = 0;
  Precision precision = Precision::fp32;
  std::string options;
  bool synchronised = false;
  Recompute recompute = Recompute::off;
  std::vector<std::string> frozen;
  Index eval_size = 0;                 ///< height and width of the input in evaluation; 0: the training's
  std::vector<ImageSize> eval_shapes;  ///< beside the square
  Graphs graphs = Graphs::listed;
};

/// Of what rectangular validation compiles (engine/engine.cpp): a photograph that stands, and the longest that lies.
/// The shortest is the square.
std::vector<ImageSize> rectangles(Index side) {
  constexpr ImageSize standing{500, 375}, longest{100, 1000};
  return {rectangle_of(standing, side), rectangle_of(longest, side)};
}

/// Each size of image and batch of a file, in the precision that it says, and in fp16.
std::vector<Case> shipped_cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(CONVOY_CONFIGS)) {
    if (entry.path().extension() != ".cfg") continue;
    const auto phases = data_phases(parse_train({"--config", entry.path().string(), "--synthetic"}));
    for (const auto& [epoch, config] : phases) {
      Case made{.name = entry.path().stem().string()};
      if (phases.size() > 1) made.name += fmt::format(" from epoch {}", epoch);
      made.model = with_usual_input(config.model, 0, 0, config.data.image_size);
      made.batch = config.global_batch > 0 ? config.global_batch : config.batch;
      made.eval_batch = config.eval_batch;
      made.eval_size = config.data.val_image_size;
      made.precision = config.device.precision;
      made.synchronised = config.sync.sync_bn;
      if (config.data.rectangular) made.eval_shapes = rectangles(made.model.image_size);
      cases.push_back(made);
      if (made.precision == Precision::fp16) continue;
      made.precision = Precision::fp16;
      cases.push_back(made);
    }
  }
  return cases;
}

/// What the byte counts of docs/cuda.md are about, and what falls back.
std::vector<Case> named_cases() {
  Case resnet50{.name = "resnet50", .batch = 256, .eval_batch = 256, .precision = Precision::fp16};
  resnet50.model.model = "resnet50";
  resnet50.model = with_usual_input(resnet50.model, 0, 0, 0);
  std::vector<Case> cases{resnet50};
  for (const Precision precision : {Precision::bf16, Precision::tf32}) {
    cases.push_back(resnet50);
    cases.back().precision = precision;
  }
  cases.push_back(resnet50);
  cases.back().name = "resnet50 unfused";
  cases.back().options = "no-fusion";
  for (const char* const activation : {"leaky_relu", "tanh", "gelu", "silu"}) {
    cases.push_back(resnet50);
    cases.back().name += std::string(" ") + activation;
    cases.back().model.activation = activation;
  }
  cases.push_back(resnet50);
  cases.back().name = "resnet50 v2";
  cases.back().model.options["resnet-version"] = "v2";
  cases.push_back(resnet50);
  cases.back().name = "resnet50 synchronised norms";
  cases.back().synchronised = true;
  cases.push_back(resnet50);
  cases.back().name = "resnet50 in blocks that run twice";
  cases.back().recompute = Recompute::all;
  for (const auto& [what, frozen] : {std::pair{"norms", std::vector<std::string>{"bn1", "*.bn?", "*.downsample.1"}},
                                     {"stages", {"conv1", "bn1", "layer1", "layer2", "*.bn2"}},
                                     {"backbone", {"backbone"}}}) {
    cases.push_back(resnet50);
    cases.back().name += std::string(" frozen ") + what;
    cases.back().frozen = frozen;
  }
  Case small{.name = "resnet18 small stem", .batch = 512, .eval_batch = 512, .precision = Precision::fp16};
  small.model.model = "resnet18";
  small.model.options["stem"] = "small";
  small.model = with_usual_input(small.model, 0, 0, 0);
  cases.push_back(small);
  Case dense{.name = "two layers of a dense block", .batch = 64, .eval_batch = 64, .precision = Precision::fp16};
  dense.model.image_size = 32;
  dense.model.channels = 3;
  dense.line = "n64c3h32w32 conv:k16r3p1 fork bn relu conv:k16r3p1 cat fork bn silu conv:k16r3p1 cat bn gelu gap";
  cases.push_back(dense);
  for (const auto& [name, stride] : {std::pair("two bottlenecks", ""), {"two bottlenecks, strided", "s2"}}) {
    dense.name = name;  // as tests/parity/operations_test.cpp has them
    dense.line = fmt::format(
        "n64c3h32w32 conv:k16r3p1 bn relu fork conv:k16r1 bn relu conv:k16r3{0}p1 bn relu conv:k64r1 bn swap conv:k64r1{0} bn "
        "add relu fork conv:k16r1 bn relu conv:k16r3p1 bn relu conv:k64r1 bn add relu conv:k16r1 bn relu gap",
        stride);
    cases.push_back(dense);
  }
  return cases;
}

/// A network of each family that no configuration has, and the families' forms that are built otherwise.
std::vector<Case> family_cases() {
  std::vector<Case> cases;
  for (const char* const name : {"mlp",
                                 "vgg16_bn",
                                 "resnext50_32x4d",
                                 "wide_resnet50_2",
                                 "seresnet50",
                                 "wrn16_4",
                                 "densenet121",
                                 "googlenet",
                                 "inception_v3",
                                 "inception_v4",
                                 "inception_resnet_v2",
                                 "inception_bn",
                                 "squeezenet1_1",
                                 "mobilenet_v1",
                                 "mobilenet_v2",
                                 "mobilenet_v3_small",
                                 "efficientnet_b0",
                                 "mnasnet0_5",
                                 "efficientnet_v2_s",
                                 "regnet_y_400mf",
                                 "airbench94"}) {
    Case made{.name = name, .batch = 32, .eval_batch = 32, .precision = Precision::fp16};
    made.model.model = name;
    made.model = with_usual_input(made.model, 0, 0, 0);
    made.graphs = Graphs::compiled;
    cases.push_back(made);
    made.precision = Precision::fp32;
    cases.push_back(made);
  }
  return cases;
}

struct Result {
  Expectation found;
  std::map<std::string, Summary> summaries;
  std::string problems;
};

void compile(Library& library, const Case& made, Result& result) {
  const Plan plan = make_plan(made.line.empty() ? build_graph(made.model) : parse_case(made.line).graph,
                              PlanSpec{.sync_bn = made.synchronised, .frozen = made.frozen});
  CompileSpec spec;
  spec.height = spec.width = spec.input.height = spec.input.width = made.model.image_size;
  spec.input.channels = made.model.channels;
  spec.precision = made.precision;
  spec.options = made.options;
  spec.recompute = made.recompute;
  const CopyLayout copies = make_copy_layout(plan, spec.precision);
  const auto add = [&](Mode mode, const std::string& shape) {
    spec.mode = mode;
    spec.samples = mode == Mode::train ? made.batch : made.eval_batch;
    if (mode == Mode::evaluate && made.eval_size > 0 && shape.empty())
      spec.height = spec.width = spec.input.height = spec.input.width = made.eval_size;
    const std::string name = fmt::format("{} {} n{} {}{}", made.name, name_of(spec.precision), spec.samples,
                                         mode == Mode::train ? "train" : "evaluate", shape);
    try {
      const ExecutionPlan execution = make_execution_plan({plan, spec, copies, library});
      result.found.add(name, execution);
      if (mode == Mode::train && made.graphs == Graphs::listed) result.found.add_graphs(execution);
      result.summaries[name] = summarise(execution);
    } catch (const std::exception& error) {
      result.problems += name + ": " + error.what() + '\n';
    }
  };
  add(Mode::train, "");
  add(Mode::evaluate, "");
  for (const ImageSize& shape : made.eval_shapes) {
    spec.height = spec.input.height = shape.height;
    spec.width = spec.input.width = shape.width;
    add(Mode::evaluate, fmt::format(" {}x{}", shape.height, shape.width));
  }
}

class PlanCheck : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* const card : {"h100", "a100"}) results()[card];
    std::vector<std::jthread> threads;  // a card each, and so a cache of plans each
    threads.reserve(results().size());
    for (auto& [card, result] : results())
      threads.emplace_back([&card = card, &result = result] { check(card, result); });
  }
  static void check(const std::string& card, Result& result) {
    try {
      const auto library = make_library(describe_card(read_file(CONVOY_CARDS "/" + card + ".json")));
      result.found.compiled_for = library->name();
      for (const auto& cases : {named_cases(), shipped_cases(), family_cases()})
        for (const Case& made : cases) compile(*library, made, result);
    } catch (const std::exception& error) {
      result.problems += error.what();
    }
  }
  static const Result& result(const std::string& card) { return results().at(card); }
  static Summary summary(const std::string& card, const std::string& program) {
    const auto found = result(card).summaries.find(program);
    if (found != result(card).summaries.end()) return found->second;
    ADD_FAILURE() << "no program " << program << " for " << card;
    return {};
  }

 private:
  static std::map<std::string, Result>& results() {
    static std::map<std::string, Result> all;
    return all;
  }
};

TEST_F(PlanCheck, BlocksThatRunTwiceTakeLessThanHalfTheMemory) {
  for (const char* const card : {"h100", "a100"}) {
    const Summary plain = summary(card, "resnet50 fp16 n256 train"),
                  again = summary(card, "resnet50 in blocks that run twice fp16 n256 train");
    EXPECT_LT(2 * again.arena_bytes, plain.arena_bytes) << card;
    EXPECT_EQ(again.convolutions, plain.convolutions) << card;
    EXPECT_GT(again.graphs, plain.graphs) << card;
  }
}

TEST_F(PlanCheck, EveryProgramCompilesAndLooksAsExpected) {
  for (const char* const card : {"h100", "a100"}) {
    EXPECT_EQ(result(card).problems, "") << card;
    EXPECT_GT(result(card).found.programs.size(), 20U);
    const std::string path = std::string(CONVOY_EXPECTED "/") + card + ".txt";
    if (std::getenv("CONVOY_WRITE_EXPECTED") != nullptr) std::ofstream(path) << to_text(result(card).found);
    const Expectation expected = read_expectation(path);
    EXPECT_EQ(differences(expected, result(card).found), "")
        << card << ": where the change is meant, run plan_check with CONVOY_WRITE_EXPECTED=1 and commit " << path;
    if (expected.compiled_for != result(card).found.compiled_for)
      std::printf("engines and workspaces of %s were not compared: they are those of %s\n",
                  result(card).found.compiled_for.c_str(), expected.compiled_for.c_str());
  }
}

TEST_F(PlanCheck, Resnet50IsFusedAsFarAsThePlansGo) {
  const Summary h100 = summary("h100", "resnet50 fp16 n256 train"), a100 = summary("a100", "resnet50 fp16 n256 train");
  for (const Summary& s : {h100, a100}) {
    EXPECT_EQ(s.convolutions, 54) << "53 and the classifier";
    EXPECT_EQ(s.statistics, 52);
    EXPECT_EQ(s.prologues, 32);
    EXPECT_EQ(s.weight_prologues, 32);
  }
  EXPECT_EQ(h100.data_fusions, 32);
  EXPECT_EQ(h100.joins, 15);
  EXPECT_EQ(h100.data_joins, 15);
  EXPECT_LE(h100.bytes_per_image, 265e6);
  // The A100's fused data gradients keep a copy in fp32: they would move more than they spare.
  EXPECT_EQ(a100.data_fusions + a100.data_joins, 0);
  EXPECT_LE(a100.bytes_per_image, 305e6);
  EXPECT_LE(h100.hidden_per_image + a100.hidden_per_image, 1e6);
  // As docs/cuda.md says them.
  EXPECT_NEAR(h100.bytes_per_image, 261.27e6, 0.005e6);
  EXPECT_NEAR(a100.bytes_per_image, 293.66e6, 0.005e6);
  EXPECT_NEAR(summary("h100", "resnet50 bf16 n256 train").bytes_per_image, 327.28e6, 0.005e6);
  std::printf("  MB an image: %.2f on an H100, %.2f on an A100\n", h100.bytes_per_image / 1e6,
              a100.bytes_per_image / 1e6);
}

/// The images of rectangular validation are fused as the square is, and cost as many bytes a pixel.
TEST_F(PlanCheck, RectanglesAreFusedAsTheSquare) {
  for (const char* const card : {"h100", "a100"}) {
    for (const char* const precision : {"fp16", "fp32"}) {
      const std::string name = fmt::format("imagenet_resnet50_phases from epoch 32 {} n256 evaluate", precision);
      const Summary square = summary(card, name);
      for (const auto& [shape, ratio] : {std::pair(" 384x288", 384.0 / 288), {" 288x576", 2.0}}) {
        const Summary s = summary(card, name + shape);
        EXPECT_EQ(s.statistics, square.statistics) << card << shape;
        EXPECT_EQ(s.prologues, square.prologues) << card << shape;
        EXPECT_EQ(s.joins, square.joins) << card << shape;
        EXPECT_NEAR(s.bytes_per_image / square.bytes_per_image, ratio, 0.02) << card << shape << ' ' << precision;
      }
    }
  }
}

/// The comparison itself: a count that is off by one, a graph that is missing and one that is new are each found.
TEST_F(PlanCheck, ACountThatIsOffByOneIsFound) {
  const Expectation& found = result("h100").found;
  const std::string program = "resnet50 fp16 n256 train";
  const std::string text = found.programs.at(program);
  for (const char* const count : {"statistics 52", "prologues 32", "joins 15", "weight prologues 32", "data borders 32",
                                  "data joins 15", "graphs 161", "hidden 0.00"}) {
    Expectation expected = found;
    std::string& changed = expected.programs.at(program);
    const std::size_t at = changed.find(count);
    ASSERT_NE(at, std::string::npos) << count << " in " << text;
    ++changed[at + std::string(count).size() - 1];
    EXPECT_NE(differences(expected, found).find(program), std::string::npos) << count;
  }
  Expectation other = found;
  other.graphs.erase(other.graphs.begin());
  EXPECT_NE(differences(other, found).find("new: "), std::string::npos);
  EXPECT_NE(differences(found, other).find("missing: "), std::string::npos);
}

TEST_F(PlanCheck, WhatHasNoFormFallsBack) {
  for (const char* const card : {"h100", "a100"}) {
    for (const char* const program :
         {"resnet50 bf16 n256 train", "resnet50 tf32 n256 train", "resnet50 unfused fp16 n256 train"}) {
      const Summary s = summary(card, program);
      EXPECT_EQ(s.statistics + s.prologues + s.joins + s.weight_prologues + s.data_fusions + s.data_joins, 0)
          << program;
      EXPECT_EQ(s.convolutions, 54);
    }
    for (const char* const program : {"resnet50 leaky_relu fp16 n256 train", "resnet50 tanh fp16 n256 train",
                                      "resnet50 gelu fp16 n256 train", "resnet50 silu fp16 n256 train"}) {
      const Summary s = summary(card, program);
      EXPECT_EQ(s.statistics, 52) << "statistics know no activation";
      EXPECT_EQ(s.prologues + s.joins + s.weight_prologues + s.data_fusions + s.data_joins, 0) << program;
    }
    // Synchronised norms change where sums are added up, not how convolutions are fused.
    const Summary alone = summary(card, "resnet50 fp16 n256 train"),
                  shared = summary(card, "resnet50 synchronised norms fp16 n256 train");
    EXPECT_EQ(alone.graphs, shared.graphs);
    EXPECT_EQ(alone.bytes_per_image, shared.bytes_per_image);
  }
}

/// A concatenation is a kernel of its own, forward and backward. The convolution behind the ReLU alone is fused.
TEST_F(PlanCheck, ADenseBlockCompiles) {
  const Summary s = summary("h100", "two layers of a dense block fp16 n64 train");
  EXPECT_EQ(s.convolutions, 4) << "three and the classifier";
  EXPECT_EQ(s.prologues, 1);
  EXPECT_EQ(s.data_fusions, 1);
  EXPECT_EQ(s.joins + s.data_joins, 0);
  EXPECT_EQ(summary("a100", "two layers of a dense block fp16 n64 train").convolutions, 4);
}

/// What the parity tests compare on a GPU has every form of joins, so that none of resnet50's goes without a
/// comparison.
TEST_F(PlanCheck, TheBottlenecksOfTheParityTestsAreFused) {
  for (const char* const name : {"two bottlenecks", "two bottlenecks, strided"}) {
    const Summary s = summary("h100", std::string(name) + " fp16 n64 train");
    EXPECT_EQ(s.joins, 2) << name;
    EXPECT_EQ(s.data_joins, 2) << name;
    EXPECT_EQ(s.prologues, 6) << name;
    EXPECT_GE(s.data_fusions, 4) << name;
  }
}

}  // namespace
}  // namespace convoy::cuda
