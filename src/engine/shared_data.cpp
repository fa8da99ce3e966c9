// SPDX-License-Identifier: Apache-2.0
#include "engine/shared_data.hpp"

#include <span>

#include "comm/agreed_error.hpp"
#include "data/dataset_bytes.hpp"
#include "engine/data.hpp"

namespace convoy {

void share(Communicator& communicator, DatasetInfo& info) {
  std::string bytes = to_bytes(info);
  communicator.broadcast(bytes, "headers of a split");
  if (communicator.rank() != 0) info = dataset_info_of(bytes);
}

void share(Communicator& communicator, std::vector<ShapeGroup>& groups) {
  std::string bytes = to_bytes(groups);
  communicator.broadcast(bytes, "shapes of a split's images");
  if (communicator.rank() != 0) groups = shape_groups_of(bytes);
}

void share(Communicator& communicator, std::vector<std::int32_t>& labels) {
  std::int64_t count = std::ssize(labels);
  communicator.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0, "number of labels");
  labels.resize(static_cast<std::size_t>(count));
  communicator.broadcast(std::as_writable_bytes(std::span(labels)), 0, "labels of a split");
}

DatasetInfo open_shared_split(Communicator& communicator, const DataConfig& config, const std::string& split) {
  DatasetInfo info;
  run_agreed(communicator, "opening the data set", [&] {
    if (communicator.rank() == 0 || config.synthetic) info = open_split(config, split);
  });
  if (!config.synthetic) share(communicator, info);
  return info;
}

}  // namespace convoy
