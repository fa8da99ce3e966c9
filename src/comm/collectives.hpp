// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>

#include "core/device.hpp"

namespace convoy {

/// The sum of replicas [first, first + size). In reproducible sums a node of the fixed tree (core/replica_tree.hpp),
/// and a rank's parts are the nodes of its run; else any parts.
struct Part {
  int first = 0, size = 1;
  float* data = nullptr;
};

struct Reduction {
  float* out = nullptr;         ///< device memory; may be one of the parts (reproducible: the last)
  std::span<const Part> parts;  ///< this rank's, empty where it owns no replica
  Index count = 0;
  Event after;            ///< the parts are final then
  const char* what = "";  ///< for deadlines: `gradient bucket 3`. Static storage
};

using Ticket = std::uint64_t;

/// Sums over ranks, non-blocking, started in order of submission, watched by a deadline.
class Collectives {
 public:
  virtual ~Collectives() = default;
  /// Collective. out = sum of all parts of all ranks. Returns at once; allocates nothing in the steady state.
  virtual Ticket submit(const Reduction& reduction) = 0;
  /// True where nothing between submit and finish waits for the host: one rank, or NCCL that may be captured.
  virtual bool capturable() const = 0;
  /// Moves everything that can move. Throws Error(communication) past the deadline, naming the operation.
  virtual void poll() = 0;
  /// Collective. Launches queued after it see this sum and all that were submitted before; the host may not have
  /// waited.
  virtual void finish(Ticket ticket) = 0;
  /// Collective. In place of finish, for the host: host[0..n) = from[0..n), memory of this sum or of one before, once
  /// the event has passed. No launch waits for it.
  virtual Event read(Ticket ticket, float* host, const float* from, Index n) = 0;
  /// Host wait under the deadline: the only one there is in a step.
  virtual void await(Event event, const char* what) = 0;
  /// Seconds spent waiting in finish() and await() since the last call.
  virtual double take_wait_seconds() = 0;
};

}  // namespace convoy
