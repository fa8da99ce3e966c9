// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/errors.hpp"

namespace convoy {

/// A text file's content as its reader wants it: without the byte order mark of UTF-8 that some editors put before it.
/// Throws Error(code) naming `what` for UTF-16 and UTF-32.
std::string plain_text(std::string text, const std::string& what, Exit code);

}  // namespace convoy
