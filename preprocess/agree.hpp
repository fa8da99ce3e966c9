// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "comm/agreed_error.hpp"

namespace convoy::preparation {

/// Collective. Runs body on every rank; throws AgreedError on all ranks if one failed. Unlike run_agreed it
/// ignores a request to stop: the body checks for one where it can stop.
inline void agree(Communicator& comm, const char* what, const std::function<void()>& body) {
  if (const Exit code = comm.agreed_exit(what, body); code != Exit::ok) throw AgreedError{code};
}

}  // namespace convoy::preparation
