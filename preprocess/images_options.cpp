// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images_options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include "core/errors.hpp"
#include "preprocess/option_parsing.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

namespace po = boost::program_options;

/// The list names its files itself: it has a --root instead of a --source.
bool is_list(const Source& kind) { return std::string_view(kind.name()) == "list"; }

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

void add_source_options(po::options_description& options, const Source& kind, PrepareSpec& spec) {
  auto add = options.add_options();
  const bool list = is_list(kind);
  if (!list) {
    add("source", po::value(&spec.source)->value_name("WHERE"),
        std::string_view(kind.name()) == "imagenet"
            ? "folder of ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, of train and val, or Kaggle's"
            : "one place that holds all images, or train and val. WHERE is a path, s3://BUCKET/PREFIX or http(s)://...");
  }
  add("train", po::value(&spec.train)->value_name("WHERE"), kind.train_help());
  add("val", po::value(&spec.val)->value_name("WHERE"), "where the val split lies, as for --train");
  if (list) add("root", po::value(&spec.root)->value_name("WHERE"), "folder at which the list's paths begin");
  if (!list) {
    add("label-file", po::value(&spec.train_labels)->value_name("FILE"),
        "label file of train, which replaces the names of folders and archives: lines 'path label', or MXNet's .lst");
    add("val-labels", po::value(&spec.val_labels)->value_name("FILE"),
        "label file of val: such lines, Kaggle's LOC_val_solution.csv, 'mv FILE CLASS' lines, or one class name per line");
    add("key-prefix", po::value(&spec.key_prefix)->value_name("TEXT"),
        "read only classes, archives and shards whose names begin with TEXT");
  }
  add("classes", po::value(&spec.classes)->value_name("FILE"),
      "file with one class per line, in the order of their numbers, with its name after it; other classes are left out");
  add("label-column", po::value(&spec.label_column)->default_value(0)->value_name("N"),
      "which label to take if a line has several");
  add("train-ratio", po::value(&spec.train_ratio)->default_value(1, "1")->value_name("R"),
      "if there is no val split: share of the images that train takes; the rest becomes val");
  add("subset", po::value(&spec.subset)->default_value(0)->value_name("N"),
      "take N images of train, drawn at random; 0: all");
  add("val-subset", po::value(&spec.val_subset)->default_value(0)->value_name("N"),
      "take N images of val, drawn at random; 0: all");
}

void add_recipe_options(po::options_description& options, PrepareSpec& spec, Words& words) {
  Recipe& recipe = spec.recipe;
  auto add = options.add_options();
  add("encoding", po::value(&words.encoding)->default_value(words.encoding)->value_name("raw|jpeg"),
      "store pixels of one size, or JPEG files as they are");
  add("sizes", po::value(&words.sizes)->value_name("N,..."),
      "raw: sides of the squares (256); jpeg: short sides, or 'full' (the default). Each of several sizes gets a folder of its name");
  add("resize", po::value(&words.fit)->default_value(words.fit)->value_name("squash|crop"),
      "raw: squash the image into the square, or crop its central square");
  add("center-crop", po::bool_switch(&words.center_crop), "the same as --resize crop");
  add("color", po::value(&words.color)->default_value(words.color)->value_name("rgb|grey"), "which channels to store");
  add("max-resolution", po::value(&recipe.max_resolution)->default_value(0)->value_name("N"),
      "jpeg: shrink images with a longer side; 0: none");
  add("quality", po::value(&recipe.quality)->default_value(recipe.quality)->value_name("1..100"),
      "jpeg: quality of images that have to be encoded anew");
  add("compress-probability", po::value(&recipe.compress_probability)->default_value(0, "0")->value_name("P"),
      "jpeg: share of images to encode anew at --quality although they could be stored as they are");
  add("exts", po::value(&words.extensions)->default_value(words.extensions)->value_name("A,B"),
      "extensions of image files, in upper or lower case");
  add("max-side", po::value(&recipe.limits.max_side)->default_value(recipe.limits.max_side)->value_name("N"),
      "skip images with a longer side");
  add("max-pixels", po::value(&recipe.limits.max_pixels)->default_value(recipe.limits.max_pixels)->value_name("N"),
      "skip images with more pixels");
  add("max-scans", po::value(&recipe.limits.max_scans)->default_value(recipe.limits.max_scans)->value_name("N"),
      "skip progressive JPEGs with more scans");
  add("strict", po::value(&words.strict)->implicit_value("any")->value_name("any|skipped"),
      "fail if any image had to be converted or skipped, or only if one was skipped");
}

void add_output_options(po::options_description& options, PrepareSpec& spec, Words& words) {
  auto add = options.add_options();
  add("out", po::value(&spec.out)->value_name("DIR"), "folder for the partitions; created if it is missing");
  add("spill", po::value(&spec.spill)->value_name("DIR"),
      "folder that all ranks see, for intermediate files as large as the output; they are removed at the end (--out)");
  add("partitions", po::value(&spec.partitions)->default_value(0)->value_name("N"),
      "number of files of the train split; 0: as many as --maxsize and --maxcount need");
  add("val-partitions", po::value(&spec.val_partitions)->default_value(0)->value_name("N"),
      "number of files of the val split; 0: as for --partitions");
  add("maxcount", po::value(&spec.max_count)->default_value(0)->value_name("N"),
      "largest number of images in a file; 0: no limit");
  add("maxsize", po::value(&words.max_bytes_mb)->default_value(words.max_bytes_mb)->value_name("MB"),
      "largest number of megabytes of images in a file; 0: no limit");
  add("seed", po::value(&spec.recipe.seed)->default_value(spec.recipe.seed)->value_name("N"),
      "seed of the global shuffle");
  add("mean-image", po::bool_switch(&spec.mean_image), "raw: also store the mean image of the train split");
  add("keep-names", po::bool_switch(&spec.keep_names), "also store the images' names");
  add("overwrite", po::bool_switch(&spec.overwrite), "replace partitions of another source or with other options");
}

void add_work_options(po::options_description& options, PrepareSpec& spec, Words& words) {
  auto add = options.add_options();
  TransferSpec& transfer = spec.transfer;
  add("threads", po::value(&spec.threads)->default_value(0)->value_name("N"),
      "number of decoding threads of each rank; 0: its share of the node's cores");
  add("memory", po::value(&words.memory_mb)->default_value(words.memory_mb)->value_name("MB"),
      "memory of each rank for images that wait to be written");
  add("log-seconds", po::value(&spec.log_seconds)->default_value(30, "30")->value_name("S"),
      "seconds between progress lines when the output is not a terminal");
  add("endpoint", po::value(&transfer.endpoint)->value_name("URL"),
      "S3-compatible server; by default AWS_ENDPOINT_URL, then the profile's, then Amazon's");
  add("region", po::value(&transfer.region)->value_name("NAME"),
      "region of the bucket; by default AWS_REGION, then the profile's");
  add("anonymous", po::bool_switch(&transfer.anonymous), "do not sign requests: the bucket is public");
  add("retries", po::value(&transfer.retries)->default_value(transfer.retries)->value_name("N"),
      "number of attempts without progress before a transfer fails");
  add("timeout-seconds", po::value(&transfer.timeout_seconds)->default_value(60, "60")->value_name("S"),
      "seconds without a byte before a transfer is tried again");
}

po::options_description describe(const Source& kind, PrepareSpec& spec, Words& words) {
  po::options_description options("Options of " + std::string(kind.name()), help_columns, help_columns / 2);
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
    fail(Exit::usage, "bad value for --sizes ('{}'): it has a size twice", text);
  }
  return sizes;
}

void take_words(const Words& words, PrepareSpec& spec) {
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

void check(const PrepareSpec& spec, const Words& words) {
  if (spec.out.empty()) fail(Exit::usage, "no --out given; name the folder for the partitions");
  if (is_list(*spec.kind) && (spec.train.empty() || spec.root.empty())) {
    fail(Exit::usage, "give --train (the list) and --root (where its paths begin)");
  }
  if (!is_list(*spec.kind) && spec.source.empty() == spec.train.empty()) {
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

std::string size_name(Index size) { return size == 0 ? "full" : std::to_string(size); }

std::string images_help(const Source& kind) {
  PrepareSpec spec;
  Words words;
  return text_of(describe(kind, spec, words));
}

std::optional<PrepareSpec> parse_images_options(const Source& kind, const std::vector<std::string>& arguments) {
  PrepareSpec spec;
  Words words;
  spec.kind = &kind;
  if (parse_options(describe(kind, spec, words), arguments, nullptr)) return std::nullopt;
  take_words(words, spec);
  check(spec, words);
  return spec;
}

}  // namespace convoy::preparation
