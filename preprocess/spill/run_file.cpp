// SPDX-License-Identifier: Apache-2.0
#include "preprocess/spill/run_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <type_traits>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "io/seal.hpp"
#include "preprocess/fields.hpp"

namespace convoy::preparation {
namespace {

static_assert(std::is_trivially_copyable_v<RunEntry> && sizeof(RunEntry) == 64);
static_assert(std::is_trivially_copyable_v<RunStored> && sizeof(RunStored) == 128);

struct RunHeader {
  std::array<char, 8> magic{'C', 'O', 'N', 'V', 'O', 'Y', 'R', 'N'};
  std::uint32_t version = 4;
  std::uint32_t crc = 0;  ///< CRC of this header with crc 0, then of everything from entries_begin on
  std::uint64_t file_bytes = 0, entries = 0, sizes = 0;
  std::uint64_t entries_begin = 0, stored_begin = 0, names_begin = 0, tables_begin = 0;
};

std::uint32_t header_crc(RunHeader header) {
  header.crc = 0;
  return crc32c(&header, sizeof header);
}

}  // namespace

void RunWriter::add(const RawSample& raw, ProcessedImage& image, Split split, Index shard) {
  const auto [found, added] =
      class_numbers_.emplace(*raw.class_text, static_cast<std::uint32_t>(tables_.classes.size()));
  if (added) tables_.classes.push_back(*raw.class_text);
  RunEntry entry;
  entry.hash = hash_text(raw.name, seed_);
  entry.content = image.content;
  entry.file = image.file;
  entry.shard = shard;
  entry.position = raw.next;
  entry.name_bytes = static_cast<std::uint32_t>(raw.name.size());
  entry.class_number = found->second;
  entry.split = static_cast<std::uint32_t>(split);
  entries_.push_back(entry);
  names_.push_back(raw.name);
  for (std::size_t s = 0; s < stored_.size(); ++s) {
    StoredImage& from = image.stored[s];
    RunStored stored;
    stored.bytes = from.bytes.size();
    std::copy(from.sums.sum.begin(), from.sums.sum.end(), stored.sum);
    std::copy(from.sums.squares.begin(), from.sums.squares.end(), stored.squares);
    std::copy(from.sums.products.begin(), from.sums.products.end(), stored.products);
    stored.pixels = static_cast<std::uint64_t>(from.pixels);
    stored.crc = from.crc;
    stored.height = static_cast<std::int32_t>(from.height);
    stored.width = static_cast<std::int32_t>(from.width);
    stored_[s].push_back(stored);
    bytes_[s].push_back(std::move(from.bytes));
  }
}

void RunWriter::write(const std::string& path) {
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const RunEntry &x = entries_[a], &y = entries_[b];
    if (x.split != y.split) return x.split < y.split;
    return x.hash != y.hash ? x.hash < y.hash : names_[a] < names_[b];
  });
  const std::string temporary = path + ".tmp";
  try {
    File file(temporary, File::Access::create);
    RunHeader header;
    std::uint64_t at = sizeof header;
    const auto put = [&](const void* from, std::size_t bytes) {
      if (bytes > 0) file.write_at(from, bytes, at);
      at += bytes;
    };
    for (std::size_t s = 0; s < stored_.size(); ++s) {
      for (const std::size_t i : order) {
        stored_[s][i].offset = at;
        put(bytes_[s][i].data(), bytes_[s][i].size());
      }
    }
    std::vector<RunEntry> entries;
    std::string names;
    for (const std::size_t i : order) {
      entries_[i].name_begin = names.size();
      entries.push_back(entries_[i]);
      names += names_[i];
    }
    std::uint32_t crc = 0;
    const auto put_checked = [&](const void* from, std::size_t bytes) {
      crc = crc32c(from, bytes, crc);
      put(from, bytes);
    };
    header.entries_begin = at;
    put_checked(entries.data(), entries.size() * sizeof(RunEntry));
    header.stored_begin = at;
    for (const auto& of_size : stored_) {
      std::vector<RunStored> sorted;
      sorted.reserve(order.size());
      for (const std::size_t i : order) sorted.push_back(of_size[i]);
      put_checked(sorted.data(), sorted.size() * sizeof(RunStored));
    }
    header.names_begin = at;
    put_checked(names.data(), names.size());
    header.tables_begin = at;
    const std::string tables = to_text(tables_);
    put_checked(tables.data(), tables.size());
    header.file_bytes = at;
    header.entries = entries.size();
    header.sizes = stored_.size();
    header.crc = header_crc(header) ^ crc;
    file.write_at(&header, sizeof header, 0);
    publish_file(temporary, path);
  } catch (...) {
    std::error_code ignored;  // what matters is the first error
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

RunReader::RunReader(const std::string& path) : path_(path) {
  const File file = open();
  RunHeader header;
  const std::uint64_t bytes = file.size();
  if (bytes < sizeof header) fail(Exit::data, "'{}' is truncated ({} bytes)", path, bytes);
  file.read_at(&header, sizeof header, 0);
  const RunHeader expected;
  const bool in_order = header.entries_begin <= header.stored_begin && header.stored_begin <= header.names_begin &&
                        header.names_begin <= header.tables_begin && header.tables_begin <= header.file_bytes;
  if (header.magic != expected.magic || header.version != expected.version || header.file_bytes != bytes || !in_order) {
    fail(Exit::data, "'{}' is damaged, or of another version of the program", path);
  }
  std::string rest(bytes - header.entries_begin, '\0');
  file.read_at(rest.data(), rest.size(), header.entries_begin);
  if (header.crc != (header_crc(header) ^ crc32c(rest.data(), rest.size()))) {
    fail(Exit::data, "'{}' is damaged (its CRC32C differs)", path);
  }
  from_text(std::string_view(rest).substr(header.tables_begin - header.entries_begin), tables_);
  entry_count_ = header.entries;
  entries_begin_ = header.entries_begin;
  stored_begin_ = header.stored_begin;
  names_begin_ = header.names_begin;
}

std::size_t RunReader::lower_bound(const File& file, Split split, std::uint64_t hash) const {
  std::size_t low = 0, high = entry_count_;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    RunEntry e;
    file.read_at(&e, sizeof e, entries_begin_ + middle * sizeof e);
    const bool before =
        e.split != static_cast<std::uint32_t>(split) ? e.split < static_cast<std::uint32_t>(split) : e.hash < hash;
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

RunRange RunReader::range(const File& file, Split split, std::uint64_t low, std::uint64_t high) const {
  RunRange range;
  range.first = lower_bound(file, split, low);
  const auto next_split = static_cast<Split>(static_cast<int>(split) + 1);
  const std::size_t end =
      high == ~std::uint64_t{0} ? lower_bound(file, next_split, 0) : lower_bound(file, split, high + 1);
  if (end == range.first) return range;
  range.entries.resize(end - range.first);
  file.read_at(range.entries.data(), range.entries.size() * sizeof(RunEntry),
               entries_begin_ + range.first * sizeof(RunEntry));
  const std::uint64_t begin = range.entries.front().name_begin;
  std::string names(range.entries.back().name_begin + range.entries.back().name_bytes - begin, '\0');
  if (!names.empty()) file.read_at(names.data(), names.size(), names_begin_ + begin);
  for (const RunEntry& e : range.entries) range.names.push_back(names.substr(e.name_begin - begin, e.name_bytes));
  return range;
}

std::vector<RunStored> RunReader::stored(const File& file, std::size_t size, std::size_t first,
                                         std::size_t count) const {
  std::vector<RunStored> all(count);
  if (count > 0) {
    file.read_at(all.data(), count * sizeof(RunStored),
                 stored_begin_ + (size * entry_count_ + first) * sizeof(RunStored));
  }
  return all;
}

}  // namespace convoy::preparation
