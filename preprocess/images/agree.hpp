// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "comm/communicator.hpp"

namespace convoy {

/// All ranks leave with this code; the reason has been printed.
struct Leave {
  Exit code;
};

/// Collective. Runs body on every rank; throws Leave on all of them unless all came through.
inline void agree(Communicator& comm, const char* what, const std::function<void()>& body) {
  if (const Exit code = comm.together(what, body); code != Exit::ok) throw Leave{code};
}

}  // namespace convoy
