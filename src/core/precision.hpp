// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/types.hpp"

namespace convoy {

/// As --precision has it.
constexpr const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return "";
}

}  // namespace convoy
