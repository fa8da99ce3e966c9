// SPDX-License-Identifier: Apache-2.0
// The binary version of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records of 1 label byte,
// or of a coarse and a fine one, then 1024 bytes each of red, green and blue, row by row.
#include <algorithm>
#include <sstream>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "preprocess/sources/pixel_source.hpp"
#include "preprocess/sources/raw_files.hpp"

namespace convoy::preparation {
namespace {

constexpr Index side = 32, channels = 3, plane = side * side;

struct CifarLayout {
  std::string title;
  RawLayout files;
  std::vector<std::string> train, val;
  std::string names_file;
  std::vector<std::string> names;  ///< used where the names file is missing
  Index classes = 0;
  Index label_bytes = 1, label_byte = 0;
  Index official_train = 0, official_val = 0;  ///< images; for a warning
};

/// One raw file cut into records; `first` is its first sample's number in the split.
struct Records {
  const RawFile* file = nullptr;
  Index first = 0, count = 0;
};

class Cifar final : public PixelSet {
 public:
  Cifar(const std::string& source, CifarLayout layout) : layout_(std::move(layout)) {
    files_ = read_raw_files(source, layout_.files);
    info_ = {layout_.title, digest_of(files_), side, side, channels, read_names()};
    train_ = cut(layout_.train);
    val_ = cut(layout_.val);
    const Index found = samples(Split::val);
    if (found != layout_.official_val) {
      info_.warnings.push_back(fmt::format("'{}' holds {} images, the official file {}", val_.front().file->path, found,
                                           layout_.official_val));
    }
    check_train_sizes();
  }

  const SetInfo& info() const override { return info_; }

  Index samples(Split split) const override {
    const Records& last = records(split).back();
    return last.first + last.count;
  }

  std::string name(Split split, Index sample) const override {
    const Records& records = find(split, sample);
    return fmt::format("{}/{}", records.file->name, sample - records.first);
  }

  std::int32_t read(Split split, Index sample, std::uint8_t* image) const override {
    const Records& records = find(split, sample);
    const std::uint8_t* record = records.file->bytes.data() + (sample - records.first) * record_bytes();
    const Index label = record[layout_.label_byte];
    if (label >= layout_.classes) {
      fail(Exit::data, "'{}': image {} has label {}, expected 0 to {}; fetch the file again", records.file->path,
           sample - records.first, label, layout_.classes - 1);
    }
    const std::uint8_t* planes = record + layout_.label_bytes;
    for (Index i = 0; i < plane; ++i) {
      for (Index c = 0; c < channels; ++c) image[i * channels + c] = planes[c * plane + i];
    }
    return static_cast<std::int32_t>(label);
  }

 private:
  /// Names the first file of train that isn't as long as the official one.
  void check_train_sizes() {
    const Index each = layout_.official_train / static_cast<Index>(train_.size());
    const auto odd = std::find_if(train_.begin(), train_.end(), [&](const Records& r) { return r.count != each; });
    if (odd == train_.end()) return;
    info_.warnings.push_back(fmt::format("'{}' holds {} images, the official file {}; of {} images in all train has {}",
                                         odd->file->path, odd->count, each, layout_.official_train,
                                         samples(Split::train)));
  }

  Index record_bytes() const { return layout_.label_bytes + plane * channels; }
  const std::vector<Records>& records(Split split) const { return split == Split::train ? train_ : val_; }

  const Records& find(Split split, Index sample) const {
    const auto& all = records(split);
    std::size_t i = 0;
    while (sample >= all[i].first + all[i].count) ++i;
    return all[i];
  }

  std::vector<Records> cut(const std::vector<std::string>& names) const {
    std::vector<Records> all;
    Index first = 0;
    for (const std::string& name : names) {
      const RawFile& file = files_.at(name);
      const auto bytes = static_cast<Index>(file.bytes.size());
      if (bytes == 0 || bytes % record_bytes() != 0) {
        fail(Exit::data,
             "'{}' has {} bytes, not a whole number of {}-byte records (truncated, or another format?); fetch it again",
             file.path, bytes, record_bytes());
      }
      all.push_back({&file, first, bytes / record_bytes()});
      first += bytes / record_bytes();
    }
    return all;
  }

  std::vector<std::string> read_names() const {
    const auto found = files_.find(layout_.names_file);
    if (found == files_.end()) return layout_.names;
    std::istringstream lines(
        plain_text({found->second.bytes.begin(), found->second.bytes.end()}, found->second.path, Exit::data));
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
    if (static_cast<Index>(names.size()) != layout_.classes) {
      fail(Exit::data, "'{}' names {} classes, expected {}; fetch it again", found->second.path, names.size(),
           layout_.classes);
    }
    return names;
  }

  CifarLayout layout_;
  std::map<std::string, RawFile> files_;
  SetInfo info_;
  std::vector<Records> train_, val_;
};

std::vector<std::string> numbered_names(Index classes) {
  std::vector<std::string> names;
  for (Index i = 0; i < classes; ++i) names.push_back(fmt::format("class-{}", i));
  return names;
}

std::shared_ptr<const PixelSet> open_cifar10(const PrepareSpec& spec) {
  CifarLayout layout;
  layout.title = "CIFAR-10 binary version";
  for (int i = 1; i <= 5; ++i) layout.train.push_back(fmt::format("data_batch_{}.bin", i));
  layout.val = {"test_batch.bin"};
  layout.names_file = "batches.meta.txt";
  layout.names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  layout.classes = 10;
  layout.official_train = 50000;
  layout.official_val = 10000;
  layout.files = {layout.train, {layout.names_file}, {"cifar-10-batches-bin"}, {"cifar-10-binary.tar.gz"}};
  layout.files.required.push_back(layout.val.front());
  return std::make_shared<const Cifar>(spec.source, std::move(layout));
}

std::shared_ptr<const PixelSet> open_cifar100(const PrepareSpec& spec) {
  CifarLayout layout;
  layout.title = spec.coarse ? "CIFAR-100 binary version, coarse labels" : "CIFAR-100 binary version, fine labels";
  layout.train = {"train.bin"};
  layout.val = {"test.bin"};
  layout.names_file = spec.coarse ? "coarse_label_names.txt" : "fine_label_names.txt";
  layout.classes = spec.coarse ? 20 : 100;
  layout.names = numbered_names(layout.classes);
  layout.label_bytes = 2;
  layout.label_byte = spec.coarse ? 0 : 1;
  layout.official_train = 50000;
  layout.official_val = 10000;
  layout.files = {{"train.bin", "test.bin"}, {layout.names_file}, {"cifar-100-binary"}, {"cifar-100-binary.tar.gz"}};
  return std::make_shared<const Cifar>(spec.source, std::move(layout));
}

}  // namespace

const Source& cifar10_source() {
  static const PixelSource source("cifar10", open_cifar10);
  return source;
}

const Source& cifar100_source() {
  static const PixelSource source("cifar100", open_cifar100);
  return source;
}

}  // namespace convoy::preparation
