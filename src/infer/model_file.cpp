// SPDX-License-Identifier: Apache-2.0
#include "infer/model_file.hpp"

#include <fmt/ranges.h>

#include <sstream>

#include "comm/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/network_file.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "engine/model_data.hpp"
#include "infer/host_model.hpp"
#include "interchange/fit.hpp"
#include "interchange/onnx_network.hpp"

namespace convoy {
namespace {

/// The only network whose tensors the file has.
GraphSpec network_by_tensors(const TensorFile& file) {
  const std::vector<GraphSpec> fitting = networks_that_fit(file);
  const char* what = "doesn't tell its network";
  if (fitting.empty())
    fail(Exit::data, "'{}' {}, and none that Convoy has fits its tensors; name it with --model", file.path(), what);
  if (fitting.size() > 1)
    fail(Exit::data, "'{}' {}, and {} and {} fit it; choose with --model", file.path(), what, fitting[0].model,
         fitting[1].model);
  log::info("'{}' has the tensors of {} for {}", file.path(), fitting[0].model, counted(fitting[0].classes, "class"));
  return fitting.front();
}

/// The network that was asked for, with as many channels as the file's has: the usual number, else as in
/// networks_that_fit.
GraphSpec network_by_name(const TensorFile& file, const GraphSpec& asked) {
  for (const Index channels : {0, 3, 1}) {
    GraphSpec spec = with_usual_input(asked, 0, channels, 0);
    const Plan plan = make_plan(build_graph(spec), {});
    if (classes_of(fit_state(plan, file), plan) > 0) return spec;
  }
  return with_usual_input(asked, 0, 0, 0);
}

/// On rank 0. The network of a file that names none, for the file's number of classes. `sides` learns those of the
/// input that an ONNX graph fixes, if they differ.
GraphSpec network_in(const std::string& path, const GraphSpec& asked, ImageSize& sides) {
  const TensorFile file(path);
  if (file.format() == TensorFormat::onnx && asked.model.empty()) {
    const OnnxNetwork network = read_onnx_network(File(path, File::Access::read));
    if (!asked.options.empty() || !asked.activation.empty())
      fail(Exit::usage, "'{}' holds its network; leave the options of the network out", path);
    GraphSpec spec = network.spec;
    spec.image_size = network.height == network.width ? network.height : 0;
    if (network.height > 0 && network.width > 0 && spec.image_size == 0) sides = {network.height, network.width};
    spec.norm_epsilon = usual_norm_epsilon;
    log::info("'{}' is a graph of {} for {}", path, counted(spec.layers.size(), "layer"),
              counted(spec.classes, "class"));
    return spec;
  }
  const bool is_free = !asked.norm_epsilon;
  GraphSpec spec = asked.model.empty() ? network_by_tensors(file) : network_by_name(file, asked);
  spec.norm_epsilon = asked.norm_epsilon;
  const Plan plan = make_plan(build_graph(spec), {});
  const StateFit fit = fit_state(plan, file);
  spec.classes = classes_of(fit, plan);
  if (spec.classes == 0) fail_misfit(fit, plan, file);
  if (spec.classes == 1)
    fail(
        Exit::data,
        "'{}' has a last layer of one value, and the softmax of {} needs two classes or more; 'convoy train --weights' "
        "starts a new last layer",
        file.path(), spec.model);
  if (is_free) spec.norm_epsilon = norm_epsilon_of(fit.origin, spec.model);
  if (*spec.norm_epsilon != usual_norm_epsilon)
    log::info("its batch norms have an epsilon of {}{}", *spec.norm_epsilon,
              is_free ? " as torchvision's or timm's" : "");
  return spec;
}

/// Of a network for the classes and images of another.
std::uint64_t digest_of(GraphSpec network, const GraphSpec& like) {
  network = with_usual_input(network, like.classes, like.channels, like.image_size);
  network.norm_momentum = like.norm_momentum;
  network.norm_epsilon = like.norm_epsilon;
  return make_plan(build_graph(network), {}).digest;
}

/// Throws Error(data).
InputSpec::Normalise normalise_of(const FoundWeights& found) {
  const auto normalise = found.file.meta.data.normalise.value_or(InputSpec::Normalise::channel);
  if (normalise == InputSpec::Normalise::mean_image)
    fail(
        Exit::data,
        "'{}' takes images without the mean image of its training set, which an ONNX file doesn't hold; export safetensors or pth",
        found.path);
  return normalise;
}

}  // namespace

ModelFile open_model(Communicator& communicator, const std::string& path, const GraphSpec& network,
                     WeightChoice choice) {
  ModelFile model{.choice = choice};
  model.found = open_weights(communicator, path);
  if (!model.found.format)
    require_choice(model.found.path, model.found.file.meta, choice);
  else if (choice != WeightChoice::usual)
    fail(
        Exit::usage,
        "'{}' holds one set of weights; leave --ema and --no-ema out ('FILE.pth:KEY' takes one of several dictionaries)",
        path);
  if (model.found.tells()) {
    model.config = config_of(model.found.file.meta, model.found.path);
    const std::string& own = model.config.model.model;
    if (!network.model.empty() && network.model != own)
      fail(Exit::usage, "'{}' is of {}, not of {}; leave --model out", path, own, network.model);
    if (!network.layers.empty() &&
        digest_of(network, model.config.model) != digest_of(model.config.model, model.config.model))
      fail(Exit::usage, "'{}' is of another network that is called {}, too; leave --model-file out", path, own);
    if (!network.options.empty() || !network.activation.empty() || network.norm_epsilon)
      fail(Exit::usage, "'{}' tells its network; leave the options of the network out", path);
    return model;
  }
  const std::string answer = ask_first_rank(communicator, "looking for the network of a file", [&] {
    ImageSize sides;
    const GraphSpec spec = network_in(path, network, sides);
    std::string text =
        fmt::format("{}\n{}\n{} {} {} {} {} {}", spec.model, to_line(spec.layers, Origins::dropped), spec.classes,
                    spec.channels, norms_of(spec).epsilon, spec.image_size, sides.height, sides.width);
    for (const auto& [name, value] : spec.options) text += fmt::format(" {} {}", name, value);
    return text;
  });
  GraphSpec& spec = model.config.model = network;
  std::istringstream words(answer);
  std::getline(words, spec.model);  // a file may call its network by several words
  std::string layers;
  std::getline(words, layers);
  spec.layers = layers_of_line(layers);
  ImageSize sides;
  words >> model.classes >> model.channels >> spec.norm_epsilon.emplace() >> spec.image_size >> sides.height >>
      sides.width;
  for (std::string name, value; words >> name >> value;) spec.options[name] = value;
  TrainedData& data = model.found.file.meta.data;
  if (data.class_names.empty()) {  // images of other sides than the graph's are refused: their input is a square
    data.height = sides.height;
    data.width = sides.width;
  } else {
    // An ONNX file of 'convoy export' describes its classes and its input.
    model.classes = model.channels = 0;
    model.config.data.normalise = normalise_of(model.found);
    return model;
  }
  const TrainedData usual = published_input(spec.model);
  if (model.channels != static_cast<Index>(usual.mean.size())) return model;
  model.config.data.rgb_mean = usual.mean;
  model.config.data.rgb_std = usual.std;
  return model;
}

bool assumes_input(const ModelFile& model) { return model.classes > 0 && !model.config.data.rgb_mean.empty(); }

std::string tell_assumed_normalisation(const ModelFile& model) {
  const DataConfig& data = model.config.data;
  return fmt::format(
      "'{}' doesn't tell how images become its input: mean {} and deviation {}, unless --rgb-mean and --rgb-std say otherwise",
      model.found.path, fmt::join(data.rgb_mean, ","), fmt::join(data.rgb_std, ","));
}

void require_channels(const ModelFile& model, const DatasetInfo& info) {
  if (model.channels == 0 || model.channels == info.channels) return;
  fail(Exit::data,
       "'{}' takes images of {}, and '{}' ({}) holds images of {}; prepare the set with --color rgb (3) or grey (1)",
       model.found.path, counted(model.channels, "channel"), info.folder, info.split,
       counted(info.channels, "channel"));
}

Index input_side(const ModelFile& model, const DataConfig& data, const DatasetInfo& info) {
  if (model.classes == 0 || data.image_size > 0 || info.encoding == "raw") return data.image_size;
  const GraphSpec& network = model.config.model;
  return network.layers.empty() ? with_usual_input(network, 0, 0, 0).image_size : network.image_size;
}

ParameterSet load_model(Communicator& communicator, const ModelFile& model, Engine& engine, Collectives& collectives) {
  const ParameterSet set{engine.backend().allocate(engine.layout().count()), engine.layout().count()};
  LoadedWeights loaded;
  run_alike(communicator, [&] {
    loaded = load_weights(communicator, model.found, engine.plan(), engine.layout(), Head::must_fit, model.choice);
  });
  run_agreed(communicator, "loading the weights", [&] { engine.upload(set, loaded.block, collectives); });
  return set;
}

}  // namespace convoy
