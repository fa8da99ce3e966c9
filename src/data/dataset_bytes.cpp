// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_bytes.hpp"

#include <cstring>
#include <tuple>
#include <type_traits>

#include "core/errors.hpp"

namespace convoy {
namespace {

// Each members_of binds all members, so a new member does not compile until it is listed.

template <class Part>
requires std::is_same_v<std::remove_const_t<Part>, PartitionInfo>
auto members_of(Part& part) {
  auto& [path, samples, images_offset, labels_offset, ids_offset, crc_offset, offsets_offset, dimensions_offset,
         stored_bytes, seal_crc] = part;
  return std::tie(path, samples, images_offset, labels_offset, ids_offset, crc_offset, offsets_offset,
                  dimensions_offset, stored_bytes, seal_crc);
}

template <class Info>
requires std::is_same_v<std::remove_const_t<Info>, DatasetInfo>
auto members_of(Info& info) {
  auto& [folder, split, partitions, samples, height, width, channels, classes, class_names, labels_as, mean, std,
         covariance, mean_image, source, encoding, digest] = info;
  return std::tie(folder, split, partitions, samples, height, width, channels, classes, class_names, labels_as, mean,
                  std, covariance, mean_image, source, encoding, digest);
}

template <class Group>
requires std::is_same_v<std::remove_const_t<Group>, ShapeGroup>
auto members_of(Group& group) {
  auto& [size, samples] = group;
  return std::tie(size, samples);
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

template <class T>
std::string bytes_of(const T& value) {
  Writer write;
  write(value);
  return std::move(write.bytes);
}

template <class T>
T value_of(std::string_view bytes) {
  Reader read(bytes);
  T value;
  read(value);
  require(read.bytes.empty(), "headers of a data set with bytes left over");
  return value;
}

}  // namespace

std::string to_bytes(const DatasetInfo& info) { return bytes_of(info); }
DatasetInfo dataset_info_of(std::string_view bytes) { return value_of<DatasetInfo>(bytes); }

std::string to_bytes(const std::vector<ShapeGroup>& groups) { return bytes_of(groups); }
std::vector<ShapeGroup> shape_groups_of(std::string_view bytes) { return value_of<std::vector<ShapeGroup>>(bytes); }

}  // namespace convoy
