// SPDX-License-Identifier: Apache-2.0
// What a host says of itself, from /sys, /proc and statvfs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace convoy {

/// Network interfaces that are up (`eth0 25 Gb/s`; the loopback apart) and InfiniBand ports that are active (`mlx5_0
/// port 1 200 Gb/s`), sorted. `root` is put before /sys, for tests.
std::vector<std::string> network_links(const std::string& root = "");

struct Room {
  double free_bytes = 0, total_bytes = 0;
  double free_files = -1;  ///< < 0: the file system does not count them
};
/// Returns the room of the file system that holds `path`, for this user; all 0 if it can't be asked.
Room room_at(const std::string& path);

/// Bytes that new work may use; 0: not known.
double available_memory(const std::string& root = "");

/// Bytes that this process and its neighbours may use in all: what the host has, or less where a control group (v1 or
/// v2) of this process limits it; 0: not known.
double memory_limit(const std::string& root = "");

/// The largest resident memory of this process so far, in bytes.
double peak_memory();

/// The version of NVIDIA's kernel driver, `535.104.05`; empty: there is none.
std::string nvidia_driver(const std::string& root = "");

/// The variables among `environment` (NAME=VALUE, ends with null) that decide how a job runs: of MPI, NCCL, UCX,
/// OpenMP, schedulers and modules, without those whose names suggest a secret.
std::map<std::string, std::string> job_variables(const char* const* environment);

}  // namespace convoy
