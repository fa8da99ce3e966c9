// SPDX-License-Identifier: Apache-2.0
// A family of networks is one file, models/NAME.cpp, that defines `Family NAME_family()`, and its NAME in the list of
// network/CMakeLists.txt, which is also the order of --help.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "network/models.hpp"

namespace convoy {

struct UsualInput {
  Index classes = 0, channels = 0, size = 0;
};
constexpr UsualInput imagenet_input{1000, 3, 224}, cifar_input{10, 3, 32}, mnist_input{10, 1, 28};

/// What a name in small letters, with `_` for `-`, means that another program uses.
using OtherName = std::function<std::optional<NamedNetwork>(const std::string& name)>;
/// Other programs' names, each with ours.
OtherName renamed(std::map<std::string, std::string> names);

struct Family {
  std::vector<std::string> names;         ///< that error texts may suggest
  std::vector<std::string> help = {};     ///< lines for --help; a family without shares the first line
  std::vector<ModelOption> options = {};  ///< options of one name are the same in every family
  /// Top-1 in percent on ImageNet's val split of torchvision's IMAGENET1K_V1 weights (torchvision 0.29), whatever their
  /// recipe is: that of resnext101_64x4d, EfficientNet, mnasnet0_75 and mnasnet1_3 is a newer one.
  std::map<std::string, double> published = {};
  std::function<bool(const std::string& model)> has;
  std::function<UsualInput(const GraphSpec&)> usual_input;
  /// Throws Error(usage) for a value of an option that the model doesn't have.
  std::function<Graph(const GraphSpec&)> build;
  /// Where the batch norms of the published network aren't those of most.
  std::function<Norms(const std::string& model)> norms = {};
  /// Those whose published weights take values from -1 to 1, by torchvision's transforms or timm's configuration.
  std::vector<std::string> centred_input = {};
  OtherName other_name = {};
  /// Other names whose number is no depth, so that a depth that is given apart from the name makes none of them.
  OtherName name_with_width = {};
};

std::vector<Family> model_families();

/// `channels` as the nearest multiple of 8, the next one where that takes more than a tenth away (MobileNet's rule).
Index multiple_of_8(double channels);

/// The row with this name of a family's table, whose rows have a `name`; null: there is none.
template <class Forms>
const typename Forms::value_type* find_form(const Forms& forms, const std::string& model) {
  const auto form = std::find_if(forms.begin(), forms.end(), [&](const auto& each) { return model == each.name; });
  return form != forms.end() ? &*form : nullptr;
}
template <class Forms>
std::vector<std::string> names_of(const Forms& forms) {
  std::vector<std::string> names;
  names.reserve(forms.size());
  for (const auto& form : forms) names.emplace_back(form.name);
  return names;
}

/// Share of values that dropout layers drop.
ModelOption dropout_option();
float dropout_of(const GraphSpec& spec, float otherwise);

/// aux-heads and aux-weight, behind the family's other options.
std::vector<ModelOption> with_aux_options(std::vector<ModelOption> options);
/// The factor of each auxiliary head's loss; nothing: the network has no auxiliary heads. Throws Error(usage) for a
/// factor without heads.
std::optional<float> aux_weight_of(const GraphSpec& spec, float otherwise);

}  // namespace convoy
