// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pointwise.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/rules/activation.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// The factors of a group's terms. A bias counts as the shift of its term.
struct TermRefs {
  BufferRef scale, shift, scale2, shift2;
};

TermRefs terms_of(const PlanBuilder& builder, const Value& value) {
  const Term& first = value.terms[0];
  TermRefs refs;
  if (first.norm >= 0) {
    refs.scale = builder.vector(first.norm, NormVector::scale);
    refs.shift = builder.vector(first.norm, NormVector::shift);
  } else if (first.bias >= 0) {
    refs.shift = builder.parameter(first.bias);
  }
  if (joins(value) && value.terms[1].norm >= 0) {
    refs.scale2 = builder.vector(value.terms[1].norm, NormVector::scale);
    refs.shift2 = builder.vector(value.terms[1].norm, NormVector::shift);
  }
  return refs;
}

bool joins_norms(const Value& value) { return joins(value) && value.terms[1].norm >= 0; }

/// The factors of dx = a * g + b * x + d. A frozen norm's is scale * g.
NormRefs gradient_factors(const PlanBuilder& builder, int norm) {
  if (!builder.norm(norm).frozen) return builder.vectors(norm, {NormVector::a, NormVector::b, NormVector::d});
  NormRefs factors;
  factors[NormVector::a] = builder.vector(norm, NormVector::scale);
  return factors;
}

/// The factors of a norm whose sums a convolution has made.
struct FactorSumsRefs {
  int norm = -1;  ///< -1: they are vectors
  BufferRef dbeta, dgamma, gamma, rstd, mean, to_dgamma, to_dbeta;
  Index pixels = 0;

  FactorSums at(const LaunchContext& launch) const {
    if (norm < 0) return {};
    return {.dbeta = launch.floats(dbeta),
            .dgamma = launch.floats(dgamma),
            .gamma = launch.floats(gamma),
            .rstd = launch.floats(rstd),
            .mean = launch.floats(mean),
            .feed = launch.feed,
            .pixels = pixels,
            .loss_scale = launch.loss_scale,
            .to_dgamma = launch.floats(to_dgamma),
            .to_dbeta = launch.floats(to_dbeta)};
  }
};

FactorSumsRefs take_sums(BackwardPass& pass, int norm_id) {
  const auto sums = pass.take_gradients(norm_id);
  if (!sums) return {};
  const PlanBuilder& builder = pass.builder;
  const Norm& norm = builder.norm(norm_id);
  return {.norm = norm_id,
          .dbeta = sums->dbeta,
          .dgamma = sums->products,
          .gamma = builder.parameter(norm.scale),
          .rstd = builder.vector(norm_id, NormVector::rstd),
          .mean = builder.vector(norm_id, NormVector::mean),
          .to_dgamma = builder.trained_gradient(norm.scale),
          .to_dbeta = builder.trained_gradient(norm.shift),
          .pixels = pixels_of(builder.value(norm.value).layout)};
}

/// How a kernel of ours gets the gradient before the activation: from which tensors, and how the derivative is known.
struct GradientRefs {
  std::vector<BufferRef> reads;  ///< what it reads besides x and other
  BufferRef dz, more, z, mask;
  ActivationRule activation;
  TermRefs terms;           ///< where the activation's input is computed again
  bool recomputes = false;  ///< the kernel must read x and other, from which it computes the activation's input

  static GradientRefs stored(BufferRef g) {
    GradientRefs refs;
    refs.reads = {g};
    refs.dz = g;
    return refs;
  }
  MaskedGradient at(const LaunchContext& launch) const {
    return {.activation = activation,
            .dz = launch.at(dz),
            .dz_more = launch.at(more),
            .z = launch.at(z),
            .mask = static_cast<const std::uint8_t*>(launch.at(mask)),
            .scale = launch.floats(terms.scale),
            .shift = launch.floats(terms.shift),
            .scale2 = launch.floats(terms.scale2),
            .shift2 = launch.floats(terms.shift2)};
  }
};

/// One bit for each element, z > 0, which the forward step of the group writes: a sixteenth of reading z again.
BufferRef mask_of(BackwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const ForwardTensor& tensor = pass.forward.tensor(id);
  if (value.activation != ActivationKind::relu || value.layout.c % 8 != 0 || !tensor.mask) return {};
  BufferRef& mask = *tensor.mask;
  if (mask) return mask;
  mask = builder.add_tensor_of(BufferKind::activation, builder.samples() * elements_of(value.layout) / 8);
  builder.step(tensor.step).accesses.push_back({mask.buffer, Access::write});
  return mask;
}

/// `reads_terms`: the kernel reads x and other anyway.
GradientRefs gradient_of(BackwardPass& pass, int id, bool reads_terms) {
  const Value& value = pass.builder.value(id);
  const std::vector<BufferRef> dz = pass.contributions(id, 2);
  GradientRefs from;
  from.reads = dz;
  from.dz = dz[0];
  if (dz.size() > 1) from.more = dz[1];
  from.activation = {value.activation, value.slope};
  const DerivativeNeeds needs = derivative_needs(value.activation);
  if (value.activation == ActivationKind::identity) return from;
  const bool only_norms =
      std::all_of(value.terms.begin(), value.terms.end(), [](const Term& term) { return term.norm >= 0; });
  if (needs.input || (reads_terms && only_norms)) {
    from.terms = terms_of(pass.builder, value);
    from.recomputes = true;
    return from;
  }
  if (const BufferRef mask = mask_of(pass, id)) {
    from.mask = mask;
    from.reads.push_back(mask);
    return from;
  }
  from.z = pass.forward.tensor(id).value;
  require(static_cast<bool>(from.z), "an activation's derivative without its output");
  from.reads.push_back(from.z);
  return from;
}

void add_reads(Step& step, const GradientRefs& from) {
  for (const BufferRef& ref : from.reads) step.accesses.push_back({ref.buffer, Access::read});
}

BufferRef term_tensor(const BackwardPass& pass, const Value& value, std::size_t term) {
  return pass.forward.tensor(value.terms[term].value).value;
}

void reduce(BackwardPass& pass, int id, const GradientRefs& from, BufferRef g) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const bool two = joins_norms(value);
  const int terms = two ? 3 : 2;
  const Index channels = value.layout.c;
  const ReductionRefs place = builder.add_reduction(builder.rows(id), channels, terms);
  std::vector<int> norms;
  for (std::size_t i = 0; i < (two ? 2U : 1U); ++i)
    norms.push_back(builder.lowering().moves(value.terms[i]) ? value.terms[i].norm : -1);
  // Sums that ranks share come back before anything is made of them.
  const bool shared = builder.synchronised();
  const BufferRef totals = shared ? builder.add_floats(terms * channels) : BufferRef{};
  const auto end = end_in_reduction(builder, shared ? std::vector<int>{} : norms);
  const BufferRef x = term_tensor(pass, value, 0);
  // The second term is read for its own sums, or for the activation's input computed again.
  const BufferRef other = two || (from.recomputes && joins(value)) ? term_tensor(pass, value, 1) : BufferRef{};
  // Beside one that moves, the sums of a frozen norm are made around some vector, and dropped.
  const auto centre = [&](const Term& term) {
    return builder.vector(term.norm, builder.lowering().moves(term) ? NormVector::mean : NormVector::shift);
  };
  const BufferRef mean = centre(value.terms[0]);
  const BufferRef mean2 = two ? centre(value.terms[1]) : BufferRef{};
  const BackwardReduce reduce{.storage = builder.storage(), .rows = builder.rows(id), .channels = channels};
  Step& step =
      builder.add_step("norm sums", value.nodes, {x, other}, {place.sums, totals, g}, [=](const LaunchContext& launch) {
        BackwardReduce now = reduce;
        now.from = from.at(launch);
        now.x = launch.at(x);
        now.other = launch.at(other);
        now.mean = launch.floats(mean);
        now.mean2 = launch.floats(mean2);
        now.g = launch.at(g);
        now.place = place.at(launch);
        now.end = end(launch);
        now.end.totals = launch.floats(totals);
        check(reduce_backward(now, launch.stream), "the sums of a batch norm's gradient");
      });
  add_reads(step, from);
  std::vector<NormSums> sums;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (norms[i] < 0) continue;
    if (!shared) finish_norm_rows(builder, norms[i]);
    sums.push_back({norms[i], totals, totals.after_floats(static_cast<Index>(i + 1) * channels)});
  }
  if (shared) finish_norms(pass, sums);
}

/// The gradients of terms that are norms.
void apply(BackwardPass& pass, int id, const GradientRefs& from) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const bool wants[] = {pass.wants_gradient(value.terms[0].value),
                        joins_norms(value) && pass.wants_gradient(value.terms[1].value)};
  // A frozen second branch leaves its own tensor out; a frozen first one is computed and dropped.
  if (!wants[0] && !wants[1]) return;
  const int first = value.terms[0].norm, second = wants[1] ? value.terms[1].norm : -1;
  const auto reads = [&](std::size_t term) {
    return from.recomputes || (wants[term] && builder.lowering().moves(value.terms[term]));
  };
  const BufferRef x = reads(0) ? term_tensor(pass, value, 0) : BufferRef{};
  const BufferRef other = joins(value) && reads(1) ? term_tensor(pass, value, 1) : BufferRef{};
  const BufferRef dx = builder.add_tensor(id), dx2 = wants[1] ? builder.add_tensor(id) : BufferRef{};
  const NormRefs v = gradient_factors(builder, first);
  const NormRefs v2 = second >= 0 ? gradient_factors(builder, second) : NormRefs{};
  const FactorSumsRefs sums = take_sums(pass, first), sums2 = second >= 0 ? take_sums(pass, second) : FactorSumsRefs{};
  const BackwardApply apply{.storage = builder.storage(), .rows = builder.rows(id), .channels = value.layout.c};
  const std::vector<BufferRef> read{x, other, sums.dbeta, sums.dgamma, sums2.dbeta, sums2.dgamma};
  Step& step = builder.add_step("apply gradient", value.nodes, read, {dx, dx2}, [=](const LaunchContext& launch) {
    BackwardApply now = apply;
    now.sums = sums.at(launch);
    now.sums2 = sums2.at(launch);
    now.from = from.at(launch);
    now.x = launch.at(x);
    now.other = launch.at(other);
    now.a = launch.floats(v[NormVector::a]);
    now.b = launch.floats(v[NormVector::b]);
    now.d = launch.floats(v[NormVector::d]);
    now.a2 = launch.floats(v2[NormVector::a]);
    now.b2 = launch.floats(v2[NormVector::b]);
    now.d2 = launch.floats(v2[NormVector::d]);
    now.dx = launch.at(dx);
    now.dx2 = launch.at(dx2);
    check(apply_backward(now, launch.stream), "the gradient of a batch norm");
  });
  add_reads(step, from);
  for (const int norm : {sums.norm, sums2.norm})
    if (norm >= 0) finish_norm_rows(builder, norm);
  if (wants[0]) pass.contribute(value.terms[0].value, dx);
  if (wants[1]) pass.contribute(value.terms[1].value, dx2);
}

/// The gradient before the activation as a tensor, where no norm's sums are wanted with it.
BufferRef activation_gradient(BackwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const GradientRefs from = gradient_of(pass, id, false);
  const BufferRef x = from.recomputes ? term_tensor(pass, value, 0) : BufferRef{};
  const BufferRef other = from.recomputes && joins(value) ? term_tensor(pass, value, 1) : BufferRef{};
  const BufferRef g = builder.add_tensor(id);
  const BackwardApply apply{.storage = builder.storage(), .rows = builder.rows(id), .channels = value.layout.c};
  Step& step = builder.add_step("apply gradient", value.nodes, {x, other}, {g}, [=](const LaunchContext& launch) {
    BackwardApply now = apply;
    now.from = from.at(launch);
    now.x = launch.at(x);
    now.other = launch.at(other);
    now.dx = launch.at(g);
    check(apply_backward(now, launch.stream), "the gradient of a pointwise layer");
  });
  add_reads(step, from);
  return g;
}

}  // namespace

BufferRef evaluate(ForwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const BufferRef x = pass.read(value.terms[0].value);
  const BufferRef other = joins(value) ? pass.read(value.terms[1].value) : BufferRef{};
  const BufferRef z = pass.make(id);
  std::vector<BufferRef> reads{x, other};
  const bool is_small = builder.rows(id) * value.layout.c <= most_finished_elements;
  std::array<std::function<NormFinish(const LaunchContext&)>, 2> finishes;
  std::vector<int> norms;
  for (std::size_t i = 0; i < value.terms.size(); ++i) {
    if (value.terms[i].norm < 0) continue;
    norms.push_back(value.terms[i].norm);
    if (!is_small) continue;
    if (auto waiting = pass.take_waiting(norms.back())) {
      finishes[i] = std::move(waiting->finish);
      reads.insert(reads.end(), waiting->reads.begin(), waiting->reads.end());
    }
  }
  pass.settle(norms);
  const TermRefs terms = terms_of(builder, value);
  const Apply apply{.storage = builder.storage(),
                    .rows = builder.rows(id),
                    .channels = value.layout.c,
                    .activation = {value.activation, value.slope}};
  // The backward pass of a join may want a mask of it (mask_of) and fills this in then.
  const auto mask = std::make_shared<BufferRef>();
  builder.add_step("apply", value.nodes, reads, {z}, [=](const LaunchContext& launch) {
    Apply now = apply;
    now.x = launch.at(x);
    now.scale = launch.floats(terms.scale);
    now.shift = launch.floats(terms.shift);
    now.other = launch.at(other);
    now.scale2 = launch.floats(terms.scale2);
    now.shift2 = launch.floats(terms.shift2);
    if (finishes[0]) {
      now.finish = finishes[0](launch);
      now.scale = now.shift = nullptr;  // made by this launch
    }
    if (finishes[1]) {
      now.finish2 = finishes[1](launch);
      now.scale2 = now.shift2 = nullptr;
    }
    now.z = launch.at(z);
    now.mask = static_cast<std::uint8_t*>(launch.at(*mask));
    check(cuda::apply(now, launch.stream), "a pointwise layer");
  });
  pass.tensor(id).step = static_cast<int>(builder.steps()) - 1;
  pass.tensor(id).mask = mask;
  if (pass.needs_statistics(id)) add_statistics(pass, id);
  return z;
}

void differentiate(BackwardPass& pass, int id) {
  const Value& value = pass.builder.value(id);
  if (value.terms[0].norm < 0) {
    const bool is_sum = value.activation == ActivationKind::identity && pass.contributed(id) == 1;
    return hand_on(pass, id, is_sum ? pass.gradient(id) : activation_gradient(pass, id));
  }
  const bool shortcut = joins(value) && value.terms[1].norm < 0 && pass.wants_gradient(value.terms[1].value);
  const auto moves = [&](const Term& term) { return pass.builder.lowering().moves(term); };
  if (std::none_of(value.terms.begin(), value.terms.end(), moves)) {
    if (shortcut) return hand_on(pass, id, activation_gradient(pass, id));
    apply(pass, id, gradient_of(pass, id, !pass.forward.is_stored(id)));
    return pass.finish(id);
  }
  const GradientRefs from = gradient_of(pass, id, !joins(value) || joins_norms(value));
  const bool wants_dx = pass.wants_gradient(value.terms[0].value);
  // A shortcut wants g as a tensor; else it pays where the second pass would read more than two in its place.
  const bool writes_g = shortcut || (wants_dx && from.reads.size() > 2);
  const BufferRef g = writes_g ? pass.builder.add_tensor(id) : BufferRef{};
  reduce(pass, id, from, g);
  if (g) return hand_on(pass, id, g);
  apply(pass, id, from);
  pass.finish(id);
}

void hand_on(BackwardPass& pass, int id, BufferRef g) {
  const Value& value = pass.builder.value(id);
  pass.finish(id);
  if (value.terms[0].norm >= 0) {
    apply(pass, id, GradientRefs::stored(g));
    if (const auto rest = pass.take_waiting(); !rest.empty()) finish_norms(pass, rest);
    if (joins(value) && value.terms[1].norm < 0 && pass.wants_gradient(value.terms[1].value))
      pass.contribute(value.terms[1].value, g);
    return;
  }
  for (const Term& term : value.terms) {
    if (term.bias >= 0) add_bias_gradient(pass, term.bias, g, id);
    if (pass.wants_gradient(term.value)) pass.contribute(term.value, g);
  }
}

}  // namespace convoy::cuda
