// SPDX-License-Identifier: Apache-2.0
// An ONNX file as data: operators, the places of its tensors, and its metadata. Nothing is interpreted here;
// onnx_network.hpp does that.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interchange/tensor_file.hpp"
#include "network/operations/onnx_operator.hpp"

namespace convoy {

struct OnnxTensor {
  std::string name;
  std::vector<Index> extent;
  int type = 0;       ///< as ONNX counts them: 1 float
  ValuesPlace place;  ///< little endian, row-major; empty: `values` has them
  std::vector<double> values = {};
};

struct OnnxNode {
  std::string name, type, domain;  ///< `Conv`; domain empty: ONNX's own operators
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  std::optional<OnnxTensor> constant;  ///< of a Constant
  /// Its name; the first of its outputs if it has none.
  const std::string& shown() const { return name.empty() && !outputs.empty() ? outputs.front() : name; }
};

/// A graph's input: n c h w, 0 for sides that are free.
struct OnnxInput {
  std::string name;
  std::vector<Index> extent;
};

struct OnnxFile {
  std::string producer, graph;
  Index opset = 0;  ///< the version of ONNX's own operators; 0: the file names none
  std::map<std::string, std::string> metadata;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxInput> inputs;
  std::vector<std::string> outputs;
};

/// Reads all but the values of tensors. Throws Error(data) that names the file if it is damaged, or larger than any
/// network's: what it allocates is bounded, whatever the file says.
OnnxFile read_onnx_file(const File& file);

/// How its values lie in the file; nothing: in a type that networks' tensors don't have.
std::optional<TensorType> type_of(const OnnxTensor& tensor);

}  // namespace convoy
