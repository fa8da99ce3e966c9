// SPDX-License-Identifier: Apache-2.0
// The format of huggingface/safetensors: 8 bytes of length, a JSON header, one buffer without holes.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/shape_text.hpp"
#include "interchange/formats.hpp"
#include "interchange/published_file.hpp"

namespace convoy {
namespace {

// Far above any network's: 10,000 tensors have 1 MB. The library that reads JSON takes quadratic time for many names.
constexpr std::uint64_t longest_header = 4U << 20U;
constexpr std::ptrdiff_t most_colons = 4 * most_tensors;
constexpr std::uint64_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";
constexpr std::array types{TensorType::f16, TensorType::bf16, TensorType::f32, TensorType::f64, TensorType::i64};

[[noreturn]] void fail_damaged(const File& file, const std::string& what) {
  fail(Exit::data, "'{}' is no whole safetensors file ({}); copy or download it again", file.path(), what);
}

StoredValues tensor_of(const File& file, const std::string& name, const Json& entry, std::uint64_t begin) {
  StoredValues tensor{.name = name};
  const auto word = entry.at("dtype").as<std::string>();
  const auto* type = std::find_if(types.begin(), types.end(), [&](TensorType each) { return word == name_of(each); });
  tensor.extent = entry.at("shape").as<std::vector<Index>>();
  const auto offsets = entry.at("data_offsets").as<std::vector<std::uint64_t>>();
  const std::uint64_t buffer = file.size() - begin;
  const bool lies_inside = offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= buffer;
  if (type == types.end()) {  // a counter, or a network's tensor that is needed: who reads it learns why it can't
    if (!lies_inside) fail_damaged(file, fmt::format("'{}' lies outside the file", name));
    tensor.place = {.offset = begin + offsets[0], .bytes = offsets[1] - offsets[0]};
    tensor.fault = fmt::format(
        "tensor '{}' of '{}' is of type {} (F16, BF16, F32, F64 and I64 are read); convert the file in Python: "
        "from safetensors.torch import load_file, save_file; "
        "save_file({{k: v.float() for k, v in load_file('{}').items()}}, 'new.safetensors')",
        name, file.path(), word, file.path());
    tensor.extent = plausible_extent(std::move(tensor.extent), file.size());
    return tensor;
  }
  tensor.type = *type;
  const Index count =
      checked_count(tensor.extent, buffer / bytes_of(*type), fmt::format("'{}' of '{}'", name, file.path()));
  tensor.strides = row_major(tensor.extent);
  if (!lies_inside) fail_damaged(file, fmt::format("'{}' lies outside the file", name));
  tensor.place = {.offset = begin + offsets[0], .bytes = offsets[1] - offsets[0]};
  if (tensor.place.bytes != static_cast<std::uint64_t>(count) * bytes_of(*type))
    fail_damaged(
        file, fmt::format("'{}' has {} bytes for {} of {}", name, tensor.place.bytes, shape_text(tensor.extent), word));
  return tensor;
}

/// One after another from `begin` to the end of the file.
void require_gapless(const File& file, std::vector<StoredValues> tensors, std::uint64_t begin) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const StoredValues& a, const StoredValues& b) {
    return std::pair(a.place.offset, a.place.bytes) < std::pair(b.place.offset, b.place.bytes);
  });
  for (const StoredValues& tensor : tensors) {
    if (tensor.place.offset != begin)
      fail_damaged(file, fmt::format("'{}' {} the tensor before it", tensor.name,
                                     tensor.place.offset < begin ? "overlaps" : "leaves a hole after"));
    begin += tensor.place.bytes;
  }
  if (begin != file.size()) fail_damaged(file, fmt::format("{} bytes follow the last tensor", file.size() - begin));
}

}  // namespace

TensorIndex read_safetensors_index(const File& file) {
  std::uint64_t length = 0;
  if (file.size() < length_bytes) fail_damaged(file, "it is too short");
  file.read_at(&length, sizeof length, 0);
  if (length > file.size() - length_bytes)
    fail_damaged(file, fmt::format("its header has {} bytes, and {} follow", length, file.size() - length_bytes));
  if (length > longest_header)
    fail(
        Exit::data,
        "'{}' has a header of {} bytes (at most {} are read; 10,000 tensors take 1 MB); save it with less metadata, or the "
        "tensors of one network alone",
        file.path(), length, longest_header);
  std::string header(length, '\0');
  file.read_at(header.data(), header.size(), length_bytes);
  if (std::count(header.begin(), header.end(), ':') > most_colons) fail_damaged(file, "it has too many tensors");
  TensorIndex index;
  const std::uint64_t begin = length_bytes + length;
  try {
    const Json json = Json::parse(header, Json::Names::once);
    if (!json.is_object()) fail_damaged(file, "its header is no object");
    for (std::size_t i = 0; i < json.names().size(); ++i) {
      const std::string& name = json.names()[i];
      const Json& entry = json.items()[i];
      if (name == metadata_key) {
        index.metadata = entry.as<std::map<std::string, std::string>>();
      } else {
        index.tensors.push_back(tensor_of(file, name, entry, begin));
      }
    }
  } catch (const std::invalid_argument& error) {
    fail_damaged(file, error.what());
  }
  require_gapless(file, index.tensors, begin);
  return index;
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = Json(metadata);
  std::uint64_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::uint64_t end = at + tensor.count() * bytes_of(tensor.type());
    header[tensor.name] = Json::object({{"dtype", name_of(tensor.type())},
                                        {"shape", tensor.extent},
                                        {"data_offsets", std::vector<std::uint64_t>{at, end}}});
    at = end;
  }
  std::string text = header.text(-1, Json::Order::as_written);
  text.resize((text.size() + length_bytes - 1) / length_bytes * length_bytes, ' ');
  write_published(path, [&](File& file) {
    const std::uint64_t length = text.size();
    file.write_at(&length, sizeof length, 0);
    file.write_at(text.data(), text.size(), length_bytes);
    std::uint64_t to = length_bytes + length;
    for (const NamedTensor& tensor : tensors) {
      const std::string bytes = bytes_of(tensor);
      file.write_at(bytes.data(), bytes.size(), to);
      to += bytes.size();
    }
  });
}

}  // namespace convoy
