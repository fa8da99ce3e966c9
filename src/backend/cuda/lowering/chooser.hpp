// SPDX-License-Identifier: Apache-2.0
// Which form each convolution takes. By rule: the one that moves the fewest bytes, a tensor hidden in a workspace
// included; what the library has no plan for is computed by a plain convolution and kernels of ours. The choice as text
// goes into checkpoints and to the other ranks: for every convolution its forms, then for every form its engine.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/cuda/graphs/library.hpp"
#include "backend/cuda/lowering/recipe.hpp"
#include "backend/cuda/lowering/values.hpp"

namespace convoy::cuda {

/// Words of CompileSpec::options: plain convolutions only; and those with the statistics of their output.
inline constexpr std::string_view no_fusion = "no-fusion", statistics_only = "statistics-only";

struct Chosen {
  Form form;
  std::shared_ptr<Operation> operation;
};

/// What may be fused of a rectified group of norms to a convolution that reads it; none where `source` is something
/// else.
Border border_of(const Value& source, const Value& convolution);

/// Bytes of a workspace so big that it must hold a tensor (more than a byte an element), twice: written and read.
Index hidden_bytes(const Form& form, const Operation& operation);

class Chooser {
 public:
  Chooser(const RecipeSpec& spec, const Lowering& lowering);

  /// Whether a group of one norm is computed in front of all convolutions that read it, forward and for weight
  /// gradients, and never stored.
  bool in_prologues(int group);
  /// The forward pass of a convolution whose source is as `border` says (stored: none). Statistics are made by it
  /// where the form has them. A join is taken only where the library has it: else nothing.
  std::optional<Chosen> forward(int convolution, Border border, bool statistics);
  /// Through a border where that moves fewer bytes than a plain data gradient and kernels of ours.
  /// `border`: of the source group, none where its gradient isn't complete with this; `adds`: with another gradient.
  Chosen data_gradient(int convolution, Border border, bool adds);
  Chosen weight_gradient(int convolution, Border border);

  std::string text() const;

 private:
  /// `-`, `n`, `j` or `d` by border; capital with statistics.
  struct Letters {
    char forward = '.', data = '.', weight = '.';
  };
  Form form_of(int convolution, Pass pass) const;
  std::shared_ptr<Operation> find(const Form& form);
  Chosen need(int convolution, const Form& form);
  void read(const std::string& text);
  Index activation_bytes(int value) const;

  const RecipeSpec& spec_;
  const Lowering& lowering_;
  Index workspace_limit_ = Index{1} << 30;
  enum class Fuses : std::uint8_t { nothing, statistics, everything };
  Fuses fuses_ = Fuses::everything;
  std::map<int, Letters> letters_;                              ///< by convolution: what was chosen
  std::map<int, Letters> given_;                                ///< what choices say
  std::map<std::string, std::string> engines_, given_engines_;  ///< by form
  std::map<int, bool> prologues_;
};

}  // namespace convoy::cuda
