// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "comm/communicator.hpp"

namespace convoy::preparation {

/// All ranks leave with this code; the reason has been printed.
struct AgreedError {
  Exit code;
};

/// Collective. Runs body on every rank; throws AgreedError on all of them unless all came through.
inline void agree(Communicator& comm, const char* what, const std::function<void()>& body) {
  if (const Exit code = comm.agreed_exit(what, body); code != Exit::ok) throw AgreedError{code};
}

/// Collective. For what all ranks compute from the same numbers: what is wrong is wrong on all of them, and rank 0,
/// which goes first, says so for all.
inline void agree_same(Communicator& comm, const char* what, const std::function<void()>& body) {
  agree(comm, what, [&] {
    if (comm.rank() == 0) body();
  });
  if (comm.rank() != 0) body();
}

}  // namespace convoy::preparation
