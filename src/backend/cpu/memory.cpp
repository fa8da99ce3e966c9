// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
/// Below this a parallel region costs more than it saves.
constexpr Index parallel_floats = 1 << 15;

}  // namespace

HostMemory::~HostMemory() {
  for (const Mapping& mapping : mappings_) munmap(mapping.address, mapping.bytes);
}

float* HostMemory::allocate(Index floats) {
  require(floats >= 0, "negative block size");
  if (static_cast<std::uint64_t>(floats) > (std::numeric_limits<std::size_t>::max() / 2) / sizeof(float)) {
    fail(Exit::device, "cannot allocate {} floats of host memory (more than an address can reach); use a smaller batch",
         floats);
  }
  const std::size_t wanted = static_cast<std::size_t>(floats > 0 ? floats : 1) * sizeof(float);
  const bool big = wanted >= huge_page_bytes;
  const std::size_t bytes = big ? (wanted + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes : wanted;
  const std::size_t mapped = big ? bytes + huge_page_bytes : bytes;
  mappings_.reserve(mappings_.size() + 1);
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    fail(Exit::device, "cannot allocate {} MiB of host memory ({}); use a smaller batch or fewer ranks per node",
         wanted >> 20, std::strerror(errno));
  }
  mappings_.push_back({address, mapped});
  auto start = reinterpret_cast<std::uintptr_t>(address);
  if (big) {
    start = (start + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    // Only advice: a kernel without transparent huge pages runs the same, slower.
    madvise(reinterpret_cast<void*>(start), bytes, MADV_HUGEPAGE);
  }
  return reinterpret_cast<float*>(start);
}

void copy_floats(float* to, const float* from, Index n, float factor) {
#pragma omp parallel for simd schedule(static) if (n >= parallel_floats)
  for (Index i = 0; i < n; ++i) to[i] = factor * from[i];
}

void add_floats(float* to, const float* from, Index n) {
#pragma omp parallel for simd schedule(static) if (n >= parallel_floats)
  for (Index i = 0; i < n; ++i) to[i] += from[i];
}

void fill_floats(float* to, Index n, float value) {
#pragma omp parallel for simd schedule(static) if (n >= parallel_floats)
  for (Index i = 0; i < n; ++i) to[i] = value;
}

void round_floats(float* values, Index n, Wire wire) {
  constexpr Index piece = 1 << 13;
#pragma omp parallel for schedule(static) if (n >= parallel_floats)
  for (Index begin = 0; begin < n; begin += piece) round_to(values + begin, std::min(piece, n - begin), wire);
}

}  // namespace convoy::cpu
