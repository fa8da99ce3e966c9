// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_backend.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/ceilings.hpp"
#include "backend/cuda/counters.hpp"
#include "backend/cuda/kernels/early.hpp"
#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/program.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/download.hpp"
#include "backend/cuda/runtime/pinned_ring.hpp"
#include "backend/cuda/updater.hpp"
#include "backend/set_layout.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace convoy::cuda {
namespace {

constexpr Index float_bytes = sizeof(float);

class SecondQueue final : public CommunicationQueue {
 public:
  explicit SecondQueue(Queue& queue) : queue_(queue) {}
  void* stream() override { return own(); }
  bool capturing() const override { return queue_.capturing(); }
  void forget_graphs() noexcept override { queue_.forget_graphs(); }
  void follow(Event event) override { queue_.follow(Stream::communication, event); }
  Event record() override { return queue_.record(Stream::communication); }
  void download(float* host, const float* from, Index n) override {
    queue_.to_host(host, from, n * float_bytes, Stream::communication);
  }
  void upload(float* to, const float* host, Index n) override {
    queue_.to_device(to, host, n * float_bytes, Stream::communication);
  }
  void copy(float* to, const float* from, Index n) override {
    check(copy_floats(to, from, n, 1, own()), "launch of a copy");
  }
  void add(float* to, const float* from, Index n) override { check(add_floats(to, from, n, own()), "launch of a sum"); }
  void round(float* values, Index n, Wire wire) override {
    check(round_floats(values, n, wire, own()), "launch of a rounding");
  }
  void narrow(std::uint16_t* to, const float* from, Index n, Wire wire) override {
    check(narrow_floats(to, from, n, wire, own()), "launch of a conversion to 16 bits");
  }
  void widen(float* to, const std::uint16_t* from, Index n, Wire wire) override {
    check(widen_floats(to, from, n, wire, own()), "launch of a conversion from 16 bits");
  }

 private:
  cudaStream_t own() const { return queue_.stream(Stream::communication); }
  Queue& queue_;
};

cudaDeviceProp ask_for_properties() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaGetDeviceProperties(&properties, device), "asking for the GPU's properties");
  return properties;
}

class QueuedBackend final : public CudaBackend {
 public:
  explicit QueuedBackend(std::unique_ptr<Library> library)
      : library_(std::move(library)),
        second_(queue_),
        downloads_(queue_),
        copies_(queue_),
        counters_(queue_),
        step_(reinterpret_cast<StepNumbers*>(queue_.allocate(sizeof(StepNumbers), "numbers of a step"))),
        steps_(queue_, step_, sizeof(StepNumbers), "numbers of a step"),
        context_{queue_, *library_, copies_, step_, counters_.device(), resident_} {}

  Queue& queue() override { return queue_; }

  float* allocate(Index floats) override {
    return reinterpret_cast<float*>(queue_.allocate(floats * float_bytes, "a block of the network"));
  }
  float* allocate_host(Index floats) override {
    return reinterpret_cast<float*>(queue_.allocate_host(floats * float_bytes, "a staging buffer"));
  }
  CommunicationQueue* communication() override { return &second_; }
  std::string identity() const override {
    const cudaDeviceProp properties = ask_for_properties();
    std::string text = "GPU-";
    for (const char byte : properties.uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
  }
  std::string card() const override {
    const cudaDeviceProp properties = ask_for_properties();
    return fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  }
  bool host_reads() const override { return false; }

  Event record() override { return queue_.record(); }
  bool done(Event event) override {
    return PagedDownload::owns(event) ? downloads_.advance(event) : queue_.done(event);
  }
  void follow(Event event) override {
    require(!PagedDownload::owns(event), "the queue waits for a download to memory of the host");
    queue_.follow(Stream::compute, event);
  }
  Event download(float* host, const float* from, Index n, Event after) override {
    if (n == 0) return {};
    if (!queue_.is_pinned(host, n * float_bytes)) return downloads_.start(host, from, n * float_bytes, after);
    queue_.follow(Stream::communication, after);
    second_.download(host, from, n);
    return second_.record();
  }
  Event upload(float* to, const float* host, Index n) override {
    if (n == 0) return {};
    if (queue_.is_pinned(host, n * float_bytes)) {
      queue_.to_device(to, host, n * float_bytes);
    } else {
      queue_.upload_now(to, host, n * float_bytes);
    }
    return queue_.record();
  }
  void copy(float* to, const float* from, Index n, float factor) override {
    check(copy_floats(to, from, n, factor, queue_.stream()), "launch of a copy");
  }
  void add(float* to, const float* from, Index n) override {
    check(add_floats(to, from, n, queue_.stream()), "launch of a sum");
  }
  void fill(float* to, Index n, float value) override {
    check(fill_floats(to, n, value, queue_.stream()), "launch of a fill");
  }
  void round(float* values, Index n, Wire wire) override {
    check(round_floats(values, n, wire, queue_.stream()), "launch of a rounding");
  }

  std::unique_ptr<Program> compile(const Plan& plan, const CompileSpec& spec) override {
    return make_program(context_, plan, spec);
  }
  std::unique_ptr<Updater> compile(const Plan& plan, const OptimiserSpec& spec) override {
    layout_ = set_layout(plan.table, spec);
    return make_updater(context_, plan, spec);
  }
  SetLayout layout(const Plan& plan, const OptimiserSpec& spec) const override { return set_layout(plan.table, spec); }

  void set_step(const StepParams& params) override {
    *reinterpret_cast<StepNumbers*>(steps_.begin()) = {params.learning_rate, params.ema_decay, params.seed, params.step,
                                                       params.options};
    steps_.post();  // with the numbers of the batch, if one comes
  }
  void blend(const ParameterSet& to, const ParameterSet& from) override {
    require(to.count == layout_.count(), "sets to blend that no updater was compiled for");
    queue_.deliver();
    for (const Range& range : {layout_.trained, layout_.moving}) {
      check(blend_floats(to.block + range.begin, from.block + range.begin, range.count, step_, queue_.stream()),
            "launch of an average");
    }
  }
  void refresh(const ParameterSet& set) override { copies_.refresh(set); }
  void replay(std::uint64_t key, FunctionRef body) override { queue_.replay(key, body); }

  int keep_resident(const std::uint8_t* images, Index count, Index bytes_per_image) override {
    const Index bytes = count * bytes_per_image;
    if (bytes == 0 || !queue_.has_room(bytes)) return -1;
    std::byte* const memory = queue_.allocate(bytes, "a data set");
    queue_.upload_now(memory, images, bytes);
    resident_.push_back(reinterpret_cast<const std::uint8_t*>(memory));
    return static_cast<int>(resident_.size()) - 1;
  }
  Event counters_ready() override { return counters_.snapshot(); }
  Counters take_counters() override { return counters_.take(); }
  DeviceCounts counts() const override { return {queue_.graph_launches(), queue_.allocations()}; }
  std::string describe() const override { return "cuda " + library_->name(); }
  Ceilings measure_ceilings(const CeilingSpec& spec) override { return cuda::measure_ceilings(context_, spec); }

 private:
  Queue queue_;
  std::unique_ptr<Library> library_;
  SecondQueue second_;
  PagedDownload downloads_;
  FilterCopies copies_;
  CountersOnDevice counters_;
  StepNumbers* step_;
  PinnedRing steps_;
  std::vector<const std::uint8_t*> resident_;
  SetLayout layout_;
  const Context context_;
};

}  // namespace

namespace {

void launch_early_if_asked() {
  const char* const wish = std::getenv("CONVOY_EARLY_LAUNCH");
  const bool wanted = wish != nullptr && std::string_view(wish) == "1";
  if (launch_early(wanted) || !wanted) return;
  log::warn(
      "CONVOY_EARLY_LAUNCH=1 has no effect (it needs a GPU of compute capability 9.0 or later and kernels built for 9.0); unset it");
}

}  // namespace

std::unique_ptr<CudaBackend> make_cuda_backend(std::unique_ptr<Library> library) {
  launch_early_if_asked();
  return std::make_unique<QueuedBackend>(std::move(library));
}

}  // namespace convoy::cuda
