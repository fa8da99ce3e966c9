// SPDX-License-Identifier: Apache-2.0
#include "infer/worst_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/json.hpp"
#include "core/text.hpp"
#include "data/partition.hpp"
#include "infer/picture.hpp"
#include "infer/prediction.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_images = 24;
constexpr Index longest_side = 160;
constexpr int quality = 75;

/// The name that the data set keeps of an image; empty: it keeps none.
std::string name_in(const DatasetInfo& info, Index sample) {
  for (const PartitionInfo& partition : info.partitions)
    if (partition.samples.contains(sample) && !partition.path.empty())
      return stored_name(partition.path, sample - partition.samples.begin);
  return "";
}

}  // namespace

void WorstImages::keep_worst(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.worse_than(b); });
  if (entries.size() > most_images) entries.resize(most_images);
}

void WorstImages::add(std::span<const SampleSpec> samples, const float* logits) {
  for (const SampleSpec& sample : samples) {
    const float* const best = std::max_element(logits, logits + classes_);
    double exponents = 0;
    for (Index k = 0; k < classes_; ++k) exponents += std::exp(static_cast<double>(logits[k]) - *best);
    const Entry entry{.loss = std::log(exponents) + *best - logits[sample.a],
                      .probability = 1 / exponents,
                      .sample = sample.position,
                      .label = sample.a,
                      .predicted = best - logits};
    logits += classes_;
    if (std::isfinite(entry.loss)) entries_.push_back(entry);  // others can't be sorted, nor read back as text
  }
  keep_worst(entries_);
}

std::string WorstImages::gather(Communicator& communicator, const Dataset& dataset, const AugmentSpec& augment,
                                const InputSpec& input) const {
  // First who has the worst, then their pictures.
  std::string own;
  for (const Entry& entry : entries_)
    own += fmt::format("{} {} {} {} {}\n", entry.loss, entry.probability, entry.sample, entry.label, entry.predicted);
  std::vector<Entry> all;
  for (const std::string& text : communicator.all_gather(own, "the worst images")) {
    std::istringstream lines(text);
    for (Entry e; lines >> e.loss >> e.probability >> e.sample >> e.label >> e.predicted;) all.push_back(e);
  }
  keep_worst(all);
  const DatasetInfo& info = dataset.info();
  const bool can_show = input.channels == 1 || input.channels == 3;
  std::string pictures;  // a line each: rank in the list, JSON
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Entry& entry = all[i];
    const bool mine = std::any_of(entries_.begin(), entries_.end(),
                                  [&](const Entry& candidate) { return candidate.sample == entry.sample; });
    if (!mine) continue;
    Json json = Json::object({{"id", dataset.id(entry.sample)},
                              {"name", valid_utf8(name_in(info, entry.sample))},
                              {"loss", entry.loss},
                              {"label", class_name(info.class_names, entry.label)},
                              {"predicted", class_name(info.class_names, entry.predicted)},
                              {"probability", entry.probability}});
    std::vector<SampleSpec> specs;
    if (can_show)
      json["jpeg"] = jpeg_text(InputPictures(dataset, augment, input).make(std::span(&entry.sample, 1), 0, specs)[0],
                               longest_side, quality);
    pictures += fmt::format("{} {}\n", i, json.text(-1, Json::Order::as_written));
  }
  std::vector<std::string> images(all.size());
  for (const std::string& text : communicator.all_gather(pictures, "pictures of the worst images")) {
    std::istringstream lines(text);
    std::size_t place = 0;
    for (std::string line; lines >> place && std::getline(lines, line);) images.at(place) = trimmed(line);
  }
  std::string list;
  for (const std::string& image : images)
    if (!image.empty()) list += (list.empty() ? "" : ",\n") + image;
  return "{\"images\":[\n" + list + "\n]}\n";
}

}  // namespace convoy
