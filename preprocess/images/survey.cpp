// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/survey.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "comm/agreed_error.hpp"
#include "core/deal.hpp"
#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "preprocess/agree.hpp"
#include "preprocess/cut.hpp"
#include "preprocess/fields.hpp"

namespace convoy::preparation {
namespace {

/// A rank's share of the order: hashes from `low` to `high`.
struct Share {
  std::uint64_t low = 0, high = ~std::uint64_t{0};
  std::vector<std::vector<OrderedImage>> images;  ///< by origin
  std::vector<Index> before, total;               ///< images of lower ranks and of all, by origin
};

Share share_of(int rank, int ranks) {
  Share share;
  const auto cut = [&](int number) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{1} << 64) * static_cast<unsigned>(number) / static_cast<unsigned>(ranks));
  };
  if (rank > 0) share.low = cut(rank);
  if (rank + 1 < ranks) share.high = cut(rank + 1) - 1;
  share.images.resize(split_count);
  return share;
}

/// Collective.
void count_images(Communicator& comm, Share& share) {
  const auto ranks = static_cast<std::size_t>(comm.size()), own = static_cast<std::size_t>(comm.rank());
  std::vector<std::int64_t> counts(ranks * split_count);
  for (std::size_t p = 0; p < split_count; ++p) {
    counts[own * split_count + p] = static_cast<std::int64_t>(share.images[p].size());
  }
  comm.sum(counts, "images of ranks");
  share.before.assign(split_count, 0);
  share.total.assign(split_count, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t p = 0; p < split_count; ++p) {
      if (r < own) share.before[p] += counts[r * split_count + p];
      share.total[p] += counts[r * split_count + p];
    }
  }
}

/// Images of train, if it is cut into train and val.
Index cut_train(const PrepareSpec& spec, Index images) {
  return spec.train_ratio < 1 ? std::llround(static_cast<double>(images) * spec.train_ratio) : images;
}

void warn_of_subsets(const PrepareSpec& spec, const std::vector<Index>& total) {
  const auto warn = [](const char* option, Index asked, Index images) {
    if (asked > images)
      log::warn("--{} asks for {} images, but there are only {}: all are taken", option, asked, images);
  };
  const Index train = cut_train(spec, total[0]);
  warn("subset", spec.subset, train);
  warn("val-subset", spec.val_subset, spec.train_ratio < 1 ? total[0] - train : total[1]);
}

std::vector<SplitPlan> plan_splits(const PrepareSpec& spec, const std::vector<Index>& total) {
  Index train = total[0], val = total[1];
  Range val_range{0, val};
  Split val_origin = Split::val;
  if (spec.train_ratio < 1) {
    train = cut_train(spec, total[0]);
    val_range = {train, total[0] - train};
    val_origin = Split::train;
  }
  if (spec.subset > 0) train = std::min(train, spec.subset);
  if (spec.val_subset > 0) val_range.count = std::min(val_range.count, spec.val_subset);
  std::vector<SplitPlan> splits;
  if (train == 0) {
    fail(Exit::usage, "--train-ratio {} of {} images leaves none for train; give more", spec.train_ratio, total[0]);
  }
  splits.push_back({"train", Split::train, {0, train}, {}, {}});
  if (val_range.count > 0) splits.push_back({"val", val_origin, val_range, {}, {}});
  return splits;
}

/// Collective. Labels that go by images' numbers need one image a number. Throws AgreedError.
void require_own_numbers(Communicator& comm, const std::vector<OrderedImage>& images, Index lines) {
  if (lines == 0) return;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(lines));
  for (const OrderedImage& image : images) {
    const Index number = image_number(image.name);
    if (number >= 1 && number <= lines) ++counts[static_cast<std::size_t>(number - 1)];
  }
  comm.sum(counts, "numbers of images");
  const auto shared = std::find_if(counts.begin(), counts.end(), [](std::int64_t n) { return n > 1; });
  const auto missing = std::count(counts.begin(), counts.end(), 0);
  if (shared == counts.end()) {
    if (missing > 0 && comm.rank() == 0) {
      log::warn(
          "{} of the {} lines of the label file are of no image that could be used: is it the file of these images?",
          missing, lines);
    }
    return;
  }
  const Index number = shared - counts.begin() + 1;
  std::string own;
  for (const OrderedImage& image : images) {
    if (own.empty() && image_number(image.name) == number) own = image.name;
  }
  const auto of_ranks = comm.all_gather(own, "an image of a number");
  run_alike(comm, [&] {
    const auto name = std::find_if(of_ranks.begin(), of_ranks.end(), [](const auto& n) { return !n.empty(); });
    fail(
        Exit::data,
        "{} images have the number {} ('{}' is one), and the label file gives labels without paths, by images' numbers; give lines of path and label",
        *shared, number, *name);
  });
}

/// Calls body(image, place in the order of its origin) for this rank's images of a split.
template <class Body>
void for_each_of(const Share& share, const SplitPlan& split, const Body& body) {
  const auto origin = static_cast<std::size_t>(split.origin);
  for (std::size_t i = 0; i < share.images[origin].size(); ++i) {
    const Index place = share.before[origin] + static_cast<Index>(i);
    if (split.range.contains(place)) body(share.images[origin][i], place);
  }
}

/// Collective. Counts the images of each class, split by split.
void count_classes(Communicator& comm, const Share& share, Survey& survey) {
  for (const SplitPlan& split : survey.splits) {
    auto& counts = survey.images_of_class.emplace_back(survey.classes.names.size());
    for_each_of(share, split,
                [&](const OrderedImage& image, Index) { ++counts[static_cast<std::size_t>(image.label)]; });
    comm.sum(counts, "images of classes");
  }
}

/// Collective. Finds the images of val that train has, too. Every rank holds the hashes of all files of val (8 bytes
/// each, and 8 for what was found), and looks for those of its own part of train.
SharedImages find_shared(Communicator& comm, const Share& share, const std::vector<SplitPlan>& splits) {
  constexpr std::size_t most_examples = 2;
  SharedImages shared;
  if (splits.size() < 2) return shared;
  const SplitPlan &train = splits[0], &val = splits[1];
  std::vector<std::uint64_t> own;
  for_each_of(share, val, [&](const OrderedImage& image, Index) { own.push_back(image.entry.file); });
  std::string bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(std::uint64_t));
  std::vector<std::uint64_t> files;
  for (const auto& of_rank : comm.all_gather(bytes, "hashes of the files of val")) {
    const std::size_t before = files.size();
    files.resize(before + of_rank.size() / sizeof(std::uint64_t));
    std::copy(of_rank.begin(), of_rank.end(), reinterpret_cast<char*>(files.data() + before));
  }
  std::sort(files.begin(), files.end());
  std::vector<std::int64_t> found(files.size());  // at the first of equal hashes
  for_each_of(share, train, [&](const OrderedImage& image, Index) {
    const auto at = std::lower_bound(files.begin(), files.end(), image.entry.file);
    if (at != files.end() && *at == image.entry.file) found[static_cast<std::size_t>(at - files.begin())] = 1;
  });
  comm.maximum(found, "files of both splits");
  std::vector<std::uint64_t> shown;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0 && files[i] == files[i - 1]) found[i] = found[i - 1];
    if (found[i] == 0) continue;
    ++shared.images;
    if (shown.size() < most_examples && (shown.empty() || shown.back() != files[i])) shown.push_back(files[i]);
  }
  std::vector<SharedImages::Pair> pairs(shown.size());  // of each split the first name, whichever rank has it
  const auto take = [&](std::string& to, const std::string& name) {
    if (!name.empty() && (to.empty() || name < to)) to = name;
  };
  const auto look_at = [&](const SplitPlan& split, std::string SharedImages::Pair::*member) {
    for_each_of(share, split, [&](const OrderedImage& image, Index) {
      for (std::size_t i = 0; i < shown.size(); ++i) {
        if (image.entry.file == shown[i]) take(pairs[i].*member, image.name);
      }
    });
  };
  look_at(train, &SharedImages::Pair::train);
  look_at(val, &SharedImages::Pair::val);
  shared.examples.resize(pairs.size());
  for (const auto& text : comm.all_gather(to_text(pairs), "images of both splits")) {
    from_text(text, pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      take(shared.examples[i].train, pairs[i].train);
      take(shared.examples[i].val, pairs[i].val);
    }
  }
  return shared;
}

/// Collective. Bytes of splits, and the sums over the train split from which mean, deviation and covariance come.
void sum_images(Communicator& comm, const std::vector<RunReader>& runs, const Recipe& recipe, const Share& share,
                Survey& survey) {
  const std::size_t sizes = recipe.sizes.size();
  const auto channels = static_cast<std::size_t>(recipe.stored_shape(0).channels);
  std::vector<PixelSums> sums(sizes, {std::vector<std::int64_t>(channels), std::vector<std::int64_t>(channels),
                                      std::vector<std::int64_t>(channels == 3 ? 3 : 0)});
  std::vector<std::int64_t> pixels(sizes);
  agree(comm, "adding up images", [&] {
    for (auto& split : survey.splits) {
      split.stored_bytes.assign(sizes, 0);
      std::vector<std::vector<const OrderedImage*>> by_run(runs.size());
      for_each_of(share, split, [&](const OrderedImage& image, Index) { by_run[image.run].push_back(&image); });
      for (std::size_t r = 0; r < runs.size(); ++r) {
        if (by_run[r].empty()) continue;
        const File file = runs[r].open();
        const std::size_t first = by_run[r].front()->number, count = by_run[r].back()->number - first + 1;
        for (std::size_t s = 0; s < sizes; ++s) {
          const auto stored = runs[r].stored(file, s, first, count);
          for (const OrderedImage* image : by_run[r]) {
            const RunStored& of = stored[image->number - first];
            split.stored_bytes[s] += static_cast<Index>(of.bytes);
            if (split.name != "train") continue;
            pixels[s] += static_cast<std::int64_t>(of.pixels);
            for (std::size_t c = 0; c < channels; ++c) {
              sums[s].sum[c] += static_cast<std::int64_t>(of.sum[c]);
              sums[s].squares[c] += static_cast<std::int64_t>(of.squares[c]);
            }
            for (std::size_t k = 0; k < sums[s].products.size(); ++k)
              sums[s].products[k] += static_cast<std::int64_t>(of.products[k]);
          }
        }
      }
    }
  });
  for (auto& split : survey.splits) comm.sum(split.stored_bytes, "bytes of splits");
  comm.sum(pixels, "counts of pixels");
  for (std::size_t s = 0; s < sizes; ++s) {
    comm.sum(sums[s].sum, "sums of pixels");
    comm.sum(sums[s].squares, "sums of squares");
    if (channels == 3) comm.sum(sums[s].products, "sums of products");
  }
  run_alike(comm, [&] {
    for (std::size_t s = 0; s < sizes; ++s) survey.normalisation.push_back(normalisation_of(sums[s], pixels[s]));
  });
}

Index choose_partitions(const PrepareSpec& spec, const SplitPlan& split, std::size_t size) {
  const Index asked = split.name == "train" ? spec.partitions : spec.val_partitions;
  require_enough_samples(split.name == "train" ? Split::train : Split::val, split.range.count, asked);
  if (asked > 0) return asked;
  const auto parts = [](Index whole, Index largest) { return largest > 0 ? (whole + largest - 1) / largest : 1; };
  const Index wanted =
      std::max({parts(split.range.count, spec.max_count), parts(split.stored_bytes[size], spec.max_bytes), Index{1}});
  return std::min({wanted, split.range.count, Index{99999}});
}

/// Collective. Each boundary is known to the rank whose share holds its first image.
void find_boundaries(Communicator& comm, const PrepareSpec& spec, const Share& share, Survey& survey) {
  for (auto& split : survey.splits) {
    split.boundaries.resize(spec.recipe.sizes.size());
    for (std::size_t s = 0; s < split.boundaries.size(); ++s) {
      Index partitions = 0;
      run_alike(comm, [&] { partitions = choose_partitions(spec, split, s); });
      const auto origin = static_cast<std::size_t>(split.origin);
      const auto& images = share.images[origin];
      // The last boundary is the end: an image's that belongs to no partition, or nobody's.
      std::vector<std::int64_t> found(static_cast<std::size_t>(partitions + 1) * 2);
      for (Index number = 0; number <= partitions; ++number) {
        const Index place = split.range.begin + deal(split.range.count, partitions, number).begin;
        const Index own = place - share.before[origin];
        if (own < 0 || own >= static_cast<Index>(images.size())) continue;
        auto first = static_cast<std::size_t>(own);
        const std::uint64_t hash = images[first].entry.hash;
        while (first > 0 && images[first - 1].entry.hash == hash) --first;
        found[static_cast<std::size_t>(number) * 2] = static_cast<std::int64_t>(hash);
        found[static_cast<std::size_t>(number) * 2 + 1] = share.before[origin] + static_cast<Index>(first);
      }
      comm.sum(found, "boundaries of partitions");
      for (std::size_t i = 0; i < found.size(); i += 2) {
        split.boundaries[s].push_back({static_cast<std::uint64_t>(found[i]), found[i + 1]});
      }
      if (split.range.end() == share.total[origin]) {
        split.boundaries[s].back() = {~std::uint64_t{0}, share.total[origin]};
      }
    }
  }
}

/// Collective. Independent of order: a sum over images, in halves that can't overflow.
std::string digest_images(Communicator& comm, const Share& share) {
  std::vector<std::int64_t> halves(2);
  for (std::size_t p = 0; p < split_count; ++p) {
    for (const OrderedImage& image : share.images[p]) {
      const std::uint64_t digest = mix_bits(image.entry.content + p);
      halves[0] += static_cast<std::int64_t>(digest >> 32);
      halves[1] += static_cast<std::int64_t>(digest & 0xFFFFFFFFU);
    }
  }
  comm.sum(halves, "digest of the source");
  return fmt::format("images-{:016x}", mix_bits(static_cast<std::uint64_t>(halves[0]) * 0x9e3779b97f4a7c15ULL +
                                                static_cast<std::uint64_t>(halves[1])));
}

/// Collective. Rank 0 gets everybody's notes beside those of the runs.
void gather_notes(Communicator& comm, const std::vector<RunReader>& runs, const std::vector<Note>& own,
                  Survey& survey) {
  const auto texts = comm.all_gather(to_text(own), "notes on images");
  for (const RunReader& run : runs) survey.images_read += run.tables().images_read;
  if (comm.rank() != 0) return;
  for (const auto& text : texts) {
    std::vector<Note> notes;
    from_text(text, notes);
    survey.notes.insert(survey.notes.end(), notes.begin(), notes.end());
  }
  for (const RunReader& run : runs) {
    survey.notes.insert(survey.notes.end(), run.tables().notes.begin(), run.tables().notes.end());
  }
  std::sort(survey.notes.begin(), survey.notes.end());
}

}  // namespace

std::vector<OrderedImage> load_order(const std::vector<RunReader>& runs, const ClassList& classes, Split origin,
                                     std::uint64_t low, std::uint64_t high, std::vector<Note>* notes) {
  std::vector<OrderedImage> images;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<Index> labels;
    for (const auto& text : runs[r].tables().classes) labels.push_back(classes.number_of(text));
    RunRange range = runs[r].range(runs[r].open(), origin, low, high);
    for (std::size_t i = 0; i < range.entries.size(); ++i) {
      const Index label = labels[range.entries[i].class_number];
      if (label >= 0) {
        images.push_back(
            {range.entries[i], r, range.first + i, static_cast<std::int32_t>(label), std::move(range.names[i])});
      } else if (notes != nullptr) {
        notes->push_back(
            {Finding::left_out, range.names[i], class_name(runs[r].tables().classes[range.entries[i].class_number])});
      }
    }
  }
  std::sort(images.begin(), images.end(), [](const OrderedImage& a, const OrderedImage& b) {
    if (a.entry.hash != b.entry.hash) return a.entry.hash < b.entry.hash;
    if (a.name != b.name) return a.name < b.name;
    return a.entry.shard != b.entry.shard ? a.entry.shard < b.entry.shard : a.entry.position < b.entry.position;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const bool again =
        kept > 0 && images[kept - 1].entry.hash == images[i].entry.hash && images[kept - 1].name == images[i].name;
    if (again) {
      if (notes != nullptr) {
        const bool same = images[kept - 1].entry.content == images[i].entry.content;
        notes->push_back({Finding::duplicate, images[i].name, same ? "the same bytes" : "other bytes or class"});
      }
      continue;
    }
    if (kept != i) images[kept] = std::move(images[i]);
    ++kept;
  }
  images.resize(kept);
  return images;
}

Survey survey_runs(Communicator& comm, const SurveySpec& spec, const std::vector<RunReader>& runs) {
  Survey survey;
  survey.classes = spec.given;
  if (!spec.given.closed) {
    std::set<ClassText> seen(spec.known.begin(), spec.known.end());
    for (const RunReader& run : runs) seen.insert(run.tables().classes.begin(), run.tables().classes.end());
    run_alike(comm, [&] { survey.classes = classes_from({seen.begin(), seen.end()}); });
  }
  Share share = share_of(comm.rank(), comm.size());
  std::vector<Note> notes;
  agree(comm, "ordering images", [&] {
    for (std::size_t p = 0; p < split_count; ++p) {
      share.images[p] = load_order(runs, survey.classes, static_cast<Split>(p), share.low, share.high, &notes);
    }
  });
  gather_notes(comm, runs, notes, survey);
  count_images(comm, share);
  for (std::size_t p = 0; p < split_count; ++p) require_own_numbers(comm, share.images[p], spec.numbered_lines[p]);
  if (share.total[0] == 0) return survey;
  run_alike(comm, [&] { survey.splits = plan_splits(spec.prepare, share.total); });
  if (comm.rank() == 0) warn_of_subsets(spec.prepare, share.total);
  count_classes(comm, share, survey);
  survey.shared = find_shared(comm, share, survey.splits);
  sum_images(comm, runs, spec.prepare.recipe, share, survey);
  find_boundaries(comm, spec.prepare, share, survey);
  survey.source_digest = digest_images(comm, share);
  return survey;
}

}  // namespace convoy::preparation
