// SPDX-License-Identifier: Apache-2.0
#include "config/hash.hpp"

#include <fmt/format.h>

#include <map>

#include "config/options.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "core/errors.hpp"
#include "core/hash.hpp"
#include "options/command_line.hpp"

namespace convoy {

std::string configuration_hash(const TrainConfig& config) {
  TrainConfig copy = config;
  std::string text;
  for (const auto& group : options_of(copy))
    for (const Option& option : group.options)
      if (const std::string line = option.hashed(); !line.empty()) text += line + '\n';
  for (const PhaseConfig& phase : config.phases) {
    const RatePhase& rate = phase.rate;
    text += fmt::format("phase={}:{} {}:{}\n", rate.begin_epoch, rate.end_epoch, rate.from, rate.to);
    if (!phase.changes_data()) continue;
    // Neither validation nor where the data lie decides bits of training.
    text += fmt::format("size={} batch={} global={} area={}\n", phase.image_size, phase.batch, phase.global_batch,
                        phase.min_area);
  }
  return fmt::format("{:016x}", hash_text(text));
}

namespace {

/// Calls `differs` with the title of the group, the option and how it was printed before. False: `then` can't be read.
template <class Differs>
bool for_each_difference(const std::string& then, const TrainConfig& now, const Differs& differs) {
  TrainConfig before, after = now;
  try {
    before = parse_ini(then);
  } catch (const Error&) {
    return false;  // of another version
  }
  const auto groups = options_of(before);
  for (std::size_t g = 0; const auto& group : options_of(after)) {
    for (std::size_t i = 0; const auto& option : group.options) {
      const std::string old_value = groups[g].options[i].print();
      if (option.bits != Bits::irrelevant && old_value != option.print()) differs(group.title, option, old_value);
      ++i;
    }
    ++g;
  }
  return true;
}

void add_difference(std::string& to, const Option& option, const std::string& then) {
  const auto said = [](const std::string& value) { return value.empty() ? std::string("not set") : value; };
  to += fmt::format("{}{} {} then, {} now", to.empty() ? "" : "; ", option.name, said(then), said(option.print()));
}

/// What an option is part of.
const char* part_of(const std::string& title, const std::string& option) {
  if (title == "Data set" || title == "Order" || option == "seed") return "data";
  if (title == "Network input" || title == "Augmentation") return "input";
  if (title == "Network" || title == "Device") return "model";
  return "optimiser";
}

/// Whether the change from what was printed before alters no more than rounding.
bool only_rounds(const Option& option, const std::string& then) {
  return option.rounds && option.rounds(then) && option.rounds(option.print());
}

/// `[phase.1] epochs = 0:5, lr = 0.1:0.4; [phase.2] ...`; `none`.
std::string phases_in(const std::string& ini) {
  std::string text;
  for (const IniLine& line : ini_lines(ini)) {
    if (line.section.empty()) continue;
    if (line.key.empty()) {
      text += (text.empty() ? "" : "; ") + line.text;
    } else {
      text += fmt::format("{} {}", text.ends_with(']') ? "" : ",", line.text);
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string rounding_options(const std::string& then, const TrainConfig& now) {
  std::string text;
  for_each_difference(then, now, [&](const std::string&, const Option& option, const std::string& value) {
    if (only_rounds(option, value)) add_difference(text, option, value);
  });
  return text;
}

std::vector<std::string> changed_parts(const std::string& then, const TrainConfig& now) {
  std::map<std::string, std::string> parts;
  for_each_difference(then, now, [&](const std::string& title, const Option& option, const std::string& value) {
    if (!only_rounds(option, value)) add_difference(parts[part_of(title, option.name)], option, value);
  });
  const std::string phases_then = phases_in(then), phases_now = phases_in(to_ini(now));
  if (phases_then != phases_now) parts["phases"] = fmt::format("{} then, {} now", phases_then, phases_now);
  std::vector<std::string> texts;
  texts.reserve(parts.size());
  for (const auto& [part, changes] : parts) texts.push_back(fmt::format("{} changed: {}", part, changes));
  return texts;
}

}  // namespace convoy
