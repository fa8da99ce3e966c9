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

std::vector<OnnxOperators> Linear::onnx_forms() {
  return {{{"Flatten", {"x"}, {}, "flat"}, {"Gemm", {"flat", "weight", "bias"}}},
          {{"Gemm", {"x", "weight", "bias"}}},
          {{"MatMul", {"x", "weight"}, {}, "product"}, {"Add", {"product", "bias"}}},
          {{"MatMul", {"x", "weight"}}}};
}

std::optional<OnnxFound<Linear>> Linear::from_onnx(const OnnxSite& site) {
  // A Flatten of others is a layer of its own.
  if (site.form == 0 && site.inner != site.node + "/flat") return {};
  if (site.real("alpha", 1) != 1 || site.real("beta", 1) != 1 || site.whole("transA", 0) != 0)
    site.refuse("scales its terms, or transposes its input");
  const OnnxConstant* weight = site.constant("weight");
  if (weight == nullptr || weight->extent.size() != 2) site.refuse("multiplies by something else than a matrix");
  const OnnxConstant* bias = site.constant("bias");
  const bool transposed = site.form >= 2 || site.whole("transB", 0) == 0;
  const Index in = site.side("weight", transposed ? 0 : 1), out = site.side("weight", transposed ? 1 : 0);
  if (bias != nullptr && bias->extent != std::vector<Index>{out})
    site.refuse("adds something else than one number per output");
  return {{{.in = in, .out = out, .bias = bias != nullptr}, transposed}};
}

}  // namespace convoy
