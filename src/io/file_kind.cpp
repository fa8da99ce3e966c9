// SPDX-License-Identifier: Apache-2.0
#include "io/file_kind.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>

namespace convoy {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t at;
  std::string_view bytes;
  const char* kind;
};

constexpr std::array signatures{
    Signature{0, "\xFF\xD8\xFF"sv, "a JPEG image"},
    Signature{0, "\x89PNG"sv, "a PNG image"},
    Signature{8, "WEBP"sv, "a WebP image"},
    Signature{0, "GIF8"sv, "a GIF image"},
    Signature{0, "II*\0"sv, "a TIFF image"},
    Signature{0, "MM\0*"sv, "a TIFF image"},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file of another program"},
    Signature{0, "\x93NUMPY"sv, "a NumPy array"},
    Signature{0, "\x1f\x8b"sv, "a gzip archive"},
    Signature{0,
              "\xFD"
              "7zXZ"sv,
              "an xz archive"},
    Signature{257, "ustar"sv, "a tar archive"},
};

bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 32 || byte == '\n' || byte == '\r' || byte == '\t';
}

}  // namespace

bool begins_as_zip(std::string_view head) { return head.starts_with("PK\3\4"sv); }

bool begins_as_safetensors(std::string_view head) {
  return head.size() > 8 && head.substr(4).starts_with("\0\0\0\0{"sv);
}

bool begins_as_pickle(std::string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool begins_as_onnx(std::string_view head) {
  // Protocol buffers: field 1, a version below 128; then the producer's name, the graph or the operator sets.
  return head.size() > 3 && head[0] == '\x08' && head[1] > 0 &&
         (head[2] == '\x12' || head[2] == '\x3A' || head[2] == '\x42');
}

bool begins_as_sealed(std::string_view head) { return head.starts_with("CONVOYSL"sv); }

std::string foreign_kind(std::string_view head) {
  if (begins_as_onnx(head)) return "an ONNX model";
  if (begins_as_zip(head)) return "a ZIP archive, as PyTorch's .pth files are";
  if (begins_as_safetensors(head)) return "a safetensors file";
  if (begins_as_pickle(head)) return "a Python pickle, as older .pth files of PyTorch are";
  for (const Signature& known : signatures)
    if (head.size() >= known.at && head.substr(known.at).starts_with(known.bytes)) return known.kind;
  if (!head.empty() && !begins_as_sealed(head) && std::all_of(head.begin(), head.end(), is_text)) return "a text file";
  return {};
}

std::string head_of_file(const std::string& path) {
  std::array<char, 512> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return {head.data(), static_cast<std::size_t>(file.gcount())};
}

std::string foreign_kind_of_file(const std::string& path) { return foreign_kind(head_of_file(path)); }

}  // namespace convoy
