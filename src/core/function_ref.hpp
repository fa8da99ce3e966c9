// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <type_traits>

namespace convoy {

/// A reference to a callable `void()` that outlives the call it is passed to. Unlike std::function it allocates
/// nothing.
class FunctionRef {
 public:
  template <class Callable, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>>>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the copy is excluded above
  FunctionRef(Callable&& callable)  // implicit: lambdas are passed where it is a parameter
      : object_(std::addressof(callable)),
        call_([](const void* object) { (*static_cast<const std::remove_reference_t<Callable>*>(object))(); }) {}

  void operator()() const { call_(object_); }

 private:
  const void* object_;
  void (*call_)(const void*);
};

}  // namespace convoy
