// SPDX-License-Identifier: Apache-2.0
#include "preprocess/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "options/command_line.hpp"
#include "options/help.hpp"
#include "options/limits.hpp"
#include "preprocess/documentation.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

constexpr const char* usage =
    "convoy-preprocess turns raw image data into HDF5 partitions (docs/format.md) for 'convoy train --data DIR'.\n\n"
    "  convoy-preprocess cifar10|cifar100|mnist --source PATH --out DIR [options]\n"
    "  convoy-preprocess synthetic --out DIR [options]\n"
    "  convoy-preprocess imagenet|folder|webdataset|recordio --source WHERE --out DIR [options]\n"
    "  convoy-preprocess list --train FILE --root WHERE --out DIR [options]\n"
    "  convoy-preprocess verify DIR      compares every byte with its checksum; finds a single flipped bit\n"
    "  convoy-preprocess inspect DIR     prints counts, shapes, classes, mean and standard deviation, and the class mix of partitions\n"
    "  convoy-preprocess completion bash|zsh   prints a script that completes command lines in that shell\n"
    "  convoy-preprocess manual                prints the manual page, for 'man -l -'\n\n"
    "It runs under mpirun or srun on any number of ranks and writes the same bytes on all. If a run was\n"
    "killed, start it again to continue where it was; it also makes partitions again that verify found damaged.\n";

constexpr const char* exit_codes =
    "\nExit codes: 0 ok, 1 internal error, 2 usage, 3 data, 4 device or library (memory), 5 communication or stall,\n"
    "75 stopped on request (SIGUSR1, SIGINT, SIGTERM, time limit): start it again to continue.\n";

constexpr Index many = Index{1} << 40;

bool is(const Source& kind, const char* name) { return std::string_view(kind.name()) == name; }

/// A field of bytes, given in megabytes.
Option megabytes_option(std::string name, Index& bytes, const Bounds& bounds, std::string help) {
  Option option{.name = std::move(name), .value = "MB", .help = std::move(help), .allowed = bounds.text()};
  option.set = [&bytes, bounds](const std::string& text) { bytes = read_integer(text, bounds) << 20; };
  option.print = [&bytes] { return std::to_string(bytes >> 20); };
  return option;
}

/// `32` or `32x48` (height x width).
Option image_size_option(SyntheticSpec& spec) {
  Option option{.name = "image-size", .value = "N|HxW", .help = "size of the images in pixels"};
  option.allowed = "pixels N or HEIGHTxWIDTH from 4 to 4096";
  option.set = [&spec](const std::string& text) {
    const auto cross = text.find('x');
    const Index height = read_integer(text.substr(0, cross), from_to(4, 4096));
    spec.width = cross == std::string::npos ? height : read_integer(text.substr(cross + 1), from_to(4, 4096));
    spec.height = height;
  };
  option.print = [&spec] {
    return spec.height == spec.width ? std::to_string(spec.height) : fmt::format("{}x{}", spec.height, spec.width);
  };
  return option;
}

/// Stands after --encoding in the table, so it is read after it.
Option sizes_option(Recipe& recipe) {
  Option option{.name = "sizes", .value = "N,..."};
  option.help =
      "raw: sides of the squares (256); jpeg: short sides, or 'full' (the default). Each of several sizes gets a folder of its name";
  option.allowed = "a comma-separated list of pixels from 1 to 16384, or for jpeg 'full'";
  option.set = [&recipe](const std::string& text) {
    std::vector<Index> sizes;
    for (const auto& word : split_list(text)) {
      if (word == "full" && recipe.encoding == Encoding::raw)
        throw BadValue("needs --encoding jpeg: raw images have one size");
      sizes.push_back(word == "full" ? 0 : read_integer(word, from_to(1, 16384)));
    }
    if (std::set(sizes.begin(), sizes.end()).size() != sizes.size()) throw BadValue("has a size twice");
    recipe.sizes = std::move(sizes);
  };
  option.print = [&recipe] {
    std::string text;
    for (const Index size : recipe.sizes) text += fmt::format("{}{}", text.empty() ? "" : ",", size_name(size));
    return text;
  };
  return option;
}

Option fit_option(Recipe& recipe) {
  Option option = choice_option<Fit>("resize", recipe.fit, {{"squash", Fit::squash}, {"crop", Fit::crop}},
                                     "raw: squash the image into the square, or crop its central square");
  option.set = [choose = option.set](const std::string& text) {
    if (text.find_first_not_of("0123456789") == std::string::npos)
      throw BadValue("is a size; give it as --sizes, and --resize crop if images must keep their aspect ratio");
    choose(text);
  };
  return option;
}

Option center_crop_option(Recipe& recipe) {
  Option option{.name = "center-crop", .help = "the same as --resize crop", .allowed = "true, false"};
  option.set = [&recipe](const std::string& text) {
    if (read_bool(text)) recipe.fit = Fit::crop;
  };
  option.print = [&recipe] { return std::string(recipe.fit == Fit::crop ? "true" : "false"); };
  return option;
}

Option extensions_option(std::vector<std::string>& extensions) {
  Option option{.name = "exts",
                .value = "A,B",
                .help = "extensions of image files, in upper or lower case",
                .allowed = "extensions such as jpg,png"};
  option.set = [&extensions](const std::string& text) {
    extensions.clear();
    for (const auto& word : split_list(lower(text))) {
      if (!word.empty()) extensions.push_back(word.front() == '.' ? word : fmt::format(".{}", word));
    }
    if (extensions.empty()) throw BadValue("names none");
  };
  option.print = [&extensions] {
    std::string text;
    for (const auto& extension : extensions) text += fmt::format("{}{}", text.empty() ? "" : ",", extension.substr(1));
    return text;
  };
  return option;
}

/// What a set of pixels is made of.
OptionGroup pixel_options(const Source& kind, PrepareSpec& spec) {
  OptionGroup group{"Source", {}};
  if (!is(kind, "synthetic")) {
    group.add(text_option("source", "PATH", spec.source,
                          is(kind, "mnist") ? "folder of the four IDX files, each also as .gz"
                                            : "folder of the official binary files, or the official .tar.gz archive"));
  }
  if (is(kind, "cifar100"))
    group.add(switch_option("coarse", spec.coarse, "store the 20 coarse labels instead of the 100 fine ones"));
  if (!is(kind, "synthetic")) return group;
  SyntheticSpec& s = spec.synthetic;
  s.samples = 2000;
  group.add(number_option("samples", "N", s.samples, from_to(1, many), "number of images of the train split"));
  group.add(number_option("val-samples", "N", spec.val_samples, from_to(1, many), "images of the val split"));
  group.add(image_size_option(s));
  group.add(number_option("classes", "N", s.classes, from_to(1, most_synthetic_classes), "number of classes"));
  group.add(number_option("channels", "N", s.channels, from_to(1, 4), "colour channels"));
  return group;
}

OptionGroup source_options(const Source& kind, PrepareSpec& spec) {
  OptionGroup group{"Source", {}};
  const bool list = is(kind, "list");  // it names its files itself, and has a --root instead of a --source
  if (!list) {
    group.add(text_option(
        "source", "WHERE", spec.source,
        is(kind, "imagenet")
            ? "folder of ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, of train and val, or Kaggle's"
            : "one place that holds all images, or train and val. WHERE is a path, s3://BUCKET/PREFIX or http(s)://..."));
  }
  group.add(text_option("train", "WHERE", spec.train, kind.train_help()));
  group.add(text_option("val", "WHERE", spec.val, "where the val split lies, as for --train"));
  if (list) group.add(text_option("root", "WHERE", spec.root, "folder at which the list's paths begin"));
  if (!list) {
    group.add(text_option(
        "label-file", "FILE", spec.train_labels,
        "label file of train, which replaces the names of folders and archives: lines 'path label', or MXNet's .lst"));
    group.add(text_option(
        "val-labels", "FILE", spec.val_labels,
        "label file of val: such lines, Kaggle's LOC_val_solution.csv, 'mv FILE CLASS' lines, or one class name per line"));
    group.add(text_option("key-prefix", "TEXT", spec.key_prefix,
                          "read only classes, archives and shards whose names begin with TEXT"));
  }
  group.add(text_option(
      "classes", "FILE", spec.classes,
      "file with one class per line, in the order of their numbers, with its name after it; other classes are left out"));
  group.add(number_option("label-column", "N", spec.label_column, from_to(0, 1000),
                          "which label to take if a line has several"));
  group.add(number_option(
      "train-ratio", "R", spec.train_ratio, {.low = 0, .high = 1, .low_excluded = true},
      "if there is no val split: share of the images that train takes, drawn from all of them and not class by "
      "class; the rest becomes val"));
  group.add(
      number_option("subset", "N", spec.subset, from_to(0, many), "take N images of train, drawn at random; 0: all"));
  group.add(number_option("val-subset", "N", spec.val_subset, from_to(0, many),
                          "take N images of val, drawn at random; 0: all"));
  return group;
}

OptionGroup image_options(PrepareSpec& spec) {
  OptionGroup group{"Images", {}};
  Recipe& recipe = spec.recipe;
  group
      .add(choice_option<Encoding>("encoding", recipe.encoding, {{"raw", Encoding::raw}, {"jpeg", Encoding::jpeg}},
                                   "store squares of pixels, or JPEG files as they are; default: raw if --sizes, "
                                   "--resize, --center-crop or --mean-image asks for squares, else jpeg"))
      .answers({{".jpg", "use jpeg"},
                {".jpeg", "use jpeg"},
                {"jpg", "use jpeg"},
                {".png", "use raw, which keeps pixels as they are"},
                {"png", "use raw, which keeps pixels as they are"}})
      .print = [] { return std::string(); };  // other options choose
  group.add(sizes_option(recipe));
  group.add(fit_option(recipe));
  group.add(center_crop_option(recipe));
  group.add(choice_option<Channels>("color", recipe.channels, {{"rgb", Channels::rgb}, {"grey", Channels::grey}},
                                    "which channels to store"));
  group.add(number_option("max-resolution", "N", recipe.max_resolution, from_to(0, 65500),
                          "jpeg: shrink images with a longer side; 0: none"));
  group
      .add(number_option("quality", "N", recipe.quality, from_to(1, 100),
                         "jpeg: quality of images that have to be encoded anew"))
      .also({"jpeg-quality"});
  group.add(
      number_option("compress-probability", "P", recipe.compress_probability, from_to(0, 1),
                    "jpeg: share of images to encode anew at --quality although they could be stored as they are"));
  group.add(extensions_option(spec.extensions));
  group.add(
      number_option("max-side", "N", recipe.limits.max_side, from_to(1, 65500), "skip images with a longer side"));
  group.add(number_option("max-pixels", "N", recipe.limits.max_pixels, from_to(1, Index{1} << 31),
                          "skip images with more pixels"));
  group.add(number_option("max-scans", "N", recipe.limits.max_scans, from_to(1, 100000),
                          "skip progressive JPEGs with more scans"));
  group
      .add(choice_option<Strict>("strict", spec.strict,
                                 {{"any", Strict::any}, {"skipped", Strict::skipped}, {"no", Strict::no}},
                                 "fail if any image had to be converted or skipped, or only if one was skipped"))
      .implied = "any";
  return group;
}

OptionGroup output_options(const Source& kind, PrepareSpec& spec) {
  OptionGroup group{"Output", {}};
  const bool pixels = kind.has_pixels();
  if (pixels) spec.partitions = 8;
  group.add(text_option("out", "DIR", spec.out, "folder for the partitions; created if it is missing"))
      .also({"output", "output-dir"});
  group.add(number_option("partitions", "N", spec.partitions, from_to(pixels ? 1 : 0, 99999),
                          pixels
                              ? "number of files of the train split; any number of ranks can read any number of files"
                              : "number of files of the train split; 0: as many as --maxsize and --maxcount need"));
  group.add(number_option("val-partitions", "N", spec.val_partitions, from_to(0, 99999),
                          pixels ? "number of files of the val split; 0: as few as keep them no larger than train's"
                                 : "number of files of the val split; 0: as for --partitions"));
  group.add(number_option("seed", "N", spec.recipe.seed, at_least(0),
                          is(kind, "synthetic") ? "seed of the generated samples and of the global shuffle"
                                                : "seed of the global shuffle"));
  group.add(switch_option(
      "mean-image", spec.mean_image,
      pixels ? "also store the mean image of the train split" : "raw: also store the mean image of the train split"));
  group.add(switch_option("overwrite", spec.overwrite,
                          "make all partitions anew, and replace those of another source or with other options; a run "
                          "that was stopped goes on with the same command"));
  if (pixels) return group;
  group.add(switch_option("ignore-times", spec.ignore_times,
                          "the source's files were only copied: if they have the names and sizes of before, their "
                          "times don't count"));
  group.add(switch_option("keep-names", spec.keep_names, "also store the images' names"));
  group.add(number_option("maxcount", "N", spec.max_count, from_to(0, many),
                          "largest number of images in a file; 0: no limit"));
  group.add(megabytes_option("maxsize", spec.max_bytes, from_to(0, Index{1} << 30),
                             "largest number of megabytes of images in a file; 0: no limit"));
  group.add(text_option(
      "spill", "DIR", spec.spill,
      "folder that all ranks see, for intermediate files as large as the output; they are removed at the end (--out)"));
  return group;
}

OptionGroup work_options(PrepareSpec& spec) {
  OptionGroup group{"Work", {}};
  TransferSpec& transfer = spec.transfer;
  group
      .add(number_option("threads", "N", spec.threads, from_to(0, 1024),
                         "number of decoding threads of each rank; 0: its share of the node's cores"))
      .also({"num-thread", "workers", "num-workers"});
  group.add(megabytes_option("memory", spec.memory_bytes, from_to(16, Index{1} << 20),
                             "memory of each rank for images that wait to be written"));
  group.add(number_option("log-seconds", "SECONDS", spec.log_seconds, at_least(0),
                          "time between progress lines when the output is not a terminal"));
  group.add(text_option("endpoint", "URL", transfer.endpoint,
                        "S3-compatible server; by default AWS_ENDPOINT_URL, then the profile's, then Amazon's"));
  group.add(text_option("region", "NAME", transfer.region,
                        "region of the bucket; by default AWS_REGION, then the profile's"));
  group.add(switch_option("anonymous", transfer.anonymous, "do not sign requests: the bucket is public"));
  group.add(number_option("retries", "N", transfer.retries, from_to(0, 1000),
                          "number of attempts without progress before a transfer fails"));
  group.add(number_option("timeout-seconds", "SECONDS", transfer.timeout_seconds, above(0),
                          "time without a byte before a transfer is tried again"));
  return group;
}

std::vector<OptionGroup> options_of(const Source& kind, PrepareSpec& spec) {
  std::vector<OptionGroup> groups;
  if (kind.has_pixels()) {
    groups = {pixel_options(kind, spec), output_options(kind, spec)};
  } else {
    groups = {source_options(kind, spec), image_options(spec), output_options(kind, spec), work_options(spec)};
  }
  groups.insert(groups.end(), {time_limit_options(spec.time_limit), waiting_options(spec.deadline)});
  return groups;
}

OptionGroup folder_option(std::string& folder) {
  return {"Partitions", {text_option("data", "DIR", folder, "the folder of prepared partitions, also as DIR alone")}};
}

std::vector<OptionGroup> options_of(VerifySpec& spec) {
  return {folder_option(spec.folder), time_limit_options(spec.time_limit), waiting_options(spec.deadline)};
}

std::vector<OptionGroup> options_of(InspectSpec& spec) { return {folder_option(spec.folder)}; }

std::string short_help() {
  return std::string(usage) +
         "\n'convoy-preprocess KIND --help' prints the options of one kind, '--help-all' those of all, '--version' what was built.\n" +
         exit_codes;
}

std::string full_help() {
  std::string text = usage;
  for (const std::string& word : command_words())
    see_options(word, [&](const std::vector<OptionGroup>& groups) {
      text += fmt::format("\nOptions of {}\n{}", word, option_help(groups, HelpDepth::all));
    });
  return text + exit_codes;
}

/// What im2rec, FFCV and others call what we do in another way, and kinds of sources by other names.
std::string advice(const std::string& name) {
  static const std::map<std::string, std::string> known{
      {"pass-through", "use --encoding jpeg, which keeps the files as they are"},
      {"recursive", "all folders below are read unasked"},
      {"shuffle", "samples are shuffled unasked, by --seed"},
      {"no-shuffle", "samples are always shuffled, by --seed"},
      {"write-mode", "use --encoding raw or jpeg"},
      {"image-size", "use --sizes"},
      {"val-split", "use --train-ratio, the share of train"},
      {"test-ratio", "use --train-ratio, the share of train; the rest is val"},
      {"pack-label", "an image has one label: --label-column says which of several"},
      {"num-label", "an image has one label: --label-column says which of several"},
      {"label-width", "an image has one label: --label-column says which of several"},
      {"list", "you need no list; if you have one, the kind 'list' reads it"},
      {"chunks", "use --partitions"},
      {"shards", "use --partitions"},
      {"nsplit", "use --partitions; the ranks of mpirun -np N share the work"},
      {"part", "the ranks of mpirun -np N share the work and write all partitions"},
      {"inter-method", "images are resized as Pillow does it, bilinear with antialiasing"},
      {"unchanged", "use --encoding jpeg, which keeps the files as they are"},
      {"chunk-size", "leave it out; images are handed to the threads one by one"},
      {"filekey", "use --keep-names"},
      {"s3-bucket", "use --source s3://BUCKET/PREFIX"},
      {"bucket", "use --source s3://BUCKET/PREFIX"}};
  const auto at = known.find(name);
  return at == known.end() ? "" : at->second;
}

/// How to convert a data set of a kind that this program doesn't read; empty: the kind is unknown.
std::string conversion_of(const std::string& word) {
  constexpr const char* pixels =
      "write its images as PNG files into a folder for each class, and prepare that: 'convoy-preprocess folder "
      "--source DIR --encoding raw --out OUT'";
  constexpr const char* files =
      "write its encoded images as they are into a folder for each class ('convoy-preprocess folder') or into tar "
      "archives ('convoy-preprocess webdataset')";
  static const std::map<std::string, std::string> known{
      {"hdf5", pixels}, {"h5", pixels},  {"npy", pixels},     {"npz", pixels},      {"numpy", pixels},
      {"lmdb", files},  {"tfds", files}, {"tfrecord", files}, {"tfrecords", files}, {"parquet", files}};
  const auto at = known.find(lower(word));
  return at == known.end() ? "" : at->second;
}

std::string meant_kind(const std::string& word, const std::vector<std::string>& known) {
  static const std::map<std::string, std::string> others{{"imagefolder", "folder"},
                                                         {"image-folder", "folder"},
                                                         {"folders", "folder"},
                                                         {"images", "folder"},
                                                         {"imagenet1k", "imagenet"},
                                                         {"ilsvrc2012", "imagenet"},
                                                         {"wds", "webdataset"},
                                                         {"tar", "webdataset"},
                                                         {"rec", "recordio"},
                                                         {"mxnet", "recordio"},
                                                         {"csv", "list"},
                                                         {"cifar", "cifar10"},
                                                         {"cifar-10", "cifar10"},
                                                         {"cifar-100", "cifar100"},
                                                         {"fashion-mnist", "mnist"},
                                                         {"dummy", "synthetic"}};
  const auto at = others.find(lower(word));
  return at != others.end() ? at->second : nearest(word, known);
}

using Given = std::map<std::string, Assignment>;

/// Sets what `words` give, after `choose` has seen it. Returns words without a name.
std::vector<std::string> set_all(const std::string& word, const std::vector<OptionGroup>& groups,
                                 const std::vector<std::string>& words, std::size_t most_positional,
                                 const std::function<void(const Given&)>& choose = {}) {
  const std::string command = "convoy-preprocess " + word;
  const CommandLine line = read_command_line(command, Names(groups, advice), words);
  allow_positional(command, line.positional, most_positional);
  Given last;
  for (const Assignment& given : line.assignments) last[given.name] = given;
  if (choose) choose(last);
  set_options(groups, last);
  return line.positional;
}

/// Photographs stay the files they are, unless the words ask for squares.
Encoding usual_encoding(const Given& given) {
  const auto sizes = given.find("sizes");
  const bool squares = sizes != given.end() && sizes->second.value.find("full") == std::string::npos;
  const auto asked = [&](const char* name) {
    const auto at = given.find(name);
    return at != given.end() && at->second.value != "false";
  };
  return squares || given.count("resize") > 0 || asked("center-crop") || asked("mean-image") ? Encoding::raw
                                                                                             : Encoding::jpeg;
}

/// Contradictions between options.
void check(const PrepareSpec& spec) {
  const Source& kind = *spec.kind;
  if (spec.out.empty()) fail(Exit::usage, "no --out given; name the folder for the partitions");
  if (is(kind, "list") && (spec.train.empty() || spec.root.empty()))
    fail(Exit::usage, "give --train (the list) and --root (where its paths begin)");
  if (kind.has_pixels()) {
    if (!is(kind, "synthetic") && spec.source.empty())
      fail(Exit::usage, "no --source given; name the folder or archive of the raw files");
    return;
  }
  if (!is(kind, "list") && spec.source.empty() == spec.train.empty())
    fail(Exit::usage, "give either --source (one place) or --train (and --val)");
  if (spec.mean_image && spec.recipe.encoding == Encoding::jpeg)
    fail(Exit::usage, "--mean-image needs images of one size: use --encoding raw");
}

PrepareSpec parse_source(const Source& kind, const std::vector<std::string>& words) {
  PrepareSpec spec;
  spec.kind = &kind;
  set_all(kind.name(), options_of(kind, spec), words, 0, [&](const Given& given) {
    if (!kind.has_pixels()) spec.recipe.encoding = usual_encoding(given);
  });
  spec.synthetic.seed = spec.recipe.seed;
  Recipe& recipe = spec.recipe;
  if (recipe.sizes.empty() && !kind.has_pixels()) recipe.sizes = {recipe.encoding == Encoding::raw ? Index{256} : 0};
  check(spec);
  return spec;
}

template <class Spec>
Command parse_folder(const std::string& word, const std::vector<std::string>& words) {
  Spec spec;
  const auto groups = options_of(spec);
  const auto paths = set_all(word, groups, words, 1);
  if (!paths.empty() && !spec.folder.empty())
    fail(Exit::usage, "two folders are given (--data {} and '{}'); give one", spec.folder, paths[0]);
  if (!paths.empty()) spec.folder = paths[0];
  if (spec.folder.empty()) fail(Exit::usage, "no folder given; use convoy-preprocess {} DIR", word);
  return spec;
}

}  // namespace

std::vector<std::string> command_words() {
  std::vector<std::string> words;
  for (const Source* each : all_sources()) words.emplace_back(each->name());
  words.insert(words.end(), {"verify", "inspect"});
  return words;
}

void see_options(const std::string& word, const std::function<void(const std::vector<OptionGroup>&)>& see) {
  if (word == "verify") {
    VerifySpec spec;
    see(options_of(spec));
  } else if (word == "inspect") {
    InspectSpec spec;
    see(options_of(spec));
  } else {
    const Source* const source = find_source(word);
    require(source != nullptr, "options of a word that has none");
    PrepareSpec spec;
    see(options_of(*source, spec));
  }
}

std::string usage_text() { return usage; }
std::string exit_code_text() { return exit_codes; }

std::string size_name(Index size) { return size == 0 ? "full" : std::to_string(size); }

Command parse_command_line(const std::vector<std::string>& arguments) {
  const std::string word = arguments.empty() ? "--help" : arguments[0];
  if (word == "--help" || word == "-h" || word == "help") {
    if (arguments.size() < 2 || arguments[1].starts_with('-')) return HelpSpec{short_help()};
    return parse_command_line({arguments[1], "--help"});
  }
  if (word == "--help-all") return HelpSpec{full_help()};
  if (word == "--version") return HelpSpec{fmt::format("convoy-preprocess {}\ncompiler: {}\n", build_id(), compiler())};
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const auto has = [&rest](const char* flag) { return std::find(rest.begin(), rest.end(), flag) != rest.end(); };
  const bool all = has("--help-all"), helps = all || has("--help") || has("-h");
  const auto help = [all](const std::vector<OptionGroup>& groups) {
    return HelpSpec{usage + option_help(groups, all ? HelpDepth::all : HelpDepth::usual) + exit_codes};
  };
  if (word == "manual") return HelpSpec{manual()};
  if (word == "completion") return HelpSpec{completion(rest)};
  const std::vector<std::string> known = command_words();
  if (std::find(known.begin(), known.end(), word) != known.end()) {
    if (helps) {
      HelpSpec text;
      see_options(word, [&](const std::vector<OptionGroup>& groups) { text = help(groups); });
      return text;
    }
    if (word == "verify") return parse_folder<VerifySpec>(word, rest);
    if (word == "inspect") return parse_folder<InspectSpec>(word, rest);
    return parse_source(*find_source(word), rest);
  }
  if (const std::string how = conversion_of(word); !how.empty())
    fail(Exit::usage, "convoy-preprocess does not read '{}'; {}", word, how);
  const std::string best = meant_kind(word, known);
  fail(Exit::usage, "unknown kind '{}'; {}", word,
       best.empty() ? fmt::format("give one of {}; see --help", fmt::join(known, ", "))
                    : fmt::format("did you mean {}? See --help", best));
}

}  // namespace convoy::preparation
