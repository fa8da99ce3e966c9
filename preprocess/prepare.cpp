// SPDX-License-Identifier: Apache-2.0
#include "preprocess/prepare.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "core/counted.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "preprocess/order.hpp"
#include "preprocess/output.hpp"
#include "preprocess/source.hpp"
#include "preprocess/statistics.hpp"
#include "preprocess/write_partition.hpp"

namespace convoy::preparation {
namespace {

/// All ranks leave with this code; the reason has been printed.
struct Leave {
  Exit code;
};

/// Collective.
void agree(Communicator& comm, const char* what, const std::function<void()>& body) {
  if (const Exit code = comm.together(what, body); code != Exit::ok) throw Leave{code};
}

/// One split as it will lie on the disk.
struct SplitPlan {
  Split split = Split::train;
  std::vector<Index> order;  ///< source sample of every id
  std::vector<Partition> headers;
};

Index choose_val_partitions(const PrepareSpec& spec, const Source& source) {
  const Index train = source.samples(Split::train), val = source.samples(Split::val);
  if (spec.val_partitions > 0) return spec.val_partitions;
  const Index largest = (train + spec.partitions - 1) / spec.partitions;
  return std::min((val + largest - 1) / largest, spec.partitions);
}

/// Everything but the source's bytes that decides the bytes of a partition.
std::string parameters_text(const PrepareSpec& spec, Index val_partitions) {
  std::string text = fmt::format("kind={} partitions={} val_partitions={} seed={} mean_image={}", kind_name(spec.kind),
                                 spec.partitions, val_partitions, spec.seed, spec.mean_image ? 1 : 0);
  if (spec.kind == DataKind::cifar100) text += fmt::format(" coarse={}", spec.coarse ? 1 : 0);
  if (spec.kind == DataKind::synthetic) {
    const SyntheticSpec& s = spec.synthetic;
    text += fmt::format(" samples={} val_samples={} image_size={}x{} channels={} classes={}", s.samples,
                        spec.val_samples, s.height, s.width, s.channels, s.classes);
  }
  return text;
}

SplitPlan plan_split(const PrepareSpec& spec, const Source& source, Split split, Index val_partitions) {
  const SourceInfo& info = source.info();
  SplitPlan plan{split, shuffle_by_name(source, split, spec.seed), {}};
  Partition header;
  header.split = split_name(split);
  header.partitions = split == Split::train ? spec.partitions : val_partitions;
  header.split_samples = source.samples(split);
  if (header.split_samples < header.partitions) {
    fail(Exit::usage, "{} {} samples can't fill {} partitions; give fewer --{}partitions", header.split_samples,
         header.split, header.partitions, split == Split::train ? "" : "val-");
  }
  header.height = info.height;
  header.width = info.width;
  header.channels = info.channels;
  header.classes = static_cast<Index>(info.class_names.size());
  header.class_names = info.class_names;
  header.seed = static_cast<Index>(spec.seed);
  header.source = info.title;
  header.source_digest = info.digest;
  header.parameters = parameters_text(spec, val_partitions);
  for (Index number = 0; number < header.partitions; ++number) {
    const Range range = cut_evenly(header.split_samples, header.partitions, number);
    header.number = number;
    header.first = range.begin;
    header.samples = range.count;
    header.path =
        (std::filesystem::path(spec.out) / partition_file_name(header.split, number, header.partitions)).string();
    plan.headers.push_back(header);
  }
  return plan;
}

std::vector<SplitPlan> plan_splits(const PrepareSpec& spec, const Source& source) {
  const Index val_partitions = choose_val_partitions(spec, source);
  return {plan_split(spec, source, Split::train, val_partitions), plan_split(spec, source, Split::val, val_partitions)};
}

/// The partitions that this rank has to make; partitions of both splits are dealt in turn.
struct Work {
  const SplitPlan* plan = nullptr;
  Partition header;
};

std::vector<Work> find_work(const Communicator& comm, const PrepareSpec& spec, const std::vector<SplitPlan>& plans) {
  std::vector<Work> work;
  int turn = 0;
  for (const SplitPlan& plan : plans) {
    for (const Partition& header : plan.headers) {
      if (turn++ % comm.size() != comm.rank()) continue;
      const Existing existing = look_for(header);
      if (existing == Existing::complete) continue;
      if (existing == Existing::other && !spec.overwrite) {
        fail(Exit::usage,
             "'{}' is in the way (made from another source or with other options); choose another --out or "
             "give --overwrite",
             header.path);
      }
      work.push_back({&plan, header});
    }
  }
  return work;
}

/// Collective.
Normalisation measure(Communicator& comm, const PrepareSpec& spec, const Source& source) {
  const Index samples = source.samples(Split::train);
  PixelSums sums;
  agree(comm, "measuring mean and standard deviation",
        [&] { sums = sum_pixels(source, cut_evenly(samples, comm.size(), comm.rank()), spec.mean_image); });
  comm.sum(sums.sum, "sums of pixels");
  comm.sum(sums.squares, "sums of squares");
  if (spec.mean_image) comm.sum(sums.image, "sums of images");
  return normalisation_of(sums, samples * source.info().height * source.info().width);
}

void make(const Work& work, const Source& source, const Normalisation& normalisation) {
  Partition header = work.header;
  header.mean = normalisation.mean;
  header.std = normalisation.std;
  header.mean_image = normalisation.mean_image;
  write_partition(header, [&](Index i, std::uint8_t* image) {
    return source.read(work.plan->split, work.plan->order[static_cast<std::size_t>(header.first + i)], image);
  });
}

/// Collective. Rank 0 first: what is wrong for all is reported once, and the others find the files in memory.
std::unique_ptr<Source> open_on_all(Communicator& comm, const PrepareSpec& spec) {
  std::unique_ptr<Source> source;
  agree(comm, "reading the source", [&] {
    if (comm.rank() == 0) source = open_source(spec);
  });
  agree(comm, "reading the source", [&] {
    if (comm.rank() != 0) source = open_source(spec);
  });
  comm.require_equal(source->info().digest, "the bytes of the source");
  if (comm.rank() == 0) {
    for (const auto& remark : source->info().remarks) log::warn("{}", remark);
  }
  return source;
}

/// Collective.
void run(Communicator& comm, const PrepareSpec& spec) {
  const auto start = std::chrono::steady_clock::now();
  const auto source = open_on_all(comm, spec);
  std::vector<SplitPlan> plans;
  agree(comm, "planning", [&] {
    if (comm.rank() == 0) plans = plan_splits(spec, *source);
  });
  // What may be wrong with the plan is wrong on all ranks: only rank 0 had to say so.
  if (comm.rank() != 0) plans = plan_splits(spec, *source);

  agree(comm, "preparing the folder", [&] {
    if (comm.rank() != 0) return;
    std::vector<std::string> names;
    for (const SplitPlan& plan : plans) {
      for (const auto& h : plan.headers) names.push_back(partition_file_name(h.split, h.number, h.partitions));
    }
    prepare_folder(spec.out, names, spec.overwrite);
  });
  std::vector<Work> work;
  agree(comm, "looking for finished partitions", [&] { work = find_work(comm, spec, plans); });
  std::int64_t made = static_cast<std::int64_t>(work.size());
  comm.sum(std::span(&made, 1), "count of partitions to make");

  if (made > 0) {
    const Normalisation normalisation = measure(comm, spec, *source);
    agree(comm, "writing partitions", [&] {
      for (const Work& item : work) {
        leave_if_stopped("writing partitions");
        make(item, *source, normalisation);
      }
    });
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Index all = 0;
  for (const SplitPlan& plan : plans) {
    const auto& header = plan.headers.front();
    all += header.partitions;
    log::info("{}: {} of {}x{}x{} in {} of up to {}", header.split, counted(header.split_samples, "image"),
              header.height, header.width, header.channels, counted(header.partitions, "partition"), header.samples);
  }
  log::info("{} made, {} kept, in '{}', {:.1f} s on {} ranks", counted(made, "partition"), all - made, spec.out,
            seconds.count(), comm.size());
}

}  // namespace

Exit prepare(Communicator& comm, const PrepareSpec& spec) {
  try {
    run(comm, spec);
    return Exit::ok;
  } catch (const Leave& leave) {
    if (leave.code == Exit::stopped) {
      log::info("stopped on request ({}); start it again, it makes the partitions that are missing",
                name_of(stop_reason()));
    }
    return leave.code;
  }
}

}  // namespace convoy::preparation
