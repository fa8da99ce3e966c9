// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "core/types.hpp"
#include "core/wire.hpp"

namespace convoy {

/// A point in a device's queue. Owned by the Device; only its module looks inside. 0 = already passed.
struct Event {
  std::uint64_t id = 0;
};

/// The second queue of a device, for all that moves between ranks while the first one computes: NCCL's work, or copies
/// to and from host memory of allocate_host. Never captured unless Collectives::capturable says so.
class CommunicationQueue {
 public:
  CommunicationQueue() = default;
  CommunicationQueue(const CommunicationQueue&) = delete;
  CommunicationQueue& operator=(const CommunicationQueue&) = delete;
  virtual ~CommunicationQueue() = default;

  /// A cudaStream_t.
  virtual void* stream() = 0;
  /// True while what is queued is being captured: its events mark places in the graph, and can't be asked for.
  virtual bool capturing() const { return false; }
  /// Frees all captured graphs, those of the device's own queue too; one that runs is freed when it has run. A
  /// communicator of NCCL can't be ended before: its abort waits, for ever, until no graph holds its sums.
  virtual void forget_graphs() noexcept {}
  /// What is queued here from now on starts after `event` of the device's own queue.
  virtual void follow(Event event) = 0;
  /// The end of the work queued here so far: for Device::follow and Device::done.
  virtual Event record() = 0;
  virtual void download(float* host, const float* from, Index n) = 0;
  virtual void upload(float* to, const float* host, Index n) = 0;
  virtual void copy(float* to, const float* from, Index n) = 0;
  /// As Device::add.
  virtual void add(float* to, const float* from, Index n) = 0;
  /// As Device::round.
  virtual void round(float* values, Index n, Wire wire) = 0;
  /// Between floats and 16 bits; `wire` says which, and is not fp32.
  virtual void narrow(std::uint16_t* to, const float* from, Index n, Wire wire) = 0;
  virtual void widen(float* to, const std::uint16_t* from, Index n, Wire wire) = 0;
};

/// All that comm may know of a backend: memory, flat kernels and events. Everything is queued in order and returns at
/// once (a CPU may be done on return).
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// Set-up only. 64-byte aligned, zeroed, freed with the Device. Throws Error(device) when memory is out.
  virtual float* allocate(Index floats) = 0;
  /// Set-up only. Host memory that download and upload move at full speed and without waiting; 64-byte aligned, freed
  /// with the Device. Null: any host memory will do.
  virtual float* allocate_host(Index floats) {
    static_cast<void>(floats);
    return nullptr;
  }
  /// Null where there is no second queue.
  virtual CommunicationQueue* communication() { return nullptr; }
  /// Names the physical device among all of the host (a GPU's UUID). Empty: shared by nature, as cores are.
  virtual std::string identity() const { return {}; }
  /// Names the card, among those of the host, that the device is a part of: slices of one GPU (MIG) have identities of
  /// their own on one card. Empty as identity() is.
  virtual std::string card() const { return identity(); }
  /// True: the host may use device pointers once the event that wrote them is done.
  virtual bool host_reads() const = 0;
  /// The end of the work queued so far.
  virtual Event record() = 0;
  /// Never blocks; comm polls it under its deadline.
  virtual bool done(Event event) = 0;
  /// The queue waits for a communication event (NCCL).
  virtual void follow(Event event) = 0;
  /// host[0..n) = from[0..n), after `after`.
  virtual Event download(float* host, const float* from, Index n, Event after) = 0;
  /// to[0..n) = host[0..n); host memory may be reused after the event.
  virtual Event upload(float* to, const float* host, Index n) = 0;
  /// to = factor * from.
  virtual void copy(float* to, const float* from, Index n, float factor) = 0;
  /// to = fl(to + from): one IEEE addition an element, so that trees of additions are reproducible.
  virtual void add(float* to, const float* from, Index n) = 0;
  virtual void fill(float* to, Index n, float value) = 0;
  /// Each value becomes the nearest that the wire can hold, as core/wire.hpp says; `wire` is not fp32.
  virtual void round(float* values, Index n, Wire wire) = 0;
};

}  // namespace convoy
