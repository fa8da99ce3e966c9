// SPDX-License-Identifier: Apache-2.0
// Programs for session_test.sh: one with a rank that fails while the others wait in a barrier for ever, one that
// freezes its launcher and ends.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "comm/communicator.hpp"

namespace {

/// Collective. Writes the ids of all ranks and, last, the launcher's. Nothing but a barrier is left when the launcher
/// stands still.
void freeze_launcher(convoy::Communicator& comm, const char* ids) {
  const auto processes = comm.gather(std::to_string(getpid()), "ids of the ranks");
  if (comm.rank() == 0) {
    std::FILE* const file = std::fopen(ids, "w");
    if (file == nullptr) convoy::fail(convoy::Exit::data, "cannot write '{}'", ids);
    for (const std::string& process : processes) std::fprintf(file, "%s\n", process.c_str());
    std::fprintf(file, "%d\n", getppid());
    std::fclose(file);
    kill(getppid(), SIGSTOP);
  }
  comm.barrier("launcher that stands still");
}

int run(convoy::Session& session, char** words) {
  const char* const what = words[1];
  convoy::Communicator comm(session, {.warn_seconds = 0, .abort_seconds = 0});
  if (std::strcmp(what, "frozen") == 0) {
    freeze_launcher(comm, words[2]);
    return 0;
  }
  if (std::strcmp(what, "transport") == 0) {
    const char *pml = std::getenv("OMPI_MCA_pml"), *btl = std::getenv("OMPI_MCA_btl");
    if (comm.rank() == 0) std::printf("pml=%s btl=%s\n", pml ? pml : "", btl ? btl : "");
    return 0;
  }
  if (comm.rank() == comm.size() - 1) convoy::fail(convoy::Exit::data, "partition 1 is damaged");
  comm.barrier("barrier that one rank never reaches");
  return 0;
}

/// The session inside the try: unwinding passes it.
int run_inside(int argc, char** argv) {
  try {
    convoy::Session session(argc, argv);
    return run(session, argv);
  } catch (const convoy::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.code());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[1], "inside") == 0) return run_inside(argc, argv);
  convoy::Session session(argc, argv);
  try {
    return run(session, argv);
  } catch (const convoy::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    convoy::abort_job(e.code());
  }
}
