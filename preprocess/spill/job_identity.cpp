// SPDX-License-Identifier: Apache-2.0
#include "preprocess/spill/job_identity.hpp"

#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace convoy::preparation {
namespace {

std::map<std::string, std::string> options_in(const std::string& text) {
  std::map<std::string, std::string> options;
  std::istringstream words(text);
  for (std::string word; words >> word;) options[word.substr(0, word.find('='))] = word;
  return options;
}

bool is_same_but_for_times(const JobIdentity& a, const JobIdentity& b) {
  return a.recipe == b.recipe && a.labels == b.labels && a.names == b.names && a.sizes == b.sizes;
}

}  // namespace

std::string differing_options(const std::string& found, const std::string& wanted) {
  constexpr int most_shown = 3;
  const auto before = options_in(found), now = options_in(wanted);
  std::set<std::string> names;
  for (const auto* options : {&before, &now}) {
    for (const auto& [name, word] : *options) names.insert(name);
  }
  const auto word_of = [](const auto& options, const std::string& name) {
    const auto at = options.find(name);
    return at == options.end() ? "without " + name : at->second;
  };
  std::string text;
  int differing = 0;
  for (const auto& name : names) {
    const std::string was = word_of(before, name), is = word_of(now, name);
    if (was == is || ++differing > most_shown) continue;
    text += fmt::format("{}{}, now {}", text.empty() ? "" : "; ", was, is);
  }
  return differing > most_shown ? text + " ..." : text;
}

std::string difference_of(const JobIdentity& found, const JobIdentity& wanted, Times times) {
  if (found.recipe != wanted.recipe) {
    return fmt::format("made with other options: {}", differing_options(found.recipe, wanted.recipe));
  }
  if (found.is_of_earlier_version()) {
    return found.source == wanted.source
               ? ""
               : "made from another source: files, labels or classes differ; an earlier version made it, which did not note what";
  }
  if (found.labels != wanted.labels) return "made with other label files, or with another list of classes";
  if (found.names != wanted.names) return "made from other files: some have been added, removed or renamed since";
  if (found.sizes != wanted.sizes)
    return "made from other contents: the source's files have the same names, but other sizes or bytes";
  if (found.times != wanted.times && times == Times::compare) {
    return "made from files of the same names and sizes, but of other times: they were written again, or copied";
  }
  return "";
}

std::string advice_on(const JobIdentity& found, const JobIdentity& wanted) {
  constexpr const char* usual = "choose another --out or give --overwrite";
  if (found.is_of_earlier_version() || !is_same_but_for_times(found, wanted)) return usual;
  return fmt::format("if they were only copied, give --ignore-times; if their contents changed, {}", usual);
}

JobIdentity identity_from(const Json& json) {
  const auto text = [&](const char* name) {
    const Json* found = json.find(name);
    return found != nullptr && found->is_text() ? found->as<std::string>() : std::string();
  };
  return {text("recipe"), text("source"), text("labels"), text("names"), text("sizes"), text("times")};
}

void write_identity(const JobIdentity& identity, Json& to) {
  to.set({{"recipe", identity.recipe},
          {"source", identity.source},
          {"labels", identity.labels},
          {"names", identity.names},
          {"sizes", identity.sizes},
          {"times", identity.times}});
}

}  // namespace convoy::preparation
