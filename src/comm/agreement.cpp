// SPDX-License-Identifier: Apache-2.0
// How ranks come to one mind: about failures of set-up, about what they hold, about stopping.
#include <algorithm>

#include "comm/checked.hpp"
#include "comm/state.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

/// Long texts differ in one place: show it with what stands before it.
std::string excerpt(const std::string& text, std::size_t difference) {
  constexpr std::size_t longest = 160, before = 40;
  if (text.size() <= longest) return text;
  const std::size_t begin = difference > before ? difference - before : 0;
  return (begin > 0 ? "..." : "") + text.substr(begin, longest) + (begin + longest < text.size() ? "..." : "");
}

}  // namespace

Exit Communicator::together(const char* what, const std::function<void()>& body) {
  Exit own = Exit::ok;
  try {
    body();
  } catch (const Error& e) {
    // Without the others there is no agreement either.
    if (e.code() == Exit::communication) throw;
    own = e.code();
    log::report_error(e.what());
  } catch (const std::exception& e) {
    own = Exit::internal;
    log::report_error(fmt::format("{} failed ({}); this is a fault of the program", what, e.what()));
  }
  std::int64_t worst = static_cast<int>(own);
  maximum(std::span(&worst, 1), what);
  return static_cast<Exit>(worst);
}

void Communicator::require_equal(const std::string& text, const char* what) {
  std::string first = text;
  state_->broadcast_text(first, 0, what);
  std::int64_t other = text == first ? 0 : size() - rank();  // the maximum is the lowest rank that differs
  maximum(std::span(&other, 1), what);
  if (other == 0) return;
  const int rank_of_other = size() - static_cast<int>(other);
  std::string second = text;
  state_->broadcast_text(second, rank_of_other, what);
  const auto at = std::mismatch(first.begin(), first.end(), second.begin(), second.end()).first - first.begin();
  const auto difference = static_cast<std::size_t>(at);
  fail(Exit::usage, "ranks disagree on {} (rank 0 on {}: '{}'; rank {} on {}: '{}'); start all ranks alike", what,
       hosts().front(), excerpt(first, difference), rank_of_other, hosts()[static_cast<std::size_t>(rank_of_other)],
       excerpt(second, difference));
}

int Communicator::agree_later(int wish) {
  constexpr const char* what = "agreement on stopping";
  PendingWish& pending = *state_->wish;
  int agreed = 0;
  if (pending.started) {
    state_->wait(pending.request, what);
    agreed = pending.agreed;
  }
  pending.sent = wish;
  pending.started = true;
  check_mpi(MPI_Iallreduce(&pending.sent, &pending.agreed, 1, MPI_INT, MPI_MAX, state_->comm, &pending.request),
            "MPI_Iallreduce", what);
  return agreed;
}

}  // namespace convoy
