// SPDX-License-Identifier: Apache-2.0
#include "interchange/tensor_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

std::vector<NamedTensor> some_tensors() {
  return {{"conv.weight", {2, 1, 1, 3}, {1, -2, 3.5F, 1e-30F, -0.0F, 6}},
          {"bn.num_batches_tracked", {}, {}, {12345}},
          {"fc.bias", {4}, {0.1F, 0.2F, 0.3F, 0.4F}}};
}
const std::map<std::string, std::string> some_metadata{{"convoy", "{\"a\": \"b\"}"}, {"format", "pt"}};

/// As a reader gets them.
std::vector<float> floats_of(const NamedTensor& tensor) {
  std::vector<float> values = tensor.values;
  values.insert(values.end(), tensor.whole_numbers.begin(), tensor.whole_numbers.end());
  return values;
}

void expect_same(const TensorFile& file, const std::vector<NamedTensor>& tensors) {
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const StoredValues* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->extent, tensor.extent);
    EXPECT_EQ(found->type, tensor.type());
    EXPECT_EQ(file.read(*found), floats_of(tensor)) << tensor.name;
  }
}

/// `{"name": {...}}` and the values behind it, as a safetensors file.
std::string safetensors(const std::string& header, std::size_t value_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + std::string(value_bytes, '\1');
}

class TensorFileTest : public testing::Test {
 protected:
  void expect_refused(const std::string& bytes, const std::vector<std::string>& parts) const {
    write_bytes(path_, bytes);
    expect_error(Exit::data, parts, [&] { read_all(); });
  }
  /// Every tensor's values too.
  std::size_t read_all() const {
    const TensorFile file(path_);
    std::size_t values = 0;
    for (const StoredValues& tensor : file.tensors()) values += file.read(tensor).size();
    return values;
  }
  /// Damaged files are refused, or read if the damage changed what nobody checks; nothing else happens.
  void damage_everywhere(const std::string& whole, const std::function<void(std::size_t at)>& was_read) const {
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) expect_refused(whole.substr(0, bytes), {path_});
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      write_bytes(path_, damaged);
      try {
        read_all();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Exit::data) << error.what();
        continue;
      }
      was_read(at);
    }
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(TensorFileTest, SafetensorsComeBack) {
  write_safetensors(path_, some_tensors(), some_metadata);
  const TensorFile file(path_);
  EXPECT_EQ(file.format(), TensorFormat::safetensors);
  EXPECT_EQ(file.metadata(), some_metadata);
  expect_same(file, some_tensors());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(TensorFileTest, PyTorchArchivesComeBack) {
  write_pth(path_, some_tensors(), some_metadata);
  const TensorFile file(path_);
  EXPECT_EQ(file.format(), TensorFormat::pth);
  EXPECT_EQ(file.metadata(), some_metadata);
  EXPECT_EQ(file.section(), "");
  expect_same(file, some_tensors());
}

TEST_F(TensorFileTest, OtherTypesBecomeFloats) {
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},)"
      R"("d":{"dtype":"F64","shape":[1,1],"data_offsets":[16,24]},"i":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";
  std::string bytes = safetensors(header, 0);
  const auto append = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const int half : {0x3C00, 0xC000, 0x0001, 0x8000, 0x7BFF, 0x7C00}) append(static_cast<std::uint16_t>(half));
  for (const int brain : {0x3FC0, 0xC2F7}) append(static_cast<std::uint16_t>(brain));
  append(0.1);
  append(std::int64_t{-7});
  write_bytes(path_, bytes);
  const TensorFile file(path_);
  const auto values = [&](const char* name) { return file.read(*file.find(name)); };
  EXPECT_EQ(values("h"), (std::vector<float>{1, -2, 0x1p-24F, -0.0F, 65504, INFINITY}));
  EXPECT_EQ(values("b"), (std::vector<float>{1.5F, -123.5F}));
  EXPECT_EQ(values("d"), std::vector<float>{0.1F});
  EXPECT_EQ(values("i"), std::vector<float>{-7});
}

TEST_F(TensorFileTest, DamagedSafetensors) {
  write_safetensors(path_, some_tensors(), some_metadata);
  const std::string whole = read_bytes(path_);
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof header);
  std::size_t read = 0;
  damage_everywhere(whole, [&](std::size_t) { ++read; });
  // Without checksums a value, a letter of a name, a white space may change.
  EXPECT_GT(read, whole.size() - header - 8 - 1);
  EXPECT_LT(read, whole.size() / 2 + (whole.size() - header));
  write_bytes(path_, whole);
  expect_same(TensorFile(path_), some_tensors());
}

TEST_F(TensorFileTest, DamagedArchives) {
  write_pth(path_, some_tensors());
  const std::string whole = read_bytes(path_);
  damage_everywhere(whole, [&](std::size_t at) {
    // What is read nevertheless has the same tensors: the checksums hold.
    SCOPED_TRACE(at);
    const TensorFile file(path_);
    for (const NamedTensor& tensor : some_tensors()) {
      const StoredValues* found = file.find(tensor.name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(file.read(*found), floats_of(tensor));
    }
  });
}

TEST_F(TensorFileTest, TheDigestFindsAFlippedBitOfAnyTensorAndOfTheMetadata) {
  for (const auto write : {write_safetensors, write_pth}) {
    std::map<std::string, std::string> metadata = some_metadata;
    metadata[digest_metadata] = digest_of_contents(some_tensors(), metadata);
    write(path_, some_tensors(), metadata);
    const std::string whole = read_bytes(path_);
    const TensorFile file(path_);
    file.check_digest();
    for (const StoredValues& tensor : file.tensors()) {
      for (std::uint64_t at = tensor.place.offset; at < tensor.place.offset + tensor.place.bytes; ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        write_bytes(path_, damaged);
        expect_error(Exit::data, {path_, "is damaged", "again"}, [&] { TensorFile(path_).check_digest(); });
      }
    }
    const std::size_t text =
        whole.find("a\\\": \\\"b") != std::string::npos ? whole.find("a\\\": \\\"b") : whole.find("\"a\": ") + 1;
    std::string damaged = whole;
    damaged.at(text) = 'c';
    write_bytes(path_, damaged);
    expect_error(Exit::data, {path_, "damaged"}, [&] { TensorFile(path_).check_digest(); });
  }
  // What other programs write has none.
  write_safetensors(path_, some_tensors(), {{digest_metadata, "of something else"}});
  TensorFile(path_).check_digest();
}

TEST_F(TensorFileTest, CountersAreExactBeyondTheIntegersOfAFloat) {
  constexpr std::int64_t many = (1LL << 24) + 1;
  for (const auto write : {write_safetensors, write_pth}) {
    write(path_, {{"bn.num_batches_tracked", {}, {}, {many}}}, {});
    const TensorFile file(path_);
    std::int64_t stored = 0;
    std::memcpy(&stored, read_bytes(path_).data() + file.tensors().front().place.offset, sizeof stored);
    EXPECT_EQ(stored, many);
  }
}

TEST_F(TensorFileTest, HostileSafetensors) {
  const auto one = [](const std::string& entry) { return R"({"a":{)" + entry + "}}"; };
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[4],"data_offsets":[0,12])"), 12),
                 {"'a'", "larger than its file"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"), 16),
                 {"'a' has 16 bytes for 3 of F32"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4), {"'a'"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0), {"'a'"});
  expect_refused(
      safetensors(one(R"("dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0])"), 0), {"'a'"});
  // No elements, whatever its other sides are.
  write_bytes(path_, safetensors(one(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), 0));
  EXPECT_EQ(read_all(), 0U);
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])"), 4),
                 {"9 dimensions"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8), {"leaves a hole"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 9), {"5 bytes follow"});
  expect_refused(safetensors(one(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])"), 8), {"outside the file"});
  expect_refused(safetensors(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 4), {"is of type U8", "F32"});
  expect_refused(safetensors(one(R"("shape":[1],"data_offsets":[0,4])"), 4), {"'dtype' is missing"});
  expect_refused(
      safetensors(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      {"'b' overlaps"});
  expect_refused(safetensors("{}", 0), {"holds no tensors"});
  expect_refused(safetensors("{" + std::string(100'000, '['), 0), {"no whole safetensors"});
  std::string huge = safetensors("{}", 0);
  huge[3] = '\x7f';  // 2 GB of header
  expect_refused(huge, {"header has 2130706434 bytes"});
  std::string many = "{\"a\":0";
  for (int i = 0; i < 100'000; ++i) many += ",\"\":1";
  expect_refused(safetensors(many + "}", 0), {"too many tensors"});
}

TEST_F(TensorFileTest, SafetensorsOfOtherTypesAreReadButForTheirValues) {
  write_bytes(path_, safetensors(R"({"n":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
                                 R"("w":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[4,8]}})",
                                 8));
  const TensorFile file(path_);
  EXPECT_EQ(file.find("w")->extent, (std::vector<Index>{2, 2}));
  expect_error(Exit::data, {"'w' of '" + path_ + "' is of type F8_E4M3", "v.float()"},
               [&] { file.read(*file.find("w")); });
  expect_refused(safetensors(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,8]}})", 4), {"outside the file"});
}

TEST_F(TensorFileTest, HeadersOfSafetensors) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_refused(safetensors(R"({"a.b":)" + entry + R"(,"a.b":)" + entry + "}", 4), {"there are two 'a.b'"});
  expect_refused(safetensors(R"({"a":)" + entry + std::string(std::size_t{5} << 20U, ' ') + "}", 4),
                 {"header of 5242", "at most 4194304 are read", "less metadata"});
}

TEST_F(TensorFileTest, MetadataOfAnArchiveHaveALimitTogether) {
  const std::string large(std::size_t{5} << 20, 'x');
  write_pth(path_, some_tensors(), {{"a", large}, {"b", large}});
  expect_error(Exit::data, {"8388608 bytes of metadata"}, [&] { TensorFile file(path_); });
}

TEST_F(TensorFileTest, OtherFiles) {
  expect_refused("", {"is no file of safetensors, PyTorch or ONNX"});
  expect_refused("convoy", {"is no file of safetensors, PyTorch or ONNX"});
  expect_refused(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15),
                 {"before version 1.6", "torch.save(torch.load("});
  expect_refused(std::string("\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 24),
                 {"before version 1.6"});
  write_bytes(path_, "text");
  EXPECT_EQ(tensor_format_of(path_), std::nullopt);
  expect_error(Exit::data, {"cannot open"}, [&] { TensorFile file(path_ + ".none"); });
}

TEST_F(TensorFileTest, AFailedWriteLeavesTheOldFile) {
  write_bytes(path_, "old");
  std::filesystem::create_directory(path_ + ".tmp");
  expect_error(Exit::data, {"cannot create"}, [&] { write_safetensors(path_, some_tensors()); });
  EXPECT_EQ(read_bytes(path_), "old");
}

}  // namespace
}  // namespace convoy
