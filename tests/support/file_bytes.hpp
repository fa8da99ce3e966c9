// SPDX-License-Identifier: Apache-2.0
// Whole files as texts, and single damaged bytes.
#pragma once
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace convoy {

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// Flips the bits of `mask` in one byte.
inline void flip_byte(const std::string& path, std::size_t at, unsigned char mask = 1) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ mask));
  if (!file || byte < 0) throw std::runtime_error("cannot flip a byte of " + path);
}

}  // namespace convoy
