// SPDX-License-Identifier: Apache-2.0
#include "network/taken_name.hpp"

#include "core/errors.hpp"
#include "network/plan.hpp"

namespace convoy {

bool has_taken_name(const GraphSpec& spec) {
  if (spec.layers.empty()) return false;
  GraphSpec named = spec;
  named.layers.clear();
  named.model = spec.model.substr(0, spec.model.find(' '));  // a full name begins with that for --model
  Plan like;
  try {
    like = make_plan(build_graph(named), {});
  } catch (const Error&) {  // Convoy has none of this name, or not for these images
    return false;
  }
  if (spec.model != named.model && spec.model != like.graph.model) return false;
  return make_plan(build_graph(spec), {}).digest != like.digest;
}

}  // namespace convoy
