// SPDX-License-Identifier: Apache-2.0
// Any bytes as a partition whose seal is right: what the program makes of headers and tables once HDF5 has read them.
// HDF5's own parser crashes on some damaged files, which is why a seal is checked before it sees any; here it runs in a
// child process, whose crash counts as an error of the file. The child's coverage is taken over.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/errors.hpp"
#include "data/partition.hpp"
#include "io/file.hpp"
#include "io/seal.hpp"
#include "preprocess/fields.hpp"
#include "preprocess/output.hpp"
#include "tests/fuzz/counters.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// Memory that parent and child share: the partition as fields, and counters.
struct Shared {
  std::size_t text_bytes = 0;
  char text[1 << 16];
  std::uint8_t counters[1 << 22];
};

Shared& shared() {
  static auto* memory =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *memory;
}

/// Those that fit into the memory shared with the child.
std::span<std::uint8_t> counters() {
  const auto all = coverage_counters();
  return all.first(std::min(all.size(), sizeof(Shared::counters)));
}

/// Calls visit with every member that find_faults() reads.
void visit_members(Partition& p, const auto& visit) {
  visit(p.encoding, p.samples, p.first, p.classes, p.height, p.width, p.channels, p.stored_bytes, p.name_bytes,
        p.images_offset, p.labels_offset, p.ids_offset, p.crc_offset, p.offsets_offset, p.dimensions_offset,
        p.names_offset, p.name_offsets_offset);
}

std::string pack(Partition p) {
  std::string text;
  visit_members(p, [&](const auto&... members) { text = to_text(members...); });
  return text;
}

Partition unpack(const std::string& path, std::string_view text) {
  Partition p;
  p.path = path;
  visit_members(p, [&](auto&... members) { from_text(text, members...); });
  return p;
}

[[noreturn]] void parse_in_child(const std::string& path, const Seal& seal) {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(number, SIG_DFL);
  alarm(5);
  try {
    const std::string text = pack(read_sealed_partition(path, seal));
    if (text.size() <= sizeof(Shared::text)) {
      text.copy(shared().text, text.size());
      shared().text_bytes = text.size();
    }
  } catch (const Error&) {
    shared().text_bytes = 0;
  }
  std::ranges::copy(counters(), shared().counters);
  _exit(0);
}

void run(std::span<const std::uint8_t> bytes) {
  static const MemoryFile file("train-00000-of-00001.h5");
  const std::string path = file.path();
  File(path, File::Access::create).write_at(bytes.data(), bytes.size(), 0);
  Seal seal;
  seal.file_bytes = bytes.size();
  std::memcpy(&seal.samples_offset, bytes.data() + 24, 8);
  std::memcpy(&seal.samples_bytes, bytes.data() + 32, 8);
  shared().text_bytes = 0;
  const pid_t child = fork();
  if (child == 0) parse_in_child(path, seal);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return;
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ended) {
    const auto own = counters();
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(own[i], shared().counters[i]);
  }
  if (!ended || shared().text_bytes == 0) return;
  ++inputs_read();
  find_faults(unpack(path, {shared().text, shared().text_bytes}), 3);
}

}  // namespace
}  // namespace convoy::preparation

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  using namespace convoy::preparation;
  if (size < seal_bytes || size > most_bytes) return 0;
  try {
    run({data, size});
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
