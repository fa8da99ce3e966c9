// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>

#include "io/file.hpp"
#include "io/seal.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace {

/// The call of HDF5 that fails; null: none does.
const char* failing = nullptr;

bool fails(const char* call) { return failing != nullptr && std::string(failing) == call; }

template <class Call>
Call* library_call(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// In front of the library's own, declared without its header, which stays in io.
extern "C" {
int set_fill_time(std::int64_t list, int when) asm("H5Pset_fill_time");
int set_characters(std::int64_t type, int characters) asm("H5Tset_cset");
int read_extent(std::int64_t space, unsigned long long* extent,
                unsigned long long* most) asm("H5Sget_simple_extent_dims");

int set_fill_time(std::int64_t list, int when) {
  const char* const call = "H5Pset_fill_time";
  return fails(call) ? -1 : library_call<int(std::int64_t, int)>(call)(list, when);
}
int set_characters(std::int64_t type, int characters) {
  const char* const call = "H5Tset_cset";
  return fails(call) ? -1 : library_call<int(std::int64_t, int)>(call)(type, characters);
}
int read_extent(std::int64_t space, unsigned long long* extent, unsigned long long* most) {
  using Call = int(std::int64_t, unsigned long long*, unsigned long long*);
  const char* const call = "H5Sget_simple_extent_dims";
  return fails(call) ? -1 : library_call<Call>(call)(space, extent, most);
}
}

namespace convoy {
namespace {

/// While it lives the call fails.
struct Failing {
  explicit Failing(const char* call) { failing = call; }
  ~Failing() { failing = nullptr; }
};

template <class T>
std::vector<T> read_all(const Hdf5File& file, const std::string& name, Element element) {
  std::vector<T> values(static_cast<std::size_t>(file.shape(name).count()));
  file.read(name, element, std::as_writable_bytes(std::span(values)));
  return values;
}

void write_everything(const std::string& path) {
  Hdf5File file(path, Hdf5File::Access::create);
  const std::vector<float> weights{1.5F, -2.0F, 0.0F, 3e-30F, 5.0F, 6.0F};
  file.write("/parameters/layer1.0/conv1.weight", {Element::f32, {2, 3}}, weights.data());
  const std::int64_t ids[] = {1, -2, std::int64_t{1} << 60};
  file.write("/ids", {Element::i64, {3}}, ids);
  const std::int32_t labels[] = {7, -8};
  file.write("/labels", {Element::i32, {2}}, labels);
  const std::uint32_t crc[] = {0xE3069283U};
  file.write("/crc", {Element::u32, {1}}, crc);
  const double number = 0.1;
  file.write("/number", {Element::f64, {}}, &number);
  file.write("/empty", {Element::u8, {0}}, nullptr);
  file.attribute("encoding", std::string("raw"));
  file.attribute("nothing", std::string());
  file.attribute("count", Index{-5});
  const std::vector<double> mean{125.5, 0.1, 3.0};
  file.attribute("mean", mean);
  file.attribute("names", std::vector<std::string>{"h\xc3\xa9ron", "cat", ""});
  file.close();
}

TEST(Hdf5File, ReadsBackWhatWasWritten) {
  const TempFolder folder;
  write_everything(folder / "all.h5");
  const Hdf5File file(folder / "all.h5", Hdf5File::Access::read);
  EXPECT_EQ(file.shape("/parameters/layer1.0/conv1.weight"), (DatasetShape{Element::f32, {2, 3}}));
  EXPECT_EQ(read_all<float>(file, "/parameters/layer1.0/conv1.weight", Element::f32),
            (std::vector<float>{1.5F, -2.0F, 0.0F, 3e-30F, 5.0F, 6.0F}));
  EXPECT_EQ(read_all<std::int64_t>(file, "/ids", Element::i64),
            (std::vector<std::int64_t>{1, -2, std::int64_t{1} << 60}));
  EXPECT_EQ(read_all<std::int32_t>(file, "/labels", Element::i32), (std::vector<std::int32_t>{7, -8}));
  EXPECT_EQ(read_all<std::uint32_t>(file, "/crc", Element::u32), (std::vector<std::uint32_t>{0xE3069283U}));
  EXPECT_EQ(read_all<double>(file, "/number", Element::f64), (std::vector<double>{0.1}));
  EXPECT_EQ(read_all<std::uint8_t>(file, "/empty", Element::u8), (std::vector<std::uint8_t>{}));
  EXPECT_EQ(file.names("/"), (std::vector<std::string>{"crc", "empty", "ids", "labels", "number", "parameters"}));
  EXPECT_EQ(file.names("/parameters/layer1.0"), (std::vector<std::string>{"conv1.weight"}));
  EXPECT_TRUE(file.exists("/parameters/layer1.0/conv1.weight"));
  EXPECT_FALSE(file.exists("/parameters/layer2.0/conv1.weight"));
  EXPECT_EQ(file.text_attribute("encoding"), "raw");
  EXPECT_EQ(file.text_attribute("nothing"), "");
  EXPECT_EQ(file.integer_attribute("count"), -5);
  EXPECT_EQ(file.numbers_attribute("mean"), (std::vector<double>{125.5, 0.1, 3.0}));
  EXPECT_EQ(file.texts_attribute("names"), (std::vector<std::string>{"h\xc3\xa9ron", "cat", ""}));
  EXPECT_FALSE(file.has_attribute("std"));
}

TEST(Hdf5File, TellsWhichSettingFails) {
  const TempFolder folder;
  write_everything(folder / "all.h5");
  for (const char* call : {"H5Pset_fill_time", "H5Tset_cset"}) {
    const Failing now(call);
    expect_error(Exit::data, {call}, [&] { write_everything(folder / "other.h5"); });
  }
  const Hdf5File file(folder / "all.h5", Hdf5File::Access::read);
  const Failing now("H5Sget_simple_extent_dims");
  expect_error(Exit::data, {"all.h5", "cannot read the shape", "/ids"}, [&] { file.shape("/ids"); });
}

TEST(Hdf5File, AttributesPastTheHeadersLimitOf64KiB) {
  const TempFolder folder;
  std::vector<std::string> names;
  names.reserve(1000);
  for (int i = 0; i < 1000; ++i) names.push_back(std::string(120, static_cast<char>('a' + i % 26)) + std::to_string(i));
  {
    Hdf5File file(folder / "names.h5", Hdf5File::Access::create);
    file.attribute("class_names", names);
    file.close();
  }
  EXPECT_EQ(Hdf5File(folder / "names.h5", Hdf5File::Access::read).texts_attribute("class_names"), names);
}

TEST(Hdf5File, TwoWritesGiveTheSameBytes) {
  const TempFolder folder;
  write_everything(folder / "a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5's times count seconds
  write_everything(folder / "b.h5");
  EXPECT_EQ(read_bytes(folder / "a.h5"), read_bytes(folder / "b.h5"));
}

TEST(Hdf5File, FormatIsV110BehindAnEmptyUserBlock) {
  const TempFolder folder;
  write_everything(folder / "all.h5");
  const std::string bytes = read_bytes(folder / "all.h5");
  EXPECT_EQ(bytes.substr(0, seal_bytes), std::string(seal_bytes, '\0'));
  EXPECT_EQ(bytes.substr(seal_bytes, 8), "\x89HDF\r\n\x1a\n");
  EXPECT_EQ(bytes[seal_bytes + 8], 3);  // version of the superblock
}

TEST(Hdf5File, ReservedDatasetsAreWrittenThroughTheirOffset) {
  const TempFolder folder;
  std::vector<std::uint8_t> images(4 * 5 * 6 * 3);
  std::iota(images.begin(), images.end(), std::uint8_t{0});
  const DatasetShape shape{Element::u8, {4, 5, 6, 3}};
  std::uint64_t offset = 0;
  {
    Hdf5File file(folder / "reserved.h5", Hdf5File::Access::create);
    offset = file.reserve("/images", shape);
    file.close();
  }
  File(folder / "reserved.h5", File::Access::update).write_at(images.data(), images.size(), offset);
  const Hdf5File file(folder / "reserved.h5", Hdf5File::Access::read);
  EXPECT_EQ(file.offset("/images"), offset);
  EXPECT_EQ(file.shape("/images"), shape);
  EXPECT_EQ(read_all<std::uint8_t>(file, "/images", Element::u8), images);
}

TEST(Hdf5File, SaysWhatIsWrong) {
  const TempFolder folder;
  expect_error(Exit::data, {"none.h5", "No such file or directory"},
               [&] { Hdf5File(folder / "none.h5", Hdf5File::Access::read); });
  expect_error(Exit::data, {"cannot create", "No such file or directory"},
               [&] { Hdf5File(folder / "no-folder/x.h5", Hdf5File::Access::create); });
  write_bytes(folder / "text.h5", std::string(2000, 'x'));
  expect_error(Exit::data, {"text.h5' as HDF5", "signature"},
               [&] { Hdf5File(folder / "text.h5", Hdf5File::Access::read); });
  write_everything(folder / "all.h5");
  const Hdf5File file(folder / "all.h5", Hdf5File::Access::read);
  std::vector<std::byte> bytes(12);
  expect_error(Exit::data, {"'/labels' is i32 [2]", "expected elements of type f32"},
               [&] { file.read("/labels", Element::f32, bytes); });
  expect_error(Exit::data, {"'/labels' is i32 [2] (8 bytes), expected 12"},
               [&] { file.read("/labels", Element::i32, bytes); });
  expect_error(Exit::data, {"cannot open dataset '/nothing'"}, [&] { file.shape("/nothing"); });
  expect_error(Exit::data, {"attribute 'std' is missing"}, [&] { file.numbers_attribute("std"); });
  expect_error(Exit::data, {"attribute 'encoding' is not one integer"}, [&] { file.integer_attribute("encoding"); });
  expect_error(Exit::data, {"attribute 'count' is not a row of floating-point"},
               [&] { file.numbers_attribute("count"); });
  expect_error(Exit::data, {"attribute 'count' is not a text"}, [&] { file.text_attribute("count"); });
  expect_error(Exit::data, {"attribute 'names' is not one text"}, [&] { file.text_attribute("names"); });
}

}  // namespace
}  // namespace convoy
