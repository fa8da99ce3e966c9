// SPDX-License-Identifier: Apache-2.0
#include "backend/factory.hpp"

#include <stdexcept>

#include "backend/cpu/instruction_set.hpp"
#include "backend/cuda/load.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"

namespace convoy {

std::unique_ptr<Backend> make_backend(const BackendSpec& spec, std::string& chosen) {
  if (spec.device != "auto" && spec.device != "cpu" && spec.device != "cuda")
    fail(Exit::usage, "unknown device '{}' (it is auto, cpu or cuda)", spec.device);
  if (spec.device == "cpu") {
    chosen = "cpu (as asked)";
    return make_cpu_backend(spec.threads);
  }
  std::string reason;
  if (auto cuda = load_cuda_backend(spec, reason)) {
    chosen = spec.device == "cuda" ? "cuda (as asked)" : "cuda (a GPU was found)";
    return cuda;
  }
  if (spec.device == "cuda") fail(Exit::device, "--device cuda is not possible: {}, or use --device cpu", reason);
  chosen = fmt::format("cpu ({})", reason);
  return make_cpu_backend(spec.threads);
}

std::string describe_on_card(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  return describe_cuda_program(card, plan, spec);
}

Index arena_on_card(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  return arena_on_cuda_card(card, plan, spec);
}

Index updater_floats_on_card(const Plan& plan, const OptimiserSpec& spec) {
  return updater_floats_on_cuda_card(plan, spec);
}

double memory_of_card(const std::string& card) {
  try {
    return Json::parse(card).at("totalGlobalMem").as<double>();
  } catch (const std::invalid_argument& error) {
    fail(Exit::usage, "the card's description has no 'totalGlobalMem' ({}); see docs/cuda.md", error.what());
  }
}

double free_device_memory() { return free_cuda_memory(); }

std::string backend_versions() { return cpu::onednn_version() + "\n" + cuda_version() + "\n"; }

}  // namespace convoy
