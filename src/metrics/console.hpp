// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "metrics/metrics.hpp"

namespace convoy {

/// The line of an interval; columns stay in place while numbers grow. epochs 0: the length isn't known.
/// `epoch  3/10 step 120/390 |    1021 img/s | loss 1.2340 top1 55.30 | lr 0.12300 | data 0.1 compute 110.2 comm 3.1
/// other 0.4 ms | eta 0:03:12`
std::string step_text(const StepRecord& record, Index steps, Index epochs);

/// `epoch 3/10 step 7/390 | 12.3 img/s | loss 1.2340 | eta 0:03:12`, into `buffer`, without allocating.
std::string_view progress_text(std::span<char> buffer, const StepProgress& now, Index epochs);

/// `0:03:12`, `3d 04:05:06`.
std::string duration_text(double seconds);
/// `; of a part of the split: 40 of its 200 images (--limit-val-batches)`; empty if it was the whole split.
std::string tell_part(const ValidationRecord& record);

}  // namespace convoy
