// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/xml.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace convoy::preparation {
namespace {

/// UTF-8 of a character reference.
void append_character(std::string& text, unsigned code) {
  const auto tail = [&](unsigned bits) { text += static_cast<char>(0x80U | (bits & 0x3FU)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | code >> 6U);
    tail(code);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | code >> 12U);
    tail(code >> 6U);
    tail(code);
  } else {
    text += static_cast<char>(0xF0U | code >> 18U);
    tail(code >> 12U);
    tail(code >> 6U);
    tail(code);
  }
}

std::string decode_entities(std::string_view xml) {
  constexpr std::array<std::pair<std::string_view, char>, 5> named{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  std::string text;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    const auto end = xml[i] == '&' ? xml.find(';', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      text += xml[i];
      continue;
    }
    const std::string_view entity = xml.substr(i + 1, end - i - 1);
    if (entity.starts_with('#')) {
      const bool hexadecimal = entity.starts_with("#x");
      unsigned code = 0;
      std::from_chars(entity.data() + (hexadecimal ? 2 : 1), entity.data() + entity.size(), code,
                      hexadecimal ? 16 : 10);
      append_character(text, code);
    }
    for (const auto& [name, character] : named) {
      if (entity == name) text += character;
    }
    i = end;
  }
  return text;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  std::string open("<"), close("</");
  open.append(name);
  close.append(name).append(">");
  std::vector<std::string_view> found;
  for (std::size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    if (at >= xml.size() || (xml[at] != '>' && xml[at] != ' ')) continue;  // a longer name
    const auto begin = xml.find('>', at);
    const auto end = begin == std::string_view::npos ? begin : xml.find(close, begin);
    if (end == std::string_view::npos) break;
    found.push_back(xml.substr(begin + 1, end - begin - 1));
    at = end + close.size();
  }
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? std::string() : decode_entities(found.front());
}

}  // namespace convoy::preparation
