// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "config/network_file.hpp"
#include "config/parse.hpp"
#include "core/clock.hpp"
#include "core/descriptor.hpp"
#include "core/errors.hpp"
#include "core/stop.hpp"
#include "core/text.hpp"
#include "interchange/onnx_network.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::chrono::seconds patience{10};
constexpr int slice_ms = 100;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  fail(Exit::usage, "cannot read the file '{}' ({})", path, reason);
}

/// Waits until there are bytes or an end; a pipe to which nobody writes has neither. Somebody may ask to stop
/// meanwhile.
void await_bytes(int descriptor, const std::string& path, Instant deadline) {
  pollfd input{.fd = descriptor, .events = POLLIN, .revents = 0};
  while (::poll(&input, 1, slice_ms) <= 0) {
    leave_if_stopped("reading the configuration");
    if (real_clock().now() > deadline) refuse(path, fmt::format("its end didn't come within {} s", patience.count()));
  }
}

}  // namespace

std::string read_text_file_if_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 ? read_text_file(path) : std::string();
}

std::string read_text_file(const std::string& path) {
  // Doesn't wait for a pipe's writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0) refuse(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) refuse(path, std::strerror(errno));
  if (S_ISREG(status.st_mode) && begins_as_onnx(head_of_file(path))) {
    try {
      const GraphSpec network = read_onnx_network(File(path, File::Access::read)).spec;
      return print_network_file({network.model, network.layers});
    } catch (const Error& error) {
      fail(Exit::usage, "{}", error.what());
    }
  }
  if (S_ISDIR(status.st_mode)) fail(Exit::usage, "'{}' is a folder, not a file", path);
  const auto deadline = real_clock().now() + patience;
  std::string text;
  std::array<char, 4096> piece;
  while (true) {
    if (!S_ISREG(status.st_mode)) await_bytes(file.number(), path, deadline);
    const ssize_t got = ::read(file.number(), piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) refuse(path, std::strerror(errno));
    if (got == 0) return text;
    const std::size_t before = text.size();
    text.append(piece.data(), static_cast<std::size_t>(got));
    // A wrong file may be large: what is wrong is said before the rest is read.
    if (S_ISREG(status.st_mode) && (before == 0 || text.find('\0', before) != std::string::npos))
      plain_text(text, path, Exit::usage);
    if (text.size() > most_bytes) refuse(path, fmt::format("it is larger than {} bytes", most_bytes));
  }
}

}  // namespace convoy
