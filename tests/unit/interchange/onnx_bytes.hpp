// SPDX-License-Identifier: Apache-2.0
// ONNX files of other programs, as bytes: a second writer, by the definition of the wire format.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace convoy::onnx_bytes {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U) bytes += static_cast<char>(value | 128U);
  return bytes + static_cast<char>(value);
}
inline std::string whole(int tag, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(tag) << 3U) + varint(static_cast<std::uint64_t>(value));
}
inline std::string part(int tag, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(tag) << 3U | 2U) + varint(bytes.size()) + bytes;
}
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline std::string real(int tag, float value) {
  return varint(static_cast<std::uint64_t>(tag) << 3U | 5U) + raw(std::vector<float>{value});
}

inline std::string attribute(const std::string& name, Index value) {
  return part(5, part(1, name) + whole(3, value) + whole(20, 2));
}
inline std::string attribute(const std::string& name, float value) {
  return part(5, part(1, name) + real(2, value) + whole(20, 1));
}
inline std::string attribute(const std::string& name, int value) { return attribute(name, Index{value}); }
inline std::string attribute(const std::string& name, const char* value) {
  return part(5, part(1, name) + part(4, value) + whole(20, 3));
}
inline std::string attribute(const std::string& name, const std::vector<Index>& values) {
  std::string packed;
  for (const Index value : values) packed += varint(static_cast<std::uint64_t>(value));
  return part(5, part(1, name) + part(8, packed) + whole(20, 7));
}

/// A node with one output, which names it too.
inline std::string node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output,
                        const std::string& attributes = {}) {
  std::string bytes;
  for (const std::string& input : inputs) bytes += part(1, input);
  return part(1, bytes + part(2, output) + part(3, output) + part(4, type) + attributes);
}
inline std::string dims(const std::vector<Index>& extent) {
  std::string bytes;
  for (const Index side : extent) bytes += whole(1, side);
  return bytes;
}
inline std::string floats(const std::string& name, const std::vector<Index>& extent, const std::vector<float>& values) {
  return part(5, dims(extent) + whole(2, 1) + part(8, name) + part(9, raw(values)));
}
inline std::string numbers(const std::string& name, const std::vector<std::int64_t>& values) {
  return part(5, dims({static_cast<Index>(values.size())}) + whole(2, 7) + part(8, name) + part(9, raw(values)));
}
/// Of the graph's input or output.
inline std::string value(int tag, const std::string& name, const std::vector<Index>& extent) {
  std::string sides = part(1, part(2, "n"));
  for (const Index side : extent) sides += part(1, whole(1, side));
  return part(tag, part(1, name) + part(2, part(1, whole(1, 1) + part(2, sides))));
}
inline std::string opset(Index version, const std::string& domain = {}) {
  return part(8, (domain.empty() ? domain : part(1, domain)) + whole(2, version));
}
inline std::string model(const std::string& graph, const std::string& opsets = opset(13)) {
  return whole(1, 8) + part(2, "pytorch") + part(7, graph + part(2, "main_graph")) + opsets;
}
/// Nodes from `image` (1 x 4 x 4) to `logits`, and constants.
inline std::string network(const std::string& parts, const std::string& opsets = opset(13)) {
  return model(parts + value(11, "image", {1, 4, 4}) + value(12, "logits", {2}), opsets);
}

}  // namespace convoy::onnx_bytes
