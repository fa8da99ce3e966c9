// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/shard.hpp"
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

/// One rank's part of the source: a shard, and where to go on in it.
struct PendingShard {
  Index shard = 0;  ///< number in the scan
  Index from = -1;  ///< position; -1: its beginning
  Index left = 0;   ///< weight still to read, for progress
};

struct SpillProgress {
  std::int64_t images = 0, bytes = 0, weight = 0;  ///< decoded so far; weight: of shards, as far as they are
};

/// Reads, processes and spills a rank's shards on threads of its own: one reader, several that process. Images are
/// collected into runs of bounded size; whichever thread completes one writes it.
class Spiller {
 public:
  struct Spec {
    const PrepareSpec* prepare = nullptr;
    const std::vector<Shard>* shards = nullptr;
    std::vector<PendingShard> pending;  ///< sorted as they are read
    std::string folder;                 ///< folder of the runs
    int threads = 1;                    ///< threads that process
  };
  /// Begins at once. `splits` is used by the reader alone until the end.
  Spiller(Spec spec, std::vector<OpenSplit>& splits);
  /// Stops and waits.
  ~Spiller();
  Spiller(const Spiller&) = delete;
  Spiller& operator=(const Spiller&) = delete;

  bool finished() const;
  bool failed() const;
  SpillProgress progress() const;
  /// No further image is read; those that were are still written, so that they needn't be read again.
  void stop();
  /// Waits for the end; throws what went wrong.
  void join();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace convoy::preparation
