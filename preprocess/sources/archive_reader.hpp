// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/sample_reader.hpp"
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

/// Opens the archive of a shard at a position (-1: where the shard begins).
TarReader open_archive(OpenSplit& split, const Shard& shard, Index position);

/// Reads the file at which `tar` is, or the file to which a link leads, unless it is too large.
void read_member(OpenSplit& split, const Shard& shard, TarReader& tar, const TarMember& member, Index most_bytes,
                 RawSample& sample);

}  // namespace convoy::preparation
