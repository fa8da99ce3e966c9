// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/chooser.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

char letter_of(Border border, bool statistics) {
  constexpr char letters[] = {'-', 'n', 'j', 'd'}, with_statistics[] = {'s', 'N', 'J', 'D'};
  const auto i = static_cast<std::size_t>(border);
  return statistics ? with_statistics[i] : letters[i];
}

/// Elements that a hidden tensor would have: of what a pass makes, or reads to sum over.
Index elements_of(const Form& form) {
  const Index x = form.n * form.c * form.h * form.w, y = form.n * form.k * form.p() * form.q();
  if (form.pass == Pass::forward) return y;
  return form.pass == Pass::data_gradient ? x : std::max(x, y);
}

/// Tensors as large as x that a data gradient through the border spares, kernels of ours in exchange. Plain: it writes
/// dz; a reduction reads dz (add) x (other) and, at a join with a shortcut, a mask of a bit an element, and writes g
/// where others want it; the apply reads them again or g. Fused: it reads x (other), writes g; the apply reads g.
double tensors_spared(Border border, bool adds) {
  switch (border) {
    case Border::none:
      return 0;
    case Border::norm:
      return adds ? 2 : 1;  // 6 or 8 tensors, against 5 or 6
    case Border::join:
      return 1;  // 7 or 8, against 6 or 7
    case Border::join_norms:
      return adds ? 2 : 1;  // 9 or 11, against 8 or 9
  }
  return 0;
}

[[noreturn]] void refuse(const std::string& text) {
  fail(Exit::usage,
       "kernel choices '{:.40}' don't fit this program (made by another version, card or library, or for another "
       "batch); where ranks have unlike cards take --tuning rule, else change --tuning: then they are made anew",
       text);
}

}  // namespace

Border border_of(const Value& source, const Value& convolution) {
  if (source.kind != ValueKind::group || source.act.curve != Curve::relu || source.terms[0].norm < 0)
    return Border::none;
  if (convolution.reads != source.extent) return Border::none;  // a flattened tensor: its channels are not the norm's
  if (!source.joins()) return Border::norm;
  return source.terms[1].norm >= 0 ? Border::join_norms : Border::join;
}

Index hidden_bytes(const Form& form, const Operation& operation) {
  const Index bytes = operation.workspace_bytes();
  return bytes > elements_of(form) ? 2 * bytes : 0;
}

Chooser::Chooser(const RecipeSpec& spec, const Lowering& lowering) : spec_(spec), lowering_(lowering) {
  std::istringstream words(spec.compile.options);
  for (std::string word; words >> word;) {
    if (word == no_fusion) {
      fuses_ = Fuses::nothing;
    } else if (word == statistics_only) {
      fuses_ = Fuses::statistics;
    } else {
      fail(Exit::usage, "the CUDA backend has no kernel option '{}' (it has {}, {}); leave it out", word, no_fusion,
           statistics_only);
    }
  }
  if (!spec.compile.choices.empty()) read(spec.compile.choices);
}

Form Chooser::form_of(int convolution, Pass pass) const {
  const Value& value = lowering_.values[static_cast<std::size_t>(convolution)];
  const Window& window = value.window;
  return {.pass = pass,
          .precision = spec_.compile.precision,
          .n = spec_.compile.samples,
          .c = value.reads.c,
          .h = value.reads.h,
          .w = value.reads.w,
          .k = window.k,
          .r = window.r,
          .s = window.s,
          .pad = window.pad,
          .stride = window.stride,
          .groups = window.groups};
}

/// A plan that hides no tensor in its workspace comes first, whatever the heuristics prefer.
std::shared_ptr<Operation> Chooser::find(const Form& form) {
  if (given_.empty() && fuses_ != Fuses::everything) {
    if (form.border != Border::none) return nullptr;
    if (form.statistics && fuses_ == Fuses::nothing) return nullptr;
  }
  const auto given = given_engines_.find(describe(form));
  const auto any = [&](const std::string& engine) {
    return spec_.library.find(form, {workspace_limit_, engine, Kernels::any});
  };
  if (given != given_engines_.end()) return any(given->second);
  constexpr Index floor_bytes = 8 << 20;
  auto operation = spec_.library.find(form, {std::max(elements_of(form), floor_bytes), {}});
  if (!operation) operation = spec_.library.find(form, {workspace_limit_, {}});
  // Fused forms that are compiled at run time are not known to be fast; a convolution must be computed somehow.
  const bool plain = form.border == Border::none && !form.statistics;
  return operation || !plain ? operation : any({});
}

Chosen Chooser::need(int convolution, const Form& form) {
  const bool known = given_.empty() || given_engines_.count(describe(form)) != 0;
  auto operation = known ? find(form) : nullptr;
  if (!operation && !given_.empty()) refuse(spec_.compile.choices);
  if (!operation) {
    const NodeId node = lowering_.values[static_cast<std::size_t>(convolution)].node;
    fail(Exit::device, "{} has no plan for node '{}' ({}); choose another precision or batch size",
         spec_.library.name(), spec_.plan.graph.nodes[static_cast<std::size_t>(node)].name, describe(form));
  }
  engines_[describe(form)] = operation->engine();
  return {form, std::move(operation)};
}

Index Chooser::activation_bytes(int value) const {
  return spec_.compile.samples * lowering_.values[static_cast<std::size_t>(value)].extent.count() *
         bytes_of(spec_.copies.storage);
}

bool Chooser::in_prologues(int group) {
  const auto known = prologues_.find(group);
  if (known != prologues_.end()) return known->second;
  bool& result = prologues_[group];
  const Value& value = lowering_.values[static_cast<std::size_t>(group)];
  if (!value.groups.empty() || !value.norms.empty() || value.operations.empty()) return false;
  Index hidden = 0;
  for (const int reader : value.operations) {
    const Value& convolution = lowering_.values[static_cast<std::size_t>(reader)];
    if (convolution.kind != ValueKind::convolution || border_of(value, convolution) != Border::norm) return false;
    if (!given_.empty()) {
      const auto given = given_.find(reader);
      if (given == given_.end() || (given->second.forward != 'n' && given->second.forward != 'N')) return false;
      continue;
    }
    const bool differentiates = spec_.compile.mode == Mode::train &&
                                spec_.plan.table.rows[static_cast<std::size_t>(convolution.window.weight)].trainable;
    for (const Pass pass : {Pass::forward, Pass::weight_gradient}) {
      if (pass == Pass::weight_gradient && !differentiates) continue;
      Form form = form_of(reader, pass), plain = form;
      form.border = Border::norm;
      form.statistics = plain.statistics = pass == Pass::forward && spec_.compile.mode != Mode::evaluate;
      auto fused = find(form);
      if (!fused && spec_.compile.mode == Mode::evaluate) {
        form.statistics = true;  // left unread
        fused = find(form);
      }
      if (!fused) return false;
      hidden += hidden_bytes(form, *fused);
      if (hidden_bytes(form, *fused) == 0) continue;
      const auto other = find(plain);
      if (other) hidden -= hidden_bytes(plain, *other);
    }
  }
  return result = hidden < 2 * activation_bytes(group);  // what an apply would read and write
}

std::optional<Chosen> Chooser::forward(int convolution, Border border, bool statistics) {
  const Value& value = lowering_.values[static_cast<std::size_t>(convolution)];
  Form form = form_of(convolution, Pass::forward);
  form.border = border;
  form.statistics = statistics;
  Letters& letters = letters_[convolution];
  if (!given_.empty()) {
    const char given = given_[convolution].forward;
    if (joins(border) && given != letter_of(border, false) && given != letter_of(border, true)) return std::nullopt;
    form.statistics = std::isupper(static_cast<unsigned char>(given)) != 0 || given == 's';
    if (given != letter_of(border, form.statistics)) refuse(spec_.compile.choices);
  } else {
    if (joins(border)) {
      auto operation = find(form);
      if (!operation && !statistics) {
        form.statistics = true;  // left unread
        operation = find(form);
      }
      if (!operation) return std::nullopt;
      // Spared: the convolution's second reading of z.
      if (hidden_bytes(form, *operation) >= activation_bytes(value.source)) return std::nullopt;
    }
    // Prologues exist with statistics only on some cards, plain convolutions of odd channels without only.
    if (!find(form)) form.statistics = !form.statistics && border != Border::none;
  }
  letters.forward = letter_of(border, form.statistics);
  return need(convolution, form);
}

Chosen Chooser::data_gradient(int convolution, Border border, bool adds) {
  const Form plain = form_of(convolution, Pass::data_gradient);
  Form fused = plain;
  fused.border = border;
  fused.adds = adds;
  Letters& letters = letters_[convolution];
  bool takes = border != Border::none;
  if (takes && !given_.empty()) {
    takes = given_[convolution].data == letter_of(border, false);
  } else if (takes) {
    const auto operation = find(fused);
    takes = operation != nullptr;
    if (takes && hidden_bytes(fused, *operation) > 0) {
      const Index spared = static_cast<Index>(
          tensors_spared(border, adds) *
          static_cast<double>(activation_bytes(lowering_.values[static_cast<std::size_t>(convolution)].source)));
      const auto other = find(plain);
      takes = hidden_bytes(fused, *operation) < spared + (other ? hidden_bytes(plain, *other) : 0);
    }
  }
  letters.data = letter_of(takes ? border : Border::none, false);
  if (!given_.empty() && given_[convolution].data != letters.data) refuse(spec_.compile.choices);
  return need(convolution, takes ? fused : plain);
}

Chosen Chooser::weight_gradient(int convolution, Border border) {
  Form form = form_of(convolution, Pass::weight_gradient);
  form.border = border;
  letters_[convolution].weight = letter_of(border, false);
  return need(convolution, form);
}

std::string Chooser::text() const {
  std::string text;
  for (const auto& [convolution, letters] : letters_)
    text += std::string(text.empty() ? "" : " ") + letters.forward + letters.data + letters.weight;
  for (const auto& [form, engine] : engines_) text += '|' + form + '=' + engine;
  return text;
}

void Chooser::read(const std::string& text) {
  const std::size_t end = std::min(text.find('|'), text.size());
  std::istringstream words(text.substr(0, end));
  for (std::size_t i = 0; i < lowering_.values.size(); ++i) {
    if (lowering_.values[i].kind != ValueKind::convolution || !lowering_.values[i].used) continue;
    std::string word;
    if (!(words >> word) || word.size() != 3) refuse(text);
    given_[static_cast<int>(i)] = {word[0], word[1], word[2]};
  }
  std::string more;
  if (given_.empty() || words >> more) refuse(text);
  std::istringstream forms(text.substr(end));
  for (std::string form; std::getline(forms, form, '|');) {
    if (form.empty()) continue;
    const std::size_t border = form.find('=');  // an engine's name may hold more of them
    if (border == std::string::npos) refuse(text);
    given_engines_[form.substr(0, border)] = form.substr(border + 1);
  }
}

}  // namespace convoy::cuda
