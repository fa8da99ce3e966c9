// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// What to write instead of an option of other training programs (`amp`, `kv-store`; hyphens, no dashes in front):
/// `use --precision fp16 or bf16`. Empty: no such name is known.
std::string foreign_hint(const std::string& name);

}  // namespace convoy
