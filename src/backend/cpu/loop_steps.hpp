// SPDX-License-Identifier: Apache-2.0
// Steps made of our own vector loops.
#pragma once
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

class EvaluateStep final : public Step {
 public:
  struct Spec {
    EvaluateArgs args;  ///< without addresses
    Operand first, second, out;
    const NormVectors *norm0 = nullptr, *norm1 = nullptr;
  };
  EvaluateStep(const KernelTable& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  const KernelTable& kernels_;
  Spec spec_;
};

class StatisticsStep final : public Step {
 public:
  struct Spec {
    Field field;
    Operand value, sums, squares;
    std::vector<int> norms;
    Index images = 0;
  };
  StatisticsStep(const KernelTable& kernels, Norms& norms, const Spec& spec)
      : kernels_(kernels), norms_(norms), spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;
  void close(const Memory& memory, int threads) override;

 private:
  const KernelTable& kernels_;
  Norms& norms_;
  Spec spec_;
};

class CollectStep final : public Step {
 public:
  struct Spec {
    CollectArgs args;  ///< without addresses
    Operand gradient, self, second, output, out, sums;
    Operand value[2], products[2];
    const NormVectors* through = nullptr;  ///< the norm that `gradient` comes through
    int norms[2] = {-1, -1};
    Index images = 0;
  };
  CollectStep(const KernelTable& kernels, Norms& norms, const Spec& spec)
      : kernels_(kernels), norms_(norms), spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;
  void close(const Memory& memory, int threads) override;

 private:
  const KernelTable& kernels_;
  Norms& norms_;
  Spec spec_;
};

enum class Way : std::uint8_t { forward, backward };

class PoolStep final : public Step {
 public:
  PoolStep(const KernelTable& kernels, Way way, const PoolArgs& args, Operand from, Operand to, Operand winners)
      : kernels_(kernels), way_(way), args_(args), from_(from), to_(to), winners_(winners) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  const KernelTable& kernels_;
  Way way_;
  PoolArgs args_;
  Operand from_, to_, winners_;
};

class LocalResponseStep final : public Step {
 public:
  /// No `dy`: forward, y to `to`; else dx to `to`.
  LocalResponseStep(const KernelTable& kernels, const LocalResponseArgs& args, Operand x, Operand dy, Operand to)
      : kernels_(kernels), args_(args), x_(x), dy_(dy), to_(to) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  const KernelTable& kernels_;
  LocalResponseArgs args_;
  Operand x_, dy_, to_;
};

/// The same forward and backward: a copy where the mask keeps, scaled, and zeros. Rate 0: a copy.
class DropoutStep final : public Step {
 public:
  struct Spec {
    Field field;
    float rate = 0;
    NodeId node = 0;
    Operand from, to;
  };
  DropoutStep(const Spec& spec, const StepParams& step) : spec_(spec), step_(step) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  Spec spec_;
  const StepParams& step_;
};

class GlobalPoolStep final : public Step {
 public:
  GlobalPoolStep(const KernelTable& kernels, Way way, const Field& x, Operand from, Operand to)
      : kernels_(kernels), way_(way), x_(x), from_(from), to_(to) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  const KernelTable& kernels_;
  Way way_;
  Field x_;
  Operand from_, to_;
};

/// Between fp32 and bf16 of the same strides.
class StorageStep final : public Step {
 public:
  StorageStep(const KernelTable& kernels, const Field& from_field, Operand from, Operand to)
      : kernels_(kernels), field_(from_field), from_(from), to_(to) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  const KernelTable& kernels_;
  Field field_;
  Operand from_, to_;
};

/// Between the order n c h w in fp32 (`plain`) and any field: flattening, and images that no convolution reads.
class OrderStep final : public Step {
 public:
  enum class To : std::uint8_t { plain, field };
  OrderStep(const Field& field, To to, Operand from, Operand out) : field_(field), to_(to), from_(from), out_(out) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  Field field_;
  To to_;
  Operand from_, out_;
};

}  // namespace convoy::cpu
