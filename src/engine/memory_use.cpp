// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_use.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/factory.hpp"
#include "core/errors.hpp"
#include "core/host_facts.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

constexpr double giga = 1e9;

/// The usual batch.
Index batch_of(const EngineSpec& spec) {
  Index batch = 1;
  for (const ProgramSizes& sizes : spec.sizes)
    batch = std::max(batch, sizes.train_sizes.empty() ? sizes.eval_size : sizes.train_sizes.front());
  return batch;
}

}  // namespace

bool trains(const EngineSpec& spec) {
  return std::any_of(spec.sizes.begin(), spec.sizes.end(),
                     [](const auto& sizes) { return !sizes.train_sizes.empty(); });
}

Index arena_floats(const EngineSpec& spec, Index batch, const ArenaOf& arena) {
  Index floats = 0;
  const bool training = trains(spec);
  for (const ProgramSizes& given : spec.sizes) {
    ProgramSizes sizes = given;
    if (batch > 0 && !sizes.train_sizes.empty()) sizes.train_sizes = {batch};
    if (batch > 0 && !training) sizes.eval_size = batch;
    CompileSpec compile = training_spec(spec, sizes);
    for (const Index samples : sizes.train_sizes) {
      compile.samples = samples;
      floats = std::max(floats, arena(compile));
    }
    for (const CompileSpec& evaluated : evaluation_specs(sizes, compile)) floats = std::max(floats, arena(evaluated));
  }
  return floats;
}

Index largest_that_fits(Index limit, Index first, const std::function<Index(Index)>& floats) {
  const auto size = [&](Index number) {
    try {
      return floats(number);
    } catch (const Error& error) {
      if (error.code() != Exit::device) throw;
      return limit + 1;
    }
  };
  // Between them lies the answer: `fits` does, `other` doesn't. Memory is nearly a straight line of the batch, so where
  // that meets the limit is tried first; bisection follows where it is not.
  Index fits = 0, other = most_samples + 1, of_fits = 0, of_other = 0;
  Index next = std::clamp<Index>(first, 1, most_samples);
  for (int tries = 0;; ++tries) {
    const Index found = size(next);
    if (found <= limit) {
      fits = next;
      of_fits = found;
    } else {
      other = next;
      of_other = found;
    }
    constexpr int of_the_line = 8;
    if (other - fits <= 1) break;
    if (other > most_samples) {  // none was too large yet
      const double slope = static_cast<double>(of_fits) / static_cast<double>(fits);
      next = static_cast<Index>(std::min(static_cast<double>(limit) / std::max(slope, 1e-9), 1e15)) + 1;
      next = std::clamp(next, fits + 1, std::min(most_samples, 16 * fits));
    } else if (tries < of_the_line && of_other > of_fits) {
      const double share = static_cast<double>(limit - of_fits) / static_cast<double>(of_other - of_fits);
      next = fits + static_cast<Index>(share * static_cast<double>(other - fits));
      // If the line ends at `fits`, go one further: the search ends only when both neighbours of the limit are tried.
      next = std::clamp(next + (next == fits ? 1 : 0), fits + 1, other - 1);
    } else {
      next = fits + (other - fits) / 2;
    }
  }
  return fits;
}

std::string tell_largest_batch(const EngineSpec& spec, Index floats, const ArenaOf& arena) {
  const auto largest_of = [&](Recompute recompute, Index first) {
    EngineSpec of = spec;
    of.device.recompute = recompute;
    return largest_that_fits(floats, first, [&](Index batch) { return arena_floats(of, batch, arena); });
  };
  const bool off = spec.device.recompute == Recompute::off;
  // The search assumes that auto repeats all blocks for the largest batch; a smaller number of blocks may need less, so
  // auto may fit slightly more.
  const Index largest = largest_of(off ? Recompute::off : Recompute::all, batch_of(spec));
  const auto number = [](Index batch) { return fmt::format("{}{}", batch, batch == most_samples ? " or more" : ""); };
  Index more = 0;  // with --recompute auto, where that is another
  if (trains(spec) && off && largest < most_samples) {
    more = largest_of(Recompute::all, std::max<Index>(largest, 1));
    if (more <= largest) more = 0;
  }
  const char* option = trains(spec) ? "--batch-size" : "--batch-size of an evaluation";
  if (largest == 0)
    return fmt::format(
        "not even one image per batch fits; take {}a smaller --image-size, a smaller --eval-batch-size or more memory",
        more > 0 ? fmt::format("--recompute auto, with which {} {}, ", number(more), more == 1 ? "fits" : "fit") : "");
  return fmt::format("the largest batch that fits is {} ({}){}", number(largest), option,
                     more > 0 ? fmt::format("; with --recompute auto it is {}", number(more)) : "");
}

MemoryLimit memory_of(const Backend& backend, int sharing) {
  const bool on_gpu = !backend.host_reads();
  const double bytes = on_gpu ? free_device_memory() : memory_limit();
  return {bytes / std::max(sharing, 1),
          fmt::format("the {:.1f} GB {}{}", bytes / giga, on_gpu ? "that the GPU has left" : "of this host",
                      sharing > 1 ? " for " + counted(sharing, "rank") : "")};
}

MemoryLimit share_device_memory(Communicator& communicator, const Backend& backend) {
  const std::string own = backend.identity();
  const std::vector<std::string> all = communicator.all_gather(own, "devices of the ranks");
  const bool on_gpu = !backend.host_reads();
  const auto sharing = on_gpu ? static_cast<int>(std::count(all.begin(), all.end(), own)) : communicator.node_size();
  MemoryLimit limit = memory_of(backend, sharing);
  communicator.barrier("memory of the devices");
  return limit;
}

Index other_floats(const EngineSpec& spec, const Plan& plan, const SetLayout& layout,
                   std::optional<Index> update_floats, bool of_host) {
  Index floats = spec.set_floats ? spec.set_floats(layout, plan.table) : layout.count();
  if (update_floats) floats += plan.table.block() + *update_floats;
  if (of_host) floats += (spec.sample_bytes + 3) / 4;
  return floats;
}

void require_room_for_parameters(const EngineSpec& spec, const Plan& plan, const SetLayout& layout,
                                 const MemoryLimit& memory) {
  const Index floats = other_floats(spec, plan, layout, {}, false) + (trains(spec) ? plan.table.block() : 0);
  const double needed = static_cast<double>(floats) * sizeof(float);
  if (memory.bytes <= 0 || needed <= memory.bytes) return;
  fail(
      Exit::device,
      "the network needs {:.1f} GB for its {:.3g} million parameters alone{}, more than {}; choose a smaller network, or "
      "more memory",
      needed / giga, static_cast<double>(layout.values.count) / 1e6,
      trains(spec) ? " (values, optimizer state and gradients)" : "", memory.name);
}

Index arena_limit(const MemoryLimit& memory, Index others) {
  if (memory.bytes <= 0) return std::numeric_limits<Index>::max() / 8;
  constexpr double share = 0.95;
  return static_cast<Index>(share * memory.bytes / sizeof(float)) - others;
}

}  // namespace convoy
