// SPDX-License-Identifier: Apache-2.0
// transport_probe list LOCATION [FOLDER] | cat LOCATION NAME [BEGIN [END]] | look LOCATION NAME | skip LOCATION NAME
// TAKE SKIP Options come from the environment: ENDPOINT, ANONYMOUS, RETRIES, TIMEOUT, BACKOFF. Errors end with their
// exit code.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {
namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

void copy(ByteStream& stream, Index most) {
  std::vector<std::uint8_t> piece(10000);
  while (most > 0) {
    const std::size_t got =
        stream.read(piece.data(), static_cast<std::size_t>(std::min<Index>(most, static_cast<Index>(piece.size()))));
    if (got == 0) return;
    std::fwrite(piece.data(), 1, got, stdout);
    most -= static_cast<Index>(got);
  }
}

void run(const std::vector<std::string>& words) {
  constexpr Index all = Index{1} << 60;
  TransferSpec spec;
  spec.endpoint = setting("ENDPOINT", "");
  spec.anonymous = setting("ANONYMOUS", "") == "1";
  spec.retries = std::stoi(setting("RETRIES", "4"));
  spec.timeout_seconds = std::stod(setting("TIMEOUT", "0.4"));
  spec.backoff_seconds = std::stod(setting("BACKOFF", "0.02"));
  const auto store = open_store(parse_location(words.at(1)), spec);
  const std::string name = words.size() > 2 ? words[2] : "";
  if (words[0] == "list") {
    const Listing listing = store->list(name);
    for (const auto& folder : listing.folders) std::printf("%s/\n", folder.c_str());
    for (const auto& object : listing.objects) std::printf("%s\n", object.name.c_str());
  } else if (words[0] == "look") {
    std::printf("%ld\n", static_cast<long>(store->look_up(name).bytes));
  } else if (words[0] == "cat") {
    ByteRange range;
    if (words.size() > 3) range.begin = std::stol(words[3]);
    if (words.size() > 4) range.end = std::stol(words[4]);
    copy(*store->open(name, range), all);
  } else {
    const auto stream = store->open(name);
    copy(*stream, std::stol(words.at(3)));
    stream->skip(std::stol(words.at(4)));
    copy(*stream, all);
  }
}

}  // namespace
}  // namespace convoy::preparation

int main(int argc, char** argv) {
  try {
    convoy::preparation::run({argv + 1, argv + argc});
    return 0;
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
