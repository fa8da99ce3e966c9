// SPDX-License-Identifier: Apache-2.0
// What is looked at before a job: each check adds facts, and findings where something is wrong.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "engine/placement.hpp"

namespace convoy {

/// Something that would end the job (code) or harm it (Exit::ok: a warning), with the ranks that met it.
struct Finding {
  Exit code = Exit::ok;
  std::string text;
  std::vector<int> ranks;
};

/// A line of the report, and the same as JSON (a number, or a text that is JSON).
struct Fact {
  std::string name, text;
  std::map<std::string, std::string> json;  ///< values are JSON
};

struct Preflight {
  JobPlacement placement;
  std::vector<Fact> facts;        ///< on all ranks the same
  std::vector<Finding> findings;  ///< on all ranks the same
};

/// Collective. Adds the findings that ranks made each for itself; equal ones become one.
void share_findings(Communicator& communicator, const std::vector<Finding>& mine, Preflight& to);

/// Collective. Cores, threads, devices; ranks that share what they should not.
void check_places(Communicator& communicator, const DeviceConfig& config, Preflight& to);
/// Collective. Builds, MPI, links, speed of a sum, clocks.
void check_network(Communicator& communicator, Preflight& to);
/// Collective. Every rank opens the headers of all partitions.
void check_data(Communicator& communicator, const DataConfig& config, Preflight& to);
/// Collective. That all hosts see the run directory and can write there, how fast, and how much room there is.
void check_run_folder(Communicator& communicator, const TrainConfig& config, Preflight& to);

std::string text_of(const Preflight& preflight);
std::string json_of(const Preflight& preflight);
/// The worst finding.
Exit code_of(const Preflight& preflight);

}  // namespace convoy
