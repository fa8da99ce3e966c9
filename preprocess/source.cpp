// SPDX-License-Identifier: Apache-2.0
#include "preprocess/source.hpp"

#include "core/errors.hpp"

namespace convoy::preparation {

std::unique_ptr<Source> open_source(const PrepareSpec& spec) {
  switch (spec.kind) {
    case DataKind::cifar10:
      return open_cifar10(spec);
    case DataKind::cifar100:
      return open_cifar100(spec);
    case DataKind::mnist:
      return open_mnist(spec);
    case DataKind::synthetic:
      return open_generated(spec);
  }
  fail(Exit::internal, "unknown kind of source");
}

}  // namespace convoy::preparation
