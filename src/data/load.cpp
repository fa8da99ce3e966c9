// SPDX-License-Identifier: Apache-2.0
// Dataset: the samples of a range read into memory by several threads, through pread and not through HDF5.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "data/dataset.hpp"
#include "io/file.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr Index piece_bytes = Index{8} << 20;

/// Samples of one partition that one thread reads at a time.
struct Piece {
  std::size_t partition = 0;
  Range samples;  ///< in the global sample space
};

std::vector<Piece> cut_into_pieces(const DatasetInfo& info, Range range) {
  const Index step = std::max<Index>(1, piece_bytes / info.image_bytes());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < info.partitions.size(); ++i) {
    const Range part = info.partitions[i].samples;
    const Index end = std::min(part.end(), range.end());
    for (Index begin = std::max(part.begin, range.begin); begin < end; begin += step) {
      pieces.push_back({i, {begin, std::min(step, end - begin)}});
    }
  }
  return pieces;
}

/// Reads pieces into the caller's arrays, whose element 0 is the range's first sample. One a thread: it keeps a file
/// open.
struct Reader {
  const DatasetInfo& info;
  Range range;
  std::uint8_t* images;
  std::int32_t* labels;
  Index* ids;
  std::uint8_t* damaged;  ///< 1: CRC differs

  std::size_t opened = 0;
  std::optional<File> file = {};

  const File& open(std::size_t partition) {
    if (!file || opened != partition) file.emplace(info.partitions[partition].path, File::Access::read);
    opened = partition;
    return *file;
  }

  void read(const Piece& piece) {
    const PartitionInfo& part = info.partitions[piece.partition];
    const File& source = open(piece.partition);
    const auto skip = static_cast<std::uint64_t>(piece.samples.begin - part.samples.begin);
    const Index at = piece.samples.begin - range.begin;
    const auto n = static_cast<std::size_t>(piece.samples.count), bytes = static_cast<std::size_t>(info.image_bytes());
    std::vector<std::uint32_t> crc(n);
    source.read_at(images + static_cast<std::size_t>(at) * bytes, n * bytes, part.images_offset + skip * bytes);
    source.read_at(labels + at, n * sizeof *labels, part.labels_offset + skip * sizeof *labels);
    source.read_at(ids + at, n * sizeof *ids, part.ids_offset + skip * sizeof *ids);
    source.read_at(crc.data(), n * sizeof crc[0], part.crc_offset + skip * sizeof crc[0]);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t here = static_cast<std::size_t>(at) + i;
      damaged[here] = crc32c(images + here * bytes, bytes) == crc[i] ? 0 : 1;
      if (labels[here] >= 0 && labels[here] < info.classes) continue;
      fail(Exit::data,
           "'{}': dataset '/labels' holds {} for sample {} (id {}), expected 0 to {}; "
           "run convoy-preprocess verify '{}'",
           part.path, labels[here], skip + i, ids[here], info.classes - 1, info.folder);
    }
  }
};

/// Runs read(piece) for all pieces; the error of the lowest piece is thrown, whatever the threads' timing.
template <class MakeReader>
void read_pieces(const std::vector<Piece>& pieces, int threads, const MakeReader& make_reader) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::size_t failed = pieces.size();
  std::exception_ptr error;
  const auto work = [&] {
    Reader own = make_reader();
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      try {
        leave_if_stopped("loading the samples");
        own.read(pieces[i]);
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

std::string describe_damage(const DatasetInfo& info, Index sample, Index id) {
  const auto part = std::find_if(info.partitions.begin(), info.partitions.end(),
                                 [&](const PartitionInfo& p) { return p.samples.contains(sample); });
  return fmt::format("'{}': sample {} (id {}, partition {}) is damaged (its CRC32C differs)", part->path,
                     sample - part->samples.begin, id, part - info.partitions.begin());
}

}  // namespace

void Dataset::Free::operator()(std::uint8_t* p) const { std::free(p); }

std::unique_ptr<std::uint8_t[], Dataset::Free> Dataset::allocate_images(std::size_t bytes) {
  const std::size_t alignment = bytes >= huge_page_bytes ? huge_page_bytes : 64;
  const std::size_t rounded = std::max((bytes + alignment - 1) / alignment, std::size_t{1}) * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    fail(Exit::device, "cannot hold {} bytes of samples (out of memory); use more ranks or less data", bytes);
  }
  if (alignment == huge_page_bytes) ::madvise(memory, rounded, MADV_HUGEPAGE);  // advice: a refusal costs nothing
  return std::unique_ptr<std::uint8_t[], Free>(static_cast<std::uint8_t*>(memory));
}

Dataset::Dataset(DatasetInfo info, Range range, int threads, OnCorrupt on_corrupt)
    : info_(std::move(info)), range_(range) {
  require(range_.begin >= 0 && range_.count >= 0 && range_.end() <= info_.samples, "Dataset: range outside the set");
  const auto count = static_cast<std::size_t>(range_.count), bytes = static_cast<std::size_t>(info_.image_bytes());
  images_ = allocate_images(count * bytes);
  labels_.resize(count);
  ids_.resize(count);
  std::vector<std::uint8_t> damaged(count);
  read_pieces(cut_into_pieces(info_, range_), threads,
              [&] { return Reader{info_, range_, images_.get(), labels_.data(), ids_.data(), damaged.data()}; });

  const auto whole = static_cast<std::size_t>(std::find(damaged.begin(), damaged.end(), 0) - damaged.begin());
  for (std::size_t i = 0; i < count; ++i) {
    if (damaged[i] == 0) continue;
    const std::string what = describe_damage(info_, range_.begin + static_cast<Index>(i), ids_[i]);
    if (on_corrupt == OnCorrupt::fail || whole == count) {
      fail(Exit::data, "{}; run convoy-preprocess verify '{}', or skip damaged samples with --on-corrupt skip", what,
           info_.folder);
    }
    // Everything before i is whole by now; damage at the very start takes the first whole sample.
    const std::size_t from = i == 0 ? whole : i - 1;
    std::copy_n(images_.get() + from * bytes, bytes, images_.get() + i * bytes);
    labels_[i] = labels_[from];
    ids_[i] = ids_[from];
    log::warn("{}: replaced by sample id {}", what, ids_[i]);
    ++skipped_;
  }
}

}  // namespace convoy
