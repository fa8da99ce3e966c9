// SPDX-License-Identifier: Apache-2.0
#include "io/seal.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>

#include "io/file.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

/// A sealed file of `bytes` bytes after the user block, samples at 600..799.
std::string make_sealed(const TempFolder& folder, std::size_t bytes = 500) {
  std::string path = folder / "sealed";
  std::string content(seal_bytes + bytes, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  write_bytes(path, content);
  seal_file(path, 600, 200);
  return path;
}

TEST(Crc32c, KnownValues) {
  // RFC 3720 appendix B.4, and the check value of the CRC catalogues.
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62A8AB43U);
  EXPECT_EQ(crc32c("", 0), 0U);
}

TEST(Crc32c, Chains) {
  const std::string text = "partition after partition";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), crc32c(text.data(), text.size()));
  }
}

TEST(Crc32c, LongerThanAnInt) {
  // Never written, so all pages are the one zero page and cost no memory.
  constexpr std::size_t bytes = (std::size_t{1} << 31) + 4096, half = bytes / 2;
  void* zeros = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  EXPECT_EQ(crc32c(zeros, bytes), crc32c(zeros, half, crc32c(zeros, half)));
  munmap(zeros, bytes);
}

TEST(Seal, OfBytesInMemory) {
  const TempFolder folder;
  const std::string path = folder / "sealed", twin = folder / "twin";
  std::string content(seal_bytes + 5000, 'x');
  std::string first(700, 'a'), last(1500, 'b');
  const auto bytes_of = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::vector<KnownBytes> known{{seal_bytes + 100, bytes_of(first)},
                                      {content.size() - last.size(), bytes_of(last)}};
  write_bytes(path, content);
  write_and_seal(path, known, 7);
  // The same file as one that is written first and sealed then.
  for (const KnownBytes& range : known)
    std::memcpy(content.data() + range.offset, range.bytes.data(), range.bytes.size());
  write_bytes(twin, content);
  seal_file(twin, 0, 0, 7);
  EXPECT_EQ(read_bytes(path), read_bytes(twin));
  EXPECT_EQ(peek_tag(path), 7U);
  check_seal(path);
  check_written(path, known);

  const std::string good = read_bytes(path);
  for (std::size_t at = 0; at < good.size(); at += 31) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write_bytes(path, bad);
    EXPECT_THROW(check_written(path, known), Error) << at;
  }
  // A whole file, but not with what is in memory.
  write_bytes(path, good);
  first[300] = 'c';
  expect_error(Exit::data, {path, "storage fault"}, [&] { check_written(path, known); });
}

TEST(Seal, HoldsWhatWasSealed) {
  const TempFolder folder;
  const std::string path = make_sealed(folder);
  const Seal seal = check_seal(path);
  EXPECT_EQ(seal.file_bytes, 1012U);
  EXPECT_EQ(seal.samples_offset, 600U);
  EXPECT_EQ(seal.samples_bytes, 200U);
  EXPECT_EQ(read_bytes(path).substr(0, 8), "CONVOYSL");
}

TEST(Seal, CrcIsOfTheBytesThatTheFormatSays) {
  const TempFolder folder;
  const std::string path = make_sealed(folder);
  std::string bytes = read_bytes(path);
  const Seal seal = check_seal(path);
  std::uint32_t stored = 0;
  bytes.copy(reinterpret_cast<char*>(&stored), 4, 12);
  bytes.replace(12, 4, 4, '\0');
  bytes.erase(600, 200);
  EXPECT_EQ(stored, seal.crc);
  EXPECT_EQ(stored, crc32c(bytes.data(), bytes.size()));
}

TEST(Seal, AnyFlippedByteOutsideTheSamplesShows) {
  const TempFolder folder;
  const std::string path = make_sealed(folder);
  const std::string whole = read_bytes(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const auto mask = static_cast<unsigned char>(1U << (at % 8));
    flip_byte(path, at, mask);
    if (at >= 600 && at < 800) {
      EXPECT_NO_THROW(check_seal(path)) << at;
    } else {
      EXPECT_THROW(check_seal(path), Error) << at;
    }
    flip_byte(path, at, mask);
  }
  EXPECT_EQ(read_bytes(path), whole);
}

TEST(Seal, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto check = [&] { check_seal(folder / "sealed"); };
  expect_error(Exit::data, {"sealed'", "No such file or directory"}, check);
  write_bytes(folder / "sealed", "");
  expect_error(Exit::data, {"is empty"}, check);
  write_bytes(folder / "sealed", "CONVOYSL");
  expect_error(Exit::data, {"is truncated (8 bytes"}, check);
  write_bytes(folder / "sealed", std::string(1000, '\1'));
  expect_error(Exit::data, {"is not sealed"}, check);
  write_bytes(folder / "sealed", std::string(1000, 'x'));
  expect_error(Exit::data, {"is a text file, not a file that Convoy wrote"}, check);
  write_bytes(folder / "sealed", "\xFF\xD8\xFF");
  expect_error(Exit::data, {"is a JPEG image"}, check);
  make_sealed(folder);
  std::filesystem::resize_file(folder / "sealed", 1011);
  expect_error(Exit::data, {"is truncated (1011 bytes, sealed with 1012)"}, check);
  std::filesystem::resize_file(folder / "sealed", 1013);
  expect_error(Exit::data, {"is too long (1013 bytes, sealed with 1012)"}, check);
  make_sealed(folder);
  flip_byte(folder / "sealed", 900);
  expect_error(Exit::data, {"is damaged (CRC32C"}, check);
  make_sealed(folder);
  flip_byte(folder / "sealed", 8, 2);
  expect_error(Exit::data, {"has seal version 3"}, check);
  expect_error(Exit::data, {"not a regular file"}, [&] { check_seal(folder.path()); });
}

TEST(Seal, SamplesOutsideTheFileAreRefused) {
  const TempFolder folder;
  const std::string path = make_sealed(folder);
  flip_byte(path, 24 + 7, 0x80);  // samples_offset grows by 2^63
  expect_error(Exit::data, {"outside the file"}, [&] { check_seal(path); });
  EXPECT_THROW(seal_file(path, 600, 1000), Error);
}

TEST(PublishFile, ReplacesTheOldFileWhole) {
  const TempFolder folder;
  write_bytes(folder / "new.tmp", "new");
  write_bytes(folder / "file", "old and longer");
  publish_file(folder / "new.tmp", folder / "file");
  EXPECT_EQ(read_bytes(folder / "file"), "new");
  EXPECT_FALSE(std::filesystem::exists(folder / "new.tmp"));
  expect_error(Exit::data, {"new.tmp", "No such file"}, [&] { publish_file(folder / "new.tmp", folder / "file"); });
}

TEST(File, ReadPastTheEndNamesTheFile) {
  const TempFolder folder;
  write_bytes(folder / "short", "12345");
  const File file(folder / "short", File::Access::read);
  char bytes[8] = {};
  file.read_at(bytes, 5, 0);
  EXPECT_EQ(std::string(bytes), "12345");
  expect_error(Exit::data, {"short' is truncated", "ends at byte 5, 1 more"}, [&] { file.read_at(bytes, 6, 0); });
}

}  // namespace
}  // namespace convoy
