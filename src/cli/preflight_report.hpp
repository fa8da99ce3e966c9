// SPDX-License-Identifier: Apache-2.0
// What the checks before a job find, as text and as JSON.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "engine/placement.hpp"

namespace convoy {

/// Something that would end the job (code) or harm it (Exit::ok: a warning), with the ranks that met it.
struct Finding {
  Exit code = Exit::ok;
  std::string text;
  std::vector<int> ranks;
};

/// A line of the report, and the same as JSON.
struct Fact {
  std::string name, text;
  std::map<std::string, Json> json;
};

struct Preflight {
  JobPlacement placement;
  std::vector<Fact> facts;        ///< on all ranks the same
  std::vector<Finding> findings;  ///< on all ranks the same
};

/// Collective. Adds what the ranks have found; what several found alike is one finding.
void share_findings(Communicator& communicator, const std::vector<Finding>& mine, Preflight& to);
/// The highest of the findings.
Exit code_of(const Preflight& preflight);
std::string text_of(const Preflight& preflight);
std::string json_of(const Preflight& preflight);
/// Runs a check of this rank alone; an error that it throws becomes a finding, with `code` if that is given.
template <class Check>
void attempt(std::vector<Finding>& findings, const Check& check, std::optional<Exit> code = {}) {
  try {
    check();
  } catch (const Error& e) {
    if (e.code() == Exit::communication) throw;
    findings.push_back({code.value_or(e.code()), e.what(), {}});
  } catch (const std::exception& e) {
    findings.push_back({Exit::internal, e.what(), {}});
  }
}

/// The text if all texts are equal, else what each group of ranks has.
std::string folded(const std::vector<std::string>& texts);

}  // namespace convoy
