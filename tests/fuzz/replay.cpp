// SPDX-License-Identifier: Apache-2.0
// Drives a fuzz target without libFuzzer: every file given, then `rounds` damaged versions of each (bits flipped, bytes
// overwritten, cut, doubled). The short form of fuzzing that every machine can run.
// replay ROUNDS FILE ...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "tests/fuzz/counters.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t next() { return convoy::mix_bits(state_ += 0x9e3779b97f4a7c15ULL); }
  std::uint64_t state_;
};

void damage(std::vector<std::uint8_t>& bytes, Draw& draw) {
  for (std::size_t i = 0, times = 1 + draw.below(4); i < times && !bytes.empty(); ++i) {
    const std::size_t at = draw.below(bytes.size());
    switch (draw.below(6)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes[at] = draw.below(2) == 0 ? 0xFF : 0;
        break;
      case 2:
        bytes[at] = static_cast<std::uint8_t>(draw.below(256));
        break;
      case 3: {  // a stretch that stands twice
        const std::size_t end = at + draw.below(std::min<std::size_t>(bytes.size() - at, 64) + 1);
        const std::vector<std::uint8_t> part(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(end));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
        break;
      }
      default:
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1U << draw.below(8)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long rounds = std::atol(argv[1]);
  long runs = 0;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<std::uint8_t> whole{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(whole.data(), whole.size());
    Draw draw(static_cast<std::uint64_t>(i));
    for (long round = 0; round < rounds; ++round, ++runs) {
      std::vector<std::uint8_t> bytes = whole;
      damage(bytes, draw);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%ld damaged inputs, %lld could be read\n", runs, static_cast<long long>(convoy::inputs_read()));
  return convoy::inputs_read() > 0 ? 0 : 1;
}
