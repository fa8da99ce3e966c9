// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/split_source.hpp"

#include "preprocess/fields.hpp"

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

std::string to_text(const std::vector<SplitSource>& sources) {
  FieldWriter fields;
  for (const SplitSource& s : sources) {
    fields.put(static_cast<Index>(s.split)).put(s.folder).put(s.labels).put(s.inside);
    fields.put(static_cast<Index>(s.names.size()));
    for (const auto& name : s.names) fields.put(name);
  }
  return fields.text();
}

std::vector<SplitSource> sources_from_text(const std::string& text) {
  std::vector<SplitSource> sources;
  for (FieldReader fields(text); !fields.done();) {
    SplitSource s;
    s.split = static_cast<Split>(fields.number());
    s.folder = fields.text();
    s.labels = fields.text();
    s.inside = fields.text();
    s.names.resize(static_cast<std::size_t>(fields.number()));
    for (auto& name : s.names) name = fields.text();
    sources.push_back(std::move(s));
  }
  return sources;
}

std::string read_location(const std::string& location, const TransferSpec& spec) {
  const auto [folder, name] = split_location(location);
  return read_object(*open_store(parse_location(folder), spec), name);
}

}  // namespace convoy::preparation
