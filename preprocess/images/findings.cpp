// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/findings.hpp"

namespace convoy::preparation {

const char* finding_name(Finding finding) {
  switch (finding) {
    case Finding::grey:
      return "grey";
    case Finding::cmyk:
      return "CMYK";
    case Finding::palette:
      return "palette";
    case Finding::alpha:
      return "alpha";
    case Finding::deep:
      return "16 bits a channel";
    case Finding::rotated:
      return "EXIF-rotated";
    case Finding::misnamed:
      return "misnamed";
    case Finding::warning:
      return "decoder warning";
    case Finding::empty:
      return "empty";
    case Finding::not_an_image:
      return "not an image";
    case Finding::unsupported:
      return "unsupported";
    case Finding::too_large:
      return "too large";
    case Finding::truncated:
      return "truncated";
    case Finding::damaged:
      return "damaged";
    case Finding::no_label:
      return "no label";
    case Finding::duplicate:
      return "duplicate name";
    case Finding::left_out:
      return "class left out";
    case Finding::link:
      return "link in an archive";
  }
  return "?";
}

}  // namespace convoy::preparation
