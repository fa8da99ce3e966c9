// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {

/// All shards of all splits in an order that ranks don't change.
struct Scan {
  std::vector<Shard> shards;
  std::string digest;  ///< as earlier versions formed it: of files their names, of archives also sizes and times
  SourceTrace trace;   ///< tells a source that has changed, and how
  Index objects = 0;   ///< files and archives
  std::map<std::string, Index> left_out;  ///< files that are no images, by extension
};

/// Collective. Rank 0 lists, the ranks look into what it found. Throws through the agreed code.
Scan scan_splits(Communicator& comm, const PrepareSpec& spec, std::vector<OpenSplit>& splits, const ClassList& classes);

}  // namespace convoy::preparation
