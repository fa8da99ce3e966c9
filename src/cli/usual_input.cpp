// SPDX-License-Identifier: Apache-2.0
#include "cli/usual_input.hpp"

#include <algorithm>
#include <array>

namespace convoy {

GraphSpec with_usual_input(GraphSpec model, Index classes, Index channels, Index image_size) {
  constexpr std::array<const char*, 6> imagenet = {"alexnet",  "resnet18",  "resnet34",
                                                   "resnet50", "resnet101", "resnet152"};
  struct Usual {
    Index classes, channels, size;
  } usual{10, 3, 32};
  if (model.model == "lenet" || model.model == "mlp") usual = {10, 1, 28};
  if (std::find(imagenet.begin(), imagenet.end(), model.model) != imagenet.end() && model.stem != "small") {
    usual = {1000, 3, 224};
  }
  model.classes = classes > 0 ? classes : usual.classes;
  model.channels = channels > 0 ? channels : usual.channels;
  model.image_size = image_size > 0 ? image_size : usual.size;
  return model;
}

}  // namespace convoy
