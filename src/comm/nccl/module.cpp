// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/module.hpp"

#include "comm/nccl/nccl_collectives.hpp"
#include "comm/nccl/nccl_comm.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

const std::string& build() {
  static const std::string text = build_id() + ", " + compiler();
  return text;
}

}  // namespace
}  // namespace convoy

extern "C" const convoy::NcclEntry* convoy_nccl_entry() {
  static const convoy::NcclEntry entry{
      .build = convoy::build().c_str(), .make_id = convoy::make_nccl_id, .make = convoy::make_nccl_collectives_here};
  return &entry;
}
