// SPDX-License-Identifier: Apache-2.0
#include "preprocess/cut.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy::preparation {

Range cut_evenly(Index samples, Index partitions, Index number) {
  const Index share = samples / partitions, rest = samples % partitions;
  return {number * share + std::min(number, rest), share + (number < rest ? 1 : 0)};
}

void require_enough_samples(Split split, Index samples, Index partitions) {
  if (samples >= partitions) return;
  fail(Exit::usage, "{} {} samples can't fill {} partitions; give fewer --{}partitions", samples, split_name(split),
       partitions, split == Split::train ? "" : "val-");
}

}  // namespace convoy::preparation
