// SPDX-License-Identifier: Apache-2.0
#include "core/standard_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/log.hpp"

namespace convoy {
namespace {

constexpr const char* remedy = "make room, or send it elsewhere";

bool reader_has_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

void guard_process() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number: this one. Reading alone, so that a write to standard output fails as it would have.
    const int opened = ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != stream) ::close(opened);
  }
}

void write_output(std::string_view text) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  const int reason = errno;
  if (whole || reader_has_left()) return;
  fail(Exit::data, "cannot write to standard output ({}); {}", std::strerror(reason), remedy);
}

Exit require_output(Exit code) {
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (code != Exit::ok || !lost || reader_has_left()) return code;
  log::report_error(fmt::format("standard output was lost (it couldn't be written); {}", remedy));
  return Exit::data;
}

}  // namespace convoy
