// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/random.hpp"
#include "core/types.hpp"

namespace convoy {

/// Fills a matrix, row by row, as torch.nn.init.orthogonal_ does (Saxe, McClelland, Ganguli 2014, arXiv 1312.6120): the
/// orthogonal factor Q, times `gain`, of random normals A = Q R with a positive diagonal of R. Rows are orthogonal if
/// there are no more of them than columns, else columns are. In double; the bits don't depend on the number of threads.
void fill_orthogonal(Index rows, Index columns, double gain, Random& random, float* values);

}  // namespace convoy
