// SPDX-License-Identifier: Apache-2.0
#include "core/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"

namespace convoy {
namespace {

std::string csv(const std::vector<TableRow>& rows) {
  std::string text;
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += csv_field(row[i] == "-" ? "" : row[i]);
    }
    text += '\n';
  }
  return text;
}

/// Columns of equal width: the first to the left, the numbers to the right.
std::string columns(const std::vector<TableRow>& rows, bool markdown) {
  const std::vector<std::size_t> widths = column_widths(rows);
  const auto line = [&](const TableRow& row) {
    std::string text = markdown ? "|" : "";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += markdown ? " " : i == 0 ? "" : "  ";
      text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("{:>{}}", row[i], widths[i]);
      text += markdown ? " |" : "";
    }
    return text + '\n';
  };
  std::string text = line(rows.front());
  if (markdown) {
    TableRow rule;
    for (std::size_t i = 0; i < widths.size(); ++i)
      rule.push_back(std::string(widths[i] - 1, '-') + (i == 0 ? "-" : ":"));
    text += line(rule);
  }
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) text += line(*row);
  return text;
}

/// In Markdown a bar ends a field.
std::vector<TableRow> escaped(std::vector<TableRow> rows) {
  for (TableRow& row : rows)
    for (std::string& field : row)
      for (std::size_t at = 0; (at = field.find('|', at)) != std::string::npos; at += 2) field.insert(at, 1, '\\');
  return rows;
}

}  // namespace

std::vector<std::size_t> column_widths(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 3);
  for (const TableRow& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  return widths;
}

std::string table_text(const std::vector<TableRow>& rows, TableFormat format) {
  switch (format) {
    case TableFormat::csv:
      return csv(rows);
    case TableFormat::markdown:
      return columns(escaped(rows), true);
    case TableFormat::text:
      return columns(rows, false);
  }
  return {};
}

}  // namespace convoy
