// SPDX-License-Identifier: Apache-2.0
#include "preprocess/cut.hpp"

#include "core/errors.hpp"

namespace convoy::preparation {

void require_enough_samples(Split split, Index samples, Index partitions) {
  if (samples >= partitions) return;
  fail(Exit::usage, "{} {} samples can't fill {} partitions; give fewer --{}partitions", samples, split_name(split),
       partitions, split == Split::train ? "" : "val-");
}

}  // namespace convoy::preparation
