// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <span>
#include <sstream>
#include <stdexcept>

#include "comm/agree.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "interchange/fit.hpp"
#include "io/file_kind.hpp"

namespace convoy {
namespace {

/// What the log says of the tensors of a file.
std::string tell(const TensorFile& file, const StateFit& fit, std::size_t taken, std::uint64_t digest) {
  const std::string section = file.section().empty() ? "" : fmt::format(", under '{}'", file.section());
  const std::size_t others = file.tensors().size() - taken;
  const std::string rest = others == 0 ? ""
                                       : fmt::format(", {} left out ({} of them counters and auxiliary classifiers)",
                                                     others, fit.left_out.size());
  const std::vector<std::string>& keys = file.other_sections();
  const std::string unread = keys.empty() ? ""
                                          : fmt::format("; not read: those under '{}' ('{}:{}' takes them)",
                                                        fmt::join(keys, "', '"), file.path(), keys.front());
  return fmt::format("weights from '{}' ({}{}): {}{}; digest {:016x}{}", file.path(), name_of(file.format()), section,
                     counted(taken, "tensor"), rest, digest, unread);
}

/// On rank 0.
LoadedWeights read_tensors(const std::string& path, const Plan& plan, const SetLayout& layout, Head head) {
  const TensorFile file(path);
  file.check_digest();
  StateFit fit = fit_state(plan, file);
  const bool fits = head == Head::must_fit ? fit.fits() && fit.other_head.empty() : fit.fits_body();
  if (!fits) fail_misfit(fit, plan, file);
  LoadedWeights loaded;
  loaded.origin = fit.origin;
  std::vector<float>& block = loaded.block;
  std::vector<std::string>& unread = loaded.unread;
  const std::vector<std::string> heads = head_prefixes(plan.graph);
  const auto leave = [&](const FilledEntry& each) { unread.push_back("/parameters/" + each.entry.name); };
  for (const FilledEntry& each : fit.other_head) leave(each);
  for (const StateEntry& entry : fit.missing_head) unread.push_back("/parameters/" + entry.name);
  // A head of other classes is left whole: its weight and its bias.
  if (head == Head::left_out || !unread.empty())
    std::erase_if(fit.filled, [&](const FilledEntry& each) {
      if (!begins_with_any(each.entry.name, heads)) return false;
      leave(each);
      return true;
    });
  for (const StateEntry& entry : fit.missing_auxiliary)
    unread.push_back((entry.part == StateEntry::Part::values ? "/parameters/" : "/statistics/") + entry.name);
  block.assign(static_cast<std::size_t>(layout.count()), 0.0F);
  const auto part = [&](Range range) {
    return std::span(block).subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count));
  };
  const std::uint64_t digest = fill_set(fit.filled, file, part(layout.values), part(layout.statistics));
  log::info("{}", tell(file, fit, fit.filled.size(), digest));
  return loaded;
}

/// The format that the ending of a file's name promises; empty: none that holds weights.
std::string promised_format(const std::string& path) {
  for (const auto& [ending, format] :
       {std::pair{".safetensors", "a safetensors file"}, std::pair{".pth", "a file of PyTorch"},
        std::pair{".pt", "a file of PyTorch"}, std::pair{".onnx", "an ONNX file"}, std::pair{".h5", "a checkpoint"}})
    if (path.ends_with(ending)) return format;
  return {};
}

/// For a file that isn't one of tensors: throws Error(data) unless its first bytes are those of a checkpoint.
void require_checkpoint(const std::string& path) {
  const std::string head = head_of_file(path);
  if (begins_as_sealed(head)) return;
  std::string what = foreign_kind(head), promised = promised_format(path), remedy;
  if (what.empty() && head.empty()) {
    what = "empty";
  } else if (what.empty()) {
    what = promised.empty() ? "of no known format"
                            : fmt::format("damaged (its first bytes are not those of {})", promised);
    if (!promised.empty()) remedy = "copy or download it again, or ";
  }
  fail(Exit::data,
       "'{}' is {}, not a checkpoint of 'convoy train' or a file of weights; {}give a run directory, a .h5 file of its "
       "folder checkpoints, a .safetensors file, a .pth file of PyTorch, or an .onnx file",
       path, what, remedy);
}

/// What `convoy export` wrote about classes and input, as the text of a meta part; empty: another program wrote the
/// file. Throws Error(data) if it is damaged.
std::string data_in_onnx(const TensorFile& file) {
  const auto& told = file.metadata();
  if (told.find("class_names") == told.end()) return {};
  const auto numbers = [&](const char* key) { return Json::parse(told.at(key)).as<std::vector<double>>(); };
  try {
    FileMeta meta;
    TrainedData& data = meta.meta.data;
    data.class_names = Json::parse(told.at("class_names")).as<std::vector<std::string>>();
    constexpr double white = 255;
    for (const auto& [key, to] : {std::pair{"mean", &data.mean}, std::pair{"std", &data.std}})
      for (const double value : numbers(key)) to->push_back(value * white);
    const std::vector<double> crop = numbers("crop_size");
    if (crop.size() != 2 || data.mean.size() != data.std.size()) throw std::invalid_argument("sides");
    data.input_height = static_cast<Index>(crop[0]);  // the size of stored pixels isn't told
    data.input_width = static_cast<Index>(crop[1]);
    data.short_side = Json::parse(told.at("resize_size")).as<Index>();
    data.normalise = normalise_named(told.at("normalization"));
    if (!data.normalise) throw std::invalid_argument("normalization");
    if (const auto digests = told.find(data_digests); digests != told.end())  // older exports have none
      std::istringstream(digests->second) >> std::hex >> data.train_digest >> data.val_digest;
    return to_text(meta);
  } catch (const std::exception&) {  // of JSON, or a key that is missing
    fail(Exit::data, "'{}' gives its classes and its input in another form than 'convoy export' does; export it again",
         file.path());
  }
}

}  // namespace

FoundWeights open_weights(Communicator& communicator, const std::string& path) {
  // The format, its path and its meta part in lines; the first is empty for a checkpoint.
  const std::string answer = ask_first_rank(communicator, "looking at the weights", [&]() -> std::string {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(file_part_of(path).path, unknown)) return {};
    const auto format = tensor_format_of(path);
    if (!format) {
      require_checkpoint(path);
      return {};
    }
    const TensorFile file(path);
    const auto meta = file.metadata().find(convoy_metadata);
    if (format == TensorFormat::onnx) return fmt::format("{}\n{}", static_cast<int>(*format), data_in_onnx(file));
    if (meta != file.metadata().end()) parse_meta(meta->second, path);
    return fmt::format("{}\n{}", static_cast<int>(*format), meta == file.metadata().end() ? "" : meta->second);
  });
  if (answer.empty()) return {open_checkpoint(communicator, path, best_checkpoint), std::nullopt};
  const std::size_t end = answer.find('\n');
  FoundWeights found{{.path = path}, static_cast<TensorFormat>(std::stoi(answer.substr(0, end)))};
  if (end + 1 < answer.size()) found.file = parse_meta(answer.substr(end + 1), path);
  return found;
}

namespace {

/// Which of a checkpoint's weights are taken; empty: it has one kind.
std::string tell_choice(const CheckpointMeta& meta, WeightChoice choice) {
  if (meta.ema_decay == 0) return {};
  if (choice == WeightChoice::trained) return ", the trained ones (--no-ema)";
  if (const double steps = meta.lookahead_steps(); steps > 0)
    return fmt::format(", the slow ones (--lookahead-steps {})", steps);
  return fmt::format(", their moving average (--ema-decay {})", meta.ema_decay);
}

}  // namespace

void require_choice(const std::string& path, const CheckpointMeta& meta, WeightChoice choice) {
  if (choice == WeightChoice::average && meta.ema_decay == 0)
    fail(Exit::data,
         "'{}' has no moving average (its run had neither --ema-decay nor --lookahead-steps); leave --ema out", path);
}

std::string name_of_weights(const CheckpointMeta& meta, WeightChoice choice) {
  if (meta.texts.count("average_of") > 0) return "averaged";
  if (choice == WeightChoice::trained || meta.ema_decay == 0) return "trained";
  return meta.lookahead_steps() > 0 ? "slow" : "moving average";
}

LoadedWeights load_weights(Communicator& communicator, const FoundWeights& found, const Plan& plan,
                           const SetLayout& layout, Head head, WeightChoice choice) {
  if (!found.format) {
    Checkpoint loaded = load_checkpoint(communicator, found, plan, layout,
                                        {.weights_only = true, .choice = choice, .head = head, .shards = false});
    log::info("weights from '{}'{}", loaded.path, tell_choice(loaded.meta, choice));
    return {std::move(loaded.set.block), std::move(loaded.unread)};
  }
  LoadedWeights loaded;
  std::istringstream unread(ask_first_rank(communicator, "reading the weights", [&] {
    loaded = read_tensors(found.path, plan, layout, head);
    return fmt::format("{} {}", static_cast<int>(loaded.origin), fmt::join(loaded.unread, " "));
  }));
  loaded.unread.clear();
  int library = 0;
  unread >> library;
  loaded.origin = static_cast<Library>(library);
  for (std::string name; unread >> name;) loaded.unread.push_back(name);
  loaded.block.resize(static_cast<std::size_t>(layout.count()));
  communicator.broadcast(std::as_writable_bytes(std::span(loaded.block)), 0, "values of the weights");
  return loaded;
}

}  // namespace convoy
