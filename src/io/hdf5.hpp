// SPDX-License-Identifier: Apache-2.0
// HDF5's C API under RAII, as far as both file formats need it. Errors are Error(data) with path, object and HDF5's
// reason. hdf5.h stays in the .cpp files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

enum class Element : std::uint8_t { u8, u32, i32, i64, f32, f64 };

std::size_t element_bytes(Element element);

struct DatasetShape {
  Element element = Element::u8;
  std::vector<Index> extent;
  Index count() const;
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * element_bytes(element); }
  /// `u8 [50000, 32, 32, 3]`, for messages.
  std::string text() const;
  bool operator==(const DatasetShape&) const = default;
};

/// One open file. Created: superblock V110 (low = high), no times, a user block of seal_bytes. Groups are made as
/// needed: names are paths, `/parameters/conv1.weight`.
class Hdf5File {
 public:
  enum class Access : std::uint8_t { read, create };
  Hdf5File(const std::string& path, Access access);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;
  /// Closes and reports what a destructor can't (a full disk).
  void close();

  /// Contiguous dataset, allocated early, written whole.
  void write(const std::string& name, const DatasetShape& shape, const void* data);
  /// Contiguous dataset allocated and left to be written by pwrite at the returned file offset, after close().
  std::uint64_t reserve(const std::string& name, const DatasetShape& shape);
  bool exists(const std::string& name) const;
  std::vector<std::string> names(const std::string& group) const;  ///< sorted
  /// An element type that Element doesn't know is an error.
  DatasetShape shape(const std::string& name) const;
  /// `to` must have the dataset's size in bytes and element type.
  void read(const std::string& name, Element element, std::span<std::byte> to) const;
  /// File offset of a contiguous dataset's bytes (the user block counted).
  std::uint64_t offset(const std::string& name) const;

  /// Attributes of the root group. Texts are fixed-length UTF-8, so that no heap holds them.
  void attribute(const std::string& name, const std::string& text);
  void attribute(const std::string& name, Index value);
  void attribute(const std::string& name, std::span<const double> values);
  void attribute(const std::string& name, const std::vector<std::string>& texts);
  bool has_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  Index integer_attribute(const std::string& name) const;
  std::vector<double> numbers_attribute(const std::string& name) const;
  std::vector<std::string> texts_attribute(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hdf5_version();
/// False: only one thread may use this library at a time.
bool hdf5_is_thread_safe();

}  // namespace convoy
