// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "core/log.hpp"
#include "core/stop.hpp"
#include "preprocess/output.hpp"
#include "preprocess/prepare.hpp"

namespace convoy {
namespace {

constexpr std::size_t faults_shown = 10;  // of one file

/// Files that look like partitions, sorted: the same list on all ranks.
std::vector<std::string> list_partitions(const std::string& folder) {
  std::error_code reason;
  std::filesystem::directory_iterator entries(folder, reason);
  if (reason) fail(Exit::data, "cannot open the data folder '{}' ({}); check the path", folder, reason.message());
  std::vector<std::string> paths;
  for (const auto& entry : entries) {
    if (parse_partition_name(entry.path().filename().string()).partitions > 0) paths.push_back(entry.path().string());
  }
  if (paths.empty()) fail(Exit::data, "'{}' has no partitions (NAME-NNNNN-of-NNNNN.h5); check the path", folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// One fault a line; empty: none.
std::string check_file(const std::string& path) {
  try {
    std::string text;
    for (const auto& fault : find_faults(read_partition(path), faults_shown)) text += fault + "\n";
    return text;
  } catch (const Error& e) {
    // The advice after the semicolon is to run this command.
    const std::string what = e.what();
    return what.substr(0, what.rfind("; run convoy-preprocess verify")) + "\n";
  }
}

/// Faults between files: missing ones, mixed sets. Only where every single file is whole.
std::string check_splits(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<std::string> splits;
  for (const auto& path : paths) {
    const auto split = parse_partition_name(std::filesystem::path(path).filename().string()).split;
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.push_back(split);
  }
  std::string text;
  for (const auto& split : splits) {
    try {
      const DatasetInfo info = read_dataset_info(folder, split);
      log::info("{}: {} partitions, {} images: whole", split, info.partitions.size(), info.samples);
    } catch (const Error& e) {
      text += std::string(e.what()) + "\n";
    }
  }
  return text;
}

void print_faults(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    log::report_error(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

Exit verify(Communicator& comm, const VerifySpec& spec) {
  std::vector<std::string> paths;
  const Exit listed = comm.together("listing partitions", [&] {
    if (comm.rank() == 0) paths = list_partitions(spec.folder);
  });
  if (listed != Exit::ok) return listed;
  std::string list;
  for (const auto& path : paths) list += path + "\n";
  comm.broadcast(list, "list of partitions");
  paths.clear();
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = list.find('\n', begin);
    paths.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }

  std::string faults;
  const Exit checked = comm.together("checking partitions", [&] {
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < paths.size();
         i += static_cast<std::size_t>(comm.size())) {
      leave_if_stopped("checking partitions");
      faults += check_file(paths[i]);
    }
  });
  if (checked != Exit::ok) return checked;
  std::string all;
  for (const auto& text : comm.all_gather(faults, "faults found")) all += text;
  if (all.empty() && comm.rank() == 0) all = check_splits(paths, spec.folder);
  comm.broadcast(all, "faults found");
  if (all.empty()) return Exit::ok;
  if (comm.rank() == 0) {
    print_faults(all);
    log::report_error(
        fmt::format("'{}' is not whole ({} faults shown); run convoy-preprocess again with the same options: it "
                    "makes missing and damaged partitions anew",
                    spec.folder, std::count(all.begin(), all.end(), '\n')));
  }
  return Exit::data;
}

}  // namespace convoy
