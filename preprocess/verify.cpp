// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/log.hpp"
#include "core/stop.hpp"
#include "core/text.hpp"
#include "preprocess/fields.hpp"
#include "preprocess/output.hpp"
#include "preprocess/partition_folders.hpp"
#include "preprocess/prepare.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t faults_shown = 10;  // of one file

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
std::string check_splits(const std::vector<std::string>& folders) {
  std::string text;
  for (const auto& folder : folders) {
    std::set<std::string> splits;
    for (const auto& path : list_partitions(folder)) {
      splits.insert(parse_partition_name(std::filesystem::path(path).filename().string()).split);
    }
    const std::string of = folders.size() > 1 ? std::filesystem::path(folder).filename().string() + "/" : "";
    std::string first;
    for (const auto& split : splits) {
      try {
        const DatasetInfo info = read_dataset_info(folder, split);
        log::info("{}{}: {}, {}: whole", of, split, counted(info.partitions.size(), "partition"),
                  counted(info.samples, "image"));
        if (first.empty()) first = info.partitions.front().path;
        require_same_set(read_partition(first), read_partition(info.partitions.front().path));
      } catch (const Error& e) {
        text += std::string(e.what()) + "\n";
      }
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
  std::vector<std::string> folders, paths;
  const Exit listed = comm.agreed_exit("listing partitions", [&] {
    if (comm.rank() != 0) return;
    folders = partition_folders(spec.folder);
    for (const auto& folder : folders) {
      for (auto& path : list_partitions(folder)) paths.push_back(std::move(path));
    }
  });
  if (listed != Exit::ok) return listed;
  std::string list = to_text(paths);
  comm.broadcast(list, "list of partitions");
  from_text(list, paths);

  std::string faults;
  const Exit checked = comm.agreed_exit("checking partitions", [&] {
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < paths.size();
         i += static_cast<std::size_t>(comm.size())) {
      leave_if_stopped("checking partitions");
      faults += check_file(paths[i]);
    }
  });
  if (checked != Exit::ok) return checked;
  std::string all;
  for (const auto& text : comm.all_gather(faults, "faults found")) all += text;
  if (all.empty() && comm.rank() == 0) all = check_splits(folders);
  comm.broadcast(all, "faults found");
  if (all.empty()) return Exit::ok;
  if (comm.rank() == 0) {
    print_faults(all);
    log::report_error(fmt::format(
        "'{}' is not whole ({} shown); run convoy-preprocess again with the same options: it makes missing and damaged partitions anew",
        spec.folder, counted(std::count(all.begin(), all.end(), '\n'), "fault")));
  }
  return Exit::data;
}

}  // namespace convoy::preparation
