// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy {

/// What a communication queue is besides, where its work may become part of captured graphs. A communicator of NCCL
/// can't be ended before them: its abort waits, for ever, until no graph holds its sums.
class CapturedGraphs {
 public:
  CapturedGraphs() = default;
  CapturedGraphs(const CapturedGraphs&) = delete;
  CapturedGraphs& operator=(const CapturedGraphs&) = delete;
  virtual ~CapturedGraphs() = default;

  /// Frees all graphs, those of the device's own queue too; one that runs is freed when it has run.
  virtual void forget_graphs() noexcept = 0;
};

}  // namespace convoy
