// SPDX-License-Identifier: Apache-2.0
#include "network/operations/onnx_operator.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/errors.hpp"

namespace convoy {

const OnnxAttribute* OnnxSite::find(const char* attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const OnnxAttribute& each) { return each.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

template <class Value>
Value OnnxSite::value(const char* attribute, const Value& otherwise) const {
  const OnnxAttribute* found = find(attribute);
  if (found == nullptr) return otherwise;
  if (const auto* value = std::get_if<Value>(&found->value)) return *value;
  fail(Exit::data, "node '{}' ({}) has an attribute '{}' of another type than ONNX gives it; export the file again",
       node, type, attribute);
}

Index OnnxSite::whole(const char* attribute, Index otherwise) const { return value(attribute, otherwise); }
float OnnxSite::real(const char* attribute, float otherwise) const { return value(attribute, otherwise); }
std::vector<Index> OnnxSite::wholes(const char* attribute, const std::vector<Index>& otherwise) const {
  return value(attribute, otherwise);
}
std::string OnnxSite::word(const char* attribute, const std::string& otherwise) const {
  return value(attribute, otherwise);
}

const OnnxConstant* OnnxSite::constant(const std::string& name) const {
  const auto found = constants.find(name);
  return found == constants.end() ? nullptr : &found->second;
}

Index OnnxSite::side(const std::string& name, std::size_t dimension) const {
  const OnnxConstant* found = constant(name);
  if (found == nullptr || found->extent.size() <= dimension)
    refuse(fmt::format("has no constant {} of at least {} dimensions", name, dimension + 1));
  const Index side = found->extent[dimension];
  // So that products of a side, groups and a window don't overflow.
  if (side < 1 || side > std::numeric_limits<std::int32_t>::max())
    refuse(fmt::format("has a {} with a side of {}", name, side));
  return side;
}

OnnxSite::Window OnnxSite::window(const std::vector<Index>& kernel) const {
  if (word("auto_pad", "NOTSET") != "NOTSET" && word("auto_pad", "NOTSET") != "VALID")
    refuse(fmt::format("has auto_pad {}", word("auto_pad", "")), "export it with numbers in pads");
  const std::vector<Index> sides = wholes("kernel_shape", kernel), strides = wholes("strides", {1, 1}),
                           dilations = wholes("dilations", {1, 1});
  const std::vector<Index> pads = wholes("pads", {0, 0, 0, 0});
  const auto fits = [](const std::vector<Index>& values, std::size_t count, Index least) {
    return values.size() == count &&
           std::all_of(values.begin(), values.end(), [&](Index value) { return value >= least && value <= most_side; });
  };
  if (!fits(sides, 2, 1)) refuse(fmt::format("has a window of {}", fmt::join(sides, " x ")));
  if (!fits(strides, 2, 1) || strides[0] != strides[1])
    refuse(fmt::format("has strides of {}", fmt::join(strides, " x ")));
  if (!fits(dilations, 2, 1) || dilations != std::vector<Index>{1, 1})
    refuse(fmt::format("has dilations of {}", fmt::join(dilations, " x ")));
  if (!fits(pads, 4, 0) || pads[0] != pads[2] || pads[1] != pads[3])
    refuse(fmt::format("has padding of {} (top, left, bottom, right)", fmt::join(pads, ", ")));
  const auto of = [](Index value) { return static_cast<int>(value); };
  return {of(sides[0]), of(sides[1]), of(strides[0]), of(pads[0]), of(pads[1])};
}

void OnnxSite::refuse_training() const {
  fail(Exit::data, "node '{}' ({}) is in training mode; export the network in evaluation mode (PyTorch: model.eval())",
       node, type);
}

void OnnxSite::refuse(const std::string& what, const std::string& remedy) const {
  fail(Exit::data, "node '{}' ({}) {}, which Convoy doesn't have; {}", node, type, what, remedy);
}

}  // namespace convoy
