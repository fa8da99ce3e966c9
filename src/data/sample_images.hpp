// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "data/dataset.hpp"
#include "data/image_maker.hpp"

namespace convoy {

/// Images of a data set's samples as the input stage takes them: read, checked, and made where the augmentation asks
/// for it. A sample that can't be read or decoded ends the run or is replaced by a neighbour (OnCorrupt). One a thread.
class SampleImages {
 public:
  SampleImages(const Dataset& dataset, const AugmentSpec& augment);

  /// Bytes of one image, for input of height x width.
  static Index image_bytes(const Dataset& dataset, const AugmentSpec& augment);

  /// Training's image of (epoch, position); evaluation's where the augmentation is evaluation's. Returns the sample
  /// that it is of. Throws Error(data) naming file and sample.
  Index put(Index sample, Index epoch, Index position, std::uint8_t* to);
  /// Evaluation's with a crop of height x width.
  Index put_centre(Index sample, Index height, Index width, std::uint8_t* to);

 private:
  template <class Make>
  Index put_whole(Index sample, const Make& make);

  const Dataset& dataset_;
  AugmentSpec augment_;
  std::optional<ImageMaker> maker_;
  std::vector<std::uint8_t> scratch_;
};

}  // namespace convoy
