// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// How a tensor starts. he_*, xavier: Kaiming / Glorot with the tensor's fan; `value`: standard deviation or bound.
/// dirac: filter i is 1 at the centre of channel i, so that it passes the channel on; filters past the last channel are
/// uniform within 1 / sqrt(fan-in). whitening: as dirac until training has seen its data (whitening_filters()).
struct Initialiser {
  enum class Fill : std::uint8_t {
    zeros,
    ones,
    he_fan_out_normal,
    he_fan_in_normal,
    he_fan_in_uniform,
    xavier_uniform,
    xavier_normal,
    normal,
    truncated_normal,  ///< truncated at two standard deviations, not rescaled
    uniform,
    dirac,
    whitening,
  };
  Fill fill = Fill::zeros;
  float value = 0;
};

/// What a parameter is to the optimiser: decay and rate multipliers go by it. weight: of convolutions and linear
/// layers.
enum class Kind : std::uint8_t { weight, bias, norm_scale, norm_shift };

struct ParameterSpec {
  std::string name;  ///< `layer1.0.conv1.weight`
  Kind kind = Kind::weight;
  std::vector<Index> shape;  ///< convolution k c/groups r s, linear k c, others k
  Initialiser initialiser;
  bool fixed = false;  ///< the network never trains it, whatever --freeze says

  Index count() const {
    Index values = 1;
    for (const Index side : shape) values *= side;
    return values;
  }
};

}  // namespace convoy
