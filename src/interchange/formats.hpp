// SPDX-License-Identifier: Apache-2.0
// What tensor_file.cpp knows of each format.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "interchange/tensor_file.hpp"

namespace convoy {

struct TensorIndex {
  std::vector<StoredValues> tensors;
  std::map<std::string, std::string> metadata;
  std::string section;  ///< PyTorch: the key under which the tensors lie, `state_dict`; empty: the root
  std::vector<std::string> other_sections;
};

/// The product of the extent. Throws Error(data), naming `what`, if a side is negative or the product exceeds `most`.
Index checked_count(const std::vector<Index>& extent, std::uint64_t most, const std::string& what);
/// Of a tensor whose values aren't read: empty if it is none, or of more than `most` elements. It must not decide how
/// large a network is made to see whether it fits.
std::vector<Index> plausible_extent(std::vector<Index> extent, std::uint64_t most);
std::vector<Index> row_major(const std::vector<Index>& extent);

/// All ranges that they return lie in the file. Throw Error(data).
TensorIndex read_safetensors_index(const File& file);
/// `key`: of the dictionary that is read; empty: the first of those that training programs write, averages first.
TensorIndex read_pth_index(const File& file, const std::string& key);

/// Of a place in this file that holds one tensor in row-major order, rounded to fp32.
std::vector<float> read_in_order(const File& file, const StoredValues& tensor);

/// As the tensor is stored: fp32, or int64.
std::string bytes_of(const NamedTensor& tensor);

}  // namespace convoy
