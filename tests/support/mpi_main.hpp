// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/session.hpp"

namespace convoy {
/// The session of the test binary: tests make Communicators from it.
Session& test_session();
}  // namespace convoy
