// SPDX-License-Identifier: Apache-2.0
#include "run/scheduler.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace convoy {
namespace {

struct Answer {
  int exit = -1;
  std::string text;
};

/// Standard output and error of a command, which gets ten seconds.
Answer answer_of(const std::string& command) {
  Answer answer;
  std::FILE* pipe = popen(("timeout 10 " + command + " 2>&1").c_str(), "r");  // NOLINT(cert-env33-c): no user's text
  if (pipe == nullptr) return answer;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    answer.text.append(part.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) answer.exit = WEXITSTATUS(status);
  return answer;
}

/// Ids go into a shell's command line.
bool is_job_id(const std::string& job) {
  return !job.empty() && std::all_of(job.begin(), job.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '[' || c == ']';
  });
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

RunObservations::Job ask_slurm(const std::string& job) {
  const Answer answer = answer_of("squeue --noheader --format=%T --jobs='" + job + "'");
  if (answer.exit == 0) {
    if (contains(answer.text, "PENDING") || contains(answer.text, "REQUEUE")) return RunObservations::Job::waits;
    return contains(answer.text, "RUNNING") || contains(answer.text, "SUSPENDED") ? RunObservations::Job::runs
                                                                                  : RunObservations::Job::gone;
  }
  return contains(answer.text, "Invalid job id") ? RunObservations::Job::gone : RunObservations::Job::unknown;
}

RunObservations::Job ask_pbs(const std::string& job) {
  const Answer answer = answer_of("qstat -f '" + job + "'");
  if (answer.exit != 0) {
    const bool ended = contains(answer.text, "Unknown Job") || contains(answer.text, "has finished");
    return ended ? RunObservations::Job::gone : RunObservations::Job::unknown;
  }
  const auto at = answer.text.find("job_state = ");
  if (at == std::string::npos) return RunObservations::Job::unknown;
  switch (answer.text[at + 12]) {
    case 'R':
    case 'E':
    case 'S':
    case 'U':
      return RunObservations::Job::runs;
    case 'Q':
    case 'H':
    case 'W':
    case 'T':
      return RunObservations::Job::waits;
    case 'C':
    case 'F':
    case 'X':  // an element of an array that goes on
      return RunObservations::Job::gone;
    default:
      return RunObservations::Job::unknown;
  }
}

bool connects(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  int error = 0;
  if (connect(socket, address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd waiting{socket, POLLOUT, 0};
    socklen_t size = sizeof error;
    constexpr int milliseconds = 2000;
    if (poll(&waiting, 1, milliseconds) != 1 || getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = ETIMEDOUT;
  }
  close(socket);
  return error == 0 || error == ECONNREFUSED;
}

}  // namespace

RunObservations::Job ask_scheduler(const std::string& scheduler, const std::string& job) {
  if (!is_job_id(job)) return RunObservations::Job::unknown;
  if (scheduler == "slurm") return ask_slurm(job);
  return scheduler == "pbs" ? ask_pbs(job) : RunObservations::Job::unknown;
}

Index own_restarts() {
  for (const char* name : {"CONVOY_RESUBMITTED", "SLURM_RESTART_COUNT"}) {
    if (const char* count = std::getenv(name)) return std::atoi(count);
  }
  return 0;
}

bool host_answers(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "22", &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (connects(*at)) return true;
  }
  return false;
}

}  // namespace convoy
