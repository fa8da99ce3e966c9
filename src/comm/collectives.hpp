// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/errors.hpp"
#include "core/replicas.hpp"

namespace convoy {

class Communicator;

/// The sum of replicas [first, first + size). In reproducible sums a node of the fixed tree (core/replicas.hpp),
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
  /// 16 bits: every rank's sum is rounded to them once and the result once more, additions are in fp32; but NCCL itself
  /// adds in bf16, and rounds wherever it does. In reproducible sums every node of the tree is rounded, the leaves too,
  /// on one rank as on many. Parts may be rounded in place.
  Wire wire = Wire::fp32;
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
  /// Collective. The messages of all ranks, in host memory, one behind the other in the order of ranks; `bytes`: of
  /// each. Returns when they are there. Only MPI's collectives can.
  virtual void gather(std::span<const std::byte> /*own*/, std::span<std::byte> /*all*/, std::span<const int> /*bytes*/,
                      const char* what) {
    fail(Exit::internal, "{}: these collectives only sum", what);  // here, since NCCL's module links nothing of comm
  }
  /// Collective. The last call, if nothing has failed: a rank's memory must stay until its peers have read it.
  virtual void end() {}
  /// Seconds spent waiting in finish() and await() since the last call.
  virtual double take_wait_seconds() = 0;
  /// Bytes of sums and messages that this rank has sent to others; for an all-reduce of the MPI library or in shared
  /// memory what a ring sends. Nothing if sums may be replayed without a call that could count them.
  virtual std::optional<Index> sent_bytes() const { return std::nullopt; }
};

/// What MPI is given of a device whose memory the host can't read: a copy in host memory, or the memory itself, which
/// crashes unless mpi_takes_device_memory().
enum class MpiMemory : std::uint8_t { host, device };

/// What adds in fp32 if all ranks of a sum are on one host: the MPI library, or Convoy in memory that they share. If
/// they can share none, the library adds, or making the collectives throws Error(usage).
enum class HostSums : std::uint8_t { library, shared_memory, shared_memory_only };

struct CollectivesSpec {
  int replicas = 1;  ///< W
  bool reproducible =
      false;  ///< sums follow the fixed binary tree over replicas: the same bits for any number of ranks
  Index chunk_floats = 1 << 28;  ///< one MPI call moves at most this many (below INT_MAX; tests set 3)
  Index max_count = 0;           ///< largest Reduction::count to come: buffers are made once
  Wire wire = Wire::fp32;        ///< the other format in which reductions may travel
  Index max_wire_count = 0;      ///< largest count of those to come; 0: max_count
  bool gathers = false;          ///< gather() will be called
  MpiMemory memory = MpiMemory::host;
  HostSums host_sums = HostSums::library;
  double delay_seconds = 0;  ///< for tests of overlap: a reduction is not done earlier than this after its start
};

/// Collective. Over MPI; device memory that the host can't read is staged through download and upload.
std::unique_ptr<Collectives> make_mpi_collectives(Communicator& communicator, Device& device,
                                                  const CollectivesSpec& spec);

/// True where the MPI library says that it takes pointers to a GPU's memory.
bool mpi_takes_device_memory();

/// What moves the sums.
enum class Transport : std::uint8_t { mpi, nccl };

/// What the ranks compute on, alike on all of them.
struct RankDevices {
  std::vector<std::string> identities;  ///< Device::identity of every rank
  std::string nccl_problem;             ///< why NCCL can't be used, with the rank that lacks it; empty: it can
  std::string sharing_problem;          ///< why the ranks can't share memory; empty: they can
  bool mpi_takes_memory = false;        ///< mpi_takes_device_memory() on all of them
  std::vector<std::string> cards;       ///< host and Device::card of every rank; empty: every device is a card
};

/// Collective. Opens NCCL's module if every rank has a device, and tries to share memory.
RankDevices find_devices(Communicator& communicator, const Device& device);
/// True if every rank receives its slices from all others and adds them itself: MPI knows no 16-bit floats, and NCCL's
/// own sums in fp16 could exceed its range, which nobody would notice.
constexpr bool adds_in_tree(Transport transport, bool reproducible, Wire wire) {
  return reproducible || wire == Wire::fp16 || (wire == Wire::bf16 && transport == Transport::mpi);
}

struct TransportWish {
  std::string backend = "auto";  ///< auto, mpi, shared, nccl
  bool in_tree = false;          ///< adds_in_tree() of MPI: then nothing is added in shared memory
  MpiMemory memory = MpiMemory::host;
};

struct TransportChoice {
  Transport transport = Transport::mpi;
  MpiMemory memory = MpiMemory::host;
  HostSums host_sums = HostSums::library;
  std::string reason;   ///< for the log: what was taken and why
  std::string warning;  ///< what the user should know; mostly empty
};

/// Chooses by what the user wants and find_devices says, so alike on all ranks. auto takes NCCL if there are several
/// ranks, each has a GPU of its own, and NCCL is there; otherwise MPI, which inside a host adds in shared memory.
/// Throws Error(device) if what is asked for is not possible, for `shared` Error(usage).
TransportChoice choose_transport(const TransportWish& wish, const RankDevices& devices);

/// Collective. By NCCL, which has a module of its own: a machine with one GPU needs no NCCL.
std::unique_ptr<Collectives> make_nccl_collectives(Communicator& communicator, Device& device,
                                                   const CollectivesSpec& spec);

/// Collective.
inline std::unique_ptr<Collectives> make_collectives(const TransportChoice& choice, Communicator& communicator,
                                                     Device& device, CollectivesSpec spec) {
  spec.memory = choice.memory;
  spec.host_sums = choice.host_sums;
  return choice.transport == Transport::nccl ? make_nccl_collectives(communicator, device, spec)
                                             : make_mpi_collectives(communicator, device, spec);
}

/// The part of a reduction that one rank can do alone, queued on its device.
class LocalSum {
 public:
  LocalSum(Device& device, std::vector<TreeNode> nodes, bool reproducible)
      : device_(device), nodes_(std::move(nodes)), reproducible_(reproducible) {}

  const std::vector<TreeNode>& nodes() const { return nodes_; }

  /// out = sum of this rank's parts. From the last one back, which for the nodes of all replicas is the order of the
  /// tree. False: there was nothing to do.
  bool add(const Reduction& reduction) const;
  /// The parts of a reproducible sum are the nodes of this rank's run.
  void require_tree(std::span<const Part> parts) const;

 private:
  Device& device_;
  std::vector<TreeNode> nodes_;
  bool reproducible_;
};

}  // namespace convoy
