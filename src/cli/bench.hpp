// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/clock.hpp"

namespace convoy {

/// Collective. Training steps on images in memory, through the seam and, with --gradients, the sums over the ranks.
Exit bench_compute(Communicator& communicator, const BenchConfig& config);
/// Collective. The same on 1, 2, 4 ... of the job's ranks: how training scales here.
Exit bench_scaling(Communicator& communicator, const BenchConfig& config);
/// Collective. Reading, checking and preparing samples, without a network.
Exit bench_io(Communicator& communicator, const BenchConfig& config);
/// Collective. All-reduce of one size or a sweep.
Exit bench_comm(Communicator& communicator, const BenchConfig& config);

enum class CpuTime { thread, process };
/// Seconds that cores have worked for this thread, or for all of this process; programs beside it don't lengthen them.
double cpu_seconds(CpuTime of);

/// Seconds of repeated work.
class Stopwatch {
 public:
  void start() { begin_ = real_clock().now(); }
  void stop() { seconds_.push_back(seconds_since(begin_)); }
  double total() const;
  double mean() const;
  double minimum() const;

 private:
  Instant begin_;
  std::vector<double> seconds_;
};

/// Collective. One number of each rank, on all ranks.
std::vector<double> of_all_ranks(Communicator& communicator, double value, const char* what);
/// `81.2 81.5` for up to 16 ranks, else `81.2 to 83.0`.
std::string print_ranks(const std::vector<double>& values);

}  // namespace convoy
