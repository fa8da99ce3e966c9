// SPDX-License-Identifier: Apache-2.0
// Shards: the parts of a source that are dealt over ranks. A restart continues inside them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy::preparation {

/// A split of the source. It becomes the split of that name, or train is cut into both.
enum class Split : std::uint8_t { train, val };
constexpr Index split_count = 2;
constexpr const char* split_name(Split split) { return split == Split::train ? "train" : "val"; }

/// How many files of one kind were left out.
struct Count {
  std::string what;
  Index files = 0;
  void fields(auto&& visit) { visit(what, files); }
};

/// Something in a source that holds samples: a folder, an archive, a list. Rank 0 finds it, one rank cuts it into
/// shards.
struct Container {
  Index kind = 0;          ///< its source says what numbers mean
  std::string name = {};   ///< its name in the store of its split
  std::size_t split = 0;   ///< index of its split among those that were found
  Index class_depth = -1;  ///< which folder on the way to a member of an archive names its class; -1: none does
  std::vector<Count> left_out = {};  ///< files there that nobody will look at again

  void fields(auto&& visit) { visit(kind, name, split, class_depth, left_out); }
};

struct Shard {
  Index kind = 0;  ///< its source says what numbers mean
  Split split = Split::train;
  std::string object;      ///< folder, archive or file, in the split's store
  std::string prefix;      ///< put before its samples' names
  std::string class_name;  ///< class of samples that no folder inside says a class of; empty: none
  /// Positions of samples, from `begin` to before `end` (-1: all). Files, lists and sets count entries. In a tar inside
  /// a tar they are bytes of the outer one, elsewhere bytes of headers in the (unpacked) object.
  Index begin = 0, end = -1;
  std::string listing;        ///< digest of the files that were found; empty: not known
  bool nested = false;        ///< a tar inside a tar
  Index class_depth = -1;     ///< which folder on the way to a member names its class; -1: none does
  Index weight = 1;           ///< bytes, or a guess at them: for dealing and for progress
  Index position_weight = 1;  ///< what one position weighs

  void fields(auto&& visit) {
    visit(kind, split, object, prefix, class_name, begin, end, listing, nested, class_depth, weight, position_weight);
  }
};
/// What a file whose size was not asked for is taken to weigh.
constexpr Index usual_file_bytes = 110'000;

/// Returns the rank that takes each shard: the heaviest first, each to the rank with the least so far.
std::vector<int> deal_shards(const std::vector<Shard>& shards, const std::vector<Index>& left, int ranks);

}  // namespace convoy::preparation
