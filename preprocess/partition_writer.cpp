// SPDX-License-Identifier: Apache-2.0
#include "preprocess/partition_writer.hpp"

#include <filesystem>
#include <numeric>
#include <utility>

#include "core/errors.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"

namespace convoy::preparation {

PartitionWriter::PartitionWriter(Partition header, SampleRows rows)
    : header_(std::move(header)), rows_(std::move(rows)), temporary_(header_.path + ".tmp") {
  const auto n = static_cast<std::size_t>(header_.samples);
  require(rows_.labels.size() == n && rows_.crc.size() == n, "PartitionWriter: rows of another number");
  sample_bytes_ =
      static_cast<std::uint64_t>(header_.is_jpeg() ? rows_.offsets.back() : header_.samples * header_.image_bytes());
  try {
    write_structure();
  } catch (...) {
    std::error_code ignored;  // what matters is the first error
    std::filesystem::remove(temporary_, ignored);
    throw;
  }
}

PartitionWriter::~PartitionWriter() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(temporary_, ignored);
}

/// The HDF5 structure with room for tables and samples.
void PartitionWriter::write_structure() {
  Partition& p = header_;
  Hdf5File file(temporary_, Hdf5File::Access::create);
  file.attribute("format_version", format_version);
  file.attribute("encoding", p.encoding);
  file.attribute("split", p.split);
  file.attribute("partition", p.number);
  file.attribute("partitions", p.partitions);
  file.attribute("first_sample", p.first);
  file.attribute("samples", p.samples);
  file.attribute("split_samples", p.split_samples);
  if (p.is_jpeg()) file.attribute("channels", p.channels);
  file.attribute("classes", p.classes);
  file.attribute("class_names", p.class_names);
  file.attribute("mean", p.mean);
  file.attribute("std", p.std);
  if (!p.covariance.empty()) file.attribute("covariance", p.covariance);
  file.attribute("seed", p.seed);
  file.attribute("source", p.source);
  file.attribute("source_digest", p.source_digest);
  file.attribute("parameters", p.parameters);
  if (!p.mean_image.empty()) {
    file.write(partition_name::mean_image, {Element::f32, {p.height, p.width, p.channels}}, p.mean_image.data());
  }
  p.labels_offset = file.reserve(partition_name::labels, {Element::i32, {p.samples}});
  p.ids_offset = file.reserve(partition_name::ids, {Element::i64, {p.samples}});
  p.crc_offset = file.reserve(partition_name::crc, {Element::u32, {p.samples}});
  if (p.is_jpeg()) p.offsets_offset = file.reserve(partition_name::offsets, {Element::i64, {p.samples + 1}});
  if (!rows_.dimensions.empty()) {
    p.dimensions_offset = file.reserve(partition_name::dimensions, {Element::i32, {p.samples, 2}});
  }
  if (!rows_.names.empty()) {
    for (const auto& name : rows_.names) p.name_bytes += static_cast<Index>(name.size());
    p.name_offsets_offset = file.reserve(partition_name::name_offsets, {Element::i64, {p.samples + 1}});
    p.names_offset = file.reserve(partition_name::names, {Element::u8, {p.name_bytes}});
  }
  if (p.is_jpeg()) {
    p.images_offset = file.reserve(partition_name::images, {Element::u8, {static_cast<Index>(sample_bytes_)}});
  } else {
    p.images_offset = file.reserve(partition_name::images, {Element::u8, {p.samples, p.height, p.width, p.channels}});
  }
  file.close();
}

void PartitionWriter::put(std::uint64_t offset, const void* bytes, std::size_t count) {
  require(offset <= sample_bytes_ && count <= sample_bytes_ - offset, "PartitionWriter: bytes outside the samples");
  if (!file_) file_.emplace(temporary_, File::Access::update);
  file_->write_at(bytes, count, header_.images_offset + offset);
}

void PartitionWriter::finish() {
  const Partition& p = header_;
  if (!file_) file_.emplace(temporary_, File::Access::update);
  const auto write = [&](const auto& table, std::uint64_t offset) {
    file_->write_at(table.data(), table.size() * sizeof table[0], offset);
  };
  std::vector<std::int64_t> ids(static_cast<std::size_t>(p.samples));
  std::iota(ids.begin(), ids.end(), p.first);
  write(rows_.labels, p.labels_offset);
  write(ids, p.ids_offset);
  write(rows_.crc, p.crc_offset);
  if (p.is_jpeg()) write(rows_.offsets, p.offsets_offset);
  if (!rows_.dimensions.empty()) write(rows_.dimensions, p.dimensions_offset);
  if (!rows_.names.empty()) {
    std::vector<Index> offsets{0};
    std::string all;
    for (const auto& name : rows_.names) {
      all += name;
      offsets.push_back(static_cast<Index>(all.size()));
    }
    write(offsets, p.name_offsets_offset);
    write(all, p.names_offset);
  }
  file_.reset();
  seal_file(temporary_, p.images_offset, sample_bytes_);
  publish_file(temporary_, p.path);
  finished_ = true;
}

}  // namespace convoy::preparation
