// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "preprocess/images/findings.hpp"
#include "preprocess/images/survey.hpp"
#include "preprocess/prepare_spec.hpp"

namespace convoy::preparation {

FindingCounts count_findings(const std::vector<Note>& notes);

/// What was read, converted and skipped, with the first names of each kind: lines for the console.
std::vector<std::string> report_table(Index images_read, const std::vector<Note>& notes);

/// Describes the classes and how many images each has in each split: lines for the console.
std::vector<std::string> class_table(const Survey& survey);
/// Names the classes without images in a split, of which training would learn or validation tell nothing; empty: none.
std::vector<std::string> class_warnings(const Survey& survey);

/// All notes as lines `kind TAB name TAB detail`, under their final name only when whole.
void write_report(const std::string& path, const std::vector<Note>& notes);

/// Throws Error(data) where `strict` forbids what was found, naming the first of `notes` if they are at hand.
void require_strict(Strict strict, const FindingCounts& counts, const std::string& report_path,
                    const std::vector<Note>& notes = {});

}  // namespace convoy::preparation
