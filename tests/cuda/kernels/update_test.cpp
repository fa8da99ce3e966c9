// SPDX-License-Identifier: Apache-2.0
// The update's kernels against the formulas, and against what the CPU's updater makes of the same numbers
// (cuda/runtime/updater_test.cpp).
#include "backend/cuda/kernels/update.hpp"

#include <limits>

#include "backend/cuda/filter_copies.hpp"
#include "backend/set_layout.hpp"
#include "cuda/kernels/bench.hpp"
#include "network/models.hpp"
#include "optim/clip.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class UpdateKernel : public EveryStorage {};
CONVOY_EVERY_STORAGE(UpdateKernel);

Plan plan_of(const char* model, Index channels) {
  GraphSpec spec;
  spec.model = model;
  spec.classes = 10;
  spec.channels = channels;
  spec.image_size = 28;
  PlanSpec plan;
  plan.weight_decay = 0.5F;
  return make_plan(build_graph(spec), plan);
}

/// A tensor's copy, element by element.
Values copy_of(const FilterCopy& copy, const Values& values, Index begin) {
  Values out(static_cast<std::size_t>(copy.k * copy.rs * copy.stored_c), 0.0);
  for (Index k = 0; k < copy.k; ++k)
    for (Index s = 0; s < copy.rs; ++s)
      for (Index c = 0; c < copy.c; ++c)
        out[static_cast<std::size_t>((k * copy.rs + s) * copy.stored_c + c)] =
            values[static_cast<std::size_t>(begin + (k * copy.c + c) * copy.rs + s)];
  return out;
}

/// The formula with as many slots as the rule has.
float update_by(Rule rule, const UpdateFactors& factors, float w, float g, std::vector<float>& slots) {
  return with_optimiser(rule, [&](auto chosen) {
    using R = decltype(chosen);
    if constexpr (R::slots.size() == 0) {
      return R::update(factors, w, g);
    } else if constexpr (R::slots.size() == 1) {
      return R::update(factors, w, g, slots[0]);
    } else {
      return R::update(factors, w, g, slots[0], slots[1]);
    }
  });
}

TEST_P(UpdateKernel, UpdatesEveryTensorAndItsCopy) {
  in_all_orders([&] {
    for (const auto& [model, rule] :
         {std::pair{"resnet8", Rule::nesterov}, {"lenet", Rule::adamw}, {"lenet", Rule::rmsprop}}) {
      SCOPED_TRACE(model);
      const auto slots = static_cast<Index>(set_layout(plan_of(model, 3).table, {.rule = rule}).slots.size());
      Plan plan = plan_of(model, 3);
      plan.table.rows[1].trainable = false;
      plan.table.rows[0].rate_multiplier = 2;
      plan.table.rows[2].rate_ends = 0;
      const Precision precision = storage() == Storage::f16    ? Precision::fp16
                                  : storage() == Storage::bf16 ? Precision::bf16
                                                               : Precision::fp32;
      const CopyLayout layout = make_copy_layout(plan, precision);
      Bench bench;
      const Index count = plan.table.parameters.count;
      // Slots from 0 to 1, as AdamW's second one; one more shows that none is written that the rule doesn't have.
      const Values values = formula_values("w", count), old_slots = formula_values("v", (slots + 1) * count, 0.5, 0.5),
                   gradients = formula_values("g", count);
      StepNumbers step;
      step.learning_rate = 0.125F;
      UpdateArgs args;
      args.values = bench.floats(values);
      args.slots = bench.floats(old_slots);
      args.slot_floats = count;
      args.gradients = bench.floats(gradients);
      args.copies =
          bench.put(std::vector<std::uint8_t>(static_cast<std::size_t>(layout.elements * bytes_of(storage()))));
      args.storage = storage();
      args.pieces = bench.put(layout.pieces);
      args.count = static_cast<int>(layout.pieces.size());
      args.step = bench.put(std::vector<StepNumbers>{step});
      args.verdict = bench.put(std::vector<UpdateVerdict>{{1, 0.5F, {0.75F, 0.25F, 0.5F, 0.5F, 0.125F, 2, 1.5F}}});
      expect_success(refresh_copies(args, bench.stream()));
      expect_success(update(rule, args, bench.stream()));

      const Values new_values = bench.floats(args.values, count),
                   new_slots = bench.floats(args.slots, (slots + 1) * count);
      const Values copies = bench.elements(args.copies, layout.elements, storage());
      for (std::size_t r = 0; r < plan.table.rows.size(); ++r) {
        const Parameter& row = plan.table.rows[r];
        SCOPED_TRACE(row.name);
        const float multiplier = row.rate_ends > 0 ? row.rate_multiplier : 0;
        const UpdateFactors factors{0.125F * multiplier, row.decay, 0.5F, {0.75F, 0.25F, 0.5F, 0.5F, 0.125F, 2, 1.5F}};
        Values want_w, want_slots, got_w, got_slots;
        for (Index i = row.range.begin; i < row.range.end(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          auto w = static_cast<float>(values[at]);
          std::vector<float> own;
          for (Index s = 0; s <= slots; ++s)
            own.push_back(static_cast<float>(old_slots[at + static_cast<std::size_t>(s * count)]));
          if (row.trainable) w = update_by(rule, factors, w, static_cast<float>(gradients[at]), own);
          want_w.push_back(static_cast<double>(w));
          got_w.push_back(new_values[at]);
          for (Index s = 0; s <= slots; ++s) {
            want_slots.push_back(static_cast<double>(own[static_cast<std::size_t>(s)]));
            got_slots.push_back(new_slots[at + static_cast<std::size_t>(s * count)]);
          }
        }
        expect_close(got_w, want_w, 0x1p-22, "values");
        expect_close(got_slots, want_slots, 0x1p-22, "slots");
        const FilterCopy& copy = layout.rows[r];
        EXPECT_EQ(copy.offset >= 0, row.kind == Kind::weight);
        if (copy.offset < 0) continue;
        const auto begin = copies.begin() + copy.offset;
        expect_close({begin, begin + copy.k * copy.rs * copy.stored_c}, copy_of(copy, new_values, row.range.begin),
                     epsilon(), "copy");
      }
    }
  });
}

TEST_P(UpdateKernel, PiecesHoldEveryElementOnceAndFit) {
  for (const auto& [model, channels] : {std::pair{"resnet8", 3}, {"lenet", 1}, {"mlp", 3}, {"resnet18", 3}}) {
    const Plan plan = plan_of(model, channels);
    const CopyLayout layout = make_copy_layout(plan, Precision::fp16);
    std::vector<int> times(static_cast<std::size_t>(plan.table.parameters.count), 0);
    for (const UpdatePiece& piece : layout.pieces) {
      const Index count = Index{piece.ks} * piece.channels * piece.rs;
      ASSERT_GT(count, 0);
      ASSERT_LE(count, piece_elements);
      for (Index i = 0; i < count; ++i) ++times[static_cast<std::size_t>(piece.begin + i)];
    }
    for (const Parameter& row : plan.table.rows)
      for (Index i = row.range.begin; i < row.range.end(); ++i)
        ASSERT_EQ(times[static_cast<std::size_t>(i)], 1) << model << ' ' << row.name;
  }
}

TEST_P(UpdateKernel, ASkippedUpdateChangesNothing) {
  in_all_orders([&] {
    Bench bench;
    const Values values = formula_values("w", 5000);
    UpdatePiece piece;
    piece.channels = 4000;
    UpdateArgs args;
    args.values = bench.floats(values);
    args.slots = bench.floats(values);
    args.gradients = bench.floats(values);
    args.storage = storage();
    args.pieces = bench.put(std::vector<UpdatePiece>{piece});
    args.count = 1;
    args.step = bench.put(std::vector<StepNumbers>{{1}});
    args.verdict = bench.put(std::vector<UpdateVerdict>{{0, 1}});
    float* const running = bench.floats(values);
    args.running = running;
    args.tail = args.gradients;
    args.folds = bench.put(std::vector<NormFold>{{0, 5000, 0.5F}});
    args.fold_count = 1;
    expect_success(update(Rule::sgd, args, bench.stream()));
    EXPECT_EQ(bench.floats(args.values, 5000), values);
    EXPECT_EQ(bench.floats(args.slots, 5000), values);
    EXPECT_EQ(bench.floats(running, 5000), values);
  });
}

class Decide : public EveryStorage {
 protected:
  struct Outcome {
    UpdateVerdict verdict;
    Values state;
    Counters counters;
  };
  static Outcome decide(const std::vector<float>& flags, Values state, float grow_every, const Values& squares = {},
                        float clip_norm = 0, Rule rule = Rule::sgd, const OptionValues& options = {{0.625}}) {
    Bench bench;
    Decision decision;
    decision.flags = bench.put(flags);
    decision.replicas = static_cast<int>(flags.size());
    if (clip_norm > 0) decision.squares = bench.put(squares);
    decision.pieces = static_cast<int>(squares.size());
    decision.clip_norm = clip_norm;
    state.resize(device_state_floats, 0.0);
    float* const device_state = bench.floats(state);
    decision.state = reinterpret_cast<DeviceState*>(device_state);
    StepNumbers step;
    step.options = options;
    decision.step = bench.put(std::vector<StepNumbers>{step});
    decision.grow_every = grow_every;
    decision.counters = bench.put(std::vector<Counters>{{}});
    decision.verdict = bench.empty<UpdateVerdict>(1);
    expect_success(decide_update(rule, decision, bench.stream()));
    return {bench.get(decision.verdict, 1)[0], bench.floats(device_state, 4), bench.get(decision.counters, 1)[0]};
  }
};
INSTANTIATE_TEST_SUITE_P(All, Decide, testing::Values(Storage::f32), name_of_storage);

TEST_P(Decide, CountsGoodStepsAndDoublesADynamicScale) {
  in_all_orders([&] {
    Outcome outcome = decide({0, 0, 0}, {1024, 1, 7, 2}, 0);
    EXPECT_EQ(outcome.verdict.apply, 1);
    EXPECT_EQ(outcome.verdict.clip, 1);
    EXPECT_EQ(outcome.verdict.numbers[0], 0.625F) << "the momentum";
    EXPECT_EQ(outcome.state, (Values{1024, 1, 8, 2}));
    outcome = decide({0}, {1024, 4, 7, 2}, 6);
    EXPECT_EQ(outcome.state, (Values{1024, 5, 8, 2}));
    outcome = decide({0}, {1024, 5, 7, 2}, 6);
    EXPECT_EQ(outcome.state, (Values{2048, 0, 8, 2}));
    outcome = decide({0}, {16777216, 5, 7, 2}, 6);
    EXPECT_EQ(outcome.state, (Values{16777216, 0, 8, 2}));
  });
}

TEST_P(Decide, ASkippedUpdateIsHalvedAwayBeforeAReplicaIsNamed) {
  in_all_orders([&] {
    std::vector<float> flags(700, 0.0F);
    flags[650] = 3;
    flags[512] = 4;
    Outcome outcome = decide(flags, {4, 9, 7, 2}, 100);
    EXPECT_EQ(outcome.verdict.apply, 0);
    EXPECT_EQ(outcome.state, (Values{2, 0, 7, 3}));
    EXPECT_EQ(outcome.counters.skipped, 1);
    EXPECT_EQ(outcome.counters.bad_replica, -1) << "a lower loss scale may help";
    outcome = decide(flags, {1, 9, 7, 2}, 100);
    EXPECT_EQ(outcome.state, (Values{1, 9, 7, 3}));
    EXPECT_EQ(outcome.counters.bad_replica, 650) << "the lowest flag: where it began";
    outcome = decide(flags, {4, 9, 7, 2}, 0);
    EXPECT_EQ(outcome.state, (Values{4, 9, 7, 3})) << "a fixed scale stays";
    EXPECT_EQ(outcome.counters.bad_replica, 650);
    outcome = decide({0, std::numeric_limits<float>::quiet_NaN()}, {1, 0, 0, 0}, 0);
    EXPECT_EQ(outcome.verdict.apply, 0);
    EXPECT_EQ(outcome.counters.bad_replica, 1);
  });
}

TEST_P(Decide, PreparesAdamWByTheUpdatesSinceItsSlotsWereZero) {
  in_all_orders([&] {
    const auto unbias = [](double applied, double zeroed) {
      const Outcome outcome = decide({0}, {1, 0, applied, 0, zeroed}, 0, {}, 0, Rule::adamw, {{0.5, 0.75, 1e-8}});
      return Values{static_cast<double>(outcome.verdict.numbers[AdamW::unbias1]),
                    static_cast<double>(outcome.verdict.numbers[AdamW::unbias2])};
    };
    EXPECT_EQ(unbias(0, 0), (Values{2, 2}));
    EXPECT_EQ(unbias(7, 7), (Values{2, 2}));
    EXPECT_EQ(unbias(8, 7)[0], static_cast<float>(1 / 0.75));
    EXPECT_EQ(unbias(8, 7)[1], static_cast<float>(1 / std::sqrt(1 - 0.5625)));
  });
}

TEST_P(Decide, ClipsByTheNormOfAllPieces) {
  in_all_orders([&] {
    const Values squares = formula_values("squares", 1000, 1, 1);
    double sum = 0;
    for (const double square : squares) sum += square;
    EXPECT_NEAR(decide({0}, {1, 0, 0, 0}, 0, squares, 2).verdict.clip, clip_factor(std::sqrt(sum), 2), 1e-7);
    EXPECT_EQ(decide({0}, {1, 0, 0, 0}, 0, squares, 1e6F).verdict.clip, 1);
  });
}

TEST_P(Decide, SquaresOfWhatTrains) {
  in_all_orders([&] {
    Bench bench;
    const Values g = formula_values("g", 5000);
    std::vector<UpdatePiece> pieces(3);
    pieces[0].channels = 4096;
    pieces[1].begin = 4096;
    pieces[1].channels = 5;
    pieces[1].trains = 0;
    pieces[2].begin = 4101;
    pieces[2].channels = 299;
    pieces[2].rs = 3;
    UpdateArgs args;
    args.gradients = bench.floats(g);
    args.pieces = bench.put(pieces);
    args.count = 3;
    auto* const squares = bench.empty<double>(3);
    expect_success(piece_squares(args, squares, bench.stream()));
    Values want(3, 0.0);
    for (std::size_t i = 0; i < 4096; ++i) want[0] += g[i] * g[i];
    for (std::size_t i = 4101; i < 4101 + 897; ++i) want[2] += g[i] * g[i];
    const auto got = bench.get(squares, 3);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], want[i], 1e-12 * want[0]);
  });
}

TEST_P(UpdateKernel, FoldsStatisticsOfEachNorm) {
  in_all_orders([&] {
    Bench bench;
    const Values running = formula_values("running", 1000), batch = formula_values("batch", 1000);
    float* const device = bench.floats(running);
    UpdateArgs args;  // of a network whose parameters are all frozen, but not its norms' statistics
    args.running = device;
    args.tail = bench.floats(batch);
    args.folds = bench.put(std::vector<NormFold>{{0, 300, 0.25F}, {304, 690, 0.5F}});
    args.fold_count = 2;
    args.verdict = bench.put(std::vector<UpdateVerdict>{{1, 1}});
    expect_success(update(Rule::sgd, args, bench.stream()));
    Values want = running;
    for (std::size_t i = 0; i < 994; ++i) {
      const double momentum = i < 300 ? 0.25 : 0.5;
      if (i < 300 || i >= 304) want[i] = (1 - momentum) * running[i] + momentum * batch[i];
    }
    expect_close(bench.floats(device, 1000), want, 0x1p-23, "running statistics");
  });
}

}  // namespace
}  // namespace convoy::cuda
