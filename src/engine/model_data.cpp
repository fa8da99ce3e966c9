// SPDX-License-Identifier: Apache-2.0
#include "engine/model_data.hpp"

#include <sstream>

#include "config/option.hpp"
#include "core/errors.hpp"

namespace convoy {

std::map<std::string, std::string> texts_of_data(const DatasetInfo& info) {
  std::string names;
  for (const std::string& name : info.class_names) names += (names.empty() ? "" : "\n") + name;
  return {{"class_names", names},
          {"data_mean", print_list(info.mean)},
          {"data_std", print_list(info.std)},
          {"data_size", print_list(std::vector<Index>{info.height, info.width})}};
}

DatasetInfo data_of_model(const CheckpointMeta& meta, const std::string& path) {
  const auto text = [&](const char* name) {
    const auto found = meta.texts.find(name);
    if (found == meta.texts.end()) {
      fail(
          Exit::data,
          "checkpoint '{}' has no '{}' of its data (an older version wrote it); predict a prepared data set, or train one more step with --resume",
          path, name);
    }
    return found->second;
  };
  const auto numbers = [&](const char* name) {
    std::vector<double> values;
    for (const std::string& item : split_list(text(name))) values.push_back(read_number(item, {}));
    return values;
  };
  DatasetInfo info;
  info.folder = path;
  info.encoding = "jpeg";
  std::istringstream names(text("class_names"));
  for (std::string name; std::getline(names, name);) info.class_names.push_back(name);
  const auto classes = meta.numbers.find("classes");
  info.classes =
      classes != meta.numbers.end() ? static_cast<Index>(classes->second) : static_cast<Index>(info.class_names.size());
  info.mean = numbers("data_mean");
  info.std = numbers("data_std");
  info.channels = static_cast<Index>(info.mean.size());
  const std::vector<double> size = numbers("data_size");
  if (size.size() != 2) fail(Exit::data, "checkpoint '{}': 'data_size' is not two numbers", path);
  info.height = static_cast<Index>(size[0]);
  info.width = static_cast<Index>(size[1]);
  return info;
}

}  // namespace convoy
