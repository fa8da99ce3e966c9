// SPDX-License-Identifier: Apache-2.0
// A step without convolutions: rows of images are uploaded ahead, the input stage, a loss and the update read what was
// fed, a second queue takes the gradient away and brings it back. Right in all orders, captured or not; wrong or
// refused in one of them without any of its waits; and nothing is allocated once it runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/operations/input.hpp"
#include "backend/cuda/operations/loss.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/feed.hpp"
#include "core/errors.hpp"
#include "cuda/runtime/fixture.hpp"
#include "network/models.hpp"
#include "support/allocations.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/streams.hpp"

namespace convoy::cuda {
namespace {

constexpr int samples = 6, side = 2, classes = side * side * 4, image_bytes = side * side * 3;

enum class Rows { resident, paged, pinned };
enum class Launched { direct, captured };
enum class Exchange { queued, staged };  ///< staged: the host doubles the sum in its own memory, and waits for it

enum class Feeds { one, by_turns };  ///< by_turns: as two programs of unlike sizes

enum class Pace {
  this_step,
  last_step,
  step_before_last,
  as_it_can
};  ///< what the host waits for at the end of each step

struct Kind {
  Rows rows = Rows::resident;
  Launched launched = Launched::direct;
  Exchange exchange = Exchange::queued;
  Pace pace = Pace::as_it_can;
  Feeds feeds = Feeds::one;
};

/// The weight is a bias of the logits: its gradient is the sum of the logits' gradients.
class Network {
 public:
  explicit Network(const Kind& kind) : kind_(kind) {
    Queue& queue = backend_->queue();
    std::byte* const fed = queue.allocate(feeds_[0].device_bytes(), "feed");
    for (Feed& feed : feeds_) feed.bind(queue, fed);
    images_ = formula_images("images", 3 * samples * image_bytes);
    if (kind.rows == Rows::resident) {
      std::byte* const set = queue.allocate(samples * image_bytes, "images");
      queue.upload_now(set, images_.data(), samples * image_bytes);
      resident_ = reinterpret_cast<const std::uint8_t*>(set);
    }
    for (auto& buffer : pinned_)
      buffer = reinterpret_cast<std::uint8_t*>(queue.allocate_host(samples * image_bytes, "rows"));
    for (float** at : {&logits_, &bias_, &dlogits_, &weight_}) *at = backend_->allocate(samples * classes);
    loss_ = backend_->allocate(samples);
    gradient_ = backend_->allocate(classes);
    other_ = backend_->allocate(classes);
    staging_ = backend_->allocate_host(classes);
    hits_ = reinterpret_cast<std::uint8_t*>(queue.allocate(samples, "hits"));
    arrivals_ = reinterpret_cast<unsigned*>(queue.allocate(sizeof(unsigned), "arrivals"));
    counters_ = reinterpret_cast<Counters*>(queue.allocate(sizeof(Counters), "counters"));
  }

  void step(int number) {
    std::vector<SampleSpec>& specs = specs_;
    specs.resize(samples);
    for (Index i = 0; i < samples; ++i) {
      SampleSpec& sample = specs[static_cast<std::size_t>(i)];
      sample.sample = (i + number) % samples;
      sample.a = static_cast<std::int32_t>((i * 3 + number) % classes);
    }
    Batch batch;
    batch.samples = specs;
    batch.valid_count = samples;
    batch.scale = 0.5F + 0.25F * static_cast<float>(number % 4);
    const std::uint8_t* const rows = images_.data() + number % 3 * samples * image_bytes;
    if (kind_.rows == Rows::paged) {
      paged_.assign(rows, rows + samples * image_bytes);  // may be overwritten after the call
      batch.images = paged_.data();
    }
    if (kind_.rows == Rows::pinned) {  // as a loader: the memory of a batch is used again by the next but one
      std::uint8_t* const buffer = pinned_[static_cast<std::size_t>(number % 2)];
      std::memcpy(buffer, rows, samples * image_bytes);
      batch.images = buffer;
    }
    const long unready = host_cuda::unready_queries();
    feeds_[kind_.feeds == Feeds::by_turns ? number % 2 : 0].send(batch, resident_);
    held_up_ += host_cuda::unready_queries() - unready;
    if (kind_.launched == Launched::captured) {
      backend_->replay(1, [this] { launch(); });
    } else {
      launch();
    }
    CommunicationQueue& second = *backend_->communication();
    second.follow(backend_->record());
    second.copy(other_, gradient_, classes);
    if (kind_.exchange == Exchange::queued) {
      second.add(other_, gradient_, classes);
    } else {
      second.download(staging_, other_, classes);
      const Event there = second.record();
      while (!backend_->done(there)) {
      }
      for (Index i = 0; i < classes; ++i) staging_[i] *= 2;
      second.upload(other_, staging_, classes);
    }
    backend_->follow(second.record());
    backend_->add(weight_, other_, classes);
    ends_[2] = std::exchange(ends_[1], std::exchange(ends_[0], backend_->record()));
    if (kind_.pace == Pace::as_it_can) return;
    while (!backend_->done(ends_[static_cast<std::size_t>(kind_.pace)])) {
    }
  }

  std::vector<float> weight() { return read_back(*backend_, weight_, classes); }
  std::vector<float> losses() { return read_back(*backend_, loss_, samples); }
  /// How often a feed asked for something that was not done.
  long held_up() const { return held_up_; }
  Index graph_launches() const { return backend_->queue().graph_launches(); }

 private:
  void launch() {
    cudaStream_t const stream = backend_->queue().stream();
    InputStage input;
    input.samples = samples;
    input.source_height = input.source_width = input.height = input.width = side;
    input.channels = 3;
    input.stored_channels = 4;
    std::fill(input.mean, input.mean + 4, 128.0F);
    std::fill(input.std, input.std + 4, 64.0F);
    input.rows = feeds_[0].rows();
    input.feed = feeds_[0].numbers();
    input.x = logits_;
    check(make_input(input, stream), "input");
    for (Index i = 0; i < samples; ++i) check(add_floats(logits_ + i * classes, weight_, classes, stream), "bias");
    SoftmaxLoss loss;
    loss.samples = samples;
    loss.classes = classes;
    loss.stored_classes = classes;
    loss.raw = logits_;  // in place
    loss.logits = logits_;
    loss.arrivals = arrivals_;
    loss.rows = feeds_[0].rows();
    loss.feed = feeds_[0].numbers();
    loss.loss = loss_;
    loss.hits = hits_;
    loss.dlogits = dlogits_;
    loss.counters = counters_;
    check(softmax_cross_entropy(loss, stream), "loss");
    check(fill_floats(gradient_, classes, 0, stream), "fill");
    for (Index i = 0; i < samples; ++i) check(add_floats(gradient_, dlogits_ + i * classes, classes, stream), "sum");
    check(copy_floats(gradient_, gradient_, classes, -0.25F, stream), "rate");
  }

  Kind kind_;
  Event ends_[3];  ///< of this step, the last, the one before
  std::unique_ptr<CudaBackend> backend_ = make_backend();
  Feed feeds_[2] = {Feed({samples, image_bytes}), Feed({samples, image_bytes})};
  long held_up_ = 0;
  const std::uint8_t* resident_ = nullptr;
  std::vector<std::uint8_t> images_, paged_;
  std::uint8_t* pinned_[2] = {};
  unsigned* arrivals_ = nullptr;
  std::vector<SampleSpec> specs_;
  float *logits_ = nullptr, *bias_ = nullptr, *dlogits_ = nullptr, *weight_ = nullptr, *loss_ = nullptr,
        *gradient_ = nullptr, *other_ = nullptr, *staging_ = nullptr;
  std::uint8_t* hits_ = nullptr;
  Counters* counters_ = nullptr;
};

constexpr int steps = 6;

/// The weight, then the losses of the last step.
std::vector<float> run(const Kind& kind, long* waits = nullptr) {
  Network network(kind);
  host_cuda::counts().waits = 0;
  for (int i = 0; i < steps; ++i) network.step(i);
  std::vector<float> result = network.weight();
  if (waits != nullptr) *waits = host_cuda::counts().waits;
  const std::vector<float> losses = network.losses();
  result.insert(result.end(), losses.begin(), losses.end());
  return result;
}

/// In double.
std::vector<double> expected(Rows rows) {
  const auto images = formula_images("images", 3 * samples * image_bytes);
  std::vector<double> weight(classes, 0.0), losses(samples, 0.0);
  for (int number = 0; number < steps; ++number) {
    const double scale = 0.5 + 0.25 * (number % 4);
    std::vector<double> sum(classes, 0.0);
    for (Index i = 0; i < samples; ++i) {
      const Index source = (i + number) % samples, block = rows == Rows::resident ? 0 : number % 3;
      std::vector<double> z(classes, 0.0);
      for (std::size_t pixel = 0; pixel < side * side; ++pixel)
        for (std::size_t c = 0; c < 3; ++c)
          z[4 * pixel + c] =
              (images[static_cast<std::size_t>((block * samples + source) * image_bytes) + 3 * pixel + c] - 128.0) / 64;
      double exps = 0;
      for (std::size_t k = 0; k < classes; ++k) exps += std::exp(z[k] += weight[k]);
      const auto label = static_cast<std::size_t>((i * 3 + number) % classes);
      losses[static_cast<std::size_t>(i)] = std::log(exps) - z[label];
      for (std::size_t k = 0; k < classes; ++k) sum[k] += scale * (std::exp(z[k]) / exps - (k == label ? 1 : 0));
    }
    for (std::size_t k = 0; k < classes; ++k) weight[k] -= 0.5 * sum[k];
  }
  weight.insert(weight.end(), losses.begin(), losses.end());
  return weight;
}

class SmallStep : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, SmallStep,
                         testing::Values(Kind{Rows::resident, Launched::direct},
                                         Kind{Rows::resident, Launched::captured}, Kind{Rows::paged, Launched::direct},
                                         Kind{Rows::paged, Launched::captured}, Kind{Rows::pinned, Launched::direct},
                                         Kind{Rows::pinned, Launched::captured},
                                         Kind{Rows::resident, Launched::captured, Exchange::staged}));

void expect_right_in_all_orders(const Kind& kind) {
  const std::vector<double> want = expected(kind.rows);
  std::vector<float> first;
  in_all_orders([&] {
    const std::vector<float> got = run(kind);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << "the same bits in every order";
  });
}

TEST_P(SmallStep, IsRightInAllOrders) { expect_right_in_all_orders(GetParam()); }

/// As at the end of an epoch: rows that one program has handed over may be overwritten once another was fed.
TEST(Feeds, OfTwoProgramsKeepRowsUntilTheyAreUploaded) {
  expect_right_in_all_orders({.rows = Rows::pinned, .feeds = Feeds::by_turns});
}

TEST_P(SmallStep, IsWrongWithoutAnyOfItsWaits) {
  host_cuda::settings() = {host_cuda::Order::eager};
  long waits = 0;
  const std::vector<float> right = run(GetParam(), &waits);
  EXPECT_GT(waits, 2 * steps - 1);
  const auto shows = [&](const Kind& kind, host_cuda::Order order, long dropped) {
    host_cuda::settings() = {order, 1, dropped};
    try {
      return run(kind) != right;
    } catch (const Error&) {
      host_cuda::abandon_all();
      return true;
    }
  };
  for (long dropped = 0; dropped < waits; ++dropped) {
    bool caught = false;
    // Some show only where the host is ahead, others only where it isn't.
    for (const Pace pace : {Pace::this_step, Pace::last_step, Pace::as_it_can}) {
      Kind kind = GetParam();
      kind.pace = pace;
      for (const host_cuda::Order order : host_cuda::all_orders) caught = caught || shows(kind, order, dropped);
      for (int i = 0; i < 8; ++i) caught = caught || shows(kind, host_cuda::Order::shuffled, dropped);
    }
    EXPECT_TRUE(caught) << "wait " << dropped << " of " << waits << " is needless, or nothing shows its loss";
  }
  host_cuda::settings() = {};
}

TEST_P(SmallStep, AllocatesNothingOnceItRuns) {
  host_cuda::settings() = {};
  Network network(GetParam());
  for (int i = 0; i < 3; ++i) network.step(i);
  const host_cuda::Counts before = host_cuda::counts();
  const long allocated = count_allocations() - before.own_allocations;
  for (int i = 3; i < 20; ++i) network.step(i);
  const host_cuda::Counts after = host_cuda::counts();
  EXPECT_EQ(after.allocations, before.allocations) << "of the device, or pinned";
  EXPECT_EQ(count_allocations() - after.own_allocations, allocated);
  EXPECT_EQ(after.syncs, before.syncs) << "nothing waits for the device but what says so";
  EXPECT_EQ(after.graph_launches - before.graph_launches, GetParam().launched == Launched::captured ? 17 : 0);
}

/// As engine/engine.hpp keeps it, turns within a step included: only then has nothing that a feed asks for to
/// wait for sums between ranks, for which it knows no deadline.
TEST(Feeds, NothingHoldsUpAHostThatIsTwoStepsAhead) {
  host_cuda::settings() = {};
  Network paced({.pace = Pace::step_before_last}), free({.pace = Pace::as_it_can});
  for (int i = 0; i < 12; ++i) {
    paced.step(i);
    free.step(i);
  }
  EXPECT_EQ(paced.held_up(), 0);
  EXPECT_GT(free.held_up(), 0);
}

}  // namespace
}  // namespace convoy::cuda
