// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/report.hpp"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "io/seal.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

/// Returns what people see of a name: no upper case, no blanks at its ends, and `?` for a Latin letter with an accent,
/// whether that is one character or (as macOS writes it) two.
std::string look_of(const std::string& name) {
  std::string look;
  for (const char c : trimmed(lower(name))) {
    const auto byte = static_cast<unsigned char>(c), last = static_cast<unsigned char>(look.empty() ? 0 : look.back());
    const bool continues = (byte & 0xC0U) == 0x80;
    if (continues && last >= 0xC3 && last <= 0xC9) {  // U+00C0 to U+027F
      look.back() = '?';
    } else if (continues && (last == 0xCC || last == 0xCD)) {  // a combining mark: its letter stands before it
      look.pop_back();
      if (!look.empty()) look.back() = '?';
    } else {
      look += c;
    }
  }
  return look;
}

}  // namespace

FindingCounts count_findings(const std::vector<Note>& notes) {
  FindingCounts counts{};
  for (const Note& note : notes) ++counts[static_cast<std::size_t>(note.finding)];
  return counts;
}

std::vector<std::string> report_table(Index images_read, const std::vector<Note>& notes) {
  constexpr Index names_shown = 3;
  const FindingCounts counts = count_findings(notes);
  Index skipped = 0;
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    if (is_skipped(static_cast<Finding>(kind))) skipped += counts[kind];
  }
  std::vector<std::string> lines{
      fmt::format("{} read, {} kept, {} skipped", counted(images_read, "image"), images_read - skipped, skipped)};
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    if (counts[kind] == 0) continue;
    const auto finding = static_cast<Finding>(kind);
    std::string names;
    Index shown = 0;
    for (const Note& note : notes) {
      if (note.finding != finding || shown == names_shown) continue;
      ++shown;
      names += (names.empty() ? "" : ", ") + note.name;
      if (is_skipped(finding) && !note.detail.empty()) names += " (" + note.detail + ")";
    }
    lines.push_back(fmt::format("  {:<10} {:<20} {:>8}   {}{}", is_skipped(finding) ? "skipped" : "converted",
                                finding_name(finding), counts[kind], one_line(names),
                                counts[kind] > shown ? " ..." : ""));
  }
  return lines;
}

std::vector<std::string> class_table(const Survey& survey) {
  constexpr std::size_t classes_shown = 20;
  std::vector<std::string> lines{fmt::format("{} classes", survey.classes.names.size())};
  for (std::size_t c = 0; c < std::min(survey.classes.names.size(), classes_shown); ++c) {
    std::string line = fmt::format("  {:>5}  {:<24}", c, one_line(survey.classes.names[c]));
    for (std::size_t s = 0; s < survey.splits.size(); ++s) {
      line += fmt::format(" {:>9} {}", survey.images_of_class[s][c], survey.splits[s].name);
    }
    lines.push_back(line);
  }
  if (survey.classes.names.size() > classes_shown) lines.push_back("  ... (convoy-preprocess inspect prints more)");
  return lines;
}

std::vector<std::string> class_warnings(const Survey& survey) {
  constexpr std::size_t names_shown = 5;
  std::vector<std::string> lines;
  std::map<std::string, std::string> looks;
  for (const std::string& name : survey.classes.names) {
    const auto [alike, fresh] = looks.emplace(look_of(name), name);
    if (fresh) continue;
    lines.push_back(fmt::format(
        "two classes look alike ('{}' and '{}': other letter case, blanks, or Unicode form): give one name to both, if they are one",
        one_line(alike->second), one_line(name)));
  }
  if (survey.shared.images > 0) {
    std::string pairs;
    for (const auto& [train, val] : survey.shared.examples) {
      pairs += fmt::format("{}'{}' of val is '{}' of train", pairs.empty() ? "" : ", ", one_line(val), one_line(train));
    }
    lines.push_back(fmt::format(
        "{} of {} images of val are in train, too (the same bytes: {}{}): validation tells too little about new images",
        survey.shared.images, survey.splits.back().range.count, pairs,
        survey.shared.images > static_cast<Index>(survey.shared.examples.size()) ? ", ..." : ""));
  }
  const auto& train = survey.images_of_class.front();
  if (std::count(train.begin(), train.end(), 0) + 1 == static_cast<std::ptrdiff_t>(train.size())) {
    const auto only = std::find_if(train.begin(), train.end(), [](auto images) { return images > 0; }) - train.begin();
    lines.push_back(fmt::format(
        "all images of train are of one class ('{}'), of which a network learns nothing: does a folder too many lie above the classes?",
        one_line(survey.classes.names[static_cast<std::size_t>(only)])));
  }
  for (std::size_t s = 0; s < survey.splits.size(); ++s) {
    std::vector<std::string> missing;
    for (std::size_t c = 0; c < survey.classes.names.size(); ++c) {
      if (survey.images_of_class[s][c] == 0) missing.push_back(one_line(survey.classes.names[c]));
    }
    if (missing.empty()) continue;
    const std::size_t shown = std::min(missing.size(), names_shown);
    lines.push_back(fmt::format("{} of {} classes have no image in {}: {}{}", missing.size(),
                                survey.classes.names.size(), survey.splits[s].name,
                                fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                                missing.size() > shown ? " ..." : ""));
  }
  return lines;
}

void write_report(const std::string& path, const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes) {
    text += fmt::format("{}\t{}\t{}\n", finding_name(note.finding), one_line(note.name), one_line(note.detail));
  }
  publish_text(path, text);
}

void require_strict(Strict strict, const FindingCounts& counts, const std::string& report_path,
                    const std::vector<Note>& notes) {
  if (strict == Strict::no) return;
  const auto allowed = [&](Finding finding) {
    return finding == Finding::left_out || (strict == Strict::skipped && !is_skipped(finding));
  };
  Index count = 0;
  std::string kinds;
  for (std::size_t kind = 0; kind < finding_kinds; ++kind) {
    if (counts[kind] == 0 || allowed(static_cast<Finding>(kind))) continue;
    count += counts[kind];
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", counts[kind], finding_names[kind]);
  }
  if (count == 0) return;
  const auto first = std::find_if(notes.begin(), notes.end(), [&](const Note& note) { return !allowed(note.finding); });
  if (first == notes.end()) {
    fail(
        Exit::data,
        "{} images of this set are not as they should be, as --strict demands ({}; all: '{}'), and an earlier run without --strict took them as they were; repair them and give --overwrite, or leave --strict out",
        count, kinds, report_path);
  }
  fail(
      Exit::data,
      "{} images are not as they should be, as --strict demands (the first: '{}' is {}{}; all: '{}'); repair them and start again with --overwrite or another --out, or start again without --strict to continue from here",
      count, first->name, finding_name(first->finding), first->detail.empty() ? "" : ", " + first->detail, report_path);
}

}  // namespace convoy::preparation
