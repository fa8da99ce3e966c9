// SPDX-License-Identifier: Apache-2.0
// Groups (sums of values and batch norms, and an activation) and the sums of batch norms: what is evaluated and
// differentiated in front of and behind operations.
#pragma once

namespace convoy::cpu {

class StepBuilder;
struct Instruction;

/// The value of a group from its terms.
void add_evaluation(const Instruction& instruction, StepBuilder& steps);
/// Mean and spread of a value in each image, for the batch norms over it.
void add_statistics(const Instruction& instruction, StepBuilder& steps);
/// The gradient of a value from the gradients of its readers.
void add_accumulation(const Instruction& instruction, StepBuilder& steps);

}  // namespace convoy::cpu
