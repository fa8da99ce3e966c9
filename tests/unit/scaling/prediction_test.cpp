// SPDX-License-Identifier: Apache-2.0
// Predictions from noisy timings of two ranks against a network that is simulated message by message.
#include "scaling/prediction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "scaling/fit.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

/// One rank a host, hosts joined by links of one kind.
struct Network {
  double message = 20e-6, byte = 1 / 5e9;

  /// Recursive halving, then doubling: every round all ranks exchange a part with a partner.
  double all_reduce(double bytes, int ranks) const {
    double seconds = 0;
    for (int round = 1, part = 2; round < ranks; round *= 2, part *= 2) seconds += 2 * (message + byte * bytes / part);
    return seconds;
  }
  /// Every rank sends to all others one by one, first its slices of the array, then its slice of the sum.
  double tree(double bytes, int ranks) const {
    double seconds = 0;
    for (int phase = 0; phase < 2; ++phase)
      for (int to = 1; to < ranks; ++to) seconds += message + byte * bytes / ranks;
    return seconds;
  }

  /// A clock for computation and one for the network: a sum starts when its gradients are there and the one before is
  /// through. The next step starts when both have ended.
  double step(const Traffic& traffic, double compute, int ranks) const {
    double network = 0, now = compute / 3;
    double last = 0;
    for (const Traffic::Sum& sum : traffic.sums) {
      now += (sum.ready - last) * compute * 2 / 3;
      last = sum.ready;
      const double start = std::max(traffic.beside_backward ? now : compute, network);
      network = start + (traffic.in_a_tree ? tree(sum.bytes(), ranks) : all_reduce(sum.bytes(), ranks));
    }
    const double behind = std::max(network, compute) - compute;
    return compute + behind / static_cast<double>(traffic.steps);
  }
};

/// 25 million parameters, as resnet50's buckets of 8 MB.
Traffic gradients(Wire wire) {
  Traffic traffic{.sums = {}, .beside_backward = true, .in_a_tree = wire != Wire::fp32};
  for (int bucket = 1; bucket <= 12; ++bucket) traffic.sums.push_back({1 << 21, wire, bucket / 12.0});
  return traffic;
}
Traffic weights(Index steps) {
  Traffic traffic{.sums = {{8 * 512}}, .steps = steps};
  for (int piece = 0; piece < 25; ++piece) traffic.sums.push_back({1 << 20});
  return traffic;
}

/// As bench comm measures two ranks of the network, each time up to 3 % off.
Machine measured(const Network& network) {
  Random random(5, Stream::synthetic, 0, 0);
  std::vector<TimedSum> timings;
  for (double bytes = 4096; bytes <= 1 << 26; bytes *= 4)
    for (int i = 0; i < 60; ++i) {
      const double off = 1 + 0.03 * (2 * static_cast<double>(random.uniform()) - 1);
      timings.push_back({library_messages(2), share_of_ring(2) * bytes, network.all_reduce(bytes, 2) * off});
    }
  Machine machine{
      .name = "simulated", .ranks_per_host = 1, .between = fit_link(timings), .overlap = 1, .overlap_measured = true};
  machine.steps = {{.model = "resnet50",
                    .precision = "fp32",
                    .image_size = 224,
                    .batch = 64,
                    .seconds = {0.2, 0},
                    .measured = true}};
  return machine;
}

const PredictedJob job{.model = "resnet50",
                       .precision = "fp32",
                       .image_size = 224,
                       .batch = 64,
                       .global_batch = 4096,
                       .samples = 1281167,
                       .epochs = 90};

TEST(PredictionTest, IsWithinOnePercentOfASimulatedNetwork) {
  const Network networks[] = {{}, {.message = 2e-6, .byte = 1 / 25e9}, {.message = 100e-6, .byte = 1 / 0.5e9}};
  int exposed = 0;
  for (const Network& network : networks) {
    const Predictor predictor(measured(network), job);
    for (const Traffic& traffic : {gradients(Wire::fp32), gradients(Wire::bf16), weights(1), weights(16)})
      for (const int nodes : node_counts("1..512")) {
        const ScalePrediction found = predictor.predict(traffic, nodes, ScalingKind::weak);
        const double truth = network.step(traffic, 0.2, nodes);
        EXPECT_NEAR(found.step, truth, 0.01 * truth) << nodes;
        exposed += truth > 0.21 ? 1 : 0;
      }
  }
  EXPECT_GT(exposed, 40) << "the network hardly shows in these steps";
}

TEST(PredictionTest, ItsRangeHoldsTheTruth) {
  Network network;
  Machine machine = measured(network);
  // Terms that are a fifth off, and say so.
  machine.between->seconds_per_byte = {1.2 * network.byte, 0.25};
  machine.between->seconds_per_message = {0.8 * network.message, 0.3};
  machine.steps[0].seconds = {0.21, 0.06};
  const Predictor predictor(machine, job);
  for (const int nodes : {2, 8, 512}) {
    const ScalePrediction found = predictor.predict(weights(1), nodes, ScalingKind::weak);
    const double truth = network.step(weights(1), 0.2, nodes);
    EXPECT_LT(found.low, truth);
    EXPECT_GT(found.high, truth);
    EXPECT_GT(std::abs(found.step - truth), 0.02 * truth);
  }
}

TEST(PredictionTest, CountsBatchesHoursAndEfficiency) {
  const Network network;
  const Predictor predictor(measured(network), job);
  const std::vector<int> nodes = node_counts("1..8192");
  const std::vector<Traffic> traffic(nodes.size(), gradients(Wire::fp32));
  const auto weak = predict_all(predictor, traffic, nodes, ScalingKind::weak),
             strong = predict_all(predictor, traffic, nodes, ScalingKind::strong);
  ASSERT_EQ(weak.size(), nodes.size());
  ASSERT_EQ(strong.back().nodes, 4096) << "one image a rank is the least";
  for (std::size_t i = 0; i < weak.size(); ++i) {
    EXPECT_EQ(weak[i].batch, 64);
    EXPECT_EQ(weak[i].global_batch, 64 * nodes[i]);
    const double steps = std::ceil(1281167.0 / (64.0 * nodes[i]));
    EXPECT_NEAR(weak[i].hours, 90 * steps * weak[i].step / 3600, 1e-9 * weak[i].hours);
    EXPECT_NEAR(weak[i].node_hours, weak[i].hours * nodes[i], 1e-9 * weak[i].node_hours);
    EXPECT_NEAR(weak[i].efficiency, weak[0].step / weak[i].step, 1e-9);
  }
  EXPECT_EQ(weak[0].efficiency, 1);
  EXPECT_EQ(strong[0].batch, 4096);
  EXPECT_NEAR(strong[0].compute, 0.2 * 64, 1e-9) << "in proportion to the batch";
  EXPECT_EQ(strong[6].batch, 64);
  EXPECT_NEAR(strong[6].compute, 0.2, 1e-9);
  EXPECT_GT(strong[0].high - strong[0].low, strong[6].high - strong[6].low) << "other batches are less sure";
  EXPECT_LT(strong.back().efficiency, strong.front().efficiency);
}

TEST(PredictionTest, RanksThatShareCoresTakeLonger) {
  Machine machine = measured({});
  machine.cores_per_host = 2;
  machine.ranks_per_host = 4;
  machine.inside = Link{.seconds_per_message = {1e-5}, .seconds_per_byte = {1e-9}, .measured = true, .ranks = 2};
  machine.steps[0].ranks_per_host = 2;
  machine.steps[0].threads = 1;
  const Predictor predictor(machine, job);
  const ScalePrediction found = predictor.predict({}, 1, ScalingKind::weak);
  EXPECT_NEAR(found.compute, 0.4, 1e-9) << "4 threads on 2 cores";
  const Traffic::Sum sum{1000};
  EXPECT_NEAR(predictor.sum_seconds(sum, false, 1), 2 * (4 * 1e-5 + 1.5 * 4000 * 1e-9), 1e-12);
  EXPECT_NEAR(predictor.sum_seconds(sum, true, 1), 2 * (6 * 1e-5 + 1.5 * 4000 * 1e-9), 1e-12);
  // Times with as many ranks on the host are taken before others.
  machine.steps.push_back(machine.steps[0]);
  machine.steps[1].ranks_per_host = 4;
  machine.steps[1].seconds.value = 0.5;
  EXPECT_NEAR(Predictor(machine, job).predict({}, 1, ScalingKind::weak).compute, 0.5, 1e-9);
  // Else those with the nearest number.
  machine.steps[0].ranks_per_host = 1;
  machine.steps[1].ranks_per_host = 2;
  EXPECT_NEAR(Predictor(machine, job).predict({}, 1, ScalingKind::weak).compute, 1.0, 1e-9);
}

TEST(PredictionTest, TakesTheStepOfTheJobsConditions) {
  Machine machine = measured({});
  machine.cores_per_host = 4;
  machine.steps[0].threads = 1;
  machine.steps[0].seconds.value = 0.4;
  for (const int threads : {2, 4}) {
    StepTime step = machine.steps[0];
    step.threads = threads;
    step.seconds.value = 0.4 / threads;
    machine.steps.push_back(step);
  }
  StepTime twice = machine.steps[0];
  twice.conditions.recompute = "all";
  twice.seconds.value = 0.5;
  machine.steps.push_back(twice);
  PredictedJob own = job;
  const auto compute = [&] { return Predictor(machine, own).predict({}, 1, ScalingKind::weak).compute; };
  EXPECT_NEAR(compute(), 0.1, 1e-12) << "a rank alone on four cores has four threads";
  for (const int threads : {1, 2, 4}) {
    own.threads = threads;
    EXPECT_NEAR(compute(), 0.4 / threads, 1e-12);
  }
  own.threads = 1;
  own.conditions.recompute = "all";
  EXPECT_NEAR(compute(), 0.5, 1e-12);
  own.threads = 2;
  expect_error(Exit::usage,
               {"in fp32 with --threads 2 --recompute all; add one by",
                "bench compute --no-gradients --machine FILE --threads 2 --recompute all'"},
               compute);
  own.conditions = {};
  own.threads = 99;
  expect_error(Exit::usage, {"with --threads 99;"}, compute);
  machine.steps[0].threads = 0;  // not known: it counts for any
  EXPECT_NEAR(compute(), 0.4, 1e-12);
  machine.cores_per_host = 0;  // a device computes
  EXPECT_NEAR(compute(), 0.4, 1e-12);
}

/// Where a larger batch leaves the caches, the line through the times meets zero above a batch of none.
TEST(PredictionTest, SmallBatchesTakeTime) {
  Machine machine = measured({});
  machine.steps.push_back(machine.steps[0]);
  machine.steps[0].batch = 32;
  machine.steps[0].seconds.value = 0.05;
  const ScalePrediction found = Predictor(machine, job).predict({}, 512, ScalingKind::strong);
  ASSERT_EQ(found.batch, 8);
  EXPECT_NEAR(found.compute, 0.05 / 4, 1e-9);
}

TEST(PredictionTest, HidesWhatTheDeviceHides) {
  Machine machine = measured({});
  const auto exposed = [&](double overlap) {
    machine.overlap = overlap;
    return Predictor(machine, job).predict(gradients(Wire::fp32), 16, ScalingKind::weak).exposed;
  };
  const double sums = Predictor(machine, job).predict(gradients(Wire::fp32), 16, ScalingKind::weak).sums;
  EXPECT_LT(exposed(1), 0.2 * sums);
  EXPECT_NEAR(exposed(0), sums, 1e-12);
  EXPECT_NEAR(exposed(0.5), (exposed(0) + exposed(1)) / 2, 1e-12);
}

/// A machine on which a sum of n floats over hosts takes 1 ms and 1 us per float, whatever their number.
struct Simple {
  Machine machine = measured({});
  Traffic traffic{.sums = {{.floats = 2000, .waited = true}, {50000}}, .steps = 4};

  Simple() {
    machine.between =
        Link{.seconds_per_message = {0.5e-3}, .seconds_per_byte = {0.25e-6}, .measured = true, .ranks = 2};
    machine.overlap = 0.75;
  }
  // Two messages one after the other between two hosts, and a share of 2 (2 - 1) / 2 = 1.
  static double seconds(Index floats) { return 1e-3 + 1e-6 * static_cast<double>(floats); }
  ScalePrediction predict() const { return Predictor(machine, job).predict(traffic, 2, ScalingKind::weak); }
};

TEST(PredictionTest, AnAverageBesideTheNextStepsIsHiddenInPart) {
  Simple simple;
  EXPECT_NEAR(simple.predict().exposed, (simple.seconds(2000) + simple.seconds(50000)) / 4, 1e-12) << "at once";
  simple.traffic.beside_steps = true;
  EXPECT_NEAR(simple.predict().exposed, (simple.seconds(2000) + 0.25 * simple.seconds(50000)) / 4, 1e-12);
  EXPECT_NEAR(simple.predict().sums, (simple.seconds(2000) + simple.seconds(50000)) / 4, 1e-12);
  // A period of four steps of 0.2 s has no place for more than 0.8 s.
  simple.traffic.sums[1].floats = 1000000;
  EXPECT_NEAR(simple.predict().exposed, (simple.seconds(2000) + (simple.seconds(1000000) - 0.8) + 0.25 * 0.8) / 4,
              1e-12);
}

TEST(PredictionTest, StepsBeforeTheStartAverageEveryTime) {
  Simple simple;
  simple.traffic.beside_steps = true;
  const double often = simple.seconds(2000) + simple.seconds(50000),
               seldom = (simple.seconds(2000) + 0.25 * simple.seconds(50000)) / 4;
  const double steps = 90 * std::ceil(1281167.0 / 128);  // of two ranks
  simple.traffic.start = 100000;
  EXPECT_NEAR(simple.predict().exposed, 100000 / steps * often + (1 - 100000 / steps) * seldom, 1e-12);
  simple.traffic.start = 2000000;
  EXPECT_NEAR(simple.predict().exposed, often, 1e-12) << "the job ends before";
}

TEST(PredictionTest, GroupsAverageOverTheirOwnLinks) {
  Simple simple;
  simple.machine.ranks_per_host = 4;
  simple.machine.inside = Link{.seconds_per_message = {1e-5}, .seconds_per_byte = {1e-9}, .measured = true, .ranks = 4};
  const double alone = simple.predict().exposed;
  simple.traffic.group = {.sums = {{1000}, {3000}}, .times = 3, .ranks = 4};
  // Four ranks: 4 messages and 3/2 of the bytes, inside a host.
  const double host = 2 * 4 * 1e-5 + 1.5 * 4 * 4000 * 1e-9;
  EXPECT_NEAR(simple.predict().exposed - alone, 3 * host / 4, 1e-12);
  simple.traffic.group.ranks = 2;  // 2 messages and the bytes once
  EXPECT_NEAR(simple.predict().exposed - alone, 3 * (2 * 2 * 1e-5 + 4 * 4000 * 1e-9) / 4, 1e-12);
  simple.traffic.group.ranks = 8;  // on two hosts
  EXPECT_NEAR(simple.predict().exposed - alone, 3 * (host + simple.seconds(1000) + simple.seconds(3000)) / 4, 1e-12);
  simple.traffic.group.ranks = 3;
  expect_error(Exit::usage, {"averages of 3 replicas", "hosts of 4 ranks"}, [&] { simple.predict(); });
}

TEST(PredictionTest, SaysWhatIsMissing) {
  Machine machine = measured({});
  machine.between.reset();
  expect_error(Exit::usage, {"links between hosts", "--nodes 1"},
               [&] { Predictor(machine, job).predict({}, 2, ScalingKind::weak); });
  machine.ranks_per_host = 2;
  expect_error(Exit::usage, {"links inside a host"},
               [&] { Predictor(machine, job).predict({}, 1, ScalingKind::weak); });
  PredictedJob other = job;
  other.model = "resnet101";
  expect_error(Exit::usage, {"no step time of resnet101", "bench compute"}, [&] { Predictor(machine, other); });
}

TEST(PredictionTest, ReadsNodeCounts) {
  EXPECT_EQ(node_counts("1..8"), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(node_counts("3..20"), (std::vector<int>{3, 6, 12, 20}));
  EXPECT_EQ(node_counts("12,1,2,2"), (std::vector<int>{1, 2, 12}));
  for (const char* wrong : {"", "0", "1..", "8..1", "1,,2", "two", "1.5", "99999999999"})
    EXPECT_THROW(node_counts(wrong), std::invalid_argument) << wrong;
}

}  // namespace
}  // namespace convoy
