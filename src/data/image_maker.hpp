// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "image/decode.hpp"
#include "image/resize.hpp"

namespace convoy {

/// Makes the images that the input stage takes whole: decodes the part that is needed, resizes as Pillow does, changes
/// shape and colour. Flips, erased boxes and mixing are the input stage's. Keeps its memory; one per thread.
class ImageMaker {
 public:
  /// `spec` has been checked and is on_host().
  explicit ImageMaker(const AugmentSpec& spec);

  /// One image: training's of (epoch, position), or evaluation's centre. `stored`: the pixels or the file of a sample.
  /// `to`: spec.height x spec.width x channels bytes. Not ok: a file that can't be decoded.
  DecodeStatus make(std::span<const std::uint8_t> stored, Index epoch, Index position, std::uint8_t* to);
  /// Evaluation's with another crop, height x width, of the same short side (rectangular validation).
  DecodeStatus make_centre(std::span<const std::uint8_t> stored, Index height, Index width, std::uint8_t* to);

 private:
  /// Decodes `region` (all of the image's pixels that are needed), shrunk where allowed; `box`: where it lies in
  /// `image_`, in its pixels.
  DecodeStatus decode(const Region& region, int denominator, Resizer::Box& box);
  DecodeStatus make_region(const Region& region, std::uint8_t* to);
  /// `window` lies in the image resized to a short side of `side` (0: not resized).
  DecodeStatus make_window(const Region& window, Index side, std::uint8_t* to);
  ImageSize stored_size() const;
  ImageView stored_view() const;
  void change(Index epoch, Index position, std::uint8_t* to);

  AugmentSpec spec_;
  Decoder decoder_;
  Resizer resizer_;
  std::span<const std::uint8_t> stored_;
  Image image_;  ///< decoded part
  std::vector<std::uint8_t> scratch_;
  PolicyDraw policy_draw_;
  PolicyBuffers policy_buffers_;
};

/// Images of a data set's samples as the input stage takes them: read, checked, and made where the augmentation asks
/// for it. A sample that can't be read or decoded ends the run or is replaced by a neighbour (OnCorrupt). One a thread.
class SampleImages {
 public:
  SampleImages(const Dataset& dataset, const AugmentSpec& augment);

  /// Bytes of one image, for input of height x width.
  static Index image_bytes(const Dataset& dataset, const AugmentSpec& augment);
  static Index image_bytes(const DatasetInfo& info, const AugmentSpec& augment);

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
