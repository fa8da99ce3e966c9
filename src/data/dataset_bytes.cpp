// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_bytes.hpp"

#include <cstring>
#include <tuple>
#include <type_traits>

#include "core/errors.hpp"

namespace convoy {
namespace {

// Both name all members, so that a new member does not compile until it is in the list.

template <class Part>
requires std::is_same_v<std::remove_const_t<Part>, PartitionInfo>
auto members_of(Part& part) {
  auto& [path, samples, images_offset, labels_offset, ids_offset, crc_offset, offsets_offset, dimensions_offset,
         stored_bytes] = part;
  return std::tie(path, samples, images_offset, labels_offset, ids_offset, crc_offset, offsets_offset,
                  dimensions_offset, stored_bytes);
}

template <class Info>
requires std::is_same_v<std::remove_const_t<Info>, DatasetInfo>
auto members_of(Info& info) {
  auto& [folder, split, partitions, samples, height, width, channels, classes, class_names, labels_as, mean, std,
         mean_image, source, encoding, digest] = info;
  return std::tie(folder, split, partitions, samples, height, width, channels, classes, class_names, labels_as, mean,
                  std, mean_image, source, encoding, digest);
}

class Writer {
 public:
  template <class T>
  void operator()(const T& value) {
    if constexpr (requires { members_of(value); }) {
      std::apply([&](const auto&... members) { ((*this)(members), ...); }, members_of(value));
    } else if constexpr (std::is_trivially_copyable_v<T>) {
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
    if constexpr (requires { members_of(value); }) {
      std::apply([&](auto&... members) { ((*this)(members), ...); }, members_of(value));
    } else if constexpr (std::is_trivially_copyable_v<T>) {
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

}  // namespace

std::string to_bytes(const DatasetInfo& info) {
  Writer write;
  write(info);
  return std::move(write.bytes);
}

DatasetInfo dataset_info_of(std::string_view bytes) {
  Reader read(bytes);
  DatasetInfo info;
  read(info);
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
