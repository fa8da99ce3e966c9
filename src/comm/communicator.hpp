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
#include "core/wall_clock.hpp"

namespace convoy {

/// What a rank tells the others every step; engine/step_vote.hpp gives the places a meaning.
using Votes = std::array<std::int64_t, 4>;

/// What is known when a wait lasts.
struct StallReport {
  std::string missing;  ///< the ranks that did not arrive, their hosts and what they do; empty: nothing is known
  bool speaker = true;  ///< this rank speaks for the job; others wait for it to end the job
};

/// A rank among those of its host: how many come before it, how many they are, the lowest of them.
struct NodePlace {
  int rank = 0, size = 1, first = 0;
  bool operator==(const NodePlace&) const = default;
};
/// `hosts`: one per rank.
NodePlace find_node_place(const std::vector<std::string>& hosts, int rank);

class Communicator {
 public:
  /// Collective. The session must outlive it. One MPI call moves at most `chunk` elements (tests set 3).
  Communicator(Session& session, const StallLimits& limits, Index chunk = 1 << 30, Clock& clock = real_clock());
  /// Collective. The first `count` ranks as a job of their own; null on the others.
  std::unique_ptr<Communicator> first_ranks(int count, const StallLimits& limits);
  /// Collective. The ranks of one number as a job of their own, in order.
  std::unique_ptr<Communicator> part(int number, const StallLimits& limits);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  int node_rank() const;  ///< among the ranks of this host
  int node_size() const;
  int node_first() const;  ///< the lowest rank of this host
  const std::string& host() const;
  const std::vector<std::string>& hosts() const;  ///< one per rank

  /// Asked when a wait warns or gives up. Without it rank 0 speaks.
  void explain_stalls(std::function<StallReport()> who_is_missing);

  /// Collective. `what` names the operation in deadline messages.
  void barrier(const char* what);
  /// Collective.
  void broadcast(std::string& text, const char* what);
  /// Collective.
  void broadcast(std::span<std::byte> bytes, int root, const char* what);
  /// Between two ranks, which both call it: sends `own`, and receives as many bytes in `to`.
  void swap(std::span<const std::byte> own, std::span<std::byte> to, int other, const char* what);
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
  /// Collective. One text per rank, on rank 0; none elsewhere.
  std::vector<std::string> gather(const std::string& text, const char* what);
  /// Collective. One text per rank, on all ranks.
  std::vector<std::string> all_gather(const std::string& text, const char* what);
  /// Collective. Set-up that may fail on some ranks: runs body, every different failure is reported by the lowest rank
  /// that has it, the worst (highest) code is agreed. Returns Exit::ok, or the code with which all ranks leave. Who is
  /// asked to stop (Error(stopped)) says nothing, and real failures outweigh it. The body must not communicate where
  /// only some fail.
  Exit agreed_exit(const char* what, const std::function<void()>& body);
  /// Collective. Throws Error(usage) on all ranks, printing both values, unless all ranks hold the same text.
  void require_equal(const std::string& text, const char* what);

  /// Collective. Numbers agreed one step later by a pipelined all-reduce: call it every step with this rank's. Returns
  /// the maxima over ranks of the previous call's (0 on the first).
  Votes agree_later(const Votes& votes);

 private:
  friend std::unique_ptr<Collectives> make_mpi_collectives(Communicator&, Device&, const struct CollectivesSpec&);
  friend std::unique_ptr<Collectives> make_nccl_collectives(Communicator&, Device&, const struct CollectivesSpec&);
  struct State;
  /// Collective. On rank 0 the texts of all ranks, on others those that they passed on, each behind its size.
  std::string gather_sized(const std::string& text, const char* what);
  explicit Communicator(std::unique_ptr<State> state);
  /// Collective. `number` < 0: this rank is in no part, and gets null.
  std::unique_ptr<Communicator> split(int number, const StallLimits& limits);
  void take_hosts(std::vector<std::string> hosts);
  std::unique_ptr<State> state_;
};

/// Name and version of the MPI library.
std::string mpi_version();

}  // namespace convoy
