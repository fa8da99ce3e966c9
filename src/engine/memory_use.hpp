// SPDX-License-Identifier: Apache-2.0
// How much memory the programs of a network take, and the largest batch for which it is enough. Both are found by
// compiling; nothing is allocated.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "engine/engine.hpp"

namespace convoy {

/// Floats of a program's arena.
using ArenaOf = std::function<Index(const CompileSpec&)>;

/// The largest arena of the programs that an engine compiles. `batch` > 0: with batches of this size, in training or,
/// if nothing is trained, in evaluation.
Index arena_floats(const EngineSpec& spec, Index batch, const ArenaOf& arena);

/// More than any memory has room for: the search ends there.
constexpr Index most_samples = 1 << 16;

/// The largest number for which `floats(number)` is at most `limit`, and for the next it isn't; 0: not even 1 is;
/// most_samples: the search ended there. A number for which it throws Error(device) doesn't fit. `first`: where the
/// search begins.
Index largest_that_fits(Index limit, Index first, const std::function<Index(Index)>& floats);

/// `the largest batch that fits is 12`, or that none does, and what --recompute would change. `floats`: what the device
/// has left for arenas.
std::string tell_largest_batch(const EngineSpec& spec, Index floats, const ArenaOf& arena);

/// What one of the `sharing` ranks may use that share the device (a GPU) or the host.
MemoryLimit memory_of(const Backend& backend, int sharing);
/// Collective. The same, asked before any of the ranks allocates; those that share a GPU share what it has left.
MemoryLimit share_device_memory(Communicator& communicator, const Backend& backend);

/// Whether any of its programs trains.
bool trains(const EngineSpec& spec);

/// Floats of the device beside the arena: sets, and where something trains gradients and `update_floats`, the
/// updater's arena. `of_host`: the device computes in the memory of the host, where samples lie too.
Index other_floats(const EngineSpec& spec, const Plan& plan, const SetLayout& layout,
                   std::optional<Index> update_floats, bool of_host);

/// Throws Error(device) where the sets and gradients alone, whatever the batch is, need more than there is. Before an
/// updater is compiled, whose tables grow with the parameters.
void require_room_for_parameters(const EngineSpec& spec, const Plan& plan, const SetLayout& layout,
                                 const MemoryLimit& memory);

/// Floats that arenas may take with Recompute::automatic beside `others`: a twentieth of the memory is left for what is
/// not counted. Where the memory isn't known, any number.
Index arena_limit(const MemoryLimit& memory, Index others);

}  // namespace convoy
