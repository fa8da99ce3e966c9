// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "image/image.hpp"

namespace convoy {

/// Makes the network's input on the host and turns it back into pixels: crops, padding, flips, erased boxes and mixing
/// as the network sees them. A pixel that is 0 after normalisation has the set's mean colour.
class InputPictures {
 public:
  /// `input`: of these images (input_spec).
  InputPictures(const Dataset& dataset, const AugmentSpec& augment, InputSpec input);

  /// Training's images of these samples as one batch of an epoch, mixed with each other; evaluation's if the
  /// augmentation is evaluation's. `positions`: in the epoch. Their labels and weights are in `specs`.
  std::vector<Image> make(std::span<const Index> samples, Index epoch, std::vector<SampleSpec>& specs);

 private:
  const Dataset& dataset_;
  AugmentSpec augment_;
  InputSpec input_;
};

/// A JPEG of 1 or 3 channels in base64, no side longer than `side`.
std::string jpeg_text(const Image& image, Index side, int quality);

}  // namespace convoy
