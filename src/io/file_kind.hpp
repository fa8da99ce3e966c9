// SPDX-License-Identifier: Apache-2.0
// What a file is by its first bytes, for messages about a wrong file.
#pragma once
#include <string>
#include <string_view>

namespace convoy {

/// By the first bytes: a ZIP archive, as PyTorch's files are since 1.6.
bool begins_as_zip(std::string_view head);
/// By the first bytes: the length of a header below 4 GB, and its bracket.
bool begins_as_safetensors(std::string_view head);

/// By the first bytes: a Python pickle of protocol 2 to 5.
bool begins_as_pickle(std::string_view head);
/// By the first bytes: an ONNX model with its version first, as all writers put it.
bool begins_as_onnx(std::string_view head);
/// By the first bytes: a file that this program seals, damaged or not.
bool begins_as_sealed(std::string_view head);

/// `a JPEG image`; empty: unknown, or a file that this program seals. `head`: the first bytes, 512 or all of them.
std::string foreign_kind(std::string_view head);
/// The first bytes of a file, 512 or all of them; empty also if it can't be read.
std::string head_of_file(const std::string& path);
/// Of a file; empty also if it can't be read.
std::string foreign_kind_of_file(const std::string& path);

}  // namespace convoy
