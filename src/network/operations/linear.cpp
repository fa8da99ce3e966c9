// SPDX-License-Identifier: Apache-2.0
#include "network/operations/linear.hpp"

#include <fmt/core.h>

#include "core/errors.hpp"

namespace convoy {

Shape Linear::shape(const NodeInputs& inputs) const {
  const Index values = inputs.first().count();
  if (values != in)
    fail(Exit::usage,
         "node '{}' takes {} values but gets {} (images of {} x {}); build the network for this image size",
         inputs.node, in, values, inputs.image.h, inputs.image.w);
  return {out};
}

Contract Linear::contract() const {
  Contract contract{.parameters = {{"weight", Kind::weight, {out, in}}}, .possible = in > 0 && out > 0};
  if (bias) contract.parameters.push_back({"bias", Kind::bias, {out}});
  return contract;
}

std::string Linear::text() const { return fmt::format("linear {} -> {}{}", in, out, bias ? ", bias" : ""); }

OnnxOperators Linear::onnx(const NodeInputs&) const {
  OnnxOperator gemm{"Gemm", {"flat", "weight"}, {{"transB", Index{1}}}};
  if (bias) gemm.reads.emplace_back("bias");
  return {{"Flatten", {"x"}, {}, "flat"}, gemm};
}

double Linear::macs(const Shape&) const { return static_cast<double>(in) * static_cast<double>(out); }

}  // namespace convoy
