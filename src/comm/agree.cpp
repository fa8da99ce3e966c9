// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.hpp"

#include <array>

namespace convoy {
namespace {

/// `+` and a text, or the code in three digits and an error's.
std::string answer_of(const std::function<std::string()>& body) {
  try {
    return fmt::format("+{}", body());
  } catch (const Error& error) {
    return fmt::format("{:03}{}", static_cast<int>(error.code()), error.what());
  } catch (const std::exception& error) {
    return fmt::format("{:03}{}", static_cast<int>(Exit::internal), error.what());
  }
}

Exit code_of(const std::string& answer) { return static_cast<Exit>(std::stoi(answer.substr(0, 3))); }

}  // namespace

std::string ask_first_rank(Communicator& communicator, const char* what, const std::function<std::string()>& body) {
  std::string answer;
  if (communicator.rank() == 0) answer = answer_of(body);
  communicator.broadcast(answer, what);
  if (answer.front() != '+') throw Error(code_of(answer), answer.substr(3));
  return answer.substr(1);
}

FirstText first_text(Communicator& communicator, std::string own, const char* what) {
  const int ranks = communicator.size();
  std::array<std::int64_t, 1> lowest{own.empty() ? 0 : ranks - communicator.rank()};  // so that the maximum is it
  communicator.maximum(lowest, what);
  if (lowest[0] == 0) return {};
  const int rank = ranks - static_cast<int>(lowest[0]);
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(own.size())};
  communicator.broadcast(std::as_writable_bytes(std::span(size)), rank, what);
  own.resize(static_cast<std::size_t>(size[0]));
  communicator.broadcast(std::as_writable_bytes(std::span(own.data(), own.size())), rank, what);
  return {rank, std::move(own)};
}

void together_or_throw(Communicator& communicator, const char* what, const std::function<void()>& body) {
  const std::string answer = answer_of([&] {
    body();
    return std::string();
  });
  const auto [rank, text] = first_text(communicator, answer.front() == '+' ? std::string() : answer, what);
  if (rank < 0) return;
  throw Error(code_of(text), fmt::format("{} failed on rank {} ({}): {}", what, rank,
                                         communicator.hosts()[static_cast<std::size_t>(rank)], text.substr(3)));
}

}  // namespace convoy
