// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "data/augment.hpp"
#include "data/batch_queue.hpp"
#include "data/dataset.hpp"
#include "data/order.hpp"

namespace convoy {

struct LoaderSpec {
  OrderSpec order;
  AugmentSpec augment;
  int first_replica = 0, replica_count = 1;  ///< of this rank
  int workers = 1;                           ///< threads that prepare batches ahead; 0: next() prepares them itself
  int prefetch = 4;                          ///< batches ahead, all replicas together
  int resident = 0;  ///< Backend::keep_resident of Dataset::images(): samples are indices into it; -1: batches of rows
  double delay_seconds = 0;  ///< for tests: added to every batch
  ImageMemory memory;        ///< of rows
  Clock* clock = &real_clock();
};

/// Whether batches can refer to samples in memory: pixels, from which the input stage takes what it needs.
bool can_be_resident(const Dataset& dataset, const AugmentSpec& augment);

/// Batches of the owned replicas, prepared ahead in the order step, replica. next() is called in exactly that order;
/// replicas without samples at a step are skipped. A worker's error is thrown by next().
class Loader {
 public:
  Loader(const Dataset& dataset, const LoaderSpec& spec);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  /// Starts preparing from a step of an epoch (resume); returns the epoch's order.
  const EpochOrder& begin_epoch(Index epoch, Index from_step);
  /// The batch of (step, replica). Its memory stays valid until the next-but-one call of next().
  Batch next(Index step, int replica);
  /// Seconds next() has waited since the last call.
  double take_wait_seconds();
  /// Bytes of the batches in memory, all workers included.
  static Index memory_bytes(const Dataset& dataset, const LoaderSpec& spec);
  /// The same with images of so many bytes; 0: batches refer to samples in memory.
  static Index memory_bytes(const OrderSpec& order, int prefetch, Index image_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
