// SPDX-License-Identifier: Apache-2.0
// As much of XML as S3's answers need: elements without attributes that matter.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace convoy::preparation {

/// Contents of all elements of this name, entities not yet decoded; empty where there is none.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);
/// The text of the first element of this name, decoded; empty where there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace convoy::preparation
