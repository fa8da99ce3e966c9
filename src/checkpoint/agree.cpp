// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/agree.hpp"

namespace convoy {
namespace {
std::string run(const std::function<std::string()>& body) {
  try {
    return fmt::format("+{}", body());
  } catch (const Error& error) {
    return fmt::format("{:03}{}", static_cast<int>(error.code()), error.what());
  } catch (const std::exception& error) {
    return fmt::format("{:03}{}", static_cast<int>(Exit::internal), error.what());
  }
}
}  // namespace

std::vector<std::string> agree(Communicator& communicator, const char* what, const std::function<std::string()>& body) {
  std::vector<std::string> texts = communicator.all_gather(run(body), what);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::string& text = texts[rank];
    if (text.front() != '+')
      throw Error(static_cast<Exit>(std::stoi(text.substr(0, 3))),
                  fmt::format("{} failed on rank {} ({}): {}", what, rank, communicator.hosts()[rank], text.substr(3)));
    text.erase(0, 1);
  }
  return texts;
}

}  // namespace convoy
