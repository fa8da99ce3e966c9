// SPDX-License-Identifier: Apache-2.0
// Tables for people and for other programs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

enum class TableFormat : std::uint8_t { text, markdown, csv };

using TableRow = std::vector<std::string>;

/// Characters of the widest field of each column, at least 3.
std::vector<std::size_t> column_widths(const std::vector<TableRow>& rows);

/// The first row is the heading; `-` stands for no value and is an empty field of csv. In the others the first column
/// is aligned left, the rest, mostly numbers, right.
std::string table_text(const std::vector<TableRow>& rows, TableFormat format);

}  // namespace convoy
