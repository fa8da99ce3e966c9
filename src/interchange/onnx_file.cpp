// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of onnx.proto, which ONNX publishes (IR versions 3 to 13).
#include "interchange/onnx_file.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "core/errors.hpp"
#include "interchange/formats.hpp"
#include "interchange/wire.hpp"

namespace convoy {
namespace {

// Far above any network's: 10,000 operators have 200,000 entries and 4 MB of texts.
constexpr std::size_t most_entries = 2'000'000;
constexpr std::uint64_t longest_text = 1U << 20U, most_text = 64U << 20U;
constexpr std::uint64_t most_outside = std::uint64_t{1} << 40U;  ///< values of a tensor beside the file
constexpr Index most_values = 64;                                ///< of a tensor that is kept in memory
constexpr const char* own_domain = "ai.onnx";                    ///< or none
enum Type : int {
  float_type = 1,
  int32_type = 6,
  int64_type = 7,
  bool_type = 9,
  half_type = 10,
  double_type = 11,
  bfloat_type = 16
};

class Reader {
 public:
  explicit Reader(const File& file) : window_(file) {}

  OnnxFile read() {
    bool graph = false;
    WireMessage message(window_);
    while (const auto field = message.next()) {
      if (field->tag == 2) model_.producer = text(*field);
      if (field->tag == 8) read_opset(*field);
      if (field->tag == 14) read_property(*field, model_.metadata);
      if (field->tag != 7) continue;
      if (std::exchange(graph, true)) refuse("has two graphs");
      read_graph(*field);
    }
    if (!graph) refuse("has no graph");
    return std::move(model_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(Exit::data, "'{}' is no ONNX file that Convoy reads (it {}); export it again", window_.file().path(), what);
  }

  /// Counts what is kept, so that a small file can't make a large program.
  void count(std::size_t more = 1) {
    entries_ += more;
    if (entries_ > most_entries) refuse("has more parts than any network");
  }

  std::string text(const WireField& field) {
    const WireMessage checked(window_, field);
    if (field.end - field.begin > longest_text || (text_ += field.end - field.begin) > most_text)
      refuse("has longer texts than any network");
    count();
    return window_.text(field.begin, field.end);
  }

  void read_property(const WireField& from, std::map<std::string, std::string>& to) {
    std::string key, value;
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      if (field->tag == 1) key = text(*field);
      if (field->tag == 2) value = text(*field);
    }
    to[key] = value;
  }

  /// Those of other domains stand in many files without an operator that needs them.
  void read_opset(const WireField& from) {
    std::string domain;
    Index version = 0;
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      if (field->tag == 1) domain = text(*field);
      if (field->tag == 2) version = static_cast<Index>(field->number);
    }
    if (!domain.empty() && domain != own_domain) return;
    if (model_.opset != 0 && model_.opset != version) refuse("names two versions of ONNX's operators");
    model_.opset = version;
  }

  /// Numbers that stand alone or packed.
  void append(const WireField& field, std::vector<Index>& to) {
    if (field.form == WireField::Form::number) {
      count();
      to.push_back(static_cast<Index>(field.number));
      return;
    }
    WireMessage packed(window_, field);
    while (!packed.is_at_end()) {
      count();
      to.push_back(static_cast<Index>(packed.next_number()));
    }
  }

  void read_graph(const WireField& from) {
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      switch (field->tag) {
        case 1:
          model_.nodes.push_back(read_node(*field));
          break;
        case 2:
          model_.graph = text(*field);
          break;
        case 5:
          model_.tensors.push_back(read_tensor(*field));
          break;
        case 11:
          model_.inputs.push_back(read_input(*field));
          break;
        case 12:
          model_.outputs.push_back(read_input(*field).name);
          break;
        case 15:
          refuse("has sparse tensors");
        default:
          break;
      }
    }
  }

  OnnxNode read_node(const WireField& from) {
    OnnxNode node;
    count();
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      if (field->tag == 1) node.inputs.push_back(text(*field));
      if (field->tag == 2) node.outputs.push_back(text(*field));
      if (field->tag == 3) node.name = text(*field);
      if (field->tag == 4) node.type = text(*field);
      if (field->tag == 5) read_attribute(*field, node);
      if (field->tag == 7) node.domain = text(*field);
    }
    if (node.domain == own_domain) node.domain.clear();
    return node;
  }

  void read_attribute(const WireField& from, OnnxNode& node) {
    enum Kind : std::uint64_t { real = 1, whole = 2, word = 3, tensor = 4, reals = 6, wholes = 7 };
    std::string name, string;
    std::uint64_t kind = 0;
    float f = 0;
    Index i = 0;
    std::vector<Index> ints;
    std::vector<double> floats;
    std::optional<OnnxTensor> value;
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      if (field->tag == 1) name = text(*field);
      if (field->tag == 2) f = std::bit_cast<float>(static_cast<std::uint32_t>(field->number));
      if (field->tag == 3) i = static_cast<Index>(field->number);
      if (field->tag == 4) string = text(*field);
      if (field->tag == 5) value = read_tensor(*field);
      if (field->tag == 8) append(*field, ints);
      if (field->tag == 20) kind = field->number;
    }
    if (node.type == "Constant") {
      const auto made = [&](std::vector<Index> extent, int type, std::vector<double> values) {
        return OnnxTensor{
            .name = {}, .extent = std::move(extent), .type = type, .place = {}, .values = std::move(values)};
      };
      if (kind == tensor) node.constant = std::move(value);
      if (kind == real) node.constant = made({}, float_type, {static_cast<double>(f)});
      if (kind == whole) node.constant = made({}, int64_type, {static_cast<double>(i)});
      if (kind == wholes)
        node.constant = made({static_cast<Index>(ints.size())}, int64_type, {ints.begin(), ints.end()});
      return;
    }
    switch (kind) {
      case 0:
        refuse("has an attribute '" + name + "' without a type");
      case real:
        node.attributes.push_back({name, f});
        break;
      case whole:
        node.attributes.push_back({name, i});
        break;
      case wholes:
        node.attributes.push_back({name, std::move(ints)});
        break;
      default:  // a text, or what no operation of ours takes: OnnxSite says that it is of another type
        node.attributes.push_back({name, string});
    }
  }

  OnnxTensor read_tensor(const WireField& from) {
    OnnxTensor tensor;
    count();
    bool external = false;
    std::map<std::string, std::string> outside;
    std::optional<WireField> numbers;
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      switch (field->tag) {
        case 1:
          append(*field, tensor.extent);
          break;
        case 2:
          tensor.type = static_cast<int>(std::min<std::uint64_t>(field->number, 1000));
          break;
        case 4:
        case 9:
        case 10:  // float_data and double_data are packed, so their bytes are those of raw_data
          if (field->form != WireField::Form::bytes || tensor.place.bytes > 0)
            refuse("stores a tensor in several parts");
          tensor.place = {.offset = field->begin, .bytes = field->end - field->begin};
          break;
        case 5:
        case 7:
          numbers = field;
          break;
        case 8:
          tensor.name = text(*field);
          break;
        case 13:
          read_property(*field, outside);
          break;
        case 14:
          external = field->number == 1;
          break;
        default:
          break;
      }
    }
    const std::string what = "tensor '" + tensor.name + "' of '" + window_.file().path() + "'";
    if (external) tensor.place = outside_place(outside, tensor, what);
    if (numbers) {
      if (tensor.type != int32_type && tensor.type != int64_type && tensor.type != bool_type)
        refuse("stores '" + tensor.name + "' as integers that hold the bits of other numbers");
      append_few(*numbers, tensor.values);
      tensor.place = {};
    }
    if (tensor.type == bool_type && tensor.place.beside.empty() && tensor.place.bytes <= most_values)
      for (std::uint64_t i = 0; i < tensor.place.bytes; ++i)
        tensor.values.push_back(window_.at(tensor.place.offset + i));
    check_size(tensor, what);
    return tensor;
  }

  /// int64_data and int32_data, if there are few: shapes and axes.
  void append_few(const WireField& field, std::vector<double>& to) {
    std::vector<Index> values;
    if (field.form == WireField::Form::bytes && field.end - field.begin > 16 * static_cast<std::uint64_t>(most_values))
      return;
    append(field, values);
    to.assign(values.begin(), values.end());
  }

  void check_size(const OnnxTensor& tensor, const std::string& what) const {
    const auto type = type_of(tensor);
    if (!type || tensor.place.bytes == 0) return;
    const Index elements = checked_count(tensor.extent, tensor.place.bytes / bytes_of(*type), what);
    if (static_cast<std::uint64_t>(elements) * bytes_of(*type) != tensor.place.bytes)
      fail(Exit::data, "{} has {} bytes for {} values; export it again", what, tensor.place.bytes, elements);
  }

  /// Of a file beside this one. Nothing leads out of the folder. Files may leave out where the values begin (0) and how
  /// many bytes they have.
  ValuesPlace outside_place(const std::map<std::string, std::string>& words, const OnnxTensor& tensor,
                            const std::string& what) const {
    const auto number = [&](const char* key) {
      std::uint64_t value = 0;
      const auto found = words.find(key);
      if (found == words.end()) return value;
      const std::string& text = found->second;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size())
        fail(Exit::data, "{} lies at '{}', which is no number; export it again", what, text);
      return value;
    };
    const auto location = words.find("location");
    const std::string name = location == words.end() ? "" : location->second;
    if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "." ||
        name == "..")
      fail(Exit::data,
           "{} lies in another file that isn't beside this one ('{}'); export the graph with its weights inside "
           "(torch.onnx.export: external_data=False)",
           what, name.substr(0, 100));
    ValuesPlace place{.offset = number("offset"), .bytes = number("length"), .crc = {}, .beside = name};
    if (const auto type = type_of(tensor); type && words.count("length") == 0)
      place.bytes = bytes_of(*type) * static_cast<std::uint64_t>(checked_count(tensor.extent, most_outside, what));
    return place;
  }

  FileWindow window_;
  OnnxFile model_;
  std::size_t entries_ = 0;
  std::uint64_t text_ = 0;

  OnnxInput read_input(const WireField& from) {
    OnnxInput input;
    count();
    WireMessage message(window_, from);
    while (const auto field = message.next()) {
      if (field->tag == 1) input.name = text(*field);
      if (field->tag == 2) read_type(*field, input.extent);
    }
    return input;
  }

  void read_type(const WireField& from, std::vector<Index>& extent) {
    WireMessage type(window_, from);
    while (const auto tensor = type.next()) {
      if (tensor->tag != 1) continue;
      WireMessage parts(window_, *tensor);
      while (const auto shape = parts.next()) {
        if (shape->tag != 2) continue;
        WireMessage sides(window_, *shape);
        while (const auto side = sides.next())
          if (side->tag == 1) extent.push_back(read_side(*side));
      }
    }
  }

  Index read_side(const WireField& from) {
    Index value = 0;
    count();
    WireMessage side(window_, from);
    while (const auto field = side.next())
      if (field->tag == 1 && field->form == WireField::Form::number) value = static_cast<Index>(field->number);
    return value;
  }
};

}  // namespace

OnnxFile read_onnx_file(const File& file) { return Reader(file).read(); }

std::optional<TensorType> type_of(const OnnxTensor& tensor) {
  switch (tensor.type) {
    case float_type:
      return TensorType::f32;
    case int64_type:
      return TensorType::i64;
    case half_type:
      return TensorType::f16;
    case double_type:
      return TensorType::f64;
    case bfloat_type:
      return TensorType::bf16;
    default:
      return std::nullopt;
  }
}

}  // namespace convoy
