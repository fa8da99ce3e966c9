// SPDX-License-Identifier: Apache-2.0
// Single passes over images, for bench/compare_images.py, which takes them and the peer's by turns.
//   image_speed FOLDER     image files, read into memory: full, crop, scaled, centre
//   image_speed DATASET    partitions of pixels:          pread, raw
// One line on standard input names a pass; the answer is `IMAGES SECONDS CHECKSUM`, of the core's time.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "core/errors.hpp"
#include "core/random.hpp"
#include "data/dataset.hpp"
#include "data/image_maker.hpp"

namespace convoy {
namespace {

constexpr Index side = 224;
using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path());
  }
  std::sort(names.begin(), names.end());
  std::vector<Bytes> files;
  for (const auto& name : names) {
    std::ifstream file(name, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>{});
  }
  return files;
}

/// libjpeg-turbo alone, as its manual says: every row of the image to RGB.
std::uint64_t decode_plainly(const Bytes& file, Bytes& pixels) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  const std::size_t row_bytes = std::size_t{jpeg.output_width} * 3;
  pixels.resize(row_bytes * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels.data() + row_bytes * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels[pixels.size() / 2];
}

class FilePasses {
 public:
  explicit FilePasses(const std::string& folder) : files_(read_files(folder)) {}
  Index images() const { return static_cast<Index>(files_.size()); }

  std::uint64_t run(const std::string& pass) {
    std::uint64_t sum = 0;
    if (pass == "full") {
      for (const auto& file : files_) sum += decode_plainly(file, pixels_);
      return sum;
    }
    AugmentSpec spec{.stored = Stored::files, .height = side, .width = side, .seed = 1};
    spec.train = pass != "centre";
    spec.crop = Crop::resized;
    spec.scaled_decoding = pass == "scaled";
    ImageMaker maker(spec);
    pixels_.resize(static_cast<std::size_t>(side * side * 3));
    ++epoch_;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const DecodeStatus status = maker.make(files_[i], epoch_, static_cast<Index>(i), pixels_.data());
      if (!status.ok()) fail(Exit::data, "image {}: {}", i, status.reason);
      sum += pixels_[pixels_.size() / 2];
    }
    return sum;
  }

 private:
  std::vector<Bytes> files_;
  Bytes pixels_;
  Index epoch_ = 0;
};

/// Samples in random order, from files that the system has in memory.
class PixelPasses {
 public:
  explicit PixelPasses(const std::string& folder)
      : info_(read_dataset_info(folder, "train")),
        dataset_(info_, {0, info_.samples}, {.keep = Keep::files}),
        order_(static_cast<std::size_t>(info_.samples)) {
    std::iota(order_.begin(), order_.end(), Index{0});
    for (std::size_t i = order_.size(); i > 1; --i) {
      Random random(7, Stream::shuffle, 0, i);
      std::swap(order_[i - 1], order_[static_cast<std::size_t>(random.below(static_cast<Index>(i)))]);
    }
    for (const auto& p : info_.partitions) files_.push_back(::open(p.path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  Index images() const { return info_.samples; }

  std::uint64_t run(const std::string& pass) {
    sample_.resize(static_cast<std::size_t>(info_.image_bytes()));
    crop_.resize(static_cast<std::size_t>(side * side * info_.channels));
    std::uint64_t sum = 0;
    for (const Index sample : order_) sum += pass == "pread" ? read_alone(sample) : read_crop(sample);
    return sum;
  }

 private:
  std::uint64_t read_alone(Index sample) {
    std::size_t p = 0;
    while (sample >= info_.partitions[p].samples.begin + info_.partitions[p].samples.count) ++p;
    const Index place = sample - info_.partitions[p].samples.begin;
    const auto from = static_cast<off_t>(info_.partitions[p].images_offset) + place * info_.image_bytes();
    if (::pread(files_[p], sample_.data(), sample_.size(), from) != static_cast<ssize_t>(sample_.size())) {
      fail(Exit::data, "cannot read sample {}", sample);
    }
    return sample_[sample_.size() / 2];
  }

  std::uint64_t read_crop(Index sample) {
    std::string fault;
    const auto stored = dataset_.stored(sample, scratch_, fault);
    if (!fault.empty()) fail(Exit::data, "{}", fault);
    const auto draw = static_cast<std::size_t>(sample);
    const auto rows = static_cast<std::size_t>(info_.height - side),
               columns = static_cast<std::size_t>(info_.width - side);
    const auto channels = static_cast<std::size_t>(info_.channels),
               row_bytes = static_cast<std::size_t>(info_.width) * channels;
    const auto y = draw * 7919 % (rows + 1), x = draw * 104729 % (columns + 1);
    const std::size_t bytes = static_cast<std::size_t>(side) * channels;
    for (std::size_t row = 0; row < static_cast<std::size_t>(side); ++row) {
      std::copy_n(stored.data() + (y + row) * row_bytes + x * channels, bytes, crop_.data() + row * bytes);
    }
    return crop_[crop_.size() / 2];
  }

  DatasetInfo info_;
  Dataset dataset_;
  std::vector<Index> order_;
  std::vector<int> files_;
  Bytes sample_, crop_, scratch_;
};

/// Time that the core spent for this program, in it and in the system: other programs on the machine don't count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Passes>
void serve(Passes passes) {
  std::printf("ready\n");
  std::fflush(stdout);
  std::string pass;
  while (std::getline(std::cin, pass)) {
    const double begin = processor_seconds();
    const std::uint64_t sum = passes.run(pass);
    std::printf("%ld %.6f %lu\n", passes.images(), processor_seconds() - begin, sum);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace convoy

int main(int argc, char** argv) {
  using namespace convoy;
  try {
    if (argc != 2) fail(Exit::usage, "usage: image_speed FOLDER");
    if (has_split(argv[1], "train")) {
      serve(PixelPasses(argv[1]));
    } else {
      serve(FilePasses(argv[1]));
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
  return 0;
}
