// SPDX-License-Identifier: Apache-2.0
#include "network/operations/flatten.hpp"

namespace convoy {

Shape Flatten::shape(const NodeInputs& inputs) const { return {inputs.first().count()}; }
Contract Flatten::contract() const { return {}; }
std::string Flatten::text() const { return "flatten"; }

OnnxOperators Flatten::onnx(const NodeInputs&) const { return {{"Flatten"}}; }

std::vector<OnnxOperators> Flatten::onnx_forms() {
  return {{{"Flatten"}}, {{"Reshape", {"x", "shape"}}}, {{"Squeeze", {"x", "axes"}}}};
}

std::optional<OnnxFound<Flatten>> Flatten::from_onnx(const OnnxSite& site) {
  if (site.type == "Flatten") {
    if (site.whole("axis", 1) != 1) site.refuse("doesn't flatten all but the images");
    return OnnxFound<Flatten>{};
  }
  if (site.type == "Squeeze") {
    std::vector<Index> axes = site.wholes("axes", {});
    if (const OnnxConstant* given = site.constant("axes")) axes.assign(given->values.begin(), given->values.end());
    if (axes != std::vector<Index>{2, 3} && axes != std::vector<Index>{-2, -1} && axes != std::vector<Index>{-1, -2})
      site.refuse("drops other dimensions than height and width");
    return OnnxFound<Flatten>{};
  }
  const OnnxConstant* shape = site.constant("shape");
  if (shape == nullptr || shape->values.size() != 2) site.refuse("makes another shape than images x values");
  return OnnxFound<Flatten>{};
}

}  // namespace convoy
