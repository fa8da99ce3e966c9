// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/filter_copies.hpp"

#include <algorithm>

#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// Channels of a node's output: in the network, and in memory.
struct Channels {
  Index c = 0, stored = 0;
};

std::vector<Channels> channels_of(const Graph& graph) {
  std::vector<Channels> all;
  for (const Node& node : graph.nodes) {
    Channels own;
    if (!node.inputs.empty()) own = all[static_cast<std::size_t>(node.inputs[0])];
    if (const auto* input = as<Input>(node)) own = {input->channels, image_channels(input->channels)};
    if (const auto* convolution = as<Convolution>(node)) own = {convolution->out, convolution->out};
    if (as<Concatenation>(node) != nullptr) {
      own.c = 0;
      for (const NodeId input : node.inputs) own.c += all[static_cast<std::size_t>(input)].c;
      own.stored = own.c;
    }
    if (const auto* linear = as<Linear>(node)) own = {linear->out, linear->out};
    all.push_back(own);
  }
  return all;
}

/// `inputs`: channels of what the node reads.
FilterCopy shape_of(const Node& node, const Parameter& row, const Channels& inputs) {
  FilterCopy copy;
  if (row.kind != Kind::weight) return copy;
  copy.offset = 0;
  copy.k = row.shape.at(0);
  if (const auto* convolution = as<Convolution>(node)) {
    copy.c = row.shape.at(1);
    copy.rs = row.shape.at(2) * row.shape.at(3);
    copy.stored_c = convolution->groups == 1 ? inputs.stored : copy.c;
  } else {
    copy.c = inputs.c;
    copy.rs = row.shape.at(1) / inputs.c;
    copy.stored_c = inputs.stored;
  }
  require(row.range.count == copy.k * copy.c * copy.rs, "a filter of another size than its node's");
  return copy;
}

/// The largest even share of `count` that is at most `limit`, rounded up to 8 where that fits.
Index even_share(Index count, Index limit) {
  const Index shares = (count + limit - 1) / limit, share = (count + shares - 1) / shares;
  const Index rounded = (share + 7) / 8 * 8;
  return std::min(count, rounded <= limit ? rounded : share);
}

void cut(const Parameter& row, const FilterCopy& copy, std::vector<UpdatePiece>& pieces) {
  const bool copied = copy.offset >= 0;
  const Index k = copied ? copy.k : 1, c = copied ? copy.c : row.range.count, rs = copied ? copy.rs : 1;
  require(rs <= piece_elements, "a filter of more than 4096 pixels");
  UpdatePiece piece;
  piece.rs = static_cast<std::int32_t>(rs);
  piece.stored_c = static_cast<std::int32_t>(copied ? copy.stored_c : c);
  piece.decay = row.decay;
  piece.rate_multiplier = row.rate_multiplier;
  piece.rate_ends = row.rate_ends;
  piece.trains = row.trainable ? 1 : 0;
  piece.is_weight = row.kind == Kind::weight ? 1 : 0;
  piece.first_piece = static_cast<std::int32_t>(pieces.size());
  const bool whole = c * rs <= piece_elements;
  const Index ks = whole ? even_share(k, piece_elements / (c * rs)) : 1;
  const Index channels = whole ? c : even_share(c, piece_elements / rs);
  for (Index k_begin = 0; k_begin < k; k_begin += ks) {
    for (Index c_begin = 0; c_begin < c; c_begin += channels) {
      piece.begin = row.range.begin + (k_begin * c + c_begin) * rs;
      piece.copy = copied ? copy.offset + k_begin * rs * copy.stored_c + c_begin : -1;
      piece.ks = static_cast<std::int32_t>(std::min(ks, k - k_begin));
      piece.channels = static_cast<std::int32_t>(std::min(channels, c - c_begin));
      pieces.push_back(piece);
    }
  }
  for (std::size_t i = static_cast<std::size_t>(piece.first_piece); i < pieces.size(); ++i)
    pieces[i].piece_count = static_cast<std::int32_t>(pieces.size()) - piece.first_piece;
}

}  // namespace

CopyLayout make_copy_layout(const Plan& plan, Precision precision) {
  CopyLayout layout;
  layout.storage = storage_of(precision);
  const std::vector<Channels> channels = channels_of(plan.graph);
  constexpr Index step = 64;  // elements, whatever the storage: pieces then fit copies of any precision
  for (const Parameter& row : plan.table.rows) {
    FilterCopy copy;
    if (row.kind == Kind::weight && !plan.graph.nodes.empty()) {
      const Node& node = plan.graph.nodes.at(static_cast<std::size_t>(row.node));
      copy = shape_of(node, row, channels.at(static_cast<std::size_t>(node.inputs.at(0))));
      copy.offset = layout.elements;
      layout.elements += (copy.k * copy.rs * copy.stored_c + step - 1) / step * step;
    }
    cut(row, copy, layout.pieces);
    layout.rows.push_back(copy);
  }
  return layout;
}

bool CopyLayout::operator==(const CopyLayout& other) const {
  return rows == other.rows && elements == other.elements && storage == other.storage;
}

std::shared_ptr<const CopyLayout> FilterCopies::use(const Plan& plan, Precision precision) {
  auto layout = std::make_shared<const CopyLayout>(make_copy_layout(plan, precision));
  const std::lock_guard lock(mutex_);
  if (layout_ != nullptr && *layout_ == *layout) return layout_;
  return layout_ = std::move(layout);
}

void FilterCopies::refresh(const ParameterSet& set) {
  std::shared_ptr<const CopyLayout> layout;
  {
    const std::lock_guard lock(mutex_);
    layout = layout_;
  }
  if (layout == nullptr) return;  // no program that could read copies
  Copies& copies = own_copies(set.block, layout);
  UpdateArgs args;
  args.values = set.block;
  args.copies = copies.memory;
  args.storage = layout->storage;
  args.pieces = copies.pieces;
  args.count = static_cast<int>(layout->pieces.size());
  check(refresh_copies(args, queue_.stream()), "launch of the filters' copies");
}

FilterCopies::Copies& FilterCopies::own_copies(const float* block, const std::shared_ptr<const CopyLayout>& layout) {
  for (Copies& copies : sets_)
    if (copies.block == block && copies.layout == layout) return copies;
  Copies copies{block, layout};
  copies.memory = queue_.allocate(layout->elements * bytes_of(layout->storage), "a copy of the filters");
  for (const Copies& others : sets_)
    if (others.layout == layout) copies.pieces = others.pieces;
  if (copies.pieces == nullptr) {
    const auto bytes = static_cast<Index>(layout->pieces.size() * sizeof(UpdatePiece));
    std::byte* const table = queue_.allocate(bytes, "the table of parameters");
    queue_.upload_now(table, layout->pieces.data(), bytes);
    copies.pieces = reinterpret_cast<const UpdatePiece*>(table);
  }
  for (Copies& others : sets_)
    if (others.block == block) return others = copies;  // of a plan that is no longer in use
  sets_.push_back(copies);
  return sets_.back();
}

const FilterCopies::Copies* FilterCopies::find(const float* block) const {
  for (const Copies& copies : sets_)
    if (copies.block == block) return &copies;
  return nullptr;
}

const std::byte* FilterCopies::at(const ParameterSet& set, const CopyLayout& layout) const {
  const Copies* const copies = find(set.block);
  require(copies != nullptr && *copies->layout == layout, "a parameter set that was not refreshed for this program");
  return copies->memory;
}

}  // namespace convoy::cuda
