// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <cmath>
#include <sstream>

#include "checkpoint/file.hpp"
#include "cli/inspect.hpp"
#include "io/hdf5.hpp"

namespace convoy {
namespace {

std::string indented(const std::string& lines) {
  std::istringstream stream(lines);
  std::string text;
  for (std::string line; std::getline(stream, line);) text += "  " + line + '\n';
  return text;
}

std::string describe(const TrainedData& data) {
  if (data.mean.empty()) return "data          not told: an older version wrote this checkpoint\n";
  std::string text = fmt::format("classes       {}: {}\n", data.class_names.size(), fmt::join(data.class_names, ", "));
  text += fmt::format("normalisation mean {:.4f}; deviation {:.4f}{}\n", fmt::join(data.mean, ", "),
                      fmt::join(data.std, ", "), data.mean_image == 0 ? "" : "; mean image");
  if (data.input.empty()) return text;
  return text + fmt::format("input         {} x {}: {}\ndata          digest {:016x} (train), {:016x} (val)\n",
                            data.input_height, data.input_width, data.input, data.train_digest, data.val_digest);
}

std::string describe(const FileMeta& file) {
  const CheckpointMeta& meta = file.meta;
  const auto& at = meta.position;
  std::string text;
  if (file.replica >= 0) text += fmt::format("shard         of replica {}: no checkpoint by itself\n", file.replica);
  text += fmt::format("position      epoch {}, step {} of it; {} steps and {} images in all\n", at.epoch,
                      at.step_in_epoch, at.step, at.images);
  text += fmt::format("replicas      {} (written by {} ranks)\n", meta.replicas, meta.ranks);
  text +=
      "sync          " +
      (meta.local_steps == 0 ? std::string("gradients") : fmt::format("weights, every {} steps", meta.local_steps)) +
      '\n';
  if (meta.ema_decay > 0)
    text += fmt::format("average       moving, decay {}: below /ema, and what evaluation takes\n", meta.ema_decay);
  text += describe(meta.data);
  text += fmt::format("plan          {:016x}\nconfiguration {}\n", meta.plan_digest, meta.configuration_hash);
  for (const auto& [name, value] : meta.numbers) text += fmt::format("{:<13} {}\n", name, value);
  for (const auto& [name, value] : meta.texts) {
    if (value.find('\n') == std::string::npos) {
      text += fmt::format("{:<13} {}\n", name, value);
    } else {
      text += name + '\n' + indented(value);
    }
  }
  return text;
}

std::string describe_tensor(const Hdf5File& file, const std::string& name) {
  const DatasetShape shape = file.shape(name);
  if (shape.element != Element::f32) return fmt::format("  {:<46} {}\n", name, shape.text());
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  file.read(name, Element::f32, std::as_writable_bytes(std::span(values)));
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return fmt::format("  {:<46} {:<26} norm {:.6g}\n", name, shape.text(), std::sqrt(squares));
}

std::string describe_group(const Hdf5File& file, const std::string& group) {
  std::string text;
  if (!file.exists(group)) return text;
  for (const auto& name : file.names(group)) text += describe_tensor(file, group + '/' + name);
  return text;
}

}  // namespace

std::string inspect_checkpoint(const std::string& path) {
  const std::string file_path = resolve_checkpoint(path);
  std::string text = fmt::format("file          {}\n", file_path) + describe(read_file_meta(file_path));
  const Hdf5File file(file_path, Hdf5File::Access::read);
  text += "tensors\n" + describe_group(file, "/parameters") + describe_group(file, "/statistics");
  if (file.exists("/optimiser")) {
    for (const auto& slot : file.names("/optimiser")) text += describe_group(file, "/optimiser/" + slot);
  }
  if (file.exists("/ema")) text += describe_group(file, "/ema/parameters") + describe_group(file, "/ema/statistics");
  return file.exists("/state") ? text + describe_tensor(file, "/state") : text;
}

}  // namespace convoy
