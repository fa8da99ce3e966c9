// SPDX-License-Identifier: Apache-2.0
#include "infer/confusion.hpp"

#include <algorithm>
#include <sstream>

#include "infer/class_name.hpp"
#include "io/text_file.hpp"

namespace convoy {
Confusion::Confusion(Index classes) : classes_(classes), counts_(static_cast<std::size_t>(classes * classes)) {}

void Confusion::add(std::span<const SampleSpec> samples, const float* logits) {
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const float* row = logits + static_cast<Index>(n) * classes_;
    ++at(samples[n].a, std::max_element(row, row + classes_) - row);
  }
}

void Confusion::sum(Communicator& communicator) {
  communicator.sum(std::span<std::int64_t>(counts_), "sum of the confusion matrix");
}

void Confusion::write(const std::string& folder, const std::vector<std::string>& class_names) const {
  const auto name = [&](Index c) { return class_name(class_names, c); };
  const auto count = [&](Index label, Index predicted) {
    return counts_[static_cast<std::size_t>(label * classes_ + predicted)];
  };
  std::ostringstream matrix, per_class;
  matrix << "label";
  for (Index c = 0; c < classes_; ++c) matrix << ',' << name(c);
  matrix << '\n';
  per_class << "class,name,samples,correct,percent\n";
  for (Index label = 0; label < classes_; ++label) {
    std::int64_t samples = 0;
    matrix << name(label);
    for (Index c = 0; c < classes_; ++c) {
      matrix << ',' << count(label, c);
      samples += count(label, c);
    }
    matrix << '\n';
    const std::int64_t correct = count(label, label);
    per_class << fmt::format("{},{},{},{},{:.3f}\n", label, name(label), samples, correct,
                             samples > 0 ? 100.0 * static_cast<double>(correct) / static_cast<double>(samples) : 0.0);
  }
  replace_text_file(folder + "/confusion.csv", matrix.str());
  replace_text_file(folder + "/per_class.csv", per_class.str());
}

}  // namespace convoy
