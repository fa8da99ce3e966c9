// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/kernel_selector.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

char letter_of(Fusion fusion, bool statistics) {
  constexpr char letters[] = {'-', 'n', 'j', 'd'}, with_statistics[] = {'s', 'N', 'J', 'D'};
  const auto i = static_cast<std::size_t>(fusion);
  return statistics ? with_statistics[i] : letters[i];
}

/// Elements that a hidden tensor would have: of what a pass makes, or reads to sum over.
Index hidden_elements(const ConvolutionGraph& graph) {
  const Index x = graph.n * graph.c * graph.h * graph.w, y = graph.n * graph.k * graph.p() * graph.q();
  if (graph.pass == Pass::forward) return y;
  return graph.pass == Pass::data_gradient ? x : std::max(x, y);
}

/// Tensors as large as x that a data gradient through the fusion spares, kernels of ours in exchange. Plain: it writes
/// dz; a reduction reads dz (add) x (other) and, at a join with a shortcut, a mask of a bit an element, and writes g
/// where others want it; the apply reads them again or g. Fused: it reads x (other), writes g; the apply reads g.
double tensors_spared(Fusion fusion, bool adds) {
  switch (fusion) {
    case Fusion::none:
      return 0;
    case Fusion::norm:
      return adds ? 2 : 1;  // 6 or 8 tensors, against 5 or 6
    case Fusion::join:
      return 1;  // 7 or 8, against 6 or 7
    case Fusion::join_norms:
      return adds ? 2 : 1;  // 9 or 11, against 8 or 9
  }
  return 0;
}

[[noreturn]] void refuse(const std::string& text) {
  fail(
      Exit::usage,
      "kernel choices '{:.40}' don't fit this program (made by another version, card or library, or for another batch); if ranks have different cards use --tuning rule; otherwise change --tuning, so that kernels are chosen anew",
      text);
}

}  // namespace

Index hidden_bytes(const ConvolutionGraph& graph, const Operation& operation) {
  const Index bytes = operation.workspace_bytes();
  return bytes > hidden_elements(graph) ? 2 * bytes : 0;
}

KernelSelector::KernelSelector(const ExecutionSpec& spec, const Lowering& lowering) : spec_(spec), lowering_(lowering) {
  std::istringstream words(spec.compile.options);
  for (std::string word; words >> word;) {
    if (word == no_fusion) {
      fuses_ = Fuses::nothing;
    } else if (word == statistics_only) {
      fuses_ = Fuses::statistics;
    } else if (word == one_stream) {
      streams_ = Streams::one;
    } else {
      fail(Exit::usage, "the CUDA backend has no kernel option '{}' (it has {}, {}, {}); leave it out", word, no_fusion,
           statistics_only, one_stream);
    }
  }
  if (!spec.compile.choices.empty()) read(spec.compile.choices);
}

Fusion KernelSelector::fusion_of(int convolution) const {
  const Value& reader = lowering_.values[index_of(convolution)];
  const Value& source = lowering_.values[index_of(reader.sources[0])];
  if (source.kind != ValueKind::group || source.activation != ActivationKind::relu || source.terms[0].norm < 0)
    return Fusion::none;
  if (convolution_shape(spec_.plan, lowering_, reader).reads != source.layout)
    return Fusion::none;  // a flattened tensor: its channels are not the norm's
  if (!joins(source)) return Fusion::norm;
  return source.terms[1].norm >= 0 ? Fusion::join_norms : Fusion::join;
}

ConvolutionGraph KernelSelector::graph_of(int convolution, Pass pass) const {
  const ConvolutionShape shape = convolution_shape(spec_.plan, lowering_, lowering_.values[index_of(convolution)]);
  return {.pass = pass,
          .precision = spec_.compile.precision,
          .n = spec_.compile.samples,
          .c = shape.reads.c,
          .h = shape.reads.h,
          .w = shape.reads.w,
          .k = shape.k,
          .r = shape.r,
          .s = shape.s,
          .pad = shape.pad,
          .pad_w = shape.pad_w,
          .stride = shape.stride,
          .groups = shape.groups};
}

/// A plan that hides no tensor in its workspace comes first, whatever the heuristics prefer.
std::shared_ptr<Operation> KernelSelector::find(const ConvolutionGraph& graph) {
  if (given_.empty() && fuses_ != Fuses::everything) {
    if (graph.fusion != Fusion::none) return nullptr;
    if (graph.statistics && fuses_ == Fuses::nothing) return nullptr;
  }
  const auto given = given_engines_.find(describe(graph));
  const auto any = [&](const std::string& engine) {
    return spec_.cudnn.find(graph, {workspace_limit_, engine, Kernels::any});
  };
  if (given != given_engines_.end()) return any(given->second);
  constexpr Index floor_bytes = 8 << 20;
  auto operation = spec_.cudnn.find(graph, {std::max(hidden_elements(graph), floor_bytes), {}});
  if (!operation) operation = spec_.cudnn.find(graph, {workspace_limit_, {}});
  // Fused graphs that are compiled at run time are not known to be fast; a convolution must be computed somehow.
  const bool plain = graph.fusion == Fusion::none && !graph.statistics;
  return operation || !plain ? operation : any({});
}

SelectedKernel KernelSelector::need(int convolution, const ConvolutionGraph& graph) {
  const bool known = given_.empty() || given_engines_.count(describe(graph)) != 0;
  auto operation = known ? find(graph) : nullptr;
  if (!operation && !given_.empty()) refuse(spec_.compile.choices);
  if (!operation) {
    const NodeId node = lowering_.values[index_of(convolution)].node;
    fail(Exit::device, "{} has no plan for node '{}' ({}); choose another precision or batch size", spec_.cudnn.name(),
         spec_.plan.graph.nodes[index_of(node)].name, describe(graph));
  }
  engines_[describe(graph)] = operation->engine();
  return {graph, std::move(operation)};
}

Index KernelSelector::activation_bytes(int value) const {
  return spec_.compile.samples * elements_of(lowering_.values[index_of(value)].layout) * bytes_of(spec_.copies.storage);
}

bool KernelSelector::in_prologues(int group) {
  const auto known = prologues_.find(group);
  if (known != prologues_.end()) return known->second;
  bool& result = prologues_[group];
  const Value& value = lowering_.values[index_of(group)];
  if (!value.groups.empty() || !value.norms.empty() || value.operations.empty()) return false;
  Index hidden = 0;
  for (const int reader : value.operations) {
    const Value& convolution = lowering_.values[index_of(reader)];
    if (!is_convolution(spec_.plan, convolution) || fusion_of(reader) != Fusion::norm) return false;
    if (!given_.empty()) {
      const auto given = given_.find(reader);
      if (given == given_.end() || (given->second.forward != 'n' && given->second.forward != 'N')) return false;
      continue;
    }
    const bool differentiates =
        spec_.compile.mode == Mode::train &&
        spec_.plan.table.rows[index_of(lowering::parameter_row(spec_.plan, convolution.node, 0))].trainable;
    for (const Pass pass : {Pass::forward, Pass::weight_gradient}) {
      if (pass == Pass::weight_gradient && !differentiates) continue;
      ConvolutionGraph graph = graph_of(reader, pass), plain = graph;
      graph.fusion = Fusion::norm;
      graph.statistics = plain.statistics = pass == Pass::forward && spec_.compile.mode != Mode::evaluate;
      auto fused = find(graph);
      if (!fused && spec_.compile.mode == Mode::evaluate) {
        graph.statistics = true;  // left unread
        fused = find(graph);
      }
      if (!fused) return false;
      hidden += hidden_bytes(graph, *fused);
      if (hidden_bytes(graph, *fused) == 0) continue;
      const auto other = find(plain);
      if (other) hidden -= hidden_bytes(plain, *other);
    }
  }
  return result = hidden < 2 * activation_bytes(group);  // what an apply would read and write
}

std::optional<SelectedKernel> KernelSelector::forward(int convolution, Fusion fusion, bool statistics) {
  const Value& value = lowering_.values[index_of(convolution)];
  ConvolutionGraph graph = graph_of(convolution, Pass::forward);
  graph.fusion = fusion;
  graph.statistics = statistics;
  Selection& selection = selected_[convolution];
  if (!given_.empty()) {
    const char given = given_[convolution].forward;
    if (joins(fusion) && given != letter_of(fusion, false) && given != letter_of(fusion, true)) return std::nullopt;
    graph.statistics = std::isupper(static_cast<unsigned char>(given)) != 0 || given == 's';
    if (given != letter_of(fusion, graph.statistics)) refuse(spec_.compile.choices);
  } else {
    if (joins(fusion)) {
      auto operation = find(graph);
      if (!operation && !statistics) {
        graph.statistics = true;  // left unread
        operation = find(graph);
      }
      if (!operation) return std::nullopt;
      // Spared: the convolution's second reading of z.
      if (hidden_bytes(graph, *operation) >= activation_bytes(value.sources[0])) return std::nullopt;
    }
    // Prologues exist with statistics only on some cards, plain convolutions of odd channels without only.
    if (!find(graph)) graph.statistics = !graph.statistics && fusion != Fusion::none;
  }
  selection.forward = letter_of(fusion, graph.statistics);
  return need(convolution, graph);
}

SelectedKernel KernelSelector::data_gradient(int convolution, Fusion fusion, bool adds) {
  const ConvolutionGraph plain = graph_of(convolution, Pass::data_gradient);
  ConvolutionGraph fused = plain;
  fused.fusion = fusion;
  fused.adds = adds;
  Selection& selection = selected_[convolution];
  bool takes = fusion != Fusion::none;
  if (takes && !given_.empty()) {
    takes = given_[convolution].data == letter_of(fusion, false);
  } else if (takes) {
    const auto operation = find(fused);
    takes = operation != nullptr;
    if (takes && hidden_bytes(fused, *operation) > 0) {
      const Index spared =
          static_cast<Index>(tensors_spared(fusion, adds) *
                             static_cast<double>(activation_bytes(lowering_.values[index_of(convolution)].sources[0])));
      const auto other = find(plain);
      takes = hidden_bytes(fused, *operation) < spared + (other ? hidden_bytes(plain, *other) : 0);
    }
  }
  selection.data = letter_of(takes ? fusion : Fusion::none, false);
  if (!given_.empty() && given_[convolution].data != selection.data) refuse(spec_.compile.choices);
  return need(convolution, takes ? fused : plain);
}

SelectedKernel KernelSelector::weight_gradient(int convolution, Fusion fusion) {
  ConvolutionGraph graph = graph_of(convolution, Pass::weight_gradient);
  graph.fusion = fusion;
  selected_[convolution].weight = letter_of(fusion, false);
  return need(convolution, graph);
}

std::string KernelSelector::text() const {
  std::string text;
  for (const auto& [convolution, selection] : selected_)
    text += std::string(text.empty() ? "" : " ") + selection.forward + selection.data + selection.weight;
  for (const auto& [graph, engine] : engines_) text += '|' + graph + '=' + engine;
  return text;
}

void KernelSelector::read(const std::string& text) {
  const std::size_t end = std::min(text.find('|'), text.size());
  std::istringstream words(text.substr(0, end));
  for (std::size_t i = 0; i < lowering_.values.size(); ++i) {
    if (!is_convolution(spec_.plan, lowering_.values[i]) || !lowering_.values[i].used) continue;
    std::string word;
    if (!(words >> word) || word.size() != 3) refuse(text);
    given_[static_cast<int>(i)] = {word[0], word[1], word[2]};
  }
  std::string more;
  if (given_.empty() || words >> more) refuse(text);
  std::istringstream graphs(text.substr(end));
  for (std::string graph; std::getline(graphs, graph, '|');) {
    if (graph.empty()) continue;
    const std::size_t equals = graph.find('=');  // an engine's name may hold more of them
    if (equals == std::string::npos) refuse(text);
    given_engines_[graph.substr(0, equals)] = graph.substr(equals + 1);
  }
}

}  // namespace convoy::cuda
