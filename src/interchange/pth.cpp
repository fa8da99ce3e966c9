// SPDX-License-Identifier: Apache-2.0
// What torch.save writes since version 1.6: a zip archive with a pickle of the state dict, and one entry for each
// storage.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
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
constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor_v2";
/// All functions that make tensors.
constexpr std::string_view rebuilds = "torch._utils._rebuild_";
constexpr std::array parameters{std::string_view("torch._utils._rebuild_parameter"),
                                std::string_view("torch._utils._rebuild_parameter_with_state")};
/// Of a tensor with attributes: the function that makes the tensor, its class, the arguments.
constexpr std::string_view rebuild_with_attributes = "torch._tensor._rebuild_from_type_v2";
/// Where training programs keep the weights among other things; averages first.
constexpr std::array sections{"model_ema",
                              "state_dict_ema",
                              "ema_state_dict",
                              "model_ema_state_dict",
                              "ema_model_state_dict",
                              "ema_model",
                              "params_ema",
                              "ema",
                              "state_dict",
                              "model",
                              "model_state_dict",
                              "model_state",
                              "net",
                              "params",
                              "module"};
constexpr std::size_t most_sections_shown = 8;

/// Those of state dicts, and of the other things that training programs save: their values stay unread. None is called.
std::vector<std::string_view> known_globals() {
  std::vector<std::string_view> globals{"collections.OrderedDict",
                                        rebuild_tensor,
                                        parameters[0],
                                        parameters[1],
                                        rebuild_with_attributes,
                                        "torch._utils._rebuild_tensor",
                                        "torch._utils._rebuild_tensor_v3",
                                        "torch._utils._rebuild_qtensor",
                                        "torch._utils._rebuild_sparse_tensor",
                                        "torch._utils._rebuild_sparse_csr_tensor",
                                        "torch._utils._rebuild_meta_tensor_no_storage",
                                        "torch._utils._rebuild_device_tensor_from_numpy",
                                        "torch._utils._rebuild_device_tensor_from_cpu_tensor",
                                        "torch._utils._rebuild_nested_tensor",
                                        "torch.Tensor",
                                        "torch.nn.parameter.Parameter",
                                        "torch.nn.parameter.Buffer",
                                        "torch.device",
                                        "torch.Size",
                                        "torch.serialization._get_layout",
                                        "torch.storage.UntypedStorage",
                                        "torch.storage.TypedStorage",
                                        "torch.per_tensor_affine",
                                        "torch.per_channel_affine",
                                        "argparse.Namespace",
                                        "types.SimpleNamespace",
                                        "collections.Counter",
                                        "collections.defaultdict",
                                        "collections.deque",
                                        "datetime.date",
                                        "datetime.datetime",
                                        "datetime.time",
                                        "datetime.timedelta",
                                        "datetime.timezone",
                                        "decimal.Decimal",
                                        "fractions.Fraction",
                                        "uuid.UUID",
                                        "pathlib.Path",
                                        "pathlib.PosixPath",
                                        "pathlib.PurePosixPath",
                                        "pathlib.WindowsPath",
                                        "pathlib._local.PosixPath",
                                        "pathlib._local.WindowsPath",
                                        "numpy.core.multiarray.scalar",
                                        "numpy._core.multiarray.scalar",
                                        "numpy.core.multiarray._reconstruct",
                                        "numpy._core.multiarray._reconstruct",
                                        "numpy.core.numeric._frombuffer",
                                        "numpy._core.numeric._frombuffer",
                                        "numpy.ndarray",
                                        "numpy.dtype",
                                        "_codecs.encode"};
  // Classes that training programs save as values, or as what makes the missing values of a defaultdict. Python 2's
  // names are those of protocol 2.
  static const std::vector<std::string> more = [] {
    std::vector<std::string> names;
    for (const char* module : {"__builtin__.", "builtins."})
      for (const char* name : {"set", "frozenset", "bytearray", "bytes", "complex", "slice", "xrange", "range", "int",
                               "long", "float", "bool", "str", "unicode", "list", "tuple", "dict", "object"})
        names.push_back(std::string(module) + name);
    for (const char* name : {"float16",         "float32",     "float64",         "bfloat16",       "float8_e4m3fn",
                             "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
                             "complex32",       "complex64",   "complex128",      "int8",           "int16",
                             "int32",           "int64",       "uint8",           "uint16",         "uint32",
                             "uint64",          "bool",        "qint8",           "quint8",         "qint32"})
      names.push_back(std::string("torch.") + name);
    for (const char* name : {"Byte", "Char", "Short", "Int", "Bool", "ComplexFloat", "ComplexDouble", "QInt8", "QUInt8",
                             "QInt32", "QUInt4x2", "QUInt2x4"})
      names.push_back(fmt::format("torch.{}Storage", name));
    return names;
  }();
  globals.insert(globals.end(), more.begin(), more.end());
  for (const Storage& storage : storages) globals.push_back(storage.global);
  return globals;
}

/// The entries of an archive below its one folder.
class Archive {
 public:
  explicit Archive(const File& file) : file_(file) {
    const std::vector<ZipEntry> entries = read_zip(file);
    const auto has = [&](std::string_view end) {
      return std::any_of(entries.begin(), entries.end(), [&](auto& entry) { return entry.name.ends_with(end); });
    };
    if (has("/constants.pkl"))
      fail(
          Exit::data,
          "'{}' is a TorchScript program, not a state dict; save one: torch.save(torch.jit.load('{}').state_dict(), 'new.pth')",
          file.path(), file.path());
    if (has("/archive_format") || has("/models/model.json"))
      fail(
          Exit::data,
          "'{}' is a program of torch.export, not a state dict; save one: torch.save(torch.export.load('{}').state_dict, 'new.pth')",
          file.path(), file.path());
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
    if (const auto order = entries_.find("byteorder"); order != entries_.end() && text(order->second) != "little")
      fail(Exit::data, "'{}' was saved on a big-endian machine; save it on a little-endian one", file.path());
  }

  const ZipEntry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const std::map<std::string, ZipEntry>& entries() const { return entries_; }

  void require_plain(const ZipEntry& entry) const {
    if (!entry.plain)
      fail(Exit::data, "'{}' has a compressed or encrypted entry '{}'; save it with torch.save, which does neither",
           file_.path(), entry.name);
  }

  /// Checked by its CRC.
  std::string text(const ZipEntry& entry) const {
    require_plain(entry);
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

  /// With the keys of the dictionary that `key` names, or that is chosen, and of the others.
  TensorIndex index(const std::string& key) const {
    const PickleValue& root = pickle_.root();
    if (root.kind != Kind::dict) fail(Exit::data, "'{}' holds no dict of tensors; save model.state_dict()", path());
    TensorIndex index;
    const std::vector<Section> found = find_sections();
    const Section* chosen = nullptr;
    if (!key.empty()) {
      const auto named = std::find_if(found.begin(), found.end(), [&](const Section& each) { return each.key == key; });
      if (named == found.end()) fail(Exit::data, "'{}' has no dict of tensors '{}'; {}", path(), key, shown(found));
      chosen = &*named;
    } else if (!all_tensors(root)) {  // a training's checkpoint may hold tensors beside its weights, too
      chosen = choose(found);
    }
    if (chosen != nullptr) index.section = chosen->key;
    for (const Section& each : found)
      if (chosen != nullptr && &each != chosen) index.other_sections.push_back(each.key);
    index.tensors = chosen == nullptr ? tensors_of(root, "") : tensors_of(*chosen->dict, chosen->python);
    return index;
  }

 private:
  struct Section {
    std::string key, python;  ///< `model_ema.module`, `['model_ema']['module']`
    const PickleValue* dict = nullptr;
  };

  const std::string& path() const { return file_.path(); }
  const PickleValue& at(PickleId id) const { return pickle_.at(id); }

  /// What the file has, for messages.
  std::string shown(const std::vector<Section>& found) const {
    if (found.empty()) return "its tensors lie under no key: leave the key out";
    std::string text;
    for (std::size_t i = 0; i < std::min(found.size(), most_sections_shown); ++i)
      text += fmt::format("{}'{}'", i == 0 ? "" : ", ", found[i].key);
    return fmt::format("it has {}{}: choose one with '{}:{}'", text, found.size() > most_sections_shown ? " ..." : "",
                       path(), found.front().key);
  }

  /// Null: the root itself.
  const Section* choose(const std::vector<Section>& found) const {
    for (const std::string_view name : sections)
      for (const Section& each : found)
        if (each.key == name || (each.key.starts_with(name) && each.key[name.size()] == '.')) return &each;
    if (has_tensors(pickle_.root())) return nullptr;
    if (found.size() == 1) return &found.front();
    if (found.empty())
      fail(Exit::data, "'{}' holds no tensors, neither at its top nor in a dict of it; save model.state_dict()",
           path());
    fail(Exit::data, "'{}' holds several dicts of tensors, none under a usual key; {}", path(), shown(found));
  }

  /// Dicts of tensors below the root, in the file's order, those of two keys behind those of one. Each dict is looked
  /// at once: a small file can name one many times.
  std::vector<Section> find_sections() const {
    std::vector<Section> found, open{{"", "", &pickle_.root()}};
    std::set<const PickleValue*> seen{&pickle_.root()};
    for (int depth = 0; depth < 3 && !open.empty(); ++depth) {
      std::vector<Section> below;
      for (const Section& each : open)
        for (std::size_t i = 0; i + 1 < each.dict->items.size(); i += 2) {
          const PickleValue& name = at(each.dict->items[i]);
          const PickleValue& value = at(each.dict->items[i + 1]);
          if (name.kind != Kind::text || value.kind != Kind::dict || !seen.insert(&value).second) continue;
          Section section{each.key.empty() ? name.text : each.key + "." + name.text,
                          fmt::format("{}['{}']", each.python, name.text), &value};
          (has_tensors(value) ? found : below).push_back(std::move(section));
        }
      open = std::move(below);
    }
    return found;
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
    fail(Exit::data, "'{}' of '{}' is no tensor that can be read ({}); save model.state_dict() alone", name, path(),
         why);
  }

  /// A call that makes a tensor.
  struct Call {
    std::string_view function;  ///< empty: the value is no tensor
    const std::vector<PickleId>* arguments = nullptr;
  };
  Call tensor_call(const PickleValue& of) const {
    const PickleValue* value = &of;
    for (int depth = 0; depth < 3 && value->kind == Kind::made; ++depth) {
      const std::string& function = at(value->items[0]).text;
      const auto& arguments = at(value->items[1]).items;
      if (std::find(parameters.begin(), parameters.end(), function) != parameters.end()) {
        if (arguments.empty()) return {};
        value = &at(arguments.front());
      } else if (function == rebuild_with_attributes) {
        if (arguments.size() < 3 || at(arguments[2]).kind != Kind::tuple) return {};
        return {at(arguments[0]).text, &at(arguments[2]).items};
      } else {
        if (!function.starts_with(rebuilds)) return {};
        return {function, &arguments};
      }
    }
    return {};
  }
  bool is_tensor(const PickleValue& value) const { return !tensor_call(value).function.empty(); }
  /// Counters and settings beside a dict of weights are tensors without a shape.
  bool has_tensors(const PickleValue& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2)
      if (const Call call = tensor_call(at(dict.items[i])); !call.function.empty() && !shape_of(call).empty())
        return true;
    return false;
  }
  bool all_tensors(const PickleValue& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2)
      if (!is_tensor(at(dict.items[i]))) return false;
    return !dict.items.empty();
  }
  /// As most functions take it; empty: of another function.
  const std::vector<PickleId>& shape_of(const Call& call) const {
    static const std::vector<PickleId> none;
    if (call.arguments->size() < 3 || at((*call.arguments)[2]).kind != Kind::tuple) return none;
    return at((*call.arguments)[2]).items;
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
  /// Nothing: they are of a type that isn't read, whose name `type_name` learns.
  std::optional<ValuesPlace> place_of(const PickleValue& stored, const std::string& name, TensorType& type,
                                      std::string& type_name) const {
    const std::vector<PickleId>* parts = nullptr;
    if (stored.kind == Kind::persistent) parts = &at(stored.items.front()).items;
    if (parts == nullptr || parts->size() != 5 || at((*parts)[0]).text != "storage" ||
        at((*parts)[2]).kind != Kind::text)
      refuse(name, "it has no storage");
    const auto* known = std::find_if(storages.begin(), storages.end(),
                                     [&](const Storage& each) { return each.global == at((*parts)[1]).text; });
    if (known == storages.end()) {
      type_name = at((*parts)[1]).text;
      return std::nullopt;
    }
    type = known->type;
    const std::string entry_name = "data/" + at((*parts)[2]).text;
    const ZipEntry* entry = archive_.find(entry_name);
    if (entry == nullptr) refuse(name, fmt::format("the archive has no '{}'", entry_name));
    const auto count = static_cast<std::uint64_t>(number((*parts)[4], name));
    if (entry->bytes % bytes_of(type) != 0 || entry->bytes / bytes_of(type) != count)
      refuse(name, fmt::format("its storage has {} bytes for {} elements", entry->bytes, count));
    archive_.require_plain(*entry);
    return ValuesPlace{.offset = entry->offset, .bytes = entry->bytes, .crc = entry->crc};
  }

  /// A tensor that only its name can be read of. `change`: what Python calls to make it a plain one.
  StoredValues faulty(StoredValues tensor, const std::string& python, const std::string& why,
                      const std::string& change) const {
    tensor.place = {};
    tensor.first = 0;
    tensor.extent = plausible_extent(std::move(tensor.extent), file_.size());
    tensor.strides.assign(tensor.extent.size(), 0);
    tensor.fault = fmt::format(
        "tensor '{}' of '{}' {}; convert the file in Python: torch.save({{k: v{} for k, v in torch.load('{}', "
        "weights_only=False){}.items()}}, 'new.pth')",
        tensor.name, path(), why, change, path(), python);
    return tensor;
  }

  StoredValues tensor(const std::string& name, const Call& of, const std::string& python) const {
    const auto& call = *of.arguments;
    StoredValues tensor{.name = name};
    if (of.function != rebuild_tensor) {
      for (const PickleId side : shape_of(of)) tensor.extent.push_back(at(side).integer);
      constexpr std::size_t dtype = 6;  // of _rebuild_tensor_v3
      if (of.function.ends_with("_v3") && call.size() > dtype)
        return faulty(std::move(tensor), python, "is of type " + at(call[dtype]).text + ", which isn't read",
                      ".float()");
      const bool sparse = of.function.find("sparse") != std::string_view::npos;
      return faulty(std::move(tensor), python, fmt::format("is not stored as plain values ({})", of.function),
                    sparse ? ".to_dense()" : ".dequantize()");
    }
    if (call.size() < 4) refuse(name, "its call lacks arguments");
    tensor.first = number(call[1], name);
    tensor.extent = numbers(call[2], name);
    tensor.strides = numbers(call[3], name);
    std::string type_name;
    const auto place = place_of(at(call[0]), name, tensor.type, type_name);
    if (!place)
      return faulty(std::move(tensor), python, fmt::format("holds values of a {}, which are no weights", type_name),
                    ".float()");
    tensor.place = *place;
    constexpr std::size_t marks = 6;  // the place of the dict that marks views as negated or conjugated
    if (call.size() > marks && at(call[marks]).kind == Kind::dict && !at(call[marks]).items.empty())
      return faulty(std::move(tensor), python, "is a view with other signs", ".resolve_neg()");
    for (std::size_t i = 0; i < std::min(tensor.extent.size(), tensor.strides.size()); ++i)
      if (tensor.strides[i] == 0 && tensor.extent[i] > 1)
        return faulty(std::move(tensor), python, "is a view that repeats its values (expand)", ".contiguous()");
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

  /// `python`: how Python comes from the root to the dict, `['model']`.
  std::vector<StoredValues> tensors_of(const PickleValue& dict, const std::string& python) const {
    if (dict.items.size() > 2 * most_tensors) fail(Exit::data, "'{}' has too many tensors; save one network", path());
    std::vector<StoredValues> found;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Call call = tensor_call(at(dict.items[i + 1]));
      if (call.function.empty()) continue;  // an epoch, a setting, an empty extra state
      const PickleValue& name = at(dict.items[i]);
      if (name.kind != Kind::text) fail(Exit::data, "'{}' has a tensor without a name; save it again", path());
      found.push_back(tensor(name.text, call, python));
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
  return std::string("}").append(text_opcode("_metadata")) + ordered_dict + text_opcode("") + "}" +
         text_opcode("version") + number_opcode(2) + "sssb";
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

TensorIndex read_pth_index(const File& file, const std::string& key) {
  const Archive archive(file);
  const Pickle pickle(archive.text(*archive.find("data.pkl")), known_globals(), fmt::format("'{}'", file.path()));
  TensorIndex index = StateDict(file, archive, pickle).index(key);
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
