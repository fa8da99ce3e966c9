// SPDX-License-Identifier: Apache-2.0
// Runs: intermediate files of processed images, each sorted by place in the global order. A run appears under its name
// when it is whole and synced, and tells which part of the source it holds, so the runs are the journal of a
// preparation: what no run holds is to be read (again). Only the program that wrote them reads them.
//
//   header | bytes of size 0, of size 1 ... | entries | stored entries of size 0, 1 ... | names | tables
//
// Images carry a CRC32C each, all the rest one together.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/types.hpp"
#include "io/file.hpp"
#include "preprocess/images/findings.hpp"
#include "preprocess/images/process.hpp"
#include "preprocess/sources/shard.hpp"

namespace convoy::preparation {

/// Part of a shard: images from position `from` (-1: the beginning) up to `to`; `done`: up to its end.
struct Slice {
  Index shard = 0, from = -1, to = -1;
  bool done = false;
  void fields(auto&& visit) { visit(shard, from, to, done); }
};

/// One image. Sorted by split, hash, name.
struct RunEntry {
  std::uint64_t hash = 0;         ///< hash of seed and name: the place in the global order
  std::uint64_t content = 0;      ///< digest of name, class and bytes: for the digest of the source
  std::uint64_t file = 0;         ///< digest of the bytes alone: finds an image under another name
  Index shard = 0, position = 0;  ///< where it comes from: the first of two of the same name is kept
  std::uint64_t name_begin = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t class_number = 0;  ///< index in the run's table of classes
  std::uint32_t split = 0;
  std::uint32_t unused = 0;
};

/// What is stored of it in one size.
struct RunStored {
  std::uint64_t offset = 0, bytes = 0;  ///< place in the run
  std::uint64_t sum[most_channels] = {}, squares[most_channels] = {}, products[3] = {};
  std::uint64_t pixels = 0;
  std::uint32_t crc = 0;
  std::int32_t height = 0, width = 0;
  std::uint32_t unused = 0;
};

struct RunTables {
  std::vector<Slice> slices;
  std::vector<ClassText> classes;
  std::vector<Note> notes;
  Index images_read = 0;
  void fields(auto&& visit) { visit(slices, classes, notes, images_read); }
};

/// Collects images in memory until they are written. Not thread-safe.
class RunWriter {
 public:
  RunWriter(std::size_t sizes, std::uint64_t seed) : seed_(seed), stored_(sizes), bytes_(sizes) {}
  /// An image that was kept; takes its bytes.
  void add(const RawSample& raw, ProcessedImage& image, Split split, Index shard);
  void add_notes(const std::vector<Note>& notes) {
    tables_.notes.insert(tables_.notes.end(), notes.begin(), notes.end());
  }
  void count_read() { ++tables_.images_read; }
  void add_slice(const Slice& slice) { tables_.slices.push_back(slice); }
  bool empty() const { return tables_.slices.empty(); }
  /// Writes `path`.tmp, syncs and renames it. Throws Error(data); nothing is left then.
  void write(const std::string& path);

 private:
  std::uint64_t seed_;
  std::vector<RunEntry> entries_;
  std::vector<std::vector<RunStored>> stored_;                 ///< by size
  std::vector<std::vector<std::vector<std::uint8_t>>> bytes_;  ///< by size
  std::vector<std::string> names_;
  std::unordered_map<ClassText, std::uint32_t> class_numbers_;
  RunTables tables_;
};

/// Neighbours in the order that one run holds.
struct RunRange {
  std::size_t first = 0;  ///< number of the first entry in the run
  std::vector<RunEntry> entries;
  std::vector<std::string> names;
};

/// A whole run. Its file is open only while it is read: there may be more runs than a process may have files.
class RunReader {
 public:
  /// Checks everything but the images. Throws Error(data) naming the file.
  explicit RunReader(const std::string& path);
  const std::string& path() const { return path_; }
  const RunTables& tables() const { return tables_; }
  File open() const { return {path_, File::Access::read}; }
  /// Entries of a split with low <= hash <= high.
  RunRange range(const File& file, Split split, std::uint64_t low, std::uint64_t high) const;
  /// Returns what is stored of entries [first, first + count).
  std::vector<RunStored> stored(const File& file, std::size_t size, std::size_t first, std::size_t count) const;

 private:
  std::size_t lower_bound(const File& file, Split split, std::uint64_t hash) const;
  std::string path_;
  RunTables tables_;
  std::size_t entry_count_ = 0;
  std::uint64_t entries_begin_ = 0, stored_begin_ = 0, names_begin_ = 0;
};

}  // namespace convoy::preparation
