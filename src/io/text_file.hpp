// SPDX-License-Identifier: Apache-2.0
// Small files as whole texts.
#pragma once
#include <optional>
#include <string>

namespace convoy {

/// Nothing: there is no such file. Throws Error(data) where it can't be read.
std::optional<std::string> text_of_file(const std::string& path);

/// Writes it whole, in place of what was there. Throws Error(data); an incomplete file may then be left.
void write_text_file(const std::string& path, const std::string& text);

/// By way of `path` + `suffix` and rename: a reader sees the old text or the new one. Throws Error(data); the old text
/// is then still there.
void replace_text_file(const std::string& path, const std::string& text, const std::string& suffix = ".tmp");

/// False: the file was there already, whoever made it; of several processes on any hosts one gets true. Throws
/// Error(data) where it can't be made.
bool create_text_file(const std::string& path, const std::string& text);

}  // namespace convoy
