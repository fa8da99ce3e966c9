// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/bench.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace convoy::cuda {
namespace {

template <class T>
T down(double value) {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(value);
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(static_cast<float>(value));
  else
    return __float2bfloat16_rn(static_cast<float>(value));
}
double up(float value) { return static_cast<double>(value); }
double up(__half value) { return static_cast<double>(__half2float(value)); }
double up(__nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); }

template <class Use>
auto with_type(Storage storage, const Use& use) {
  switch (storage) {
    case Storage::bf16:
      return use(__nv_bfloat16{});
    case Storage::f16:
      return use(__half{});
    case Storage::f32:
      break;
  }
  return use(float{});
}

#ifdef CONVOY_ON_GPU
[[maybe_unused]] const bool has_gpu = [] {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  std::fputs("no GPU\n", stderr);
  std::exit(std::getenv("CONVOY_REQUIRE_GPU") == nullptr ? 77 : 1);
}();
#endif

/// Pinned memory for one copy.
class Staging {
 public:
  explicit Staging(std::size_t bytes) { expect_success(cudaMallocHost(&memory_, bytes)); }
  ~Staging() { cudaFreeHost(memory_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  void* get() { return memory_; }

 private:
  void* memory_ = nullptr;
};

}  // namespace

double epsilon_of(Storage storage) {
  return storage == Storage::f32 ? 0x1p-24 : storage == Storage::bf16 ? 0x1p-8 : 0x1p-11;
}
double rounded(double value, Storage storage) {
  return with_type(storage, [&](auto type) { return up(down<decltype(type)>(value)); });
}

Bench::Bench() { expect_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
Bench::~Bench() {
  for (void* at : memory_) cudaFree(at);
  cudaStreamDestroy(stream_);
}

void* Bench::bytes(std::size_t count) {
  void* at = nullptr;
  expect_success(cudaMalloc(&at, std::max<std::size_t>(count, 1)));
  memory_.push_back(at);
#ifdef CONVOY_ON_GPU
  expect_success(cudaMemsetAsync(at, 0xff, count, stream_));  // NaN in every storage, as the stand-in fills it
#endif
  return at;
}

void Bench::copy_in(void* to, const void* from, std::size_t count) {
  if (count == 0) return;
  Staging staging(count);
  std::memcpy(staging.get(), from, count);
  expect_success(cudaMemcpyAsync(to, staging.get(), count, cudaMemcpyHostToDevice, stream_));
  expect_success(cudaStreamSynchronize(stream_));
}
void Bench::copy_out(void* to, const void* from, std::size_t count) {
  if (count == 0) return;
  Staging staging(count);
  expect_success(cudaMemcpyAsync(staging.get(), from, count, cudaMemcpyDeviceToHost, stream_));
  expect_success(cudaStreamSynchronize(stream_));
  std::memcpy(to, staging.get(), count);
}

Values Bench::floats(const float* device, Index count) {
  const std::vector<float> host = get(device, count);
  return {host.begin(), host.end()};
}

void* Bench::elements(Values& values, Storage storage) {
  return with_type(storage, [&](auto type) -> void* {
    std::vector<decltype(type)> stored;
    for (double& value : values) {
      stored.push_back(down<decltype(type)>(value));
      value = up(stored.back());
    }
    return put(stored);
  });
}
Values Bench::elements(const void* device, Index count, Storage storage) {
  return with_type(storage, [&](auto type) {
    Values values;
    for (const auto element : get(static_cast<const decltype(type)*>(device), count)) values.push_back(up(element));
    return values;
  });
}

void* Bench::tensor(Tensor& x, Storage storage, Index stored_c) {
  const Index channels = std::max(x.c, stored_c);
  Values packed(static_cast<std::size_t>(x.n * x.h * x.w * channels), 0.0);
  const auto for_each = [&](const auto& use) {
    for (Index i = 0; i < x.n; ++i)
      for (Index p = 0; p < x.h; ++p)
        for (Index q = 0; q < x.w; ++q)
          for (Index c = 0; c < x.c; ++c)
            use(x.at(i, c, p, q), packed[static_cast<std::size_t>(((i * x.h + p) * x.w + q) * channels + c)]);
  };
  for_each([](double from, double& to) { to = from; });
  void* const device = elements(packed, storage);
  for_each([](double& to, double from) { to = from; });
  return device;
}
Tensor Bench::tensor(const void* device, const Tensor& shape, Storage storage, Index stored_c) {
  const Index channels = std::max(shape.c, stored_c);
  const Values packed = elements(device, shape.n * shape.h * shape.w * channels, storage);
  Tensor x = Tensor::like(shape);
  std::size_t at = 0;
  for (Index i = 0; i < x.n; ++i)
    for (Index p = 0; p < x.h; ++p)
      for (Index q = 0; q < x.w; ++q)
        for (Index c = 0; c < channels; ++c, ++at) {
          if (c < x.c) {
            x.at(i, c, p, q) = packed[at];
          } else {
            EXPECT_EQ(packed[at], 0) << "padding channel " << c;
          }
        }
  return x;
}

std::string name_of_storage(const testing::TestParamInfo<Storage>& info) {
  return info.param == Storage::f32 ? "f32" : info.param == Storage::bf16 ? "bf16" : "f16";
}

void expect_close(const Values& got, const Values& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double scale = 0;
  for (const double value : want) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * scale) << what << '[' << i << "] of " << got.size();
}

void expect_success(cudaError_t error) { ASSERT_EQ(error, cudaSuccess); }

}  // namespace convoy::cuda
