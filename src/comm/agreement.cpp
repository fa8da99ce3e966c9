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

/// Being asked to stop weighs less than any failure: a failure would come back with the resubmitted job.
std::int64_t weight_of(Exit code) {
  if (code == Exit::ok) return 0;
  return code == Exit::stopped ? 1 : static_cast<std::int64_t>(code) + 1;
}
Exit code_of(std::int64_t weight) {
  if (weight == 0) return Exit::ok;
  return weight == 1 ? Exit::stopped : static_cast<Exit>(weight - 1);
}

/// If many ranks have the same problem, the first of them reports it.
void report_each_once(const std::vector<std::string>& problems, int rank) {
  const std::string& own = problems[static_cast<std::size_t>(rank)];
  const auto first = std::find(problems.begin(), problems.end(), own);
  if (own.empty() || first - problems.begin() != rank) return;
  const auto same = std::count(problems.begin(), problems.end(), own) - 1;
  log::report_error(same == 0 ? own : fmt::format("{} (the same on {} other ranks)", own, same));
}

}  // namespace

Exit Communicator::together(const char* what, const std::function<void()>& body) {
  Exit own = Exit::ok;
  std::string problem;
  try {
    body();
  } catch (const Error& e) {
    // Without the others there is no agreement either.
    if (e.code() == Exit::communication) throw;
    own = e.code();
    if (own != Exit::stopped) problem = e.what();
  } catch (const std::exception& e) {
    own = Exit::internal;
    problem = fmt::format("{} failed ({}); this is a fault of the program", what, e.what());
  }
  std::int64_t worst = weight_of(own);
  try {
    maximum(std::span(&worst, 1), what);
  } catch (const Error&) {
    if (!problem.empty()) log::report_error(problem);  // nobody else will say it
    throw;
  }
  if (worst > weight_of(Exit::stopped)) report_each_once(all_gather(problem, what), rank());
  return code_of(worst);
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

Votes Communicator::agree_later(const Votes& votes) {
  constexpr const char* what = "agreement on stopping";
  PendingVote& pending = *state_->vote;
  Votes agreed{};
  if (pending.started) {
    state_->wait(pending.request, what);
    agreed = pending.agreed;
  }
  pending.sent = votes;
  pending.started = true;
  check_mpi(MPI_Iallreduce(pending.sent.data(), pending.agreed.data(), static_cast<int>(votes.size()), MPI_INT64_T,
                           MPI_MAX, state_->comm, &pending.request),
            "MPI_Iallreduce", what);
  return agreed;
}

}  // namespace convoy
