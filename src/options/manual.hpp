// SPDX-License-Identifier: Apache-2.0
// Manual pages from the tables of options, as `man` reads them (groff's macros of man(7)).
#pragma once
#include <string>
#include <vector>

#include "options/option.hpp"

namespace convoy {

/// A heading and its text, whose line ends stay.
struct ManualSection {
  std::string title, text;
};

struct ManualPage {
  std::string name;     ///< `convoy-train`
  std::string summary;  ///< behind the name, on one line
  std::string version;  ///< `convoy 0.1.0`
  std::string usage, text;
  std::vector<ManualSection> sections;  ///< behind the options
  std::string see_also;                 ///< `convoy(1), convoy-preprocess(1)`
};

/// With all options of the groups, hidden ones aside, and their other names.
std::string manual_page(const ManualPage& page, const std::vector<OptionGroup>& groups);

}  // namespace convoy
