// SPDX-License-Identifier: Apache-2.0
// Private to io: identifiers of HDF5's C API under RAII, and its reasons as text.
#pragma once
#include <hdf5.h>

#include <string>
#include <utility>

#include "io/hdf5.hpp"

namespace convoy {

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closing) : id_(id), close_(closing) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }
  herr_t close() { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

struct Hdf5File::State {
  std::string path;
  Handle file;
};

/// HDF5's innermost reason for the call that just failed on this thread.
std::string hdf5_reason();

/// Throws Error(data): `'PATH': WHAT 'NAME' ... (reason)`.
[[noreturn]] void fail_on(const std::string& path, const char* what, const std::string& name);

hid_t file_type(Element element);
/// `i32`, for messages.
const char* element_name(Element element);

}  // namespace convoy
