// SPDX-License-Identifier: Apache-2.0
// What torch.save writes since version 1.6: a zip archive with a pickle of the state dict, and one entry for each
// storage.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/errors.hpp"
#include "interchange/formats.hpp"
#include "interchange/pickle.hpp"
#include "interchange/published_file.hpp"
#include "interchange/zip.hpp"

namespace convoy {
namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t longest_pickle = 8U << 20U;

struct Storage {
  std::string_view global;
  TensorType type;
};
constexpr std::array storages{
    Storage{"torch.FloatStorage", TensorType::f32}, Storage{"torch.HalfStorage", TensorType::f16},
    Storage{"torch.BFloat16Storage", TensorType::bf16}, Storage{"torch.DoubleStorage", TensorType::f64},
    Storage{"torch.LongStorage", TensorType::i64}};
constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor_v2",
                           rebuild_parameter = "torch._utils._rebuild_parameter";
/// Where training programs keep the weights among other things; averages first.
constexpr std::array sections{"model_ema",        "state_dict_ema", "state_dict", "model",
                              "model_state_dict", "model_state",    "net"};

std::vector<std::string_view> known_globals() {
  // The last ones are among the other things that training programs save: their values stay unread.
  std::vector<std::string_view> globals{"collections.OrderedDict",
                                        rebuild_tensor,
                                        rebuild_parameter,
                                        "argparse.Namespace",
                                        "torch.device",
                                        "numpy.core.multiarray.scalar",
                                        "numpy._core.multiarray.scalar",
                                        "numpy.dtype",
                                        "_codecs.encode"};
  for (const Storage& storage : storages) globals.push_back(storage.global);
  return globals;
}

/// The entries of an archive below its one folder.
class Archive {
 public:
  explicit Archive(const File& file) : file_(file) {
    const std::vector<ZipEntry> entries = read_zip(file);
    constexpr std::string_view pickle = "/data.pkl";
    const auto root = std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& entry) {
      return entry.name.ends_with(pickle) && entry.name.find('/') == entry.name.size() - pickle.size();
    });
    if (root == entries.end())
      fail(Exit::data, "'{}' is a zip archive but not PyTorch's (it has no data.pkl); give a file of torch.save",
           file.path());
    const std::string folder = root->name.substr(0, root->name.size() - pickle.size() + 1);
    for (const ZipEntry& entry : entries) {
      if (!entry.name.starts_with(folder)) continue;
      if (!entries_.emplace(entry.name.substr(folder.size()), entry).second)
        fail(Exit::data, "'{}' has two entries '{}'; save it again", file.path(), entry.name);
    }
    if (entries_.contains("constants.pkl"))
      fail(
          Exit::data,
          "'{}' is a TorchScript program, not a state dict; save one: torch.save(torch.jit.load('{}').state_dict(), 'new.pth')",
          file.path(), file.path());
    if (const auto order = entries_.find("byteorder"); order != entries_.end() && text(order->second) != "little")
      fail(Exit::data, "'{}' was saved on a big-endian machine; save it on a little-endian one", file.path());
  }

  const ZipEntry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const std::map<std::string, ZipEntry>& entries() const { return entries_; }

  /// Checked by its CRC.
  std::string text(const ZipEntry& entry) const {
    if (entry.bytes > longest_pickle)
      fail(Exit::data, "'{}' has an entry '{}' of {} bytes; save the state dict alone", file_.path(), entry.name,
           entry.bytes);
    std::string bytes(entry.bytes, '\0');
    file_.read_at(bytes.data(), bytes.size(), entry.offset);
    if (zip_crc(std::as_bytes(std::span(bytes))) != entry.crc)
      fail(Exit::data, "'{}' is damaged at '{}' (its checksum is wrong); copy or download it again", file_.path(),
           entry.name);
    return bytes;
  }

 private:
  const File& file_;
  std::map<std::string, ZipEntry> entries_;
};

/// Makes tensors of the calls that a pickle holds.
class StateDict {
 public:
  StateDict(const File& file, const Archive& archive, const Pickle& pickle)
      : file_(file), archive_(archive), pickle_(pickle) {}

  /// `section` learns the key under which the tensors lie.
  std::vector<StoredValues> tensors(std::string& section) const {
    const PickleValue* dict = &pickle_.root();
    if (dict->kind != Kind::dict) fail(Exit::data, "'{}' holds no dict of tensors; save model.state_dict()", path());
    if (!all_tensors(*dict)) {  // a training's checkpoint may hold tensors beside its weights, too
      for (const char* key : sections) {
        const PickleValue* found = pickle_.find(*dict, key);
        if (found == nullptr || found->kind != Kind::dict || !has_tensors(*found)) continue;
        section = key;
        return tensors_of(*found);
      }
    }
    if (!has_tensors(*dict))
      fail(Exit::data, "'{}' holds no tensors, neither at its top nor under '{}'; save model.state_dict()", path(),
           fmt::join(sections, "', '"));
    return tensors_of(*dict);
  }

 private:
  const std::string& path() const { return file_.path(); }
  const PickleValue& at(PickleId id) const { return pickle_.at(id); }

  [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
    fail(Exit::data, "'{}' of '{}' is no tensor that can be read ({}); save model.state_dict() alone", name, path(),
         why);
  }

  /// The arguments of a call of `function` if it has at least so many; null: it is none.
  const std::vector<PickleId>* call_of(const PickleValue& value, std::string_view function, std::size_t count) const {
    if (value.kind != Kind::made || at(value.items[0]).text != function) return nullptr;
    const auto& arguments = at(value.items[1]).items;
    return arguments.size() < count ? nullptr : &arguments;
  }
  /// The arguments of the call that makes a tensor, of a parameter too; null: the value is none.
  const std::vector<PickleId>* tensor_call(const PickleValue& value) const {
    const auto* parameter = call_of(value, rebuild_parameter, 1);
    return call_of(parameter == nullptr ? value : at(parameter->front()), rebuild_tensor, 4);
  }
  bool has_tensors(const PickleValue& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2)
      if (tensor_call(at(dict.items[i])) != nullptr) return true;
    return false;
  }

  bool all_tensors(const PickleValue& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2)
      if (tensor_call(at(dict.items[i])) == nullptr) return false;
    return !dict.items.empty();
  }

  std::vector<Index> numbers(PickleId id, const std::string& name) const {
    const PickleValue& value = at(id);
    if (value.kind != Kind::tuple || value.items.size() > most_dimensions) refuse(name, "its shape is no tuple");
    std::vector<Index> list;
    for (const PickleId item : value.items) list.push_back(number(item, name));
    return list;
  }
  Index number(PickleId id, const std::string& name) const {
    if (at(id).kind != Kind::integer || at(id).integer < 0) refuse(name, "a size is no whole number");
    return at(id).integer;
  }

  /// ('storage', type, key, device, elements).
  ValuesPlace place_of(const PickleValue& stored, const std::string& name, TensorType& type) const {
    const std::vector<PickleId>* parts = nullptr;
    if (stored.kind == Kind::persistent) parts = &at(stored.items.front()).items;
    if (parts == nullptr || parts->size() != 5 || at((*parts)[0]).text != "storage" ||
        at((*parts)[2]).kind != Kind::text)
      refuse(name, "it has no storage");
    const auto* known = std::find_if(storages.begin(), storages.end(),
                                     [&](const Storage& each) { return each.global == at((*parts)[1]).text; });
    if (known == storages.end()) refuse(name, "its storage has no type");
    type = known->type;
    const std::string entry_name = "data/" + at((*parts)[2]).text;
    const ZipEntry* entry = archive_.find(entry_name);
    if (entry == nullptr) refuse(name, fmt::format("the archive has no '{}'", entry_name));
    const auto count = static_cast<std::uint64_t>(number((*parts)[4], name));
    if (entry->bytes % bytes_of(type) != 0 || entry->bytes / bytes_of(type) != count)
      refuse(name, fmt::format("its storage has {} bytes for {} elements", entry->bytes, count));
    return {.offset = entry->offset, .bytes = entry->bytes, .crc = entry->crc};
  }

  StoredValues tensor(const std::string& name, const PickleValue& value) const {
    const auto* call = tensor_call(value);
    if (call == nullptr) refuse(name, "it is a value of another kind");
    constexpr std::size_t marks = 6;  // the place of the dict that marks views as negated or conjugated
    if (call->size() > marks && at((*call)[marks]).kind == Kind::dict && !at((*call)[marks]).items.empty())
      refuse(name, "it is a view with other signs; call resolve_neg() before saving");
    StoredValues tensor{.name = name};
    tensor.place = place_of(at((*call)[0]), name, tensor.type);
    tensor.first = number((*call)[1], name);
    tensor.extent = numbers((*call)[2], name);
    tensor.strides = numbers((*call)[3], name);
    const auto stored = static_cast<Index>(tensor.place.bytes / bytes_of(tensor.type));
    const Index count =
        checked_count(tensor.extent, static_cast<std::uint64_t>(stored), fmt::format("'{}' of '{}'", name, path()));
    if (tensor.strides.size() != tensor.extent.size()) refuse(name, "shape and strides differ in length");
    if (count == 0) {
      tensor.first = 0;
      tensor.strides = row_major(tensor.extent);
      return tensor;
    }
    Index last = tensor.first;
    for (std::size_t i = 0; i < tensor.extent.size(); ++i) {
      const Index steps = tensor.extent[i] - 1, stride = tensor.strides[i];
      if (last >= stored || (steps > 0 && stride > (stored - 1 - last) / steps)) refuse(name, "it leaves its storage");
      if (steps > 0) last += steps * stride;
    }
    if (last >= stored) refuse(name, "it leaves its storage");
    return tensor;
  }

  std::vector<StoredValues> tensors_of(const PickleValue& dict) const {
    if (dict.items.size() > 2 * most_tensors) fail(Exit::data, "'{}' has too many tensors; save one network", path());
    std::vector<StoredValues> found;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue& name = at(dict.items[i]);
      if (name.kind != Kind::text) fail(Exit::data, "'{}' has a tensor without a name; save it again", path());
      found.push_back(tensor(name.text, at(dict.items[i + 1])));
    }
    return found;
  }

  const File& file_;
  const Archive& archive_;
  const Pickle& pickle_;
};

// Writing: opcodes as in pickle.cpp.

template <class T>
std::string raw(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
std::string text_opcode(const std::string& text) {
  return std::string(1, 'X').append(raw(static_cast<std::uint32_t>(text.size()))).append(text);
}
std::string number_opcode(Index number) {
  if (std::in_range<std::int32_t>(number)) return std::string(1, 'J').append(raw(static_cast<std::int32_t>(number)));
  return std::string("\x8a\x08").append(raw(number));
}
std::string tuple_opcode(const std::vector<Index>& numbers) {
  std::string opcodes = "(";
  for (const Index number : numbers) opcodes += number_opcode(number);
  return opcodes + "t";
}

const std::string ordered_dict = "ccollections\nOrderedDict\n)R";

/// An attribute of the state dict, as Module.state_dict() has it of each module. torchvision's MNASNet refuses a state
/// dict without the version of the whole network, and with version 1 it takes the stem of 2018.
std::string version_opcodes() {
  return "}" + text_opcode("_metadata") + ordered_dict + text_opcode("") + "}" + text_opcode("version") +
         number_opcode(2) + "sssb";
}

std::string pickle_of(const std::vector<NamedTensor>& tensors) {
  std::string opcodes = "\x80\x02" + ordered_dict + "(";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& tensor = tensors[i];
    const std::string storage = tensor.type() == TensorType::i64 ? "LongStorage" : "FloatStorage";
    opcodes += text_opcode(tensor.name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text_opcode("storage") +
               "ctorch\n" + storage + "\n" + text_opcode(std::to_string(i)) + text_opcode("cpu") +
               number_opcode(static_cast<Index>(tensor.count())) + "tQ" + number_opcode(0) +
               tuple_opcode(tensor.extent) + tuple_opcode(row_major(tensor.extent)) + "\x89" + ordered_dict + "tR";
  }
  return opcodes + "u" + version_opcodes() + ".";
}

/// Records that PyTorch doesn't ask for.
const std::string metadata_folder = "convoy/";

}  // namespace

TensorIndex read_pth_index(const File& file) {
  const Archive archive(file);
  const Pickle pickle(archive.text(*archive.find("data.pkl")), known_globals(), fmt::format("'{}'", file.path()));
  TensorIndex index;
  index.tensors = StateDict(file, archive, pickle).tensors(index.section);
  std::uint64_t metadata_bytes = 0;  // entries may share their bytes: together they can be larger than the file
  for (const auto& [name, entry] : archive.entries()) {
    if (!name.starts_with(metadata_folder)) continue;
    metadata_bytes += entry.bytes;
    if (metadata_bytes > longest_pickle)
      fail(Exit::data, "'{}' has more than {} bytes of metadata; save the state dict alone", file.path(),
           longest_pickle);
    index.metadata[name.substr(metadata_folder.size())] = archive.text(entry);
  }
  return index;
}

void write_pth(const std::string& path, const std::vector<NamedTensor>& tensors,
               const std::map<std::string, std::string>& metadata) {
  write_published(path, [&](File& file) {
    ZipWriter archive(file);
    const auto add = [&](const std::string& name, const std::string& bytes) {
      archive.add("archive/" + name, std::as_bytes(std::span(bytes)));
    };
    add("data.pkl", pickle_of(tensors));
    add("byteorder", "little");
    for (std::size_t i = 0; i < tensors.size(); ++i) add(fmt::format("data/{}", i), bytes_of(tensors[i]));
    add("version", "3\n");
    for (const auto& [name, text] : metadata) add(metadata_folder + name, text);
    archive.finish();
  });
}

}  // namespace convoy
