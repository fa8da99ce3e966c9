// SPDX-License-Identifier: Apache-2.0
#include "preprocess/write_partition.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "core/errors.hpp"
#include "core/stop.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

constexpr Index piece_bytes = Index{8} << 20;

struct Offsets {
  std::uint64_t images = 0, labels = 0, ids = 0, crc = 0;
};

/// The HDF5 structure with room for the samples.
Offsets write_structure(const std::string& path, const Partition& p) {
  Hdf5File file(path, Hdf5File::Access::create);
  file.attribute("format_version", format_version);
  file.attribute("encoding", std::string("raw"));
  file.attribute("split", p.split);
  file.attribute("partition", p.number);
  file.attribute("partitions", p.partitions);
  file.attribute("first_sample", p.first);
  file.attribute("samples", p.samples);
  file.attribute("split_samples", p.split_samples);
  file.attribute("classes", p.classes);
  file.attribute("class_names", p.class_names);
  file.attribute("mean", p.mean);
  file.attribute("std", p.std);
  file.attribute("seed", p.seed);
  file.attribute("source", p.source);
  file.attribute("source_digest", p.source_digest);
  file.attribute("parameters", p.parameters);
  if (!p.mean_image.empty()) {
    file.write(partition_name::mean_image, {Element::f32, {p.height, p.width, p.channels}}, p.mean_image.data());
  }
  Offsets offsets;
  offsets.labels = file.reserve(partition_name::labels, {Element::i32, {p.samples}});
  offsets.ids = file.reserve(partition_name::ids, {Element::i64, {p.samples}});
  offsets.crc = file.reserve(partition_name::crc, {Element::u32, {p.samples}});
  offsets.images = file.reserve(partition_name::images, {Element::u8, {p.samples, p.height, p.width, p.channels}});
  file.close();
  return offsets;
}

void write_samples(const std::string& path, const Partition& p, const Offsets& offsets, const ReadSample& read) {
  File file(path, File::Access::update);
  const auto count = static_cast<std::size_t>(p.samples), bytes = static_cast<std::size_t>(p.image_bytes());
  std::vector<std::int32_t> labels(count);
  std::vector<std::int64_t> ids(count);
  std::vector<std::uint32_t> crc(count);
  std::iota(ids.begin(), ids.end(), p.first);
  const Index step = std::max<Index>(1, piece_bytes / p.image_bytes());
  std::vector<std::uint8_t> images(static_cast<std::size_t>(std::min(step, p.samples)) * bytes);
  for (Index begin = 0; begin < p.samples; begin += step) {
    const Index n = std::min(step, p.samples - begin);
    leave_if_stopped("writing a partition");
    for (Index i = 0; i < n; ++i) {
      std::uint8_t* image = images.data() + static_cast<std::size_t>(i) * bytes;
      const auto at = static_cast<std::size_t>(begin + i);
      labels[at] = read(begin + i, image);
      crc[at] = crc32c(image, bytes);
    }
    file.write_at(images.data(), static_cast<std::size_t>(n) * bytes,
                  offsets.images + static_cast<std::uint64_t>(begin) * bytes);
  }
  file.write_at(labels.data(), count * sizeof labels[0], offsets.labels);
  file.write_at(ids.data(), count * sizeof ids[0], offsets.ids);
  file.write_at(crc.data(), count * sizeof crc[0], offsets.crc);
}

}  // namespace

void write_partition(const Partition& header, const ReadSample& read) {
  const std::string temporary = header.path + ".tmp";
  try {
    const Offsets offsets = write_structure(temporary, header);
    write_samples(temporary, header, offsets, read);
    seal_file(temporary, offsets.images, static_cast<std::uint64_t>(header.samples * header.image_bytes()));
    publish_file(temporary, header.path);
  } catch (...) {
    std::error_code ignored;  // what matters is the first error
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

}  // namespace convoy
