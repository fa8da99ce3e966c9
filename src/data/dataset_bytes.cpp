// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_bytes.hpp"

#include <cstring>
#include <type_traits>

#include "core/errors.hpp"

namespace convoy {
namespace {

class Writer {
 public:
  template <class T>
  void operator()(const T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      (*this)(static_cast<std::uint64_t>(value.size()));
      for (const auto& each : value) (*this)(each);
    }
  }

  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view from) : bytes(from) {}

  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      require(bytes.size() >= sizeof value, "headers of a data set that end early");
      std::memcpy(&value, bytes.data(), sizeof value);
      bytes.remove_prefix(sizeof value);
    } else {
      std::uint64_t size = 0;
      (*this)(size);
      require(size <= bytes.size(), "headers of a data set that end early");  // an element has a byte at least
      value.resize(static_cast<std::size_t>(size));
      for (auto& each : value) (*this)(each);
    }
  }

  std::string_view bytes;
};

template <class Visitor, class Part>
void visit_partition(Visitor& visit, Part& part) {
  visit(part.path);
  visit(part.samples);
  visit(part.images_offset);
  visit(part.labels_offset);
  visit(part.ids_offset);
  visit(part.crc_offset);
  visit(part.offsets_offset);
  visit(part.dimensions_offset);
  visit(part.stored_bytes);
}

template <class Visitor, class Info>
void visit_all(Visitor& visit, Info& info) {
  visit(info.folder);
  visit(info.split);
  visit(info.samples);
  visit(info.height);
  visit(info.width);
  visit(info.channels);
  visit(info.classes);
  visit(info.class_names);
  visit(info.labels_as);
  visit(info.mean);
  visit(info.std);
  visit(info.mean_image);
  visit(info.source);
  visit(info.encoding);
  visit(info.digest);
  for (auto& part : info.partitions) visit_partition(visit, part);
}

}  // namespace

std::string to_bytes(const DatasetInfo& info) {
  Writer write;
  write(static_cast<std::uint64_t>(info.partitions.size()));
  visit_all(write, info);
  return std::move(write.bytes);
}

DatasetInfo dataset_info_of(std::string_view bytes) {
  Reader read(bytes);
  DatasetInfo info;
  std::uint64_t partitions = 0;
  read(partitions);
  require(partitions <= bytes.size(), "headers of a data set that end early");
  info.partitions.resize(static_cast<std::size_t>(partitions));
  visit_all(read, info);
  require(read.bytes.empty(), "headers of a data set that go on");
  return info;
}

std::string to_bytes(const std::vector<ShapeGroup>& groups) {
  Writer write;
  write(static_cast<std::uint64_t>(groups.size()));
  for (const ShapeGroup& group : groups) {
    write(group.size);
    write(group.samples);
  }
  return std::move(write.bytes);
}

std::vector<ShapeGroup> shape_groups_of(std::string_view bytes) {
  Reader read(bytes);
  std::uint64_t count = 0;
  read(count);
  require(count <= bytes.size(), "headers of a data set that end early");
  std::vector<ShapeGroup> groups(static_cast<std::size_t>(count));
  for (ShapeGroup& group : groups) {
    read(group.size);
    read(group.samples);
  }
  require(read.bytes.empty(), "headers of a data set that go on");
  return groups;
}

}  // namespace convoy
