// SPDX-License-Identifier: Apache-2.0
// Files of named tensors that other programs write and read: safetensors, PyTorch's zip archives of a state dict, and
// the constants of an ONNX graph under the names of the network that it is (onnx_network.hpp).
// Convoy executes nothing from a file. docs/weights.md says what is read.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "io/file.hpp"

namespace convoy {

enum class TensorFormat : std::uint8_t { safetensors, pth, onnx };
/// `safetensors`, `PyTorch`, `ONNX`: for messages.
const char* name_of(TensorFormat format);

/// Elements of a tensor in a file; all are little endian.
enum class TensorType : std::uint8_t { f16, bf16, f32, f64, i64 };
/// `F32`, as safetensors spells it.
const char* name_of(TensorType type);
std::uint64_t bytes_of(TensorType type);

/// A tensor in memory, to be written as F32, or as I64 if it holds integers (`num_batches_tracked`).
struct NamedTensor {
  std::string name;
  std::vector<Index> extent;                     ///< empty: a scalar
  std::vector<float> values;                     ///< as many as the product of extent
  std::vector<std::int64_t> whole_numbers = {};  ///< in place of values: floats hold integers up to 2^24 only
  TensorType type() const { return whole_numbers.empty() ? TensorType::f32 : TensorType::i64; }
  std::uint64_t count() const { return values.size() + whole_numbers.size(); }
};

/// Bytes of a file that hold one tensor or several.
struct ValuesPlace {
  std::uint64_t offset = 0, bytes = 0;
  std::optional<std::uint32_t> crc;  ///< CRC-32 of them all, if the file has one
  std::string beside = {};           ///< ONNX: name of the file in the same folder that has them; empty: this one
};
/// Where a tensor lies in its file.
struct StoredValues {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<Index> extent, strides;  ///< in elements
  ValuesPlace place;
  Index first = 0;  ///< index of the first element within the place
  /// Why the values can't be read, and what to do, as a sentence; empty: they can. type, place and strides then say
  /// nothing. Tensors that no network needs may have one.
  std::string fault = {};
  Index count() const;
};

/// More than any network has. A hostile file must not decide how much the program allocates.
constexpr std::size_t most_dimensions = 8, most_tensors = 20000;

/// `FILE:KEY` is the dictionary under KEY of a PyTorch file that has several (`FILE:model_ema.module`).
struct FilePart {
  std::string path, key;  ///< key empty: none was given
};
FilePart file_part_of(const std::string& path);

/// An open file whose index is read and checked; values are read on demand.
class TensorFile {
 public:
  /// `path`: a file, or one with a key (file_part_of). The content decides the format, not the name. Throws Error(data)
  /// that names the file, the fault and a remedy.
  explicit TensorFile(const std::string& path) : TensorFile(file_part_of(path)) {}

  const std::string& path() const { return file_.path(); }
  TensorFormat format() const { return format_; }
  const std::vector<StoredValues>& tensors() const { return tensors_; }  ///< of different names, in the file's order
  /// safetensors: `__metadata__`. PyTorch: what write_pth stored beside the tensors.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Under which key of a PyTorch file the tensors lie: `state_dict`, `model_ema.module`; empty: under none.
  const std::string& section() const { return section_; }
  /// Other keys of a PyTorch file under which tensors lie, which are not read.
  const std::vector<std::string>& other_sections() const { return other_sections_; }
  /// Null: there is none.
  const StoredValues* find(const std::string& name) const;
  /// In row-major order, rounded to fp32. Throws Error(data).
  std::vector<float> read(const StoredValues& tensor) const;
  /// If the metadata of a file has a digest of its tensors, reads them all. Throws Error(data) if theirs differs.
  void check_digest() const;

 private:
  explicit TensorFile(const FilePart& part);
  void open_beside(const StoredValues& tensor);
  const File& file_of(const StoredValues& tensor) const;
  /// All bytes of a place, whose checksum is checked when it is read for the first time.
  std::vector<std::byte> bytes_of_place(const StoredValues& tensor) const;

  File file_;
  std::map<std::string, File> beside_;
  TensorFormat format_;
  std::vector<StoredValues> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string section_;
  std::vector<std::string> other_sections_;
  mutable std::set<std::uint64_t> checked_;  ///< offsets of the places whose checksum is known to be right
};

/// By the first bytes of the file; nullopt: none of the formats. Throws Error(data) if the file can't be read, and for
/// PyTorch's old format without a zip archive.
std::optional<TensorFormat> tensor_format_of(const std::string& path);

/// Metadata under this name is the text of a checkpoint's meta (checkpoint/meta.hpp). With it evaluation and prediction
/// need no options about the model.
constexpr const char* convoy_metadata = "convoy";
/// Metadata under this name is the digest_of_contents of the file that Convoy wrote.
constexpr const char* digest_metadata = "digest";
/// Metadata under this name, which an ONNX file has too, are the digests of the training and the validation samples,
/// hexadecimal.
constexpr const char* data_digests = "data_digests";
/// Of what Convoy reads from a file: names, types, shapes and bytes of all tensors, in any order, and the metadata
/// under convoy_metadata. Hexadecimal.
std::string digest_of_contents(const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

// Both write a temporary file beside `path`, flush it and rename it. Throw Error(data).

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// An OrderedDict of tensors, as torch.save writes it: torch.load(weights_only=True) reads it. Each entry of
/// `metadata` becomes a record of the archive that PyTorch ignores.
void write_pth(const std::string& path, const std::vector<NamedTensor>& tensors,
               const std::map<std::string, std::string>& metadata = {});

}  // namespace convoy
