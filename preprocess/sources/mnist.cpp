// SPDX-License-Identifier: Apache-2.0
// MNIST and the sets in its format (IDX, http://yann.lecun.com/exdb/mnist/): big-endian magic, extents, then bytes.
#include "core/errors.hpp"
#include "preprocess/sources/pixel_source.hpp"
#include "preprocess/sources/raw_files.hpp"

namespace convoy::preparation {
namespace {

constexpr Index classes = 10;
constexpr const char *train_images = "train-images-idx3-ubyte", *train_labels = "train-labels-idx1-ubyte",
                     *val_images = "t10k-images-idx3-ubyte", *val_labels = "t10k-labels-idx1-ubyte";

Index big_endian(const std::uint8_t* p) { return (Index{p[0]} << 24) | (p[1] << 16) | (p[2] << 8) | p[3]; }

/// Extents of an IDX file of bytes, checked against its size.
std::vector<Index> read_extents(const RawFile& file, std::size_t rank) {
  const std::size_t header = 4 + 4 * rank;
  if (file.bytes.size() < header) {
    fail(Exit::data, "'{}' is truncated ({} bytes, its header has {}); fetch it again", file.path, file.bytes.size(),
         header);
  }
  const Index magic = big_endian(file.bytes.data()), expected = 0x0800 + static_cast<Index>(rank);
  if (magic != expected) {
    fail(Exit::data,
         "'{}' is not an IDX file of bytes with {} extents (magic {:#010x}, expected {:#010x}); check --source",
         file.path, rank, magic, expected);
  }
  const auto content = static_cast<Index>(file.bytes.size() - header);
  std::vector<Index> extents;
  Index announced = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    extents.push_back(big_endian(file.bytes.data() + 4 + 4 * i));
    // Past the content it is wrong anyhow; going on might overflow.
    if (announced <= content) announced *= extents.back();
  }
  if (announced != content || content == 0) {
    fail(Exit::data, "'{}' is truncated or damaged ({} bytes, its header announces another size); fetch it again",
         file.path, file.bytes.size());
  }
  return extents;
}

struct Pair {
  const RawFile *images = nullptr, *labels = nullptr;
  std::vector<Index> extents;  ///< n h w
};

class Mnist final : public PixelSet {
 public:
  explicit Mnist(const std::string& source)
      : files_(read_raw_files(source, {{train_images, train_labels, val_images, val_labels}, {}, {"MNIST/raw"}, {}})),
        train_(open(train_images, train_labels)),
        val_(open(val_images, val_labels)) {
    if (train_.extents[1] != val_.extents[1] || train_.extents[2] != val_.extents[2]) {
      fail(Exit::data, "'{}' has images of {}x{}, '{}' of {}x{}; check --source", train_.images->path,
           train_.extents[1], train_.extents[2], val_.images->path, val_.extents[1], val_.extents[2]);
    }
    info_ = {"MNIST (IDX files)", digest_of(files_), train_.extents[1], train_.extents[2], 1, {}};
    for (Index i = 0; i < classes; ++i) info_.class_names.push_back(std::to_string(i));
    if (val_.extents[0] != 10000) {
      info_.warnings.push_back(
          fmt::format("'{}' holds {} images, the official file 10000", val_.images->path, val_.extents[0]));
    }
  }

  const SetInfo& info() const override { return info_; }
  Index samples(Split split) const override { return pair(split).extents[0]; }
  std::string name(Split split, Index sample) const override {
    return fmt::format("{}/{}", pair(split).images->name, sample);
  }

  std::int32_t read(Split split, Index sample, std::uint8_t* image) const override {
    const Pair& from = pair(split);
    const std::uint8_t* pixels = from.images->bytes.data() + 16 + sample * info_.image_bytes();
    std::copy_n(pixels, info_.image_bytes(), image);
    const std::uint8_t label = from.labels->bytes[8 + static_cast<std::size_t>(sample)];
    if (label >= classes) {
      fail(Exit::data, "'{}': image {} has label {}, expected 0 to {}; fetch the file again", from.labels->path, sample,
           label, classes - 1);
    }
    return label;
  }

 private:
  const Pair& pair(Split split) const { return split == Split::train ? train_ : val_; }

  Pair open(const char* images, const char* labels) const {
    Pair pair{&files_.at(images), &files_.at(labels), {}};
    pair.extents = read_extents(*pair.images, 3);
    const Index found = read_extents(*pair.labels, 1)[0];
    if (found != pair.extents[0]) {
      fail(Exit::data, "'{}' has {} images, '{}' has {} labels; check --source", pair.images->path, pair.extents[0],
           pair.labels->path, found);
    }
    return pair;
  }

  std::map<std::string, RawFile> files_;
  Pair train_, val_;
  SetInfo info_;
};

}  // namespace

const Source& mnist_source() {
  static const PixelSource source("mnist", [](const PrepareSpec& spec) -> std::shared_ptr<const PixelSet> {
    return std::make_shared<const Mnist>(spec.source);
  });
  return source;
}

}  // namespace convoy::preparation
