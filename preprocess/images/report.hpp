// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "preprocess/images/findings.hpp"
#include "preprocess/prepare_spec.hpp"

namespace convoy::preparation {

FindingCounts count_findings(const std::vector<Note>& notes);

/// What was read, converted and skipped, with the first names of each kind: lines for the console.
std::vector<std::string> report_table(Index images_read, const std::vector<Note>& notes);

/// All notes as lines `kind TAB name TAB detail`, under their final name only when whole.
void write_report(const std::string& path, const std::vector<Note>& notes);

/// Throws Error(data) where `strict` forbids what was found, naming the first of them.
void require_strict(Strict strict, const std::vector<Note>& notes, const std::string& report_path);

}  // namespace convoy::preparation
