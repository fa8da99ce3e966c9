// SPDX-License-Identifier: Apache-2.0
// A program with one rank that fails, for session_test.sh. The others wait in a barrier for ever.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "comm/communicator.hpp"

namespace {

int run(convoy::Session& session, const char* what) {
  convoy::Communicator comm(session, {.warn_seconds = 0, .abort_seconds = 0});
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
    return run(session, argv[1]);
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
    return run(session, argv[1]);
  } catch (const convoy::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    convoy::abort_job(e.code());
  }
}
