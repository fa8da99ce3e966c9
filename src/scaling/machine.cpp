// SPDX-License-Identifier: Apache-2.0
#include "scaling/machine.hpp"

#include <filesystem>
#include <stdexcept>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

double number(const Json& json, const char* name, double least) {
  const auto value = json.at(name).as<double>();
  if (!(value >= least)) throw std::invalid_argument(fmt::format("'{}' is {}, below {}", name, value, least));
  return value;
}

Term term(const Json& json, const std::string& name) {
  return {.value = number(json, name.c_str(), 0), .error = json.value(name + "_error", 0.0)};
}

std::optional<Link> link(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (found == nullptr) return std::nullopt;
  return Link{.seconds_per_message = term(*found, "seconds_per_message"),
              .seconds_per_byte = term(*found, "seconds_per_byte"),
              .measured = found->value("measured", false),
              .ranks = found->value("ranks", 0)};
}

void put(Json& json, const std::string& name, const Term& term) {
  json[name] = term.value;
  json[name + "_error"] = term.error;
}

Json to_json(const Link& link) {
  Json json = Json::object();
  put(json, "seconds_per_message", link.seconds_per_message);
  put(json, "seconds_per_byte", link.seconds_per_byte);
  json.set({{"measured", link.measured}, {"ranks", link.ranks}});
  return json;
}

StepTime step_of(const Json& json) {
  return {.model = json.at("model").as<std::string>(),
          .precision = json.value("precision", "fp32"),
          .image_size = json.at("image_size").as<Index>(),
          .batch = static_cast<Index>(number(json, "batch", 1)),
          .ranks_per_host = json.value("ranks_per_host", 1),
          .threads = json.value("threads", 0),
          .seconds = term(json, "seconds"),
          .measured = json.value("measured", false)};
}

Json to_json(const StepTime& step) {
  Json json = Json::object({{"model", step.model},
                            {"image_size", step.image_size},
                            {"precision", step.precision},
                            {"batch", step.batch},
                            {"ranks_per_host", step.ranks_per_host},
                            {"threads", step.threads}});
  put(json, "seconds", step.seconds);
  json["measured"] = step.measured;
  return json;
}

Machine parse(const Json& json) {
  Machine machine{.name = json.at("name").as<std::string>(),
                  .note = json.value("note", ""),
                  .cores_per_host = json.value("cores_per_host", 0),
                  .ranks_per_host = json.value("ranks_per_host", 1),
                  .inside = link(json, "inside"),
                  .between = link(json, "between"),
                  .overlap = json.value("overlap", 0.0),
                  .overlap_measured = json.value("overlap_measured", false),
                  .steps = {}};
  if (machine.overlap < 0 || machine.overlap > 1) throw std::invalid_argument("'overlap' is a part between 0 and 1");
  if (machine.ranks_per_host < 1) throw std::invalid_argument("'ranks_per_host' is below 1");
  if (const Json* const steps = json.find("steps"))
    for (const Json& step : steps->items()) machine.steps.push_back(step_of(step));
  return machine;
}

}  // namespace

Machine read_machine(const std::string& path) {
  try {
    const std::optional<std::string> text = text_of_file(path);
    if (!text) fail(Exit::usage, "there is no file '{}' that describes a machine; check --machine", path);
    return parse(Json::parse(*text));
  } catch (const std::invalid_argument& e) {
    fail(Exit::usage,
         "'{}' describes no machine ({}); 'convoy bench comm --machine FILE' writes one, docs/scaling.md has the keys",
         path, e.what());
  }
}

void write_machine(const std::string& path, const Machine& machine) {
  Json json = Json::object({{"name", machine.name}, {"note", machine.note}});
  json.set({{"cores_per_host", machine.cores_per_host}, {"ranks_per_host", machine.ranks_per_host}});
  if (machine.inside) json["inside"] = to_json(*machine.inside);
  if (machine.between) json["between"] = to_json(*machine.between);
  json.set({{"overlap", machine.overlap}, {"overlap_measured", machine.overlap_measured}});
  json["steps"] = Json::list();
  for (const StepTime& step : machine.steps) json["steps"].add(to_json(step));
  replace_text_file(path, json.text(2, Json::Order::as_written) + "\n");
}

Machine machine_to_extend(const std::string& path, const std::string& name) {
  if (std::filesystem::exists(path)) return read_machine(path);
  Machine machine;
  machine.name = name;
  return machine;
}

}  // namespace convoy
