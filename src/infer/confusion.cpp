// SPDX-License-Identifier: Apache-2.0
#include "infer/confusion.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/log.hpp"
#include "core/text.hpp"
#include "infer/prediction.hpp"
#include "io/file.hpp"

namespace convoy {

Confusion::Confusion(Index classes)
    : classes_(classes),
      samples_(static_cast<std::size_t>(classes)),
      correct_(samples_),
      counts_(has_matrix() ? static_cast<std::size_t>(classes * classes) : 0) {}

void Confusion::add(std::span<const SampleSpec> samples, const float* logits) {
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const float* row = logits + static_cast<Index>(n) * classes_;
    const Index label = samples[n].a, predicted = std::max_element(row, row + classes_) - row;
    ++samples_[static_cast<std::size_t>(label)];
    // A label whose logit is NaN is no hit: see ranks_before().
    if (label == predicted && !std::isnan(row[label])) ++correct_[static_cast<std::size_t>(label)];
    if (has_matrix()) ++counts_[static_cast<std::size_t>(label * classes_ + predicted)];
  }
}

void Confusion::sum(Communicator& communicator) {
  for (std::vector<std::int64_t>* counts : {&samples_, &correct_, &counts_})
    communicator.sum(std::span<std::int64_t>(*counts), "counts of the classes");
}

void Confusion::write(const std::string& folder, const std::vector<std::string>& class_names) const {
  const auto name = [&](Index c) { return csv_field(class_name(class_names, c)); };
  std::ostringstream per_class;
  per_class << "class,name,samples,correct,percent\n";
  for (Index label = 0; label < classes_; ++label) {
    const std::int64_t samples = samples_[static_cast<std::size_t>(label)],
                       correct = correct_[static_cast<std::size_t>(label)];
    per_class << fmt::format("{},{},{},{},{:.3f}\n", label, name(label), samples, correct,
                             samples > 0 ? 100.0 * static_cast<double>(correct) / static_cast<double>(samples) : 0.0);
  }
  replace_text_file(folder + "/per_class.csv", per_class.str());
  if (!has_matrix()) {
    log::info("confusion.csv is left out: it would have {} rows and columns; per_class.csv has one line per class",
              classes_);
    return;
  }
  std::ostringstream matrix;
  matrix << "label\\predicted";
  for (Index c = 0; c < classes_; ++c) matrix << ',' << name(c);
  matrix << '\n';
  for (Index label = 0; label < classes_; ++label) {
    matrix << name(label);
    for (Index c = 0; c < classes_; ++c) matrix << ',' << counts_[static_cast<std::size_t>(label * classes_ + c)];
    matrix << '\n';
  }
  replace_text_file(folder + "/confusion.csv", matrix.str());
}

}  // namespace convoy
