// SPDX-License-Identifier: Apache-2.0
// Small messages between the ranks of a job: agreement, broadcast, sums. All non-blocking inside, tested under a
// deadline.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives.hpp"
#include "comm/session.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy {

/// What a rank tells the others every step; engine/step_vote.hpp gives the places a meaning.
using Votes = std::array<std::int64_t, 4>;

/// How long ranks wait for each other.
struct StallLimits {
  double warn_seconds = 60, abort_seconds = 300;  ///< of a wait between ranks; 0: never
  double watchdog_seconds = 300;                  ///< of a main thread that does not move (run/watchdog.hpp); 0: never
};

/// What is known when a wait lasts.
struct StallReport {
  std::string missing;  ///< the ranks that did not arrive, their hosts and what they do; empty: nothing is known
  bool speaker = true;  ///< this rank speaks for the job; others wait for it to end the job
};

class Communicator {
 public:
  /// Collective. The session must outlive it. One MPI call moves at most `chunk` elements (tests set 3).
  Communicator(Session& session, const StallLimits& limits, Index chunk = 1 << 30, Clock& clock = real_clock());
  /// Collective. The first `count` ranks as a job of their own; null on the others.
  std::unique_ptr<Communicator> first_ranks(int count, const StallLimits& limits);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  int node_rank() const;  ///< among the ranks of this host
  int node_size() const;
  int node_first() const;  ///< the lowest rank of this host
  const std::string& host() const;
  const std::vector<std::string>& hosts() const;  ///< one a rank

  /// Asked when a wait warns or gives up. Without it rank 0 speaks.
  void explain_stalls(std::function<StallReport()> who_is_missing);

  /// Collective. `what` names the operation in deadline messages.
  void barrier(const char* what);
  /// Collective.
  void broadcast(std::string& text, const char* what);
  /// Collective.
  void broadcast(std::span<std::byte> bytes, int root, const char* what);
  /// Collective. In place.
  void sum(std::span<double> values, const char* what);
  /// Collective. In place.
  void sum(std::span<std::int64_t> values, const char* what);
  /// Collective. In place.
  void maximum(std::span<std::int64_t> values, const char* what);
  /// Collective. In place.
  void maximum(std::span<double> values, const char* what);
  /// Collective. In place.
  void minimum(std::span<double> values, const char* what);
  /// Collective. One text a rank, on all ranks.
  std::vector<std::string> all_gather(const std::string& text, const char* what);
  /// Collective. Set-up that may fail on some ranks: runs body, every different failure is reported by the lowest rank
  /// that has it, the worst (highest) code is agreed. Returns Exit::ok, or the code with which all ranks leave. Who is
  /// asked to stop (Error(stopped)) says nothing, and real failures outweigh it. The body must not communicate where
  /// only some fail.
  Exit together(const char* what, const std::function<void()>& body);
  /// Collective. Throws Error(usage) on all ranks, printing both values, unless all ranks hold the same text.
  void require_equal(const std::string& text, const char* what);

  /// Collective. Numbers agreed one step later by a pipelined all-reduce: call it every step with this rank's. Returns
  /// the maxima over ranks of the previous call's (0 on the first).
  Votes agree_later(const Votes& votes);

 private:
  friend std::unique_ptr<Collectives> make_mpi_collectives(Communicator&, Device&, const struct CollectivesSpec&);
  friend std::unique_ptr<Collectives> make_nccl_collectives(Communicator&, Device&, const struct CollectivesSpec&);
  struct State;
  explicit Communicator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What MPI is given of a device whose memory the host can't read: a copy in host memory, or the memory itself, which
/// crashes unless mpi_takes_device_memory().
enum class MpiMemory : std::uint8_t { host, device };

struct CollectivesSpec {
  int replicas = 1;  ///< W
  bool reproducible =
      false;  ///< sums follow the fixed binary tree over replicas: the same bits for any number of ranks
  Index chunk_floats = 1 << 28;  ///< one MPI call moves at most this many (below INT_MAX; tests set 3)
  Index max_count = 0;           ///< largest Reduction::count to come: buffers are made once
  MpiMemory memory = MpiMemory::host;
  double delay_seconds = 0;  ///< for tests of overlap: a reduction is not done earlier than this after its start
};

/// Collective. Over MPI; device memory that the host can't read is staged through download and upload.
std::unique_ptr<Collectives> make_mpi_collectives(Communicator& communicator, Device& device,
                                                  const CollectivesSpec& spec);

/// True where the MPI library says that it takes pointers to a GPU's memory.
bool mpi_takes_device_memory();

/// What moves the sums.
enum class Transport : std::uint8_t { mpi, nccl };

/// Collective. Device::identity of every rank.
std::vector<std::string> device_identities(Communicator& communicator, const Device& device);

struct TransportWish {
  std::string backend = "auto";  ///< auto, mpi, nccl
  MpiMemory memory = MpiMemory::host;
};

struct TransportChoice {
  Transport transport = Transport::mpi;
  MpiMemory memory = MpiMemory::host;
  std::string reason;   ///< for the log: what was taken and why
  std::string warning;  ///< what the user should know; mostly empty
};

/// From what the user wants and device_identities says, so alike on all ranks. auto takes NCCL where there are several
/// ranks and each has a GPU of its own. Throws Error(device) where what is asked for can't be.
TransportChoice choose_transport(const TransportWish& wish, const std::vector<std::string>& identities);

/// Collective. By NCCL, which comes with the CUDA module.
std::unique_ptr<Collectives> make_nccl_collectives(Communicator& communicator, Device& device,
                                                   const CollectivesSpec& spec);

/// Collective.
inline std::unique_ptr<Collectives> make_collectives(const TransportChoice& choice, Communicator& communicator,
                                                     Device& device, CollectivesSpec spec) {
  spec.memory = choice.memory;
  return choice.transport == Transport::nccl ? make_nccl_collectives(communicator, device, spec)
                                             : make_mpi_collectives(communicator, device, spec);
}

/// Name and version of the MPI library.
std::string mpi_version();

}  // namespace convoy
