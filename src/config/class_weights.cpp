// SPDX-License-Identifier: Apache-2.0
#include "config/class_weights.hpp"

#include <algorithm>
#include <cctype>

namespace convoy {
namespace {

constexpr const char* automatic = "auto";

}  // namespace

bool names_weights_file(const std::string& value) {
  const auto in_list = [](unsigned char c) {
    return std::isdigit(c) != 0 || std::string(".,+-eE ").find(static_cast<char>(c)) != std::string::npos;
  };
  return value != automatic && !std::all_of(value.begin(), value.end(), in_list);
}

std::string weights_of_file(const std::string& text) {
  std::string list;
  bool comment = false, between = true;
  for (const char c : text) {
    comment = c != '\n' && (comment || c == '#');
    if (comment || c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      between = true;
      continue;
    }
    if (between && !list.empty()) list += ',';
    between = false;
    list += c;
  }
  return list;
}

Option class_weights_option(ClassWeights& weights) {
  Option option{.name = "class-weights",
                .value = "auto|FILE|W,W",
                .help =
                    "factor of each class in the training loss, in the order of the classes; auto: by the inverse "
                    "of its share of the images"};
  option.allowed = "auto, numbers >= 0 for all classes with commas, or a file of them";
  option.set = [&weights](const std::string& text) {
    ClassWeights read{.automatic = text == automatic, .values = {}};
    if (!read.automatic && !text.empty())
      for (const std::string& part : split_list(text)) read.values.push_back(read_number(part, at_least(0)));
    if (!read.values.empty() && *std::max_element(read.values.begin(), read.values.end()) == 0)
      throw BadValue("has no number above 0");
    weights = std::move(read);
  };
  option.print = [&weights] { return weights.automatic ? std::string(automatic) : print_list(weights.values); };
  return option.decides_bits_unless({""});
}

}  // namespace convoy
