// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

std::pair<std::string, std::string> split_location(const std::string& location) {
  const auto slash = location.rfind('/');
  if (slash == std::string::npos) return {".", location};
  const std::string name = location.substr(slash + 1);
  const bool encoded = parse_location(location).scheme == Scheme::http;  // its address is encoded as the user gave it
  return {slash == 0 ? "/" : location.substr(0, slash), encoded ? percent_decode(name) : name};
}

std::optional<std::string> name_inside(const std::string& member, const std::string& inside) {
  if (inside.empty()) return member;
  if (!member.starts_with(inside) || member.size() <= inside.size() || member[inside.size()] != '/')
    return std::nullopt;
  return member.substr(inside.size() + 1);
}

std::string read_location(const std::string& location, const TransferSpec& spec) {
  const auto [folder, name] = split_location(location);
  return read_object(*open_store(parse_location(folder), spec), name);
}

}  // namespace convoy::preparation
