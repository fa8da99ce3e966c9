// SPDX-License-Identifier: Apache-2.0
// What a program owes to who started it: its text arrives whole, or the exit code says that it didn't.
#pragma once
#include <string_view>

#include "core/errors.hpp"

namespace convoy {

/// First thing in main. A file that gets too large for its limit (`ulimit -f`) becomes an error of that write, no
/// signal. A standard stream that is closed gets a place where nothing can be written: else the next file that is
/// opened took its number, and with it what is said.
void guard_process();

/// Writes and flushes. Throws Error(data) where it doesn't arrive; a reader that has left (`| head`) has what it
/// wanted.
void write_output(std::string_view text);

/// The exit code of a program that ends: `code`, or data if that is ok and standard output was lost, which it prints.
Exit require_output(Exit code);

}  // namespace convoy
