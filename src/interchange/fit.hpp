// SPDX-License-Identifier: Apache-2.0
// Do the tensors of a file fit a network?
#pragma once
#include <span>
#include <string>
#include <vector>

#include "interchange/names.hpp"
#include "interchange/tensor_file.hpp"
#include "network/models.hpp"

namespace convoy {

/// Whose names of modules a file has.
enum class Library : std::uint8_t { torchvision, timm };

/// An entry of the network's state dict and the tensor that fills it.
struct FilledEntry {
  StateEntry entry;
  const StoredValues* from = nullptr;  ///< of the TensorFile
};

/// How the tensors of a file match a network. Names count without what training programs put before all of them
/// (`module.`, `_orig_mod.`, `model.`); timm's names match too.
struct StateFit {
  std::vector<FilledEntry> filled;      ///< without num_batches_tracked, which training does not use
  std::vector<FilledEntry> other_head;  ///< of layers that make classes, which differ only in their number
  std::vector<StateEntry> missing;
  std::vector<StateEntry> missing_head;       ///< all of the last layer, where the file has nothing of it
  std::vector<StateEntry> missing_auxiliary;  ///< all of the auxiliary heads, where the file has nothing of them
  std::vector<const StoredValues*> unexpected, left_out;  ///< left out: counters, and auxiliary classifiers
  std::vector<FilledEntry> misshapen;
  Library origin = Library::torchvision;  ///< timm: only its names fit

  bool fits() const { return fits_body() && missing_head.empty() && missing_auxiliary.empty(); }
  /// But for the last layer and auxiliary heads.
  bool fits_body() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
};
StateFit fit_state(const Plan& plan, const TensorFile& file);

/// Of the batch norms of that library's network. timm's variants `tf_...`, which pad otherwise, aside.
float norm_epsilon_of(Library library, const std::string& model);

/// The prefixes of the names of tensors in the layers that make classes: `fc.` of the last layer, then those of
/// auxiliary heads.
std::vector<std::string> head_prefixes(const Graph& graph);
bool begins_with_any(const std::string& name, const std::vector<std::string>& prefixes);

/// Number of classes of the file's last layer; 0: the file differs from the network in more than that.
Index classes_of(const StateFit& fit, const Plan& plan);

/// Networks of Convoy whose tensors the file has, with their usual input and the file's number of classes. Those
/// without options come first.
std::vector<GraphSpec> networks_that_fit(const TensorFile& file);

/// As the command line says it: `--model resnet50 --resnet-version v1`.
std::string model_words(const GraphSpec& spec);

/// Throws Error(data) that lists the first differences with their shapes, and names the networks that fit if there are
/// any; or that says of how many channels the images are that the file's network takes.
[[noreturn]] void fail_misfit(const StateFit& fit, const Plan& plan, const TensorFile& file);

/// Copies the tensors that fill the network into the blocks of a set. Returns digest_of_state of the values. Throws
/// Error(data) if they can't be read or aren't finite.
std::uint64_t fill_set(const std::vector<FilledEntry>& filled, const TensorFile& file, std::span<float> values,
                       std::span<float> statistics);

}  // namespace convoy
