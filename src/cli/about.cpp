// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/factory.hpp"
#include "comm/communicator.hpp"
#include "core/version.hpp"
#include "io/hdf5.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

constexpr const char* exit_codes =
    "\nExit codes:\n"
    "   0  done\n"
    "   1  internal error, or a loss that is not finite\n"
    "   2  wrong usage or configuration\n"
    "   3  data missing, damaged or of the wrong form; output that cannot be written\n"
    "   4  device or library\n"
    "   5  communication failed or stalled\n"
    "   6  superseded: a newer attempt continues this run, so do not resubmit\n"
    "  75  stopped on request (SIGUSR1, SIGINT, SIGTERM, time limit) after a checkpoint: resubmit with --resume auto\n";

struct About {
  const char* usage;
  const char* text;
};

About about(const std::string& command) {
  if (command == "train") {
    return {
        "mpirun -np N convoy train --data DIR [options]",
        "Trains a network on the ranks of an MPI job. One rank, without mpirun, works the same way.\n"
        "A file for --config uses the same names as keys ('batch-size = 64'), true or false for switches, and sections\n"
        "for training phases: [phase.1] with 'epochs = 0:5' and 'lr = 0.1:0.4' (or one learning rate). Lists are\n"
        "comma-separated. Underscores in names are read as hyphens. Every switch has a --no- form."};
  }
  if (command == "evaluate") {
    return {"mpirun -np N convoy evaluate PATH --data DIR [options]",
            "Evaluates a checkpoint exactly: the same counts for any number of ranks. PATH is a checkpoint file, its\n"
            "folder or a run directory (its best checkpoint)."};
  }
  if (command == "predict") {
    return {
        "mpirun -np N convoy predict CHECKPOINT IMAGE ... [options]",
        "Lists the most likely classes of images with their probabilities, the same for any number of ranks. IMAGE is an\n"
        "image file, a folder of image files, or (alone) a folder that convoy-preprocess wrote or one of its partitions.\n"
        "Files that are not images are named and counted. If no file is an image, the exit code is 3."};
  }
  if (command == "bench") {
    return {
        "mpirun -np N convoy bench compute|scaling|io|comm [options]",
        "Measures one part alone. compute: training steps on images in memory; scaling: the same on 1, 2, 4 ... ranks of the\n"
        "job; io: reading and preparing data without training; comm: all-reduces over the ranks."};
  }
  if (command == "preflight") {
    return {
        "mpirun -np N convoy preflight --data DIR --output-dir DIR [options]",
        "Checks what a job needs before it starts. Use the launch line and the options of the job. For each rank it prints\n"
        "host, device, cores, NUMA nodes and threads. It checks the network, MPI and clocks, whether all ranks can read the\n"
        "data set, and whether all hosts can write the run directory. It exits with 0, or with the highest of: 2 run\n"
        "directory or builds, 3 data, 4 devices or cores that ranks share by accident. It ignores options of 'convoy train'\n"
        "that do not matter here."};
  }
  if (command == "status") {
    return {
        "convoy status RUN_DIR [options]",
        "Shows how a run is doing, on any machine that sees its run directory: progress, speed, time left, newest\n"
        "checkpoint, and whether the run is alive. It exits with 0 if the run is alive or has finished, with 5 if it hangs,\n"
        "with 75 if it stopped or was killed and continues when submitted again, else with the code of its failure."};
  }
  if (command == "summary") {
    return {"convoy summary RUN_DIR ... [options]",
            "A table of runs: epochs, hours, best top-1 and top-5 on the val split, speed."};
  }
  if (command == "diff") {
    return {
        "convoy diff RUN_A RUN_B [options]",
        "Shows why two runs are not the same: options, data, build and environment that differ, the first step whose numbers\n"
        "differ, and the tensors that differ in the newest checkpoints that both have of one step. It reads the run\n"
        "directories alone, so the runs may go on. The exit code is 0, whether they differ or not."};
  }
  if (command == "report") {
    return {
        "convoy report RUN_DIR ... [-o FILE]",
        "Writes one HTML file about runs, without outside references: their curves in common pictures, where the time\n"
        "went, confusion matrices of evaluations in the run directories, configuration, and what differs between runs."};
  }
  return {"convoy inspect data DIR | checkpoint PATH | plan [options] | build",
          "Shows a prepared data set, a checkpoint, what a network compiles to, or what this program is built of."};
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = std::min(lines.find('\n', begin), lines.size());
    text += "  " + lines.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  return text;
}

}  // namespace

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names = {"train",   "evaluate", "predict", "bench", "preflight",
                                                 "inspect", "status",   "summary", "diff",  "report"};
  return names;
}

std::string program_help() {
  return fmt::format(
      "convoy {}: trains image-classification networks on the ranks of an MPI job\n\n"
      "  convoy train --data DIR          train\n"
      "  convoy evaluate PATH --data DIR  accuracy of a checkpoint\n"
      "  convoy predict PATH IMAGE ...    classes of images\n"
      "  convoy bench compute|scaling|io|comm  measure one part\n"
      "  convoy preflight --data DIR      check ranks, devices, network and folders before a job\n"
      "  convoy inspect data|checkpoint|plan|build\n"
      "  convoy status RUN_DIR            state of a run\n"
      "  convoy summary RUN_DIR ...       table of runs\n"
      "  convoy diff RUN_A RUN_B          what differs between two runs, and from which step on\n"
      "  convoy report RUN_DIR ...        HTML page of runs: curves, times, classes\n\n"
      "'convoy COMMAND --help' lists the options of the first day, --help TOPIC those about data, model, lr ..., --help-all\n"
      "all, with the names that other programs give them.\n"
      "'convoy --version' lists what is built in. convoy-preprocess makes data sets.\n{}",
      version(), exit_codes);
}

std::string command_help(const std::string& command, HelpDepth depth, const std::string& topic) {
  const auto [usage, text] = about(command);
  const bool builds = command == "train" || command == "bench" || command == "inspect";
  const bool lists = builds && (topic.empty() ? depth == HelpDepth::all : topic == "model");
  const std::string networks = lists ? "\nNetworks:\n" + indented(model_help()) : "";
  if (!topic.empty()) return option_help(command, depth, topic).substr(1) + networks;
  return fmt::format("Usage: {}\n\n{}\n{}{}{}", usage, text, option_help(command, depth), networks, exit_codes);
}

std::string version_text() {
  std::string backends = backend_versions();
  if (!backends.empty() && backends.back() != '\n') backends += '\n';
  // NCCL lies in the CUDA module, which speaks for both where it is built.
  if (backends.find("CUDA not built") != std::string::npos) backends += "NCCL not built\n";
  return fmt::format("convoy {}\ncompiler: {}\nMPI: {}\nHDF5: {}\n{}", build_id(), compiler(), mpi_version(),
                     hdf5_version(), backends);
}

}  // namespace convoy
