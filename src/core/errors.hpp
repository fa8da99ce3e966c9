// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace convoy {

/// Exit codes of both programs, printed by --help and used by the job scripts.
enum class Exit : int {
  ok = 0,
  internal = 1,
  usage = 2,
  data = 3,
  device = 4,
  communication = 5,
  superseded = 6,  ///< a newer attempt goes on with this run: don't resubmit
  arithmetic = 7,  ///< a rank computed something wrong (--check-arithmetic): resubmit without its host
  stopped = 75,    ///< stopped on request after a checkpoint: resubmit
};

/// An error that ends the program. The text is problem, reason in brackets, what to do.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& text) : std::runtime_error(text), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

/// Throws Error(code, formatted text).
template <class... Args>
[[noreturn]] void fail(Exit code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

/// Checks our own logic; what a user can cause gets a code and a text of its own through fail().
inline void require(bool condition, const char* what) {
  if (!condition) throw Error(Exit::internal, std::string("internal error: ") + what);
}

}  // namespace convoy
