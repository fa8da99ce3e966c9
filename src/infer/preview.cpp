// SPDX-License-Identifier: Apache-2.0
#include "infer/preview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "engine/data.hpp"
#include "infer/picture.hpp"
#include "infer/prediction.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

constexpr std::size_t largest_page = 1'000'000;
constexpr Index longest_side = 160;

constexpr const char* style = R"(<style>
:root{color-scheme:light dark}body{margin:0 auto;max-width:1400px;padding:20px;font:14px/1.4 system-ui,sans-serif}
h1{font-size:1.4em;margin:0}p{opacity:.75}table{border-collapse:collapse}th{font-weight:600;text-align:left}
td,th{padding:3px 6px 3px 0;vertical-align:top}td{break-inside:avoid}img{display:block;width:112px;image-rendering:pixelated}
small{display:block;max-width:112px;overflow-wrap:anywhere}@media print{body{padding:0}img{width:84px}}
</style></head><body>
)";

/// `cat`, `0.70 cat + 0.30 dog`.
std::string classes_of(const SampleSpec& sample, const DatasetInfo& info) {
  std::string own = class_name(info.class_names, sample.a);
  if (sample.partner < 0) return own;
  return fmt::format("{:.2f} {} + {:.2f} {}", sample.lambda, own, 1 - sample.lambda,
                     class_name(info.class_names, sample.b));
}

struct Column {
  std::string title;
  std::vector<Image> images;
  std::vector<SampleSpec> specs;
};

/// How evaluation sees the samples, then each epoch of training.
std::vector<Column> columns_of(const PreviewConfig& config, const DatasetInfo& info, const Dataset& dataset,
                               const std::vector<Index>& samples) {
  const DataConfig& data = config.train.data;
  const auto pictures = [&](Use use) {
    const DataConfig shown = use == Use::evaluation ? validation_data(data) : data;
    const AugmentSpec augment = augment_spec(shown, info, config.train.seed, use);
    check_augment(augment);
    return InputPictures(dataset, augment, input_spec(shown, info, augment));
  };
  std::vector<Column> columns(1);
  columns[0].title = "evaluation";
  columns[0].images = pictures(Use::evaluation).make(samples, 0, columns[0].specs);
  InputPictures training = pictures(Use::training);
  for (int epoch = 0; epoch < config.appearances; ++epoch) {
    Column& column = columns.emplace_back();
    column.title = fmt::format("epoch {}", epoch + 1);
    column.images = training.make(samples, epoch, column.specs);
  }
  return columns;
}

std::string page_of(const std::vector<Column>& columns, const DatasetInfo& info, const std::string& told, int quality) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>What the network sees</title>";
  page += style + fmt::format("<h1>What the network sees</h1>\n<p>{}</p>\n<table><tr>", html_text(told));
  for (const Column& column : columns) page += fmt::format("<th>{}</th>", html_text(column.title));
  page += "</tr>\n";
  for (std::size_t row = 0; row < columns.front().images.size(); ++row) {
    page += "<tr>";
    for (const Column& column : columns) {
      const std::string classes = html_text(classes_of(column.specs[row], info));
      page += fmt::format(R"(<td><img alt="{0}" src="data:image/jpeg;base64,{1}"><small>{0}</small></td>)", classes,
                          jpeg_text(column.images[row], longest_side, quality));
    }
    page += "</tr>\n";
  }
  return page + "</table></body></html>\n";
}

/// Every picture is made at its full size before it shrinks to what the page shows.
void require_small_sheet(const PreviewConfig& config, const DatasetInfo& info) {
  constexpr Index most_pixels = Index{1} << 28;  // a minute at most
  const DataConfig& data = config.train.data;
  Index pixels = 0;
  for (const Use use : {Use::evaluation, Use::training}) {
    const AugmentSpec made =
        augment_spec(use == Use::evaluation ? validation_data(data) : data, info, config.train.seed, use);
    const Index columns = use == Use::evaluation ? 1 : config.appearances;
    pixels += std::min<Index>(config.samples, info.samples) * columns * made.height * made.width;
  }
  if (pixels <= most_pixels) return;
  fail(Exit::usage,
       "the images of this sheet have {:.0f} million pixels, which would take minutes to make ({:.0f} million are "
       "allowed); give a smaller --image-size, or fewer --samples or --appearances",
       static_cast<double>(pixels) / 1e6, static_cast<double>(most_pixels) / 1e6);
}

}  // namespace

Exit preview(const PreviewConfig& config) {
  DataConfig data = config.train.data;
  if (!data.synthetic && folder_of(data, "train").empty())
    fail(Exit::usage, "no data set is given; use 'convoy preview --data DIR' (made by convoy-preprocess)");
  if (!data.synthetic) data.cache = DataCache::stream;  // some samples of many
  const DatasetInfo info = open_split(data, "train");
  require_small_sheet(config, info);
  const auto dataset = load_split(data, info, {0, info.samples}, 0);
  const Index count = std::min<Index>(config.samples, info.samples);
  std::vector<Index> samples;
  for (Index i = 0; i < count; ++i) samples.push_back(i * info.samples / count);
  const std::vector<Column> columns = columns_of(config, info, *dataset, samples);
  const std::string told = tell_input(info, augment_spec(data, info, config.train.seed, Use::training));
  constexpr std::array qualities{85, 60, 30};
  std::string page;
  for (const int quality : qualities) {
    page = page_of(columns, info, told, quality);
    if (page.size() < largest_page) break;
  }
  replace_text_file(config.output, page);
  write_output(config.output + "\n");
  return Exit::ok;
}

}  // namespace convoy
