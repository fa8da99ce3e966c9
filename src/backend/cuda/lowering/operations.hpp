// SPDX-License-Identifier: Apache-2.0
// Operations that forward and backward describe alike.
#pragma once
#include "backend/cuda/kernels/pool.hpp"
#include "backend/cuda/kernels/special.hpp"
#include "backend/cuda/lowering/assembler.hpp"

namespace convoy::cuda {

/// The windows of a pool value.
PoolShape pool_shape(const Assembler& assembler, int id);
/// The rows of a local response value.
LocalResponse response_of(const Assembler& assembler, int id);

/// y = x times the mask of a dropout value; the same for its gradient.
void add_dropout(Assembler& assembler, int id, Place x, Place y);

struct Repacked {
  int from = 0, to = 0;  ///< values: the same but for their padding channels
};
void add_repack(Assembler& assembler, Repacked values, Place x, Place y);

}  // namespace convoy::cuda
