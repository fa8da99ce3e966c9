// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "comm/agreed_error.hpp"

namespace convoy::preparation {

/// Collective. Runs body on every rank; throws AgreedError on all of them unless all came through. Who was asked to
/// stop meanwhile goes on: unlike run_agreed, since the work itself looks for it where it can be left.
inline void agree(Communicator& comm, const char* what, const std::function<void()>& body) {
  if (const Exit code = comm.agreed_exit(what, body); code != Exit::ok) throw AgreedError{code};
}

}  // namespace convoy::preparation
