// SPDX-License-Identifier: Apache-2.0
#include "scaling/machine.hpp"

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

/// What a machine can have; beyond it a unit is wrong, or a sign.
struct Plausible {
  double most;
  const char* hint;
};
constexpr Plausible message_seconds{.most = 10, .hint = "it counts seconds"},
    byte_seconds{.most = 1e-3, .hint = "it counts seconds per byte, which is 1 / bandwidth"},
    step_seconds{.most = 1e5, .hint = "it counts seconds"};
constexpr double most_ranks = 1 << 24, most_pixels = 1 << 20, most_images = 1 << 30;

void require(bool holds, const std::string& name, double value, const std::string& wanted) {
  if (!holds) throw std::invalid_argument(fmt::format("'{}' is {}; {}", name, value, wanted));
}

double part(const Json& json, const std::string& name) {
  const double value = json.value(name, 0.0);
  require(value >= 0 && value <= 1, name, value, "it must be a part between 0 and 1");
  return value;
}

Index whole(const std::string& name, double value, Index least, double most) {
  require(value == std::floor(value) && value >= static_cast<double>(least) && value <= most, name, value,
          fmt::format("it must be a whole number from {} to {:.0f}", least, most));
  return static_cast<Index>(value);
}

/// `otherwise` where there is none.
int count(const Json& json, const char* name, int least, int otherwise) {
  return static_cast<int>(whole(name, json.value(name, static_cast<double>(otherwise)), least, most_ranks));
}

Term term(const Json& json, const std::string& name, const Plausible& plausible) {
  const auto value = json.at(name).as<double>();
  require(value >= 0 && value <= plausible.most, name, value,
          fmt::format("it must be a number from 0 to {} ({})", plausible.most, plausible.hint));
  return {.value = value, .error = part(json, name + "_error")};
}

std::optional<Link> link(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (found == nullptr) return std::nullopt;
  Link link{.seconds_per_message = term(*found, "seconds_per_message", message_seconds),
            .seconds_per_byte = term(*found, "seconds_per_byte", byte_seconds),
            .measured = found->value("measured", false),
            .ranks = count(*found, "ranks", 0, 0),
            .transport = found->value("transport", "")};
  if (!link.transport.empty() && link.transport != "mpi" && link.transport != "nccl")
    throw std::invalid_argument(fmt::format("'transport' is '{}'; it must be mpi or nccl", link.transport));
  // A fit leaves out one of them, never both.
  if (link.seconds_per_message.value == 0 && link.seconds_per_byte.value == 0)
    throw std::invalid_argument(fmt::format("'{}' takes no time: both of its terms are 0", name));
  return link;
}

void put(Json& json, const std::string& name, const Term& term) {
  json[name] = term.value;
  json[name + "_error"] = term.error;
}

Json to_json(const Link& link) {
  Json json = Json::object();
  put(json, "seconds_per_message", link.seconds_per_message);
  put(json, "seconds_per_byte", link.seconds_per_byte);
  json.set({{"measured", link.measured}, {"ranks", link.ranks}, {"transport", link.transport}});
  return json;
}

/// Those of older files are the usual ones.
StepConditions conditions_of(const Json& json) {
  const StepConditions usual;
  return {.recompute = json.value("recompute", usual.recompute),
          .kernels = json.value("kernels", usual.kernels),
          .tuning = json.value("tuning", usual.tuning)};
}

StepTime step_of(const Json& json) {
  StepTime step{.model = json.at("model").as<std::string>(),
                .precision = json.value("precision", "fp32"),
                .image_size = whole("image_size", json.at("image_size").as<double>(), 1, most_pixels),
                .batch = whole("batch", json.at("batch").as<double>(), 1, most_images),
                .ranks_per_host = count(json, "ranks_per_host", 1, 1),
                .threads = count(json, "threads", 0, 0),
                .conditions = conditions_of(json),
                .seconds = term(json, "seconds", step_seconds),
                .measured = json.value("measured", false)};
  require(step.seconds.value > 0, "seconds", step.seconds.value, "a step takes time");
  return step;
}

Json to_json(const StepTime& step) {
  Json json = Json::object({{"model", step.model},
                            {"image_size", step.image_size},
                            {"precision", step.precision},
                            {"batch", step.batch},
                            {"ranks_per_host", step.ranks_per_host},
                            {"threads", step.threads},
                            {"recompute", step.conditions.recompute},
                            {"kernels", step.conditions.kernels},
                            {"tuning", step.conditions.tuning}});
  put(json, "seconds", step.seconds);
  json["measured"] = step.measured;
  return json;
}

/// A second time of the same step would stand for it or not by chance.
void add_step(Machine& machine, StepTime step) {
  for (const StepTime& other : machine.steps)
    if (is_same_step(other, step))
      throw std::invalid_argument(
          fmt::format("two of 'steps' are of {} with batch {} under the same conditions", step.model, step.batch));
  machine.steps.push_back(std::move(step));
}

Machine parse(const Json& json) {
  Machine machine{.name = json.at("name").as<std::string>(),
                  .note = json.value("note", ""),
                  .cores_per_host = count(json, "cores_per_host", 0, 0),
                  .ranks_per_host = count(json, "ranks_per_host", 1, 1),
                  .inside = link(json, "inside"),
                  .between = link(json, "between"),
                  .overlap = part(json, "overlap"),
                  .overlap_measured = json.value("overlap_measured", false),
                  .steps = {}};
  if (const Json* const steps = json.find("steps")) {
    if (!steps->is_list()) throw std::invalid_argument("'steps' is no list");
    for (const Json& step : steps->items()) add_step(machine, step_of(step));
  }
  return machine;
}

}  // namespace

bool is_same_step(const StepTime& a, const StepTime& b) {
  return a.model == b.model && a.precision == b.precision && a.image_size == b.image_size && a.batch == b.batch &&
         a.ranks_per_host == b.ranks_per_host && a.threads == b.threads && a.conditions == b.conditions;
}

std::string StepConditions::words() const {
  const StepConditions usual;
  std::string text;
  if (recompute != usual.recompute) text += " --recompute " + recompute;
  if (kernels != usual.kernels) text += " --kernels " + kernels;
  if (tuning != usual.tuning) text += " --tuning " + tuning;
  return text;
}

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
  if (!std::filesystem::exists(path)) {
    Machine machine;
    machine.name = name.empty() ? "this machine" : name;
    return machine;
  }
  Machine machine = read_machine(path);
  if (!name.empty() && name != machine.name)
    fail(
        Exit::usage,
        "'{}' describes '{}', but --machine-name says '{}'; leave --machine-name out, or give another file as --machine",
        path, machine.name, name);
  return machine;
}

}  // namespace convoy
