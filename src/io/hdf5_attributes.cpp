// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_handle.hpp"

namespace convoy {
namespace {

// Fixed length, null padded. Variable-length texts would lie in a heap.
Handle text_type(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<std::size_t>(bytes, 1));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

Handle row(std::size_t count) {
  const hsize_t extent = count;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose};
}

void write_attribute(hid_t file, const std::string& path, const std::string& name, hid_t stored, hid_t space,
                     hid_t memory, const void* data) {
  const Handle attribute(H5Acreate2(file, name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute, memory, data) < 0) fail_on(path, "cannot write attribute", name);
}

struct OpenAttribute {
  Handle attribute, type;
  H5T_class_t type_class = H5T_NO_CLASS;
  std::size_t count = 0;  ///< elements
};

OpenAttribute open_attribute(hid_t file, const std::string& path, const std::string& name) {
  if (H5Aexists(file, name.c_str()) <= 0) fail(Exit::data, "'{}': attribute '{}' is missing", path, name);
  OpenAttribute opened;
  opened.attribute = {H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose};
  if (!opened.attribute) fail_on(path, "cannot open attribute", name);
  opened.type = {H5Aget_type(opened.attribute), H5Tclose};
  opened.type_class = H5Tget_class(opened.type);
  const Handle space(H5Aget_space(opened.attribute), H5Sclose);
  opened.count = static_cast<std::size_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space), 0));
  return opened;
}

[[noreturn]] void fail_type(const std::string& path, const std::string& name, const char* expected) {
  fail(Exit::data, "'{}': attribute '{}' is not {}", path, name, expected);
}

std::vector<std::string> read_texts(const OpenAttribute& opened, const std::string& path, const std::string& name) {
  if (opened.type_class != H5T_STRING || H5Tis_variable_str(opened.type) > 0) {
    fail_type(path, name, "a text of fixed length");
  }
  const std::size_t bytes = H5Tget_size(opened.type);
  constexpr std::size_t most_bytes = std::size_t{1} << 28;  // more is no attribute, whatever a file says
  if (bytes == 0 || opened.count > most_bytes / bytes) fail_type(path, name, "a text of plausible length");
  std::string buffer(bytes * opened.count, '\0');
  if (!buffer.empty() && H5Aread(opened.attribute, opened.type, buffer.data()) < 0) {
    fail_on(path, "cannot read attribute", name);
  }
  std::vector<std::string> texts(opened.count);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = buffer.substr(i * bytes, bytes);
    texts[i] = text.substr(0, text.find('\0'));
  }
  return texts;
}

}  // namespace

void Hdf5File::attribute(const std::string& name, const std::string& text) {
  const Handle type = text_type(text.size()), space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(state_->file, state_->path, name, type, space, type, text.c_str());
}

void Hdf5File::attribute(const std::string& name, Index value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(state_->file, state_->path, name, H5T_STD_I64LE, space, H5T_NATIVE_INT64, &value);
}

void Hdf5File::attribute(const std::string& name, std::span<const double> values) {
  write_attribute(state_->file, state_->path, name, H5T_IEEE_F64LE, row(values.size()), H5T_NATIVE_DOUBLE,
                  values.data());
}

void Hdf5File::attribute(const std::string& name, const std::vector<std::string>& texts) {
  std::size_t bytes = 1;
  for (const auto& text : texts) bytes = std::max(bytes, text.size());
  std::string buffer(bytes * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(buffer.data() + i * bytes, bytes);
  const Handle type = text_type(bytes);
  write_attribute(state_->file, state_->path, name, type, row(texts.size()), type, buffer.data());
}

bool Hdf5File::has_attribute(const std::string& name) const { return H5Aexists(state_->file, name.c_str()) > 0; }

std::string Hdf5File::text_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  auto texts = read_texts(opened, state_->path, name);
  if (texts.size() != 1) fail_type(state_->path, name, "one text");
  return texts[0];
}

std::vector<std::string> Hdf5File::texts_attribute(const std::string& name) const {
  return read_texts(open_attribute(state_->file, state_->path, name), state_->path, name);
}

Index Hdf5File::integer_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  if (opened.type_class != H5T_INTEGER || opened.count != 1) fail_type(state_->path, name, "one integer");
  Index value = 0;
  if (H5Aread(opened.attribute, H5T_NATIVE_INT64, &value) < 0) fail_on(state_->path, "cannot read attribute", name);
  return value;
}

std::vector<double> Hdf5File::numbers_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  if (opened.type_class != H5T_FLOAT) fail_type(state_->path, name, "a row of floating-point numbers");
  constexpr std::size_t most_values = std::size_t{1} << 20;
  if (opened.count > most_values) fail_type(state_->path, name, "a row of plausible length");
  std::vector<double> values(opened.count);
  if (!values.empty() && H5Aread(opened.attribute, H5T_NATIVE_DOUBLE, values.data()) < 0) {
    fail_on(state_->path, "cannot read attribute", name);
  }
  return values;
}

}  // namespace convoy
