// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/scan.hpp"

#include <fmt/format.h>

#include "core/hash.hpp"
#include "preprocess/agree.hpp"
#include "preprocess/fields.hpp"

namespace convoy::preparation {

Scan scan_splits(Communicator& comm, const PrepareSpec& spec, std::vector<OpenSplit>& splits, const ClassList& classes) {
  std::string text;
  agree(comm, "listing the source", [&] {
    if (comm.rank() != 0) return;
    std::vector<Container> all;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      for (Container& container : spec.kind->list(spec, splits[i], classes)) {
        container.split = i;
        all.push_back(std::move(container));
      }
    }
    text = to_text(all);
  });
  comm.broadcast(text, "list of the source");
  const auto containers = containers_from_text(text);
  FieldWriter own;
  agree(comm, "looking into the source", [&] {
    ShardList list;
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < containers.size();
         i += static_cast<std::size_t>(comm.size())) {
      spec.kind->cut(spec, splits[containers[i].split], containers[i], list);
      own.put(list.take());
    }
  });
  const auto texts = comm.all_gather(own.text(), "shards of the source");
  std::vector<FieldReader> readers(texts.begin(), texts.end());
  Scan scan;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string found = readers[i % readers.size()].text();
    FieldReader fields(found);
    const auto shards = shards_from_text(fields.text());
    scan.shards.insert(scan.shards.end(), shards.begin(), shards.end());
    scan.digest = fmt::format("{:016x}", hash_text(scan.digest + fields.text()));
    scan.objects += fields.number();
  }
  return scan;
}

}  // namespace convoy::preparation
