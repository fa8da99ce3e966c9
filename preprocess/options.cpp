// SPDX-License-Identifier: Apache-2.0
#include "preprocess/options.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <string_view>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "preprocess/images_options.hpp"
#include "preprocess/option_parsing.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

namespace po = boost::program_options;

constexpr const char* usage =
    "convoy-preprocess turns raw image data into HDF5 partitions (docs/format.md) for 'convoy train --data DIR'.\n\n"
    "  convoy-preprocess cifar10|cifar100|mnist --source PATH --out DIR [options]\n"
    "  convoy-preprocess synthetic --out DIR [options]\n"
    "  convoy-preprocess imagenet|folder|webdataset|recordio --source WHERE --out DIR [options]\n"
    "  convoy-preprocess list --train FILE --root WHERE --out DIR [options]\n"
    "  convoy-preprocess verify DIR      compares every byte with its checksum; finds a single flipped bit\n"
    "  convoy-preprocess inspect DIR     prints counts, shapes, classes, mean and standard deviation, and the class mix of partitions\n\n"
    "It runs under mpirun or srun on any number of ranks and writes the same bytes on all. If a run was\n"
    "killed, start it again to continue where it was; it also makes partitions again that verify found damaged.\n\n";

constexpr const char* exit_codes =
    "\nExit codes: 0 ok, 1 internal error, 2 usage, 3 data, 4 device or library (memory), 5 communication or stall,\n"
    "75 stopped on request (SIGUSR1, SIGINT, SIGTERM, time limit): start it again to continue.\n";

/// `32` or `32x48` (height x width).
void parse_image_size(const std::string& text, SyntheticSpec& spec) {
  const auto cross = text.find('x');
  const std::string rows = text.substr(0, cross), columns = cross == std::string::npos ? rows : text.substr(cross + 1);
  const auto number = [&](const std::string& digits) {
    Index value = 0;
    const auto [end, reason] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (reason != std::errc() || end != digits.data() + digits.size() || value < 4 || value > 4096) {
      fail(Exit::usage, "bad value for --image-size ('{}'); give pixels N or HEIGHTxWIDTH from 4 to 4096", text);
    }
    return value;
  };
  spec.height = number(rows);
  spec.width = number(columns);
}

/// Options bound to a command's fields. `image_size` is text until it is parsed.
struct Bound {
  PrepareSpec prepare;
  std::string folder, image_size = "32";
};

/// Options of sources whose samples are pixels.
po::options_description describe_pixels(const Source& source, Bound& bound) {
  const std::string kind = source.name();
  PrepareSpec& spec = bound.prepare;
  spec.kind = &source;
  spec.partitions = 8;
  po::options_description options("Options of " + kind, help_columns, help_columns / 2);
  auto add = options.add_options();
  if (kind != "synthetic") {
    const char* what = kind == "mnist" ? "folder of the four IDX files, each also as .gz"
                                       : "folder of the official binary files, or the official .tar.gz archive";
    add("source", po::value(&spec.source)->value_name("PATH"), what);
  }
  add("out", po::value(&spec.out)->value_name("DIR"), "folder for the partitions; created if it is missing");
  add("partitions", po::value(&spec.partitions)->default_value(spec.partitions)->value_name("N"),
      "number of files of the train split; any number of ranks can read any number of files");
  add("val-partitions", po::value(&spec.val_partitions)->default_value(0)->value_name("N"),
      "number of files of the val split; 0: as few as keep them no larger than train's");
  add("seed", po::value(&spec.recipe.seed)->default_value(spec.recipe.seed)->value_name("N"),
      kind == "synthetic" ? "seed of the generated samples and of the global shuffle" : "seed of the global shuffle");
  add("mean-image", po::bool_switch(&spec.mean_image), "also store the mean image of the train split");
  add("overwrite", po::bool_switch(&spec.overwrite), "replace partitions of another source or with other options");
  if (kind == "cifar100")
    add("coarse", po::bool_switch(&spec.coarse), "store the 20 coarse labels instead of the 100 fine ones");
  if (kind == "synthetic") {
    SyntheticSpec& s = spec.synthetic;
    s.samples = 2000;
    add("samples", po::value(&s.samples)->default_value(s.samples)->value_name("N"),
        "number of images of the train split");
    add("val-samples", po::value(&spec.val_samples)->default_value(spec.val_samples)->value_name("N"),
        "images of the val split");
    add("image-size", po::value(&bound.image_size)->default_value(bound.image_size)->value_name("N|HxW"),
        "size of the images in pixels");
    add("classes", po::value(&s.classes)->default_value(s.classes)->value_name("N"), "number of classes");
    add("channels", po::value(&s.channels)->default_value(s.channels)->value_name("N"), "colour channels, 1 to 4");
  }
  add_time_options(options, spec.time_limit);
  add_stall_options(options, spec.deadline);
  add("help", "print this and exit");
  return options;
}

po::options_description describe_folder(const std::string& word, Bound& bound) {
  po::options_description options("Options of " + word, help_columns, help_columns / 2);
  options.add_options()("data", po::value(&bound.folder)->value_name("DIR"),
                        "the folder of prepared partitions, also as DIR alone");
  if (word == "verify") {
    add_time_options(options, bound.prepare.time_limit);
    add_stall_options(options, bound.prepare.deadline);
  }
  options.add_options()("help", "print this and exit");
  return options;
}

std::string short_help() {
  return std::string(usage) +
         "'convoy-preprocess KIND --help' prints the options of one kind, '--help-all' those of all, '--version' what was built.\n" +
         exit_codes;
}

std::string full_help() {
  std::string text = usage;
  for (const Source* source : all_sources()) {
    Bound bound;
    text += (source->has_pixels() ? text_of(describe_pixels(*source, bound)) : images_help(*source)) + "\n";
  }
  Bound bound;
  return text + text_of(describe_folder("verify", bound)) + exit_codes;
}

void check(const PrepareSpec& spec) {
  if (std::string_view(spec.kind->name()) != "synthetic" && spec.source.empty()) {
    fail(Exit::usage, "no --source given; name the folder or archive of the raw files");
  }
  if (spec.out.empty()) fail(Exit::usage, "no --out given; name the folder for the partitions");
  require_between("--seed", static_cast<Index>(spec.recipe.seed), 0, std::numeric_limits<Index>::max());  // -1 wraps
  require_between("--partitions", spec.partitions, 1, 99999);
  require_between("--val-partitions", spec.val_partitions, 0, 99999);
  require_between("--samples", spec.synthetic.samples, 1, Index{1} << 40);
  require_between("--val-samples", spec.val_samples, 1, Index{1} << 40);
  require_between("--classes", spec.synthetic.classes, 1, most_synthetic_classes);
  require_between("--channels", spec.synthetic.channels, 1, 4);
}

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  const std::string word = arguments.empty() ? "--help" : arguments[0];
  if (word == "--help" || word == "-h" || word == "help") return HelpSpec{short_help()};
  if (word == "--help-all") return HelpSpec{full_help()};
  if (word == "--version") return HelpSpec{fmt::format("convoy-preprocess {}\ncompiler: {}\n", build_id(), compiler())};
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  Bound bound;
  if (word == "verify" || word == "inspect") {
    const auto options = describe_folder(word, bound);
    if (parse_options(options, rest, "data")) return HelpSpec{usage + text_of(options) + exit_codes};
    if (bound.folder.empty()) fail(Exit::usage, "no folder given; use convoy-preprocess {} DIR", word);
    if (word == "verify") return VerifySpec{bound.folder, bound.prepare.deadline, bound.prepare.time_limit};
    return InspectSpec{bound.folder};
  }
  const Source* source = find_source(word);
  if (source == nullptr) {
    std::vector<std::string> known;
    for (const Source* each : all_sources()) known.emplace_back(each->name());
    known.insert(known.end(), {"verify", "inspect"});
    const std::string best = nearest(word, known);
    fail(Exit::usage, "unknown kind '{}'; {}", word,
         best.empty() ? fmt::format("give one of {}; see --help", fmt::join(known, ", "))
                      : fmt::format("did you mean {}? See --help", best));
  }
  if (!source->has_pixels()) {
    if (auto spec = parse_images_options(*source, rest)) return *spec;
    return HelpSpec{usage + images_help(*source) + exit_codes};
  }
  const auto options = describe_pixels(*source, bound);
  if (parse_options(options, rest, nullptr)) return HelpSpec{usage + text_of(options) + exit_codes};
  parse_image_size(bound.image_size, bound.prepare.synthetic);
  bound.prepare.synthetic.seed = bound.prepare.recipe.seed;
  check(bound.prepare);
  return bound.prepare;
}

}  // namespace convoy::preparation
