// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "data/partition.hpp"
#include "data/sample_table.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// File names of a split by partition number, and how many there should be.
struct Series {
  std::map<Index, std::string> paths;
  std::set<Index> counts;
};

Series find_series(const std::string& folder, const std::string& split) {
  Series series;
  std::error_code reason;
  fs::directory_iterator entries(folder, reason);
  if (reason) {
    fail(Exit::data, "cannot open the data folder '{}' ({}); make it with convoy-preprocess, or name another", folder,
         reason.message());
  }
  for (; entries != fs::directory_iterator(); entries.increment(reason)) {
    const PartitionName name = parse_partition_name(entries->path().filename().string());
    if (name.partitions == 0 || name.split != split) continue;
    series.paths[name.number] = entries->path().string();
    series.counts.insert(name.partitions);
  }
  if (reason) fail(Exit::data, "cannot list the data folder '{}' ({}); check the disk", folder, reason.message());
  return series;
}

void require_complete(const Series& series, const std::string& folder, const std::string& split) {
  if (series.paths.empty()) {
    fail(Exit::data, "'{}' has no partition of the split '{}' ({}-NNNNN-of-NNNNN.h5); make it with convoy-preprocess",
         folder, split, split);
  }
  if (series.counts.size() > 1) {
    fail(Exit::data,
         "'{}' mixes '{}' partitions of {} and of {}; remove one series or run convoy-preprocess --overwrite", folder,
         split, *series.counts.begin(), *series.counts.rbegin());
  }
  const Index count = *series.counts.begin();
  for (Index number = 0; number < count; ++number) {
    if (series.paths.contains(number)) continue;
    fail(Exit::data,
         "'{}' is missing ({} of {} partitions are there); run convoy-preprocess again, it makes only those",
         (fs::path(folder) / partition_file_name(split, number, count)).string(), series.paths.size(), count);
  }
}

}  // namespace

DatasetInfo read_dataset_info(const std::string& folder, const std::string& split) {
  const Series series = find_series(folder, split);
  require_complete(series, folder, split);
  DatasetInfo info;
  info.folder = folder;
  info.split = split;
  Partition first;
  for (const auto& [number, path] : series.paths) {
    const Partition p = read_partition(path);
    if (number == 0) {
      first = p;
    } else {
      require_same_set(first, p);
    }
    if (p.first != info.samples) {
      fail(Exit::data, "'{}': attribute 'first_sample' is {}, expected {}; run convoy-preprocess verify '{}'", path,
           p.first, info.samples, folder);
    }
    info.partitions.push_back({path,
                               {p.first, p.samples},
                               p.images_offset,
                               p.labels_offset,
                               p.ids_offset,
                               p.crc_offset,
                               p.offsets_offset,
                               p.dimensions_offset,
                               p.stored_bytes,
                               p.seal_crc});
    info.samples += p.samples;
    const std::uint64_t seal[] = {static_cast<std::uint64_t>(p.samples), p.seal_crc};
    info.digest = hash_bytes(seal, sizeof seal, info.digest);
  }
  if (info.samples != first.split_samples) {
    fail(Exit::data,
         "'{}': partitions hold {} samples, attribute 'split_samples' says {}; run convoy-preprocess verify '{}'",
         first.path, info.samples, first.split_samples, folder);
  }
  info.height = first.height;
  info.width = first.width;
  info.channels = first.channels;
  info.classes = first.classes;
  info.class_names = first.class_names;
  info.mean = first.mean;
  info.std = first.std;
  info.covariance = first.covariance;
  info.mean_image = first.mean_image;
  info.source = first.source;
  info.encoding = first.encoding;
  return info;
}

bool has_split(const std::string& folder, const std::string& split) {
  return !find_series(folder, split).paths.empty();
}

// Dataset: the samples of a range read through pread and not through HDF5, into memory by several threads, or from
// their files when they are used.

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::uint64_t piece_bytes = std::uint64_t{8} << 20;

/// Rows [first, last) that lie side by side in one file, which one thread reads at a time.
struct Piece {
  std::size_t first = 0, last = 0;
};

std::vector<Piece> cut_into_pieces(const SampleTable& table) {
  std::vector<Piece> pieces;
  const auto& extents = table.extents;
  for (std::size_t i = 0; i < extents.size();) {
    std::size_t end = i + 1;
    while (end < extents.size() && table.same_file(i, end) && extents[end].end() - extents[i].begin <= piece_bytes)
      ++end;
    pieces.push_back({i, end});
    i = end;
  }
  return pieces;
}

/// Runs read(piece) for all pieces; the error of the lowest piece is thrown, whatever the threads' timing.
template <class Read>
void read_pieces(const std::vector<Piece>& pieces, int threads, const Read& read) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::size_t failed = pieces.size();
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      try {
        leave_if_stopped("loading the samples");
        read(pieces[i]);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
        return;
      }
    }
  };
  std::vector<std::thread> others;
  const auto wanted = std::min(pieces.size(), static_cast<std::size_t>(std::max(threads, 1)));
  for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (auto& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

struct Dataset::Files {
  SampleTable table;  ///< in memory: where each file lies in the block
};

struct Dataset::Skips {
  OnCorrupt policy = OnCorrupt::fail;
  std::mutex mutex;
  std::set<Index> samples;
};

void Dataset::Free::operator()(std::uint8_t* p) const { std::free(p); }

std::unique_ptr<std::uint8_t[], Dataset::Free> Dataset::allocate_images(std::size_t bytes) {
  const std::size_t alignment = bytes >= huge_page_bytes ? huge_page_bytes : 64;
  const std::size_t rounded = std::max((bytes + alignment - 1) / alignment, std::size_t{1}) * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    fail(Exit::device,
         "cannot hold {} bytes of samples (out of memory); use more ranks or less data, or --data-cache stream", bytes);
  }
  if (alignment == huge_page_bytes) ::madvise(memory, rounded, MADV_HUGEPAGE);  // advice: a refusal costs nothing
  return std::unique_ptr<std::uint8_t[], Free>(static_cast<std::uint8_t*>(memory));
}

Dataset::Dataset(DatasetInfo info, Range range, const ReadSpec& spec)
    : info_(std::move(info)), range_(range), skips_(std::make_shared<Skips>()) {
  require(range_.begin >= 0 && range_.count >= 0 && range_.end() <= info_.samples, "Dataset: range outside the set");
  skips_->policy = spec.on_corrupt;
  SampleTable table(info_, range_);
  labels_ = std::move(table.labels);
  ids_ = std::move(table.ids);
  if (spec.keep == Keep::files) {
    files_ = std::make_shared<Files>(Files{std::move(table)});
    return;
  }
  load(std::move(table), spec.threads);
}

void Dataset::load(SampleTable table, int threads) {
  const std::size_t count = table.extents.size();
  std::vector<std::uint64_t> places(count + 1);
  for (std::size_t i = 0; i < count; ++i) places[i + 1] = places[i] + table.extents[i].bytes;
  images_ = allocate_images(places[count]);
  image_block_bytes_ = static_cast<Index>(places[count]);
  std::vector<std::uint8_t> damaged(count);
  read_pieces(cut_into_pieces(table), threads, [&](const Piece& piece) {
    std::uint8_t* const to = images_.get() + places[piece.first];
    table.read(piece.first, piece.last, to);
    for (std::size_t i = piece.first; i < piece.last; ++i) {
      const Extent& extent = table.extents[i];
      damaged[i] = crc32c(images_.get() + places[i], extent.bytes) == extent.crc ? 0 : 1;
    }
  });
  const bool pixels = info_.encoding == "raw";
  for (std::size_t i = 0; i < count; ++i) table.extents[i].begin = places[i];

  const auto whole = static_cast<std::size_t>(std::find(damaged.begin(), damaged.end(), 0) - damaged.begin());
  for (std::size_t i = 0; i < count; ++i) {
    if (damaged[i] == 0) continue;
    const Index sample = range_.begin + static_cast<Index>(i);
    const std::string what = describe(sample) + " is damaged (its CRC32C differs)";
    if (skips_->policy == OnCorrupt::fail || whole == count) {
      fail(Exit::data, "{}; run convoy-preprocess verify '{}', or skip damaged samples with --on-corrupt skip", what,
           info_.folder);
    }
    // Everything before i is whole by now; damage at the very start takes the first whole sample.
    const std::size_t from = i == 0 ? whole : i - 1;
    if (pixels) {
      std::copy_n(images_.get() + places[from], table.extents[i].bytes, images_.get() + places[i]);
    } else {
      table.extents[i] = table.extents[from];
    }
    labels_[i] = labels_[from];
    ids_[i] = ids_[from];
    log::warn("{}: replaced by sample id {}", what, ids_[i]);
    skips_->samples.insert(sample);
  }
  if (pixels) return;
  table.close();
  files_ = std::make_shared<Files>(Files{std::move(table)});
}

Dataset::~Dataset() = default;
Dataset::Dataset(Dataset&&) noexcept = default;

const std::uint8_t* Dataset::images() const { return files_ ? nullptr : images_.get(); }

std::span<const std::uint8_t> Dataset::stored(Index sample, std::vector<std::uint8_t>& scratch,
                                              std::string& fault) const {
  const auto i = static_cast<std::size_t>(sample - range_.begin);
  if (!files_) {
    const auto bytes = static_cast<std::size_t>(info_.image_bytes());
    return {images_.get() + i * bytes, bytes};
  }
  const SampleTable& table = files_->table;
  const Extent& extent = table.extents[i];
  if (images_) return {images_.get() + extent.begin, extent.bytes};
  scratch.resize(extent.bytes);
  table.read(i, i + 1, scratch.data());
  if (crc32c(scratch.data(), extent.bytes) != extent.crc) fault = describe(sample) + " is damaged (its CRC32C differs)";
  return {scratch.data(), extent.bytes};
}

void Dataset::will_read(Range samples) const {
  if (!files_ || images_ || samples.count == 0) return;
  const auto first = static_cast<std::size_t>(samples.begin - range_.begin);
  files_->table.read_ahead(first, first + static_cast<std::size_t>(samples.count));
}

Index Dataset::stand_in(Index sample, Index tried, const std::string& fault, bool stored_so) const {
  Index next = tried;
  do {
    next = next > sample ? next + 1 : next > range_.begin ? next - 1 : sample + 1;
  } while (next < range_.end() && label(next) < 0);  // a sample of no class has no place in a batch
  if (skips_->policy == OnCorrupt::fail || next >= range_.end()) {
    fail(Exit::data, "{}; {}, or skip damaged samples with --on-corrupt skip", fault,
         stored_so ? "prepare the set again from images that are whole"
                   : fmt::format("run convoy-preprocess verify '{}'", info_.folder));
  }
  const std::lock_guard lock(skips_->mutex);
  if (skips_->samples.insert(tried).second) log::warn("{}: a neighbour stands in for it", fault);
  return next;
}

std::string Dataset::describe(Index sample) const {
  const auto part = std::find_if(info_.partitions.begin(), info_.partitions.end(),
                                 [&](const PartitionInfo& p) { return p.samples.contains(sample); });
  return fmt::format("'{}': sample {} (id {}, partition {})", part->path, sample - part->samples.begin, id(sample),
                     part - info_.partitions.begin());
}

Index Dataset::skipped() const {
  if (!skips_) return 0;
  const std::lock_guard lock(skips_->mutex);
  return static_cast<Index>(skips_->samples.size());
}

Index Dataset::memory_bytes() const {
  const std::size_t tables = labels_.size() * sizeof labels_[0] + ids_.size() * sizeof ids_[0] +
                             (files_ ? files_->table.extents.size() * sizeof(Extent) : 0);
  return image_block_bytes_ + static_cast<Index>(tables);
}

bool is_sorted_by_class(const Dataset& samples) {
  constexpr Index enough = 100;
  constexpr double few = 0.25;
  const Range range = samples.range();
  if (range.count < enough || samples.info().classes < 2) return false;
  std::vector<double> counts(static_cast<std::size_t>(samples.info().classes));
  Index changes = 0;
  for (Index i = range.begin; i < range.end(); ++i) {
    ++counts[static_cast<std::size_t>(samples.label(i))];
    if (i > range.begin && samples.label(i) != samples.label(i - 1)) ++changes;
  }
  const auto n = static_cast<double>(range.count);
  double same = 0;  // chance that two samples in a random order have the same label
  for (const double count : counts) same += count / n * (count / n);
  // A range with one class alone, out of several, is a part of a sorted set.
  return same == 1 || static_cast<double>(changes) < few * (1 - same) * n;
}

Dataset::Dataset(const SyntheticSpec& spec, DatasetInfo info, Range range) : info_(std::move(info)), range_(range) {
  const auto bytes = static_cast<std::size_t>(info_.image_bytes());
  images_ = allocate_images(static_cast<std::size_t>(range.count) * bytes);
  image_block_bytes_ = range.count * info_.image_bytes();
  const Index first = info_.split == "train" ? 0 : spec.samples;
  for (Index i = range.begin; i < range.end(); ++i) {
    if (i % 256 == 0) leave_if_stopped("making the samples");
    labels_.push_back(info_.label_of(
        synthetic_sample(spec, first + i, images_.get() + static_cast<std::size_t>(i - range.begin) * bytes)));
    ids_.push_back(i);
  }
}

}  // namespace convoy
