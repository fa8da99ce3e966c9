// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/arithmetic_verdict.hpp"

namespace convoy {

struct TrainingJob;

/// What a check of bits has found.
struct WrongBits {
  Verdict verdict;
  Index step = 0;          ///< counted from 1
  std::string checked_by;  ///< `, which ranks 0, 2, 1 checked`
  Index passed_step = -1;  ///< steps done at the last check that found nothing; -1: there was none
};

/// Collective. Ends the job with Exit::arithmetic. Rank 0 names the wrong ranks with their hosts, writes the hosts to
/// excluded-hosts if it is certain, and moves checkpoints aside that are newer than the last check that passed. Ranks
/// on unlike devices may round differently, so nothing is certain of them. Throws AgreedError.
[[noreturn]] void leave_wrong(TrainingJob& job, WrongBits found);

}  // namespace convoy
