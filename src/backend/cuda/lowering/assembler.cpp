// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/assembler.hpp"

#include <algorithm>

#include "backend/cuda/lowering/chooser.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

constexpr Index float_vectors = static_cast<Index>(Vector::low_scale);

/// Floats between the vectors of a norm; low ones lie as far apart.
Index vector_stride(const Value& value) { return align_floats(value.extent.c); }

}  // namespace

NormVectors NormPlaces::at(const Frame& frame) const {
  const auto floats = [&](Vector which) { return frame.floats((*this)[which]); };
  return {.mean = floats(Vector::mean),
          .rstd = floats(Vector::rstd),
          .scale = floats(Vector::scale),
          .shift = floats(Vector::shift),
          .a = floats(Vector::a),
          .b = floats(Vector::b),
          .d = floats(Vector::d),
          .low_scale = frame.at((*this)[Vector::low_scale]),
          .low_shift = frame.at((*this)[Vector::low_shift])};
}

Assembler::Assembler(const RecipeSpec& spec, const Lowering& lowering)
    : spec_(spec),
      lowering_(lowering),
      shapes_(infer_shapes(spec.plan.graph, spec.compile.height, spec.compile.width)) {
  recipe_.samples = spec.compile.samples;
  std::vector<Index> begins;
  Index next = spec.plan.table.exchange.begin;
  for (const NormStatistics& statistics : spec.plan.table.norms) {
    begins.push_back(next);
    next += 4 * align_floats(statistics.mean.count);
  }
  for (const Norm& norm : lowering.norms) {
    const auto table = static_cast<std::size_t>(norm.table);
    const Index stride = vector_stride(value(norm.value));
    norm_buffers_.push_back(add_buffer(BufferKind::fixed, (float_vectors + 2) * stride * 4));
    exchange_.push_back({begins[table], 4 * align_floats(spec.plan.table.norms[table].mean.count)});
  }
}

int Assembler::add_buffer(BufferKind kind, Index bytes) {
  recipe_.buffers.push_back({kind, bytes});
  return static_cast<int>(recipe_.buffers.size()) - 1;
}

Place Assembler::parameter(int row) const {
  return {Place::Base::set, -1, 4 * spec_.plan.table.rows[static_cast<std::size_t>(row)].range.begin};
}

Place Assembler::gradient(int row) const {
  return {Place::Base::gradients, -1, 4 * spec_.plan.table.rows[static_cast<std::size_t>(row)].range.begin};
}

Place Assembler::filter(int row) const {
  const FilterCopy& copy = spec_.copies.rows[static_cast<std::size_t>(row)];
  require(copy.offset >= 0, "a filter without a copy");
  return {Place::Base::copies, -1, copy.offset * bytes_of(storage())};
}

Place Assembler::vector(int id, Vector which) const {
  return place(norm_buffers_[static_cast<std::size_t>(id)],
               static_cast<Index>(which) * 4 * vector_stride(value(norm(id).value)));
}

NormPlaces Assembler::vectors(int id, std::initializer_list<Vector> wanted) const {
  NormPlaces places;
  for (const Vector which : wanted) places[which] = vector(id, which);
  return places;
}

Place Assembler::exchanged(int norm, Index part) const {
  const Range range = exchange(norm);
  return {Place::Base::gradients, -1, 4 * (range.begin + part * range.count / 4)};
}

void Assembler::touch(Step& step, const Place& place, Access access) const {
  if (place.base == Place::Base::buffer) step.touches.push_back({place.buffer, access});
}

Step& Assembler::add_step(std::string what, std::vector<NodeId> nodes, std::initializer_list<Place> reads,
                          std::initializer_list<Place> writes, std::function<void(const Frame&)> run) {
  Step step{.what = std::move(what), .nodes = std::move(nodes), .section = section_};
  for (const Place& place : reads) touch(step, place, Access::read);
  for (const Place& place : writes) touch(step, place, Access::write);
  step.run = std::move(run);
  recipe_.steps.push_back(std::move(step));
  return recipe_.steps.back();
}

Step& Assembler::add_graph(GraphCall call) {
  const Index bytes = call.operation->workspace_bytes();
  const Place workspace = bytes > 0 ? place(add_buffer(BufferKind::workspace, bytes)) : Place{};
  Step& step = add_step(std::move(call.what), std::move(call.nodes), {}, {workspace},
                        [places = call.places, workspace, operation = call.operation](const Frame& frame) {
                          Pointers pointers;
                          for (const auto& [role, place] : places) pointers[role] = frame.at(place);
                          pointers.workspace = frame.at(workspace);
                          operation->execute(pointers, frame.stream);
                        });
  for (const Operand& operand : operands_of(call.form)) {
    const auto found = std::find_if(call.places.begin(), call.places.end(),
                                    [&](const auto& entry) { return entry.first == operand.role; });
    require(found != call.places.end() && found->second, "a form with an operand that has no place");
    touch(step, found->second, operand.access);
  }
  step.form = call.form;
  step.hidden_bytes = hidden_bytes(call.form, *call.operation);
  step.operation = std::move(call.operation);
  return step;
}

void Assembler::tag(std::size_t begin, int value) {
  for (std::size_t k = begin; k < recipe_.steps.size(); ++k)
    if (recipe_.steps[k].serves < 0) recipe_.steps[k].serves = value;
}

void Assembler::find_lifetimes() {
  for (std::size_t k = 0; k < recipe_.steps.size(); ++k) {
    for (const Touch& touch : recipe_.steps[k].touches) {
      Buffer& buffer = recipe_.buffers[static_cast<std::size_t>(touch.buffer)];
      if (buffer.first < 0) {
        require(touch.access == Access::write || buffer.kind == BufferKind::fixed,
                "a buffer is read before it is written");
        buffer.first = static_cast<int>(k);
      }
      buffer.last = static_cast<int>(k);
    }
  }
}

void Assembler::make_stages() {
  const std::size_t steps = recipe_.steps.size();
  auto& stages = recipe_.stages;
  if (!training()) {
    stages = {{steps, {}}};
    return;
  }
  const auto overlaps = [](const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); };
  std::size_t bucket_end = 0;
  std::vector<std::size_t> ends;  // the step after which each bucket is final
  for (const Range& bucket : plan().buckets) {
    for (const RowFinal& final : finals_)
      if (overlaps(plan().table.rows[static_cast<std::size_t>(final.row)].range, bucket))
        bucket_end = std::max(bucket_end, final.end_step);
    ends.push_back(bucket_end);
  }
  ends.back() = steps;  // it ends with the tail
  std::size_t bucket = 0;
  const auto give_buckets = [&](std::size_t before) {
    for (; bucket < ends.size() && ends[bucket] < before; ++bucket)
      stages.push_back({ends[bucket], {plan().buckets[bucket], SumTiming::overlapped}});
  };
  for (const Block& block : blocks_) {
    give_buckets(block.end_step);
    // Sums that are needed together are waited for once.
    if (!stages.empty() && stages.back().end_step == block.end_step) stages.back().ready.timing = SumTiming::overlapped;
    stages.push_back({block.end_step, {block.range, SumTiming::blocking}});
  }
  give_buckets(steps + 1);
}

void Assembler::find_gaps() {
  if (!training()) return;
  std::vector<Range> written;
  for (const RowFinal& final : finals_) written.push_back(plan().table.rows[static_cast<std::size_t>(final.row)].range);
  const Index tail = plan().table.statistics.begin;
  for (const Norm& norm : lowering_.norms) {
    if (norm.group < 0 || !value(norm.group).used) continue;
    const NormStatistics& statistics = plan().table.norms[static_cast<std::size_t>(norm.table)];
    written.push_back({tail + statistics.mean.begin, statistics.mean.count});
    written.push_back({tail + statistics.variance.begin, statistics.variance.count});
  }
  std::sort(written.begin(), written.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Index at = 0;
  for (const Range& range : written) {
    if (range.begin > at) recipe_.gaps.push_back({at, range.begin - at});
    at = std::max(at, range.end());
  }
  if (plan().table.block() > at) recipe_.gaps.push_back({at, plan().table.block() - at});
}

Recipe Assembler::finish() {
  find_lifetimes();
  make_stages();
  find_gaps();
  return std::move(recipe_);
}

}  // namespace convoy::cuda
