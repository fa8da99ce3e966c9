// SPDX-License-Identifier: Apache-2.0
#include "core/plain_text.hpp"

namespace convoy {

std::string plain_text(std::string text, const std::string& what, Exit code) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);
  } else if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    fail(code, "'{}' is no plain text (it is UTF-16 or UTF-32); save it as UTF-8", what);
  }
  return text;
}

}  // namespace convoy
