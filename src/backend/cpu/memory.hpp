// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "core/types.hpp"
#include "core/wire.hpp"

namespace convoy::cpu {

/// Owns the blocks of a CPU backend. Big blocks start on 2 MiB and ask for 2 MiB pages: activations are swept from end
/// to end several times a step, and page walks cost about a tenth of it otherwise.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  /// Zeroed, on 64 bytes, valid as long as this object. Throws Error(device) when memory is out.
  float* allocate(Index floats);

 private:
  struct Mapping {
    void* address;
    std::size_t bytes;
  };
  std::vector<Mapping> mappings_;
};

/// to = factor * from; `to` may be `from`.
void copy_floats(float* to, const float* from, Index n, float factor);
/// to = fl(to + from): one IEEE addition an element, whatever the number of threads.
void add_floats(float* to, const float* from, Index n);
void fill_floats(float* to, Index n, float value);
/// As Device::round.
void round_floats(float* values, Index n, Wire wire);

}  // namespace convoy::cpu
