// SPDX-License-Identifier: Apache-2.0
// Steps that take the whole batch at once: input, linear layers, loss.
#pragma once
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

class InputStep final : public Step {
 public:
  InputStep(InputSpec input, Index height, Index width, Operand x)
      : input_(std::move(input)), height_(height), width_(width), x_(x) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  InputSpec input_;
  Index height_, width_;
  Operand x_;
};

/// y = x w^T + bias, fp32; x is [n][in], w [out][in].
class LinearStep final : public Step {
 public:
  struct Spec {
    Index images = 0, in = 0, out = 0;
    Range weight, bias;  ///< in the values block; bias may be empty
    Operand x, y;
  };
  explicit LinearStep(const Spec& spec) : spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;
  std::string describe() const override { return "sgemm"; }

 private:
  Spec spec_;
};

/// dw = dy^T x, dbias = sum dy, dx = dy w.
class LinearGradientStep final : public Step {
 public:
  struct Spec {
    LinearStep::Spec forward;  ///< y is dy
    Operand dx;                ///< may be missing
    bool weight_trains = true, bias_trains = true;
  };
  explicit LinearGradientStep(const Spec& spec) : spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;
  std::string describe() const override { return "sgemm"; }

 private:
  Spec spec_;
};

class LossStep final : public Step {
 public:
  struct Spec {
    Index classes = 0;
    float smoothing = 0;
    int topk = 5;
    Operand logits, gradient;  ///< gradient may be missing
  };
  LossStep(const Spec& spec, Counters& counters) : spec_(spec), counters_(counters) {}
  bool run(const Memory& memory, const Tile& tile) override;

 private:
  Spec spec_;
  Counters& counters_;
};

}  // namespace convoy::cpu
