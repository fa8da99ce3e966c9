// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/meta.hpp"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <sstream>

#include "core/errors.hpp"
#include "core/json.hpp"

namespace convoy {
namespace {

Json to_json(const ShardRecord& shard) {
  return Json::object({{"replica", shard.replica},
                       {"samples_since_average", shard.samples_since_average},
                       {"file", shard.file},
                       {"seal", shard.seal}});
}

Json list_of(const std::vector<ShardRecord>& shards) {
  Json list = Json::list();
  for (const ShardRecord& shard : shards) list.add(to_json(shard));
  return list;
}

std::vector<ShardRecord> shards_of(const Json& json) {
  std::vector<ShardRecord> shards;
  for (const Json& entry : json.items())
    shards.push_back({entry.at("replica").as<int>(), entry.at("samples_since_average").as<Index>(),
                      entry.at("file").as<std::string>(), entry.at("seal").as<std::uint32_t>()});
  return shards;
}

// JSON numbers are doubles to most readers: 64-bit digests travel as hexadecimal text.
std::uint64_t parse_hex(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, 16);
  if (result.ec != std::errc() || result.ptr != end) throw std::invalid_argument("'" + text + "' is not hexadecimal");
  return value;
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Json to_json(const TrainedData& data) {
  Json json = Json::object({{"class_names", data.class_names},
                            {"mean", data.mean},
                            {"std", data.std},
                            {"stored_size", std::vector<Index>{data.height, data.width}},
                            {"train_digest", hex(data.train_digest)},
                            {"val_digest", hex(data.val_digest)},
                            {"mean_image", hex(data.mean_image)},
                            {"input_size", std::vector<Index>{data.input_height, data.input_width}},
                            {"short_side", data.short_side}});
  if (data.normalise) json["normalise"] = name_of(*data.normalise);
  return json;
}

/// Of checkpoints of older versions, which tell no kind: nothing.
std::optional<InputSpec::Normalise> normalise_in(const Json& json) {
  const Json* told = json.find("normalise");
  if (told == nullptr) return std::nullopt;
  const auto word = told->as<std::string>();
  const auto kind = normalise_named(word);
  if (!kind) throw std::invalid_argument("'" + word + "' is a kind of normalisation that this program doesn't know");
  return kind;
}

TrainedData data_of(const Json& json) {
  const auto digest = [&](const char* name) { return parse_hex(json.at(name).as<std::string>()); };
  const auto size = [&](const char* name, std::size_t axis) { return json.at(name).items().at(axis).as<Index>(); };
  return {.class_names = json.at("class_names").as<std::vector<std::string>>(),
          .mean = json.at("mean").as<std::vector<double>>(),
          .std = json.at("std").as<std::vector<double>>(),
          .height = size("stored_size", 0),
          .width = size("stored_size", 1),
          .train_digest = digest("train_digest"),
          .val_digest = digest("val_digest"),
          .mean_image = digest("mean_image"),
          .normalise = normalise_in(json),
          .input_height = size("input_size", 0),
          .input_width = size("input_size", 1),
          .short_side = json.at("short_side").as<Index>()};
}

Json to_json(const CompressionSpec& compression) {
  return Json::object({{"kind", std::string(name_of(compression.kind))}, {"rank", compression.rank}});
}

CompressionSpec compression_in(const Json& json) {
  const auto kind = json.at("kind").as<std::string>();
  for (const Compression known : all_compressions)
    if (kind == name_of(known)) return {.kind = known, .rank = json.at("rank").as<int>()};
  throw std::invalid_argument("'" + kind + "' is a compression that this program doesn't know");
}

/// Older versions kept some of it as texts, and the oldest nothing.
TrainedData data_of_texts(const std::map<std::string, std::string>& texts) {
  TrainedData data;
  const auto lines = [&](const char* name, char end) {
    std::vector<std::string> items;
    if (const auto found = texts.find(name); found != texts.end()) {
      std::istringstream stream(found->second);
      for (std::string item; std::getline(stream, item, end);) items.push_back(item);
    }
    return items;
  };
  data.class_names = lines("class_names", '\n');
  for (const std::string& item : lines("data_mean", ',')) data.mean.push_back(std::stod(item));
  for (const std::string& item : lines("data_std", ',')) data.std.push_back(std::stod(item));
  if (const auto size = lines("data_size", ','); size.size() == 2) {
    data.height = std::stoll(size[0]);
    data.width = std::stoll(size[1]);
  }
  return data;
}

// Texts may hold paths, which need not be UTF-8.
std::string dump(const Json& json) { return json.text(1, Json::Order::sorted); }
}  // namespace

std::string to_text(const FileMeta& file) {
  const CheckpointMeta& meta = file.meta;
  Json json = Json::object({{"model", file.model},
                            {"run", meta.run},
                            {"attempt", meta.attempt},
                            {"position", Json::object({{"epoch", meta.position.epoch},
                                                       {"step_in_epoch", meta.position.step_in_epoch},
                                                       {"step", meta.position.step},
                                                       {"images", meta.position.images}})},
                            {"replicas", meta.replicas},
                            {"ranks", meta.ranks},
                            {"local_steps", meta.local_steps},
                            {"plan_digest", hex(meta.plan_digest)},
                            {"data", to_json(meta.data)},
                            {"configuration_hash", meta.configuration_hash},
                            {"texts", meta.texts},
                            {"numbers", meta.numbers}});
  if (meta.ema_decay > 0) json["ema_decay"] = meta.ema_decay;
  if (meta.has_outer) json["outer"] = true;
  if (meta.compression.is_on()) json["compression"] = to_json(meta.compression);
  if (file.replica >= 0) json["replica"] = file.replica;
  if (file.values_in_main) json["values_in_main"] = true;
  if (!file.shards.empty()) json["shards"] = list_of(file.shards);
  return dump(json);
}

FileMeta parse_meta(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    FileMeta file;
    file.model = json.at("model").as<std::string>();
    CheckpointMeta& meta = file.meta;
    meta.run = json.value("run", "");
    meta.attempt = json.value("attempt", Index{0});
    const Json& position = json.at("position");
    meta.position = {position.at("epoch").as<Index>(), position.at("step_in_epoch").as<Index>(),
                     position.at("step").as<Index>(), position.at("images").as<Index>()};
    meta.replicas = json.at("replicas").as<int>();
    meta.ranks = json.at("ranks").as<int>();
    meta.local_steps = json.at("local_steps").as<Index>();
    meta.ema_decay = json.value("ema_decay", 0.0);
    meta.has_outer = json.value("outer", false);
    if (const Json* compression = json.find("compression")) meta.compression = compression_in(*compression);
    meta.plan_digest = parse_hex(json.at("plan_digest").as<std::string>());
    meta.configuration_hash = json.at("configuration_hash").as<std::string>();
    meta.texts = json.at("texts").as<std::map<std::string, std::string>>();
    // JSON has no NaN and infinity: they are written as null.
    const Json& numbers = json.at("numbers");
    for (std::size_t i = 0; i < numbers.items().size(); ++i) {
      const Json& value = numbers.items()[i];
      meta.numbers[numbers.names()[i]] =
          value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.as<double>();
    }
    const Json* data = json.find("data");
    meta.data = data != nullptr ? data_of(*data) : data_of_texts(meta.texts);
    file.replica = json.value("replica", -1);
    file.values_in_main = json.value("values_in_main", false);
    if (const Json* shards = json.find("shards")) file.shards = shards_of(*shards);
    return file;
  } catch (const std::exception& error) {
    fail(Exit::data, "cannot read the meta attribute of checkpoint '{}' ({}); use another checkpoint", path,
         error.what());
  }
}

}  // namespace convoy
