// SPDX-License-Identifier: Apache-2.0
// What forward and backward share while they write a recipe: buffers, steps, the places of norms' vectors.
#pragma once
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/recipe.hpp"
#include "backend/cuda/lowering/values.hpp"

namespace convoy::cuda {

/// Vectors of one norm in its buffer.
enum class Vector : std::uint8_t { mean, rstd, scale, shift, a, b, d, low_scale, low_shift };

/// Places of a norm's vectors, for steps to keep; the ones that a step doesn't want are none.
struct NormPlaces {
  std::array<Place, 9> of;
  Place& operator[](Vector which) { return of[static_cast<std::size_t>(which)]; }
  const Place& operator[](Vector which) const { return of[static_cast<std::size_t>(which)]; }
  NormVectors at(const Frame& frame) const;
};

/// An operation of the library with the places of its operands; workspace is added.
struct GraphCall {
  std::string what;
  Form form;
  std::shared_ptr<Operation> operation;
  std::vector<std::pair<Role, Place>> places;
  std::vector<NodeId> nodes;
};

class Assembler {
 public:
  Assembler(const RecipeSpec& spec, const Lowering& lowering);

  const Plan& plan() const { return spec_.plan; }
  const CompileSpec& compile() const { return spec_.compile; }
  const Value& value(int id) const { return lowering_.values[static_cast<std::size_t>(id)]; }
  const std::vector<Value>& values() const { return lowering_.values; }
  const Norm& norm(int id) const { return lowering_.norms[static_cast<std::size_t>(id)]; }
  const Lowering& lowering() const { return lowering_; }
  /// Of a node's output, for one sample, as the graph sees it.
  const Shape& shape(NodeId node) const { return shapes_[static_cast<std::size_t>(node)]; }
  Mode mode() const { return spec_.compile.mode; }
  bool training() const { return mode() == Mode::train; }
  Storage storage() const { return spec_.copies.storage; }
  Index samples() const { return spec_.compile.samples; }
  Index rows(int id) const { return samples() * value(id).extent.pixels(); }
  Index bytes(int id) const { return samples() * value(id).extent.count() * bytes_of(storage()); }
  bool synchronised() const { return spec_.plan.sync_bn && training(); }
  bool trains(int row) const { return spec_.plan.table.rows[static_cast<std::size_t>(row)].trainable; }
  /// The loss scale exists for fp16 only.
  bool scales_loss() const { return spec_.compile.precision == Precision::fp16 && training(); }

  int add_buffer(BufferKind kind, Index bytes);
  Place place(int buffer, Index offset = 0) const { return {Place::Base::buffer, buffer, offset}; }
  /// A tensor like the value.
  Place add_tensor(int id) { return place(add_buffer(BufferKind::activation, bytes(id))); }
  Place add_floats(Index count) { return place(add_buffer(BufferKind::channels, count * 4)); }
  Place parameter(int row) const;
  Place gradient(int row) const;
  /// None where the row isn't trained.
  Place trained_gradient(int row) const { return trains(row) ? gradient(row) : Place{}; }
  Place filter(int row) const;
  const FilterCopy& copy(int row) const { return spec_.copies.rows[static_cast<std::size_t>(row)]; }
  Place vector(int norm, Vector which) const;
  NormPlaces vectors(int norm, std::initializer_list<Vector> wanted) const;
  /// A norm's share of the exchange area, in floats of the gradient block: sum, squares | dbeta, dgamma.
  Range exchange(int norm) const { return exchange_[static_cast<std::size_t>(norm)]; }
  Place exchanged(int norm, Index part) const;

  /// Appends a step; its run is captured by value.
  Step& add_step(std::string what, std::vector<NodeId> nodes, std::initializer_list<Place> reads,
                 std::initializer_list<Place> writes, std::function<void(const Frame&)> run);
  Step& add_graph(GraphCall call);
  /// The rows' gradients are complete with the step appended last.
  void finish_row(int row) { finals_.push_back({steps(), row}); }
  /// What follows needs the sum over all ranks of this range of the gradient block.
  void block(Range range) { blocks_.push_back({steps(), range}); }
  void enter(Section section) { section_ = section; }
  /// Steps from `begin` on are for this value's sake, unless they are for another's.
  void tag(std::size_t begin, int value);
  std::size_t steps() const { return recipe_.steps.size(); }
  Step& step(std::size_t index) { return recipe_.steps[index]; }

  Recipe& recipe() { return recipe_; }
  /// Lifetimes, stages and gaps, when all steps are there.
  Recipe finish();

 private:
  struct RowFinal {
    std::size_t end_step;
    int row;
  };
  struct Block {
    std::size_t end_step;
    Range range;
  };
  void touch(Step& step, const Place& place, Access access) const;
  void find_lifetimes();
  void make_stages();
  void find_gaps();

  const RecipeSpec& spec_;
  const Lowering& lowering_;
  Recipe recipe_;
  Section section_ = Section::forward;
  const std::vector<Shape> shapes_;
  std::vector<int> norm_buffers_;
  std::vector<Range> exchange_;
  std::vector<RowFinal> finals_;
  std::vector<Block> blocks_;
};

}  // namespace convoy::cuda
