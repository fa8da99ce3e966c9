// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/write_images.hpp"

#include <filesystem>

#include "core/deal.hpp"
#include "preprocess/agree.hpp"
#include "preprocess/partition_writer.hpp"

namespace convoy::preparation {

std::string size_folder(const PrepareSpec& spec, std::size_t size) {
  if (spec.recipe.sizes.size() == 1) return spec.out;
  return (std::filesystem::path(spec.out) / size_name(spec.recipe.sizes[size])).string();
}

std::string Provenance::parameters_of(const Recipe& recipe, std::size_t size) const {
  return recipe.pixels ? parameters : fmt::format("size={} {}", size_name(recipe.sizes[size]), parameters);
}

Partition header_of(const PrepareSpec& spec, const Survey& survey, const Provenance& provenance,
                    const PartitionKey& key) {
  const SplitPlan& split = survey.splits[key.split];
  const Recipe& recipe = spec.recipe;
  Partition header;
  header.split = split.name;
  header.number = key.number;
  header.partitions = split.partitions(key.size);
  header.split_samples = split.range.count;
  const Range range = deal(split.range.count, header.partitions, key.number);
  header.first = range.begin;
  header.samples = range.count;
  header.encoding = recipe.encoding == Encoding::raw ? "raw" : "jpeg";
  const PixelShape shape = recipe.stored_shape(key.size);
  header.height = shape.height;
  header.width = shape.width;
  header.channels = shape.channels;
  header.classes = static_cast<Index>(survey.classes.names.size());
  header.class_names = survey.classes.names;
  header.mean = survey.normalisation[key.size].mean;
  header.std = survey.normalisation[key.size].std;
  header.covariance = survey.normalisation[key.size].covariance;
  header.seed = static_cast<Index>(recipe.seed);
  header.source = provenance.source;
  header.source_digest = provenance.digest;
  header.parameters = provenance.parameters_of(recipe, key.size);
  header.path = (std::filesystem::path(size_folder(spec, key.size)) /
                 partition_file_name(header.split, header.number, header.partitions))
                    .string();
  return header;
}

std::vector<std::vector<float>> measure_mean_images(Communicator& comm, const PrepareSpec& spec,
                                                    const std::vector<RunReader>& runs, const Survey& survey) {
  std::vector<std::vector<float>> means(spec.recipe.sizes.size());
  if (!spec.mean_image) return means;
  std::vector<std::vector<std::int64_t>> sums(means.size());
  for (std::size_t s = 0; s < means.size(); ++s) {
    sums[s].resize(static_cast<std::size_t>(spec.recipe.stored_shape(s).bytes()));
  }
  agree(comm, "measuring mean images", [&] {
    int turn = 0;
    for (const PartitionKey& key : all_partitions(survey)) {
      if (survey.splits[key.split].name != "train" || turn++ % comm.size() != comm.rank()) continue;
      auto& sum = sums[key.size];
      PartitionImages(runs, survey, key).visit([&](std::size_t, std::span<const std::uint8_t> bytes) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bytes[i];
      });
    }
  });
  for (std::size_t s = 0; s < means.size(); ++s) {
    comm.sum(sums[s], "sums of images");
    const auto samples = static_cast<double>(survey.splits.front().range.count);
    for (const std::int64_t sum : sums[s]) means[s].push_back(static_cast<float>(static_cast<double>(sum) / samples));
  }
  return means;
}

void write_images(const PrepareSpec& spec, const std::vector<RunReader>& runs, const Survey& survey,
                  const Partition& header, const PartitionKey& key) {
  const PartitionImages images(runs, survey, key);
  const std::size_t count = images.images().size();
  SampleRows rows;
  std::vector<std::uint64_t> places(count);
  std::uint64_t end = 0;
  for (std::size_t row = 0; row < count; ++row) {
    const RunStored& stored = images.stored()[row];
    rows.labels.push_back(images.images()[row].label);
    rows.crc.push_back(stored.crc);
    if (!spec.recipe.pixels) rows.dimensions.insert(rows.dimensions.end(), {stored.height, stored.width});
    if (spec.keep_names) rows.names.push_back(images.images()[row].name);
    places[row] = end;
    end += stored.bytes;
  }
  if (header.is_jpeg()) {
    rows.offsets.assign(places.begin(), places.end());
    rows.offsets.push_back(static_cast<Index>(end));
  }
  PartitionWriter writer(header, std::move(rows));
  images.visit([&](std::size_t row, std::span<const std::uint8_t> bytes) {
    writer.put(places[row], bytes.data(), bytes.size());
  });
  writer.finish();
}

}  // namespace convoy::preparation
