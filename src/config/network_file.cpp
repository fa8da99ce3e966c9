// SPDX-License-Identifier: Apache-2.0
#include "config/network_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "options/command_line.hpp"

namespace convoy {
namespace {

constexpr const char *images = "input", *block_input = "in", *from_key = "from", *repeat_key = "repeat",
                     *first_key = "first";
const std::string between_layers = " | ", before_origin = " @";

using Values = std::map<std::string, std::string>;

/// `bottleneck width=64 repeat=3 from=a,b`.
struct Line {
  std::string name, what;
  Values values;
  std::vector<std::string> inputs;  ///< empty: the line before
  std::string origin;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Throws BadValue.
Line read_line(const std::string& name, const std::string& text) {
  Line line{.name = name, .what = {}, .values = {}, .inputs = {}, .origin = {}};
  for (const std::string& word : words_of(text)) {
    const std::size_t equals = word.find('=');
    if (line.what.empty()) {
      if (equals != std::string::npos) throw BadValue("begins with '" + word + "' in place of an operation or a block");
      line.what = word;
      continue;
    }
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      throw BadValue("has '" + word + "', which is no key=value");
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == from_key) {
      if (!line.inputs.empty()) throw BadValue("has two 'from'");
      line.inputs = split_list(value);
    } else if (!line.values.emplace(key, value).second) {
      throw BadValue("has two '" + key + "'");
    }
  }
  if (line.what.empty()) throw BadValue("names no operation");
  return line;
}

[[noreturn]] void refuse(const Line& line, const std::string& text) {
  fail(Exit::usage, "{}: '{}' {}", line.origin, line.name, text);
}

Index read_count(const Line& line, const std::string& key, Index least) {
  const std::string& text = line.values.at(key);
  Index count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < least || count > 10000)
    refuse(line, fmt::format("has {}={}; allowed: {} to 10000", key, text, least));
  return count;
}

class Writer {
 public:
  using Blocks = std::map<std::string, std::vector<Line>>;
  explicit Writer(const Blocks& blocks) : blocks_(blocks) {}

  /// Where names of a block lead to.
  struct Scope {
    std::string prefix;                 ///< of names
    std::string input;                  ///< the layer that a block reads
    Values parameters;                  ///< of the block
    std::map<std::string, int> used{};  ///< parameters that were
    int depth = 0;
  };
  /// Appends the lines; returns the last layer.
  std::string write(const std::vector<Line>& lines, Scope& scope) {
    std::string last = scope.input;
    for (const Line& line : lines) {
      std::vector<std::string> inputs;
      for (const std::string& name : line.inputs) inputs.push_back(resolve(line, name, scope));
      if (inputs.empty()) inputs = {last};
      const auto block = blocks_.find(line.what);
      last =
          block == blocks_.end() ? write_layer(line, inputs, scope) : write_blocks(line, block->second, inputs, scope);
      names_[scope.prefix + line.name] = last;
    }
    return last;
  }
  std::vector<LayerSpec> take() { return std::move(layers_); }

 private:
  std::string resolve(const Line& line, const std::string& name, const Scope& scope) const {
    if (name == block_input && scope.depth > 0) return scope.input;
    if (name == images) return images;
    for (const std::string& full : {scope.prefix + name, name})
      if (const auto found = names_.find(full); found != names_.end()) return found->second;
    refuse(line, fmt::format("reads '{}', but no earlier line has this name", name));
  }

  /// `4*width`: products of numbers and of the block's parameters. Other words stay.
  std::string value_of(const Line& line, const std::string& text, Scope& scope) const {
    std::vector<std::string> factors;
    std::istringstream stream(text);
    for (std::string factor; std::getline(stream, factor, '*');) {
      const auto parameter = scope.parameters.find(factor);
      if (parameter != scope.parameters.end()) ++scope.used[factor];
      factors.push_back(parameter == scope.parameters.end() ? factor : parameter->second);
    }
    if (text.ends_with('*')) refuse(line, fmt::format("has nothing behind the last '*' of '{}'", text));
    if (factors.size() == 1) return factors.front();
    Index product = 1;
    for (const std::string& factor : factors) {
      Index number = 0;
      const auto [end, error] = std::from_chars(factor.data(), factor.data() + factor.size(), number);
      if (error != std::errc{} || end != factor.data() + factor.size())
        refuse(line, fmt::format("multiplies '{}' in '{}', which is not a whole number", factor, text));
      if (__builtin_mul_overflow(product, number, &product))
        refuse(line, fmt::format("multiplies '{}', which is too large", text));
    }
    return fmt::format("{}", product);
  }

  std::string write_layer(const Line& line, std::vector<std::string> inputs, Scope& scope) {
    LayerSpec layer{.name = scope.prefix + line.name,
                    .operation = line.what,
                    .fields = {},
                    .inputs = std::move(inputs),
                    .origin = line.origin};
    for (const auto& [key, value] : line.values) layer.fields[key] = value_of(line, value, scope);
    layers_.push_back(layer);
    return layer.name;
  }

  std::string write_blocks(const Line& line, const std::vector<Line>& block, const std::vector<std::string>& inputs,
                           Scope& scope) {
    constexpr int deepest = 8;
    if (scope.depth == deepest)
      refuse(line, fmt::format("nests blocks {} deep; does '{}' contain itself?", deepest, line.what));
    if (inputs.size() != 1) refuse(line, fmt::format("gives a block {} inputs; it has one, 'in'", inputs.size()));
    Values parameters;
    for (const auto& [key, value] : line.values)
      if (key != repeat_key && key != first_key) parameters[key] = value_of(line, value, scope);
    const bool repeats = line.values.count(repeat_key) > 0 || line.values.count(first_key) > 0;
    const Index count = line.values.count(repeat_key) > 0 ? read_count(line, repeat_key, 1) : 1;
    const Index first = line.values.count(first_key) > 0 ? read_count(line, first_key, 0) : 0;
    std::string last = inputs.front();
    for (Index i = first; i < first + count; ++i) {
      const std::string name = scope.prefix + line.name + (repeats ? fmt::format(".{}", i) : "");
      Scope inner{.prefix = name + ".", .input = last, .parameters = parameters, .depth = scope.depth + 1};
      last = write(block, inner);
      names_[name] = last;
      for (const auto& [key, value] : parameters)
        if (inner.used.count(key) == 0)
          refuse(line, fmt::format("gives '{}', which the block '{}' doesn't use", key, line.what));
    }
    return last;
  }

  const Blocks& blocks_;
  std::map<std::string, std::string> names_;  ///< of lines; to the last layer of each
  std::vector<LayerSpec> layers_;
};

std::string text_of(const LayerSpec& layer, const std::string& before) {
  std::string text = layer.operation;
  for (const auto& [key, value] : layer.fields) text += fmt::format(" {}={}", key, value);
  const bool follows = layer.inputs.size() == 1 && layer.inputs.front() == before;
  return follows ? text : fmt::format("{} {}={}", text, from_key, fmt::join(layer.inputs, ","));
}

}  // namespace

NetworkFile read_network_file(const std::string& text, const std::string& path) {
  NetworkFile network;
  std::vector<Line> lines;
  Writer::Blocks blocks;
  for (const IniLine& ini : ini_lines(text)) {
    const std::string origin = fmt::format("{}:{}", path, ini.number);
    const bool header = ini.key.empty() && ini.text.front() == '[';
    const bool is_block = ini.section.starts_with("block ");
    const std::string block = is_block ? trimmed(ini.section.substr(6)) : "";
    if (header) {
      if (ini.section != "network" && block.empty())
        fail(Exit::usage, "{}: unknown section [{}]; there are [network] and [block NAME]", origin, ini.section);
      if (is_block && !blocks.emplace(block, std::vector<Line>()).second)
        fail(Exit::usage, "{}: a second block '{}'", origin, block);
      continue;
    }
    if (ini.key.empty()) fail(Exit::usage, "{}: '{}' is no 'NAME = OPERATION key=value ...'", origin, ini.text);
    if (ini.section.empty()) {
      if (ini.key != "name")
        fail(Exit::usage,
             "{}: unknown key '{}' before the first section; only 'name' is allowed there, layers belong in [network]",
             origin, ini.key);
      network.name = ini.value;
      continue;
    }
    try {
      Line line = read_line(ini.key, ini.value);
      line.origin = origin;
      (is_block ? blocks[block] : lines).push_back(std::move(line));
    } catch (const BadValue& error) {
      fail(Exit::usage, "{}: '{}' {}", origin, ini.key, error.what());
    }
  }
  if (lines.empty())
    fail(Exit::usage, "'{}' describes no network: it has no lines in [network]; see docs/networks.md", path);
  for (const auto& [name, block] : blocks)
    if (block.empty()) fail(Exit::usage, "'{}': the block '{}' is empty", path, name);
  if (network.name.empty()) fail(Exit::usage, "'{}' doesn't name its network; begin it with 'name = WORD'", path);
  Writer writer(blocks);
  Writer::Scope whole{.prefix = {}, .input = images, .parameters = {}, .depth = 0};
  writer.write(lines, whole);
  network.layers = writer.take();
  return network;
}

std::string print_network_file(const NetworkFile& network) {
  std::string text = fmt::format("name = {}\n\n[network]\n", network.name), before = images;
  for (const LayerSpec& layer : network.layers) {
    text += fmt::format("{} = {}\n", layer.name, text_of(layer, before));
    before = layer.name;
  }
  return text;
}

std::string to_line(const std::vector<LayerSpec>& layers, Origins origins) {
  // A path may hold what stands between layers. The origin is for messages only.
  const auto without_separator = [](std::string origin) {
    for (std::size_t at; (at = origin.find(between_layers)) != std::string::npos;) origin.erase(at, 1);
    return origin;
  };
  std::string line, before = images;
  for (const LayerSpec& layer : layers) {
    line += fmt::format("{}{} = {}", line.empty() ? "" : between_layers, layer.name, text_of(layer, before));
    if (origins == Origins::kept && !layer.origin.empty()) line += before_origin + without_separator(layer.origin);
    before = layer.name;
  }
  return line;
}

std::vector<LayerSpec> layers_of_line(const std::string& line) {
  std::vector<LayerSpec> layers;
  std::string before = images;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(between_layers, at), line.size());
    std::string text = line.substr(at, end - at), origin;
    at = end + between_layers.size();
    if (const std::size_t mark = text.find(before_origin); mark != std::string::npos) {
      origin = text.substr(mark + before_origin.size());
      text.resize(mark);
    }
    const std::size_t equals = text.find(" = ");
    if (equals == std::string::npos) throw BadValue("holds '" + text + "', which is no layer");
    Line read = read_line(text.substr(0, equals), text.substr(equals + 3));
    if (read.inputs.empty()) read.inputs = {before};
    before = read.name;
    layers.push_back({.name = read.name,
                      .operation = read.what,
                      .fields = std::move(read.values),
                      .inputs = std::move(read.inputs),
                      .origin = origin});
  }
  return layers;
}

}  // namespace convoy
