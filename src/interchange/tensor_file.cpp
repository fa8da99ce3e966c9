// SPDX-License-Identifier: Apache-2.0
#include "interchange/tensor_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <span>
#include <string_view>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/shape_text.hpp"
#include "interchange/formats.hpp"
#include "interchange/onnx_network.hpp"
#include "interchange/zip.hpp"
#include "io/file_kind.hpp"

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "values are stored little endian");

using Head = std::array<char, 32>;

/// IEEE 754 binary16.
float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U, exponent = (bits >> 10U) & 31U, fraction = bits & 0x3FFU;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign != 0 ? -1.0F : 1.0F);
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

template <class T>
T element(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float element_as_float(const std::byte* at, TensorType type) {
  switch (type) {
    case TensorType::f16:
      return float_of_half(element<std::uint16_t>(at));
    case TensorType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(element<std::uint16_t>(at)) << 16U);
    case TensorType::f32:
      return element<float>(at);
    case TensorType::f64:
      return static_cast<float>(element<double>(at));
    case TensorType::i64:
      return static_cast<float>(element<std::int64_t>(at));
  }
  return 0;
}

/// By the first bytes alone.
std::optional<TensorFormat> format_of(const File& file) {
  Head head{};
  file.read_at(head.data(), std::min<std::uint64_t>(head.size(), file.size()), 0);
  const std::string_view bytes(head.data(), head.size());
  if (begins_as_zip(bytes)) return TensorFormat::pth;
  // A pickle that begins with PyTorch's number 0x1950a86a20f9469cfc6c; from protocol 4 on in a frame of 13 bytes.
  const std::string_view number("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  if (begins_as_pickle(bytes) && bytes.substr(2 + (bytes[1] < 4 ? 0 : 9)).starts_with(number))
    fail(
        Exit::data,
        "'{}' is in PyTorch's format from before version 1.6, not a zip archive; convert it in Python: torch.save(torch.load('{}', weights_only=True), 'new.pth') (weights_only=False for a file that you trust, if it holds more than tensors)",
        file.path(), file.path());
  if (begins_as_safetensors(bytes)) return TensorFormat::safetensors;
  if (begins_as_onnx(bytes)) return TensorFormat::onnx;
  return std::nullopt;
}

TensorFormat required_format(const File& file) {
  if (const auto format = format_of(file)) return *format;
  fail(Exit::data, "'{}' is no file of safetensors, PyTorch or ONNX (its first bytes say so); give another file",
       file.path());
}

TensorIndex read_index(const File& file, TensorFormat format, const std::string& key) {
  if (!key.empty() && format != TensorFormat::pth)
    fail(Exit::data, "'{}' ({}) has no dictionaries to choose from; leave ':{}' out", file.path(), name_of(format),
         key);
  switch (format) {
    case TensorFormat::safetensors:
      return read_safetensors_index(file);
    case TensorFormat::pth:
      return read_pth_index(file, key);
    case TensorFormat::onnx: {
      OnnxNetwork network = read_onnx_network(file);
      return {.tensors = std::move(network.tensors), .metadata = std::move(network.metadata)};
    }
  }
  return {};
}

}  // namespace

std::vector<float> read_in_order(const File& file, const StoredValues& tensor) {
  const std::uint64_t size = bytes_of(tensor.type);
  std::vector<std::byte> bytes(tensor.place.bytes);
  file.read_at(bytes.data(), bytes.size(), tensor.place.offset);
  std::vector<float> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_as_float(bytes.data() + i * size, tensor.type);
  return values;
}

const char* name_of(TensorFormat format) {
  switch (format) {
    case TensorFormat::safetensors:
      return "safetensors";
    case TensorFormat::pth:
      return "PyTorch";
    case TensorFormat::onnx:
      return "ONNX";
  }
  return "";
}

const char* name_of(TensorType type) {
  switch (type) {
    case TensorType::f16:
      return "F16";
    case TensorType::bf16:
      return "BF16";
    case TensorType::f32:
      return "F32";
    case TensorType::f64:
      return "F64";
    case TensorType::i64:
      return "I64";
  }
  return "";
}

std::uint64_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::f16:
    case TensorType::bf16:
      return 2;
    case TensorType::f32:
      return 4;
    case TensorType::f64:
    case TensorType::i64:
      return 8;
  }
  return 0;
}

std::string bytes_of(const NamedTensor& tensor) {
  require(tensor.values.empty() || tensor.whole_numbers.empty(), "a tensor holds floats or integers");
  std::string bytes(tensor.count() * bytes_of(tensor.type()), '\0');
  const auto copy = [&](const auto& values) {
    std::ranges::copy(std::as_bytes(std::span(values)), reinterpret_cast<std::byte*>(bytes.data()));
  };
  if (tensor.type() == TensorType::f32) {
    copy(tensor.values);
  } else {
    copy(tensor.whole_numbers);
  }
  return bytes;
}

Index checked_count(const std::vector<Index>& extent, std::uint64_t most, const std::string& what) {
  if (extent.size() > most_dimensions)
    fail(Exit::data, "{} has {} dimensions (a network's tensors have at most 4); give another file", what,
         extent.size());
  std::uint64_t count = 1;
  for (const Index side : extent) {
    if (side < 0 || (side > 0 && count > most / static_cast<std::uint64_t>(side)))
      fail(Exit::data, "{} is larger than its file ({}); copy or download it again", what, shape_text(extent));
    count *= static_cast<std::uint64_t>(side);
  }
  return static_cast<Index>(count);
}

std::vector<Index> plausible_extent(std::vector<Index> extent, std::uint64_t most) try {
  checked_count(extent, most, "");
  return extent;
} catch (const Error&) {
  return {};
}

std::vector<Index> row_major(const std::vector<Index>& extent) {
  std::vector<Index> strides(extent.size(), 1);
  // Other sides of a tensor without elements may be of any size.
  if (std::find(extent.begin(), extent.end(), 0) != extent.end()) return strides;
  for (std::size_t i = extent.size(); i-- > 1;) strides[i - 1] = strides[i] * extent[i];
  return strides;
}

Index StoredValues::count() const {
  return std::accumulate(extent.begin(), extent.end(), Index{1}, std::multiplies<>());
}

FilePart file_part_of(const std::string& path) {
  std::error_code unknown;
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(path, unknown)) return {path, {}};
  FilePart part{path.substr(0, colon), path.substr(colon + 1)};
  if (part.key.empty() || !std::filesystem::is_regular_file(part.path, unknown)) return {path, {}};
  return part;
}

TensorFile::TensorFile(const FilePart& part) : file_(part.path, File::Access::read), format_(required_format(file_)) {
  const std::string& path = part.path;
  TensorIndex index = read_index(file_, format_, part.key);
  if (index.tensors.size() > most_tensors)
    fail(Exit::data, "'{}' has {} tensors (at most {} are read); give a file of one network", path,
         index.tensors.size(), most_tensors);
  if (index.tensors.empty()) fail(Exit::data, "'{}' holds no tensors; give a file of a trained network", path);
  std::set<std::string_view> names;
  for (const StoredValues& tensor : index.tensors)
    if (!names.insert(tensor.name).second)
      fail(Exit::data, "'{}' has two tensors '{}'; save it again", path, tensor.name);
  for (const StoredValues& tensor : index.tensors) open_beside(tensor);
  tensors_ = std::move(index.tensors);
  metadata_ = std::move(index.metadata);
  section_ = std::move(index.section);
  other_sections_ = std::move(index.other_sections);
}

void TensorFile::open_beside(const StoredValues& tensor) {
  const ValuesPlace& place = tensor.place;
  if (place.beside.empty()) return;
  const std::string path = (std::filesystem::path(file_.path()).parent_path() / place.beside).string();
  const auto [found, fresh] = beside_.try_emplace(place.beside, path, File::Access::read);
  const std::uint64_t size = found->second.size();
  if (place.offset > size || place.bytes > size - place.offset)
    fail(Exit::data, "'{}' ends before tensor '{}' of '{}'; copy both files again", path, tensor.name, file_.path());
}

const File& TensorFile::file_of(const StoredValues& tensor) const {
  return tensor.place.beside.empty() ? file_ : beside_.at(tensor.place.beside);
}

const StoredValues* TensorFile::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& each) { return each.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

std::vector<std::byte> TensorFile::bytes_of_place(const StoredValues& tensor) const {
  std::vector<std::byte> bytes(tensor.place.bytes);
  file_of(tensor).read_at(bytes.data(), bytes.size(), tensor.place.offset);
  if (!tensor.place.crc || checked_.contains(tensor.place.offset)) return bytes;
  if (zip_crc(bytes) != *tensor.place.crc)
    fail(Exit::data,
         "'{}' is damaged at tensor '{}' (its checksum is wrong), or was saved without checksums; copy it again",
         path(), tensor.name);
  checked_.insert(tensor.place.offset);
  return bytes;
}

std::vector<float> TensorFile::read(const StoredValues& tensor) const {
  if (!tensor.fault.empty()) fail(Exit::data, "{}", tensor.fault);
  const std::uint64_t size = bytes_of(tensor.type);
  std::vector<float> values(static_cast<std::size_t>(tensor.count()));
  const bool in_order = tensor.strides == row_major(tensor.extent);
  std::vector<std::byte> bytes;
  std::uint64_t begin = static_cast<std::uint64_t>(tensor.first) * size;  // of its first element in `bytes`
  if (in_order && (!tensor.place.crc || checked_.contains(tensor.place.offset))) {
    // A part of a storage that many tensors share.
    bytes.resize(values.size() * size);
    file_of(tensor).read_at(bytes.data(), bytes.size(), tensor.place.offset + begin);
    begin = 0;
  } else {
    bytes = bytes_of_place(tensor);
  }
  if (in_order) {
    const std::byte* from = bytes.data() + begin;
    for (float& value : values) {
      value = element_as_float(from, tensor.type);
      from += size;
    }
    return values;
  }
  std::vector<Index> at(tensor.extent.size(), 0);
  for (float& value : values) {
    Index element = tensor.first;
    for (std::size_t i = 0; i < at.size(); ++i) element += at[i] * tensor.strides[i];
    value = element_as_float(bytes.data() + static_cast<std::uint64_t>(element) * size, tensor.type);
    for (std::size_t i = at.size(); i-- > 0 && ++at[i] == tensor.extent[i];) at[i] = 0;
  }
  return values;
}

namespace {

/// `bytes`: as they are stored, in row-major order.
std::uint64_t digest_of(const std::string& name, TensorType type, const std::vector<Index>& extent,
                        std::span<const std::byte> bytes) {
  std::uint64_t digest = hash_text(name_of(type), hash_text(name));
  digest = hash_bytes(extent.data(), extent.size() * sizeof(Index), digest);
  return hash_bytes(bytes.data(), bytes.size(), digest);
}

/// Sums don't depend on the order: other programs write tensors in another one.
std::string digest_text(std::uint64_t tensors, const std::map<std::string, std::string>& metadata) {
  const auto meta = metadata.find(convoy_metadata);
  return fmt::format("{:016x}", tensors + (meta == metadata.end() ? 0 : hash_text(meta->second)));
}

}  // namespace

std::string digest_of_contents(const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::uint64_t sum = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::string bytes = bytes_of(tensor);
    sum += digest_of(tensor.name, tensor.type(), tensor.extent, std::as_bytes(std::span(bytes)));
  }
  return digest_text(sum, metadata);
}

void TensorFile::check_digest() const {
  const auto told = metadata_.find(digest_metadata);
  if (told == metadata_.end() || !metadata_.contains(convoy_metadata)) return;
  std::uint64_t sum = 0;
  for (const StoredValues& tensor : tensors_) {
    const std::vector<std::byte> bytes = bytes_of_place(tensor);
    sum += digest_of(tensor.name, tensor.type, tensor.extent, bytes);
  }
  if (const std::string found = digest_text(sum, metadata_); found != told->second)
    fail(Exit::data,
         "'{}' is damaged (digest {} of its tensors, {} when 'convoy export' wrote it), or another program changed its "
         "tensors and kept the metadata; copy or export it again, or save it without the metadata '{}'",
         path(), found, told->second, digest_metadata);
}

std::optional<TensorFormat> tensor_format_of(const std::string& path) {
  return format_of(File(file_part_of(path).path, File::Access::read));
}

}  // namespace convoy
