// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <sstream>

#include "core/errors.hpp"
#include "preprocess/option_parsing.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

namespace po = boost::program_options;

constexpr std::array<const char*, 5> kind_names{"imagenet", "folder", "list", "webdataset", "recordio"};

/// Options as words, before they become values.
struct Words {
  std::string encoding = "raw", sizes, fit = "squash", color = "rgb", extensions = "jpg,jpeg,png", strict = "no";
  bool center_crop = false;
  Index max_bytes_mb = 1024, memory_mb = 512;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

template <class Enum>
Enum choose(const char* option, const std::string& word, std::initializer_list<std::pair<const char*, Enum>> choices) {
  std::string all;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  fail(Exit::usage, "bad value for {} ('{}'); give one of {}", option, word, all);
}

const char* train_help(ImagesKind kind) {
  switch (kind) {
    case ImagesKind::imagenet:
    case ImagesKind::folder:
      return "class folders, a folder of class archives, or an archive (of class archives, or with class folders)";
    case ImagesKind::list:
      return "file of lines 'path label', or MXNet's .lst";
    case ImagesKind::webdataset:
      return "shards: PREFIX-{000000..001281}.tar, or their folder";
    case ImagesKind::recordio:
      return ".rec file, several as {a,b}.rec, or their folder; an .idx beside it lets ranks share it";
  }
  return "";
}

void add_source_options(po::options_description& options, ImagesKind kind, ImagesSpec& spec) {
  auto add = options.add_options();
  const bool list = kind == ImagesKind::list;
  if (!list) {
    add("source", po::value(&spec.source)->value_name("WHERE"),
        kind == ImagesKind::imagenet
            ? "folder of ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, of train and val, or Kaggle's"
            : "all images, or a folder of train and val. WHERE is a path, s3://BUCKET/PREFIX or http(s)://...");
  }
  add("train", po::value(&spec.train)->value_name("WHERE"), train_help(kind));
  add("val", po::value(&spec.val)->value_name("WHERE"), "the same for the val split");
  if (list) add("root", po::value(&spec.root)->value_name("WHERE"), "where the list's paths begin");
  if (!list) {
    add("label-file", po::value(&spec.train_labels)->value_name("FILE"),
        "labels of train: lines 'path label', MXNet's .lst; instead of folders' and archives' names");
    add("val-labels", po::value(&spec.val_labels)->value_name("FILE"),
        "labels of val: such lines, Kaggle's LOC_val_solution.csv, 'mv FILE CLASS' lines, or a class name a line");
    add("key-prefix", po::value(&spec.key_prefix)->value_name("TEXT"),
        "only classes, archives and shards whose names begin so");
  }
  add("classes", po::value(&spec.classes)->value_name("FILE"),
      "a class a line, in the order of their numbers, its name after it; other classes are left out");
  add("label-column", po::value(&spec.label_column)->default_value(0)->value_name("N"), "which of several labels");
  add("train-ratio", po::value(&spec.train_ratio)->default_value(1, "1")->value_name("R"),
      "share of the images that train takes, where there is no val: the rest becomes val");
  add("subset", po::value(&spec.subset)->default_value(0)->value_name("N"), "so many images of train, drawn; 0: all");
  add("val-subset", po::value(&spec.val_subset)->default_value(0)->value_name("N"), "the same of val");
}

void add_recipe_options(po::options_description& options, ImagesSpec& spec, Words& words) {
  Recipe& recipe = spec.recipe;
  auto add = options.add_options();
  add("encoding", po::value(&words.encoding)->default_value(words.encoding)->value_name("raw|jpeg"),
      "pixels of one size, or JPEG files as they are");
  add("sizes", po::value(&words.sizes)->value_name("N,..."),
      "raw: sides of the squares (256); jpeg: short sides, or 'full' (the default). Several go to folders of these "
      "names");
  add("resize", po::value(&words.fit)->default_value(words.fit)->value_name("squash|crop"),
      "raw: lose the aspect ratio, or what juts out of the central square");
  add("center-crop", po::bool_switch(&words.center_crop), "the same as --resize crop");
  add("color", po::value(&words.color)->default_value(words.color)->value_name("rgb|grey"), "channels stored");
  add("max-resolution", po::value(&recipe.max_resolution)->default_value(0)->value_name("N"),
      "jpeg: shrink images with a longer side; 0: none");
  add("quality", po::value(&recipe.quality)->default_value(recipe.quality)->value_name("1..100"),
      "jpeg: of images that have to be encoded anew");
  add("compress-probability", po::value(&recipe.compress_probability)->default_value(0, "0")->value_name("P"),
      "jpeg: share of images encoded anew at --quality though they could pass");
  add("exts", po::value(&words.extensions)->default_value(words.extensions)->value_name("A,B"),
      "extensions of image files, whatever their case");
  add("max-side", po::value(&recipe.limits.max_side)->default_value(recipe.limits.max_side)->value_name("N"),
      "skip images with a longer side");
  add("max-pixels", po::value(&recipe.limits.max_pixels)->default_value(recipe.limits.max_pixels)->value_name("N"),
      "skip images with more pixels");
  add("max-scans", po::value(&recipe.limits.max_scans)->default_value(recipe.limits.max_scans)->value_name("N"),
      "skip progressive JPEGs with more scans");
  add("strict", po::value(&words.strict)->implicit_value("any")->value_name("any|skipped"),
      "fail where any image had to be converted or skipped, or only where one was skipped");
}

void add_output_options(po::options_description& options, ImagesSpec& spec, Words& words) {
  auto add = options.add_options();
  add("out", po::value(&spec.out)->value_name("DIR"), "folder for the partitions; made if missing");
  add("spill", po::value(&spec.spill)->value_name("DIR"),
      "folder that all ranks see, for intermediate files as large as the output; removed at the end (in --out)");
  add("partitions", po::value(&spec.partitions)->default_value(0)->value_name("N"),
      "files of the train split; 0: as many as --maxsize and --maxcount need");
  add("val-partitions", po::value(&spec.val_partitions)->default_value(0)->value_name("N"), "files of the val split");
  add("maxcount", po::value(&spec.max_count)->default_value(0)->value_name("N"), "most images of a file; 0: no limit");
  add("maxsize", po::value(&words.max_bytes_mb)->default_value(words.max_bytes_mb)->value_name("MB"),
      "most megabytes of images in a file; 0: no limit");
  add("seed", po::value(&spec.recipe.seed)->default_value(spec.recipe.seed)->value_name("N"), "of the global shuffle");
  add("mean-image", po::bool_switch(&spec.mean_image), "raw: also store the mean image of the train split");
  add("keep-names", po::bool_switch(&spec.keep_names), "also store the images' names");
  add("overwrite", po::bool_switch(&spec.overwrite), "replace partitions of another source or with other options");
}

void add_work_options(po::options_description& options, ImagesSpec& spec, Words& words) {
  auto add = options.add_options();
  TransferSpec& transfer = spec.transfer;
  add("threads", po::value(&spec.threads)->default_value(0)->value_name("N"),
      "of each rank, that decode; 0: its share of the node's cores");
  add("memory", po::value(&words.memory_mb)->default_value(words.memory_mb)->value_name("MB"),
      "of each rank, for images on their way");
  add("log-seconds", po::value(&spec.log_seconds)->default_value(30, "30")->value_name("S"),
      "between lines of progress where the output is no terminal");
  add("endpoint", po::value(&transfer.endpoint)->value_name("URL"),
      "S3-compatible server; else AWS_ENDPOINT_URL or the profile's, else Amazon's");
  add("region", po::value(&transfer.region)->value_name("NAME"), "of the bucket; else AWS_REGION or the profile's");
  add("anonymous", po::bool_switch(&transfer.anonymous), "don't sign: a public bucket");
  add("retries", po::value(&transfer.retries)->default_value(transfer.retries)->value_name("N"),
      "attempts without progress before a transfer fails");
  add("timeout-seconds", po::value(&transfer.timeout_seconds)->default_value(60, "60")->value_name("S"),
      "without a byte before a transfer is tried again");
}

po::options_description describe(ImagesKind kind, ImagesSpec& spec, Words& words) {
  po::options_description options("Options of " + std::string(images_kind_name(kind)), help_columns, help_columns / 2);
  add_source_options(options, kind, spec);
  add_recipe_options(options, spec, words);
  add_output_options(options, spec, words);
  add_work_options(options, spec, words);
  add_time_options(options, spec.time_limit);
  add_stall_options(options, spec.deadline);
  options.add_options()("help", "print this and exit");
  return options;
}

std::vector<Index> parse_sizes(const std::string& text, Encoding encoding) {
  std::vector<Index> sizes;
  for (const auto& word : split_list(text)) {
    Index size = 0;
    const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), size);
    const bool number = reason == std::errc() && end == word.data() + word.size() && size >= 1 && size <= 16384;
    if (!number && (word != "full" || encoding == Encoding::raw)) {
      fail(Exit::usage, "bad value for --sizes ('{}'); give pixels from 1 to 16384{}", word,
           encoding == Encoding::raw ? "; raw images have one size, so not 'full'" : ", or 'full'");
    }
    sizes.push_back(number ? size : 0);
  }
  if (sizes.empty()) return {encoding == Encoding::raw ? Index{256} : Index{0}};
  if (std::set(sizes.begin(), sizes.end()).size() != sizes.size()) {
    fail(Exit::usage, "bad value for --sizes ('{}'): a size stands there twice", text);
  }
  return sizes;
}

void take_words(const Words& words, ImagesSpec& spec) {
  Recipe& recipe = spec.recipe;
  recipe.encoding = choose<Encoding>("--encoding", words.encoding, {{"raw", Encoding::raw}, {"jpeg", Encoding::jpeg}});
  recipe.sizes = parse_sizes(words.sizes, recipe.encoding);
  recipe.fit = choose<Fit>("--resize", words.fit, {{"squash", Fit::squash}, {"crop", Fit::crop}});
  if (words.center_crop) recipe.fit = Fit::crop;
  recipe.channels = choose<Channels>("--color", words.color, {{"rgb", Channels::rgb}, {"grey", Channels::grey}});
  spec.strict = choose<Strict>("--strict", words.strict,
                               {{"any", Strict::any}, {"skipped", Strict::skipped}, {"no", Strict::no}});
  spec.extensions.clear();
  for (const auto& given : split_list(words.extensions)) {
    const std::string word = lower(given);
    spec.extensions.push_back(word.front() == '.' ? word : "." + word);
  }
  spec.max_bytes = words.max_bytes_mb << 20;
  spec.memory_bytes = words.memory_mb << 20;
}

void require_fraction(const char* option, double value, double low) {
  if (value >= low && value <= 1) return;
  fail(Exit::usage, "bad value for {} ({}); give a number from {} to 1", option, value, low);
}

void check(const ImagesSpec& spec, const Words& words) {
  if (spec.out.empty()) fail(Exit::usage, "no --out given; name the folder for the partitions");
  if (spec.kind == ImagesKind::list && (spec.train.empty() || spec.root.empty())) {
    fail(Exit::usage, "give --train (the list) and --root (where its paths begin)");
  }
  if (spec.kind != ImagesKind::list && spec.source.empty() == spec.train.empty()) {
    fail(Exit::usage, "give either --source (one place) or --train (and --val)");
  }
  if (spec.mean_image && spec.recipe.encoding == Encoding::jpeg) {
    fail(Exit::usage, "--mean-image needs images of one size: use --encoding raw");
  }
  if (spec.extensions.empty()) fail(Exit::usage, "bad value for --exts; give extensions such as jpg,png");
  constexpr Index many = Index{1} << 40;
  require_between("--seed", static_cast<Index>(spec.recipe.seed), 0, std::numeric_limits<Index>::max());  // -1 wraps
  require_between("--partitions", spec.partitions, 0, 99999);
  require_between("--val-partitions", spec.val_partitions, 0, 99999);
  require_between("--maxcount", spec.max_count, 0, many);
  require_between("--maxsize", words.max_bytes_mb, 0, Index{1} << 30);
  require_between("--memory", words.memory_mb, 16, Index{1} << 20);
  require_between("--subset", spec.subset, 0, many);
  require_between("--val-subset", spec.val_subset, 0, many);
  require_between("--label-column", spec.label_column, 0, 1000);
  require_between("--max-resolution", spec.recipe.max_resolution, 0, 65500);
  require_between("--max-side", spec.recipe.limits.max_side, 1, 65500);
  require_between("--max-pixels", spec.recipe.limits.max_pixels, 1, Index{1} << 31);
  require_between("--max-scans", spec.recipe.limits.max_scans, 1, 100000);
  require_between("--quality", spec.recipe.quality, 1, 100);
  require_between("--threads", spec.threads, 0, 1024);
  require_between("--retries", spec.transfer.retries, 0, 1000);
  require_fraction("--train-ratio", spec.train_ratio, 0);
  require_fraction("--compress-probability", spec.recipe.compress_probability, 0);
  if (spec.train_ratio <= 0) fail(Exit::usage, "bad value for --train-ratio (0); train needs images");
  if (!(spec.transfer.timeout_seconds > 0)) fail(Exit::usage, "bad value for --timeout-seconds; give seconds above 0");
}

}  // namespace

const char* images_kind_name(ImagesKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::string size_name(Index size) { return size == 0 ? "full" : std::to_string(size); }

std::optional<ImagesKind> images_kind(const std::string& word) {
  const auto* found = std::find(kind_names.begin(), kind_names.end(), word);
  if (found == kind_names.end()) return std::nullopt;
  return static_cast<ImagesKind>(found - kind_names.begin());
}

std::vector<std::string> images_kind_names() { return {kind_names.begin(), kind_names.end()}; }

std::string images_help(ImagesKind kind) {
  ImagesSpec spec;
  Words words;
  return text_of(describe(kind, spec, words));
}

std::optional<ImagesSpec> parse_images_options(ImagesKind kind, const std::vector<std::string>& arguments) {
  ImagesSpec spec;
  Words words;
  spec.kind = kind;
  if (parse_options(describe(kind, spec, words), arguments, nullptr)) return std::nullopt;
  take_words(words, spec);
  check(spec, words);
  return spec;
}

}  // namespace convoy::preparation
