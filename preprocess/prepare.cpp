// SPDX-License-Identifier: Apache-2.0
#include "preprocess/prepare.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/clock.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "core/text.hpp"
#include "preprocess/agree.hpp"
#include "preprocess/fields.hpp"
#include "preprocess/images/folder_lock.hpp"
#include "preprocess/images/reading.hpp"
#include "preprocess/images/report.hpp"
#include "preprocess/images/survey.hpp"
#include "preprocess/images/write_images.hpp"
#include "preprocess/output.hpp"
#include "preprocess/sources/pixel_source.hpp"
#include "preprocess/sources/scan.hpp"
#include "preprocess/spill/journal.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;
constexpr const char* report_file = "report.tsv";

/// The preparation as all ranks see it once the source has been looked at.
struct Job {
  PrepareSpec spec;
  std::vector<OpenSplit> splits;
  ClassList given;  ///< what the user or a set gives; empty and open: nothing
  Scan scan;
  JobIdentity identity;
  Provenance provenance;
  std::string spill;
  std::atomic<bool> cancel{false};
};

/// Takes over what a set whose samples are pixels says of itself.
void adopt(Job& job, const std::shared_ptr<const PixelSet>& set) {
  const SetInfo& info = set->info();
  adopt_set(*set, job.spec);
  for (OpenSplit& split : job.splits) split.set = set;
  job.given.names = info.class_names;
  job.given.closed = true;
  job.provenance.source = info.title;
  job.provenance.digest = info.digest;
}

/// Collective. Rank 0 finds the sources and reads labels and classes, so that all errors come once.
void open_sources(Communicator& comm, Job& job) {
  std::vector<SplitSource> sources;
  std::vector<std::string> texts;  // label files of the splits, then the list of classes
  agree(comm, "looking at the source", [&] {
    if (comm.rank() != 0) return;
    const auto read = [&](const std::string& at) { return at.empty() ? "" : read_location(at, job.spec.transfer); };
    sources = job.spec.kind->find(job.spec);
    for (const auto& s : sources) texts.push_back(s.label_text.empty() ? read(s.labels) : s.label_text);
    texts.push_back(read(job.spec.classes));
  });
  std::string all = to_text(sources, texts);
  comm.broadcast(all, "sources");
  if (comm.rank() != 0) from_text(all, sources, texts);
  TransferSpec transfer = job.spec.transfer;
  transfer.cancel = &job.cancel;
  job.identity.source = fmt::format("{:016x}", hash_text(""));
  for (const auto& text : texts) job.identity.source = fmt::format("{:016x}", hash_text(job.identity.source + text));
  const auto open = [&] {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      OpenSplit split{sources[i], open_store(parse_location(sources[i].folder), transfer), std::nullopt};
      const auto paths = job.spec.root.empty() ? LabelFile::Paths::forget : LabelFile::Paths::keep;
      if (!sources[i].labels.empty()) split.labels.emplace(texts[i], sources[i].labels, job.spec.label_column, paths);
      job.splits.push_back(std::move(split));
    }
    if (!job.spec.classes.empty()) job.given = parse_class_list(texts.back(), job.spec.classes);
    if (const auto set = job.spec.kind->open_set(job.spec)) adopt(job, set);
  };
  agree(comm, "opening the source", [&] {
    if (comm.rank() == 0) open();
  });
  agree(comm, "opening the source", [&] {
    if (comm.rank() != 0) open();
  });
  if (!job.spec.kind->has_pixels()) {
    job.provenance.source = fmt::format("{} images", job.spec.kind->name());
  } else {
    comm.require_equal(job.provenance.digest, "the bytes of the source");
    for (const auto& warning : job.splits.front().set->info().warnings) {
      if (comm.rank() == 0) log::warn("{}", warning);
    }
  }
  const std::string recipe = recipe_text(job.spec), layout = layout_text(job.spec);
  job.identity.recipe = recipe;
  job.provenance.parameters = layout.empty() ? recipe : recipe + " " + layout;
}

Times times_of(const PrepareSpec& spec) { return spec.ignore_times ? Times::ignore : Times::compare; }

SpillRequest request_of(const Job& job) { return {job.identity, job.spec.overwrite, times_of(job.spec)}; }

/// Looks for partitions in the size folders that are not of this preparation. Throws Error(usage) naming the first, and
/// what differs.
void require_no_others(const Job& job) {
  Preparation made;
  std::string difference;
  if (read_preparation(job.spec.out, made)) difference = difference_of(made.identity, job.identity, times_of(job.spec));
  for (std::size_t s = 0; s < job.spec.recipe.sizes.size(); ++s) {
    std::error_code reason;
    for (const auto& entry : fs::directory_iterator(size_folder(job.spec, s), reason)) {
      const PartitionName name = parse_partition_name(entry.path().filename().string());
      if (name.partitions == 0 || (name.split != "train" && name.split != "val")) continue;
      std::string why = difference, advice = advice_on(made.identity, job.identity);
      try {
        const Partition found = read_partition(entry.path().string());
        const std::string expected = job.provenance.parameters_of(job.spec.recipe, s);
        if (found.parameters != expected) {
          why = "made with other options: " + differing_options(found.parameters, expected);
          advice = advice_on({}, job.identity);
        } else if (why.empty() && !job.provenance.digest.empty() && found.source_digest != job.provenance.digest) {
          why = "made from other contents: the bytes of the source differ";
        }
      } catch (const Error&) {
        if (why.empty()) continue;  // a damaged one is made anew
      }
      if (why.empty()) continue;
      fail(Exit::usage, "'{}' is in the way ({}); {}", entry.path().string(), why, advice);
    }
  }
}

/// Says that a set is whole, and how far its source was compared with what it was made of.
void tell_done(const Job& job, const Preparation& made) {
  const auto& shards = job.scan.shards;
  const bool of_files = std::any_of(shards.begin(), shards.end(), [](const Shard& s) { return !s.listing.empty(); });
  const std::string limit = made.identity.is_of_earlier_version() && (of_files || job.spec.kind == find_source("list"))
                                ? "an earlier version made them, which compared files by name"
                            : job.scan.trace.unsized > 0 ? fmt::format("{} could be compared by name only",
                                                                       counted(job.scan.trace.unsized, "file"))
                                                         : "";
  log::info("{} kept, in '{}': nothing to do{}", counted(made.files.size(), "partition"), job.spec.out,
            limit.empty() ? "" : "; " + limit + ", so if contents changed, give --overwrite or choose another --out");
}

/// Collective. True: an earlier run made all of this, and it is whole.
bool is_done(Communicator& comm, const Job& job) {
  std::string list;
  Preparation found;
  if (comm.rank() == 0 && read_preparation(job.spec.out, found) && found.layout == layout_text(job.spec) &&
      difference_of(found.identity, job.identity, times_of(job.spec)).empty()) {
    list = to_text(found.files);
  }
  comm.broadcast(list, "list of partitions");
  if (list.empty()) return false;
  std::vector<std::string> files;
  from_text(list, files);
  std::array<std::int64_t, 2> counts{};
  std::int64_t &missing = counts[0], &older = counts[1];
  agree(comm, "checking partitions", [&] {
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < files.size();
         i += static_cast<std::size_t>(comm.size())) {
      leave_if_stopped("checking partitions");
      const std::string path = (fs::path(job.spec.out) / files[i]).string();
      try {
        const Partition stored = read_partition(path);
        if (!find_faults(stored, 1).empty()) {
          ++missing;
        } else if (is_older(stored)) {
          ++older;
        }
      } catch (const Error& e) {
        log::warn("{}; it is made again", e.what());
        ++missing;
      }
    }
  });
  comm.sum(std::span(counts), "counts of missing and older partitions");
  const bool older_stay = older == 0 || keeps_older(older, static_cast<Index>(files.size()), job.spec.overwrite);
  if (missing > 0 || !older_stay) return false;
  agree(comm, "comparing with what --strict allows", [&] {
    if (comm.rank() != 0) return;
    require_strict(job.spec.strict, found.findings, (fs::path(job.spec.out) / report_file).string());
    tell_done(job, found);
  });
  return true;
}

/// What is left to do for a set that is whole: notes the files' times if they were ignored, and removes intermediate
/// files if an earlier run was killed before it had removed them.
void finish_done(const Job& job, FolderLock& lock) {
  Preparation found;
  const bool noted = !read_preparation(job.spec.out, found) || found.identity.is_of_earlier_version() ||
                     found.identity.times == job.identity.times;
  const bool spilled = is_spill_of(job.spill, request_of(job));
  if (noted && !spilled) return;
  lock.take(job.spec.out);
  if (spilled) remove_spill(job.spill);
  found.identity = job.identity;
  if (!noted) write_preparation(job.spec.out, found);
}

/// Collective.
std::vector<RunReader> open_runs(Communicator& comm, const Job& job) {
  std::string list;
  agree(comm, "looking at intermediate files", [&] {
    if (comm.rank() == 0) list = to_text(keep_sound_runs(job.spill, job.scan.shards.size()));
  });
  comm.broadcast(list, "list of intermediate files");
  std::vector<RunReader> runs;
  agree(comm, "opening intermediate files", [&] {
    std::vector<std::string> names;
    from_text(list, names);
    for (const auto& name : names) runs.emplace_back((fs::path(job.spill) / name).string());
  });
  return runs;
}

/// Collective. Reads what no run holds yet.
std::vector<RunReader> read_source(Communicator& comm, Job& job) {
  auto runs = open_runs(comm, job);
  auto left = find_pending(job.scan.shards, runs);
  Index open = 0, weight = 0, all = 0;
  for (const PendingShard& a : left) {
    open += a.left > 0 ? 1 : 0;
    weight += a.left;
    all += job.scan.shards[static_cast<std::size_t>(a.shard)].weight;
  }
  if (open == 0) return runs;
  if (!runs.empty()) {
    log::info("continuing: about {:.0f} % has been read before",
              100.0 * static_cast<double>(all - weight) / static_cast<double>(std::max<Index>(all, 1)));
  }
  read_images(comm, job.spec, job.splits, job.scan.shards, left, job.spill, job.cancel);
  runs = open_runs(comm, job);
  left = find_pending(job.scan.shards, runs);
  agree(comm, "checking intermediate files", [&] {
    const auto lost = std::find_if(left.begin(), left.end(), [](const PendingShard& a) { return a.left > 0; });
    if (lost == left.end() || comm.rank() != 0) return;
    fail(Exit::data, "'{}' does not hold all of the source; start again", job.spill);
  });
  return runs;
}

/// Collective. Which partitions are to be written: those that aren't there already.
std::vector<std::pair<PartitionKey, Partition>> find_work(Communicator& comm, const Job& job, const Survey& survey,
                                                          Preparation& preparation) {
  std::vector<std::vector<std::string>> names(job.spec.recipe.sizes.size());
  std::vector<std::pair<PartitionKey, Partition>> work;
  for (const PartitionKey& key : all_partitions(survey)) {
    const Partition header = header_of(job.spec, survey, job.provenance, key);
    names[key.size].push_back(fs::path(header.path).filename().string());
    preparation.files.push_back(fs::relative(header.path, job.spec.out).string());
    work.emplace_back(key, header);
  }
  agree(comm, "preparing the folder", [&] {
    if (comm.rank() != 0) return;
    for (std::size_t s = 0; s < names.size(); ++s) {
      prepare_folder(size_folder(job.spec, s), names[s], job.spec.overwrite);
    }
    std::vector<std::string> replaced;
    replaced.reserve(work.size());
    for (const auto& [key, header] : work) replaced.push_back(header.path);
    remove_replaced(job.spill, replaced);
  });
  std::vector<std::pair<PartitionKey, Partition>> own, older;
  agree(comm, "looking for finished partitions", [&] {
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < work.size();
         i += static_cast<std::size_t>(comm.size())) {
      leave_if_stopped("looking for finished partitions");
      const Existing existing = look_for(work[i].second);
      if (existing == Existing::complete) continue;
      if (existing == Existing::older) {
        older.push_back(work[i]);
        continue;
      }
      if (existing == Existing::other && !job.spec.overwrite) {
        fail(
            Exit::usage,
            "'{}' is in the way (made from other images: names, classes or bytes differ); choose another --out or give --overwrite",
            work[i].second.path);
      }
      own.push_back(work[i]);
    }
  });
  auto count = static_cast<std::int64_t>(older.size());
  comm.sum(std::span(&count, 1), "count of partitions of an earlier version");
  if (count == 0 || keeps_older(count, static_cast<Index>(work.size()), job.spec.overwrite)) return own;
  if (comm.rank() == 0)
    log::warn("{} without the covariance of the colours (an earlier version made them); they are made again",
              counted(count, "partition"));
  own.insert(own.end(), older.begin(), older.end());
  return own;
}

/// Collective. A warning before hours of writing are lost; others may make room meanwhile, so no error.
void warn_of_little_space(Communicator& comm, const Job& job, const Survey& survey,
                          const std::vector<std::pair<PartitionKey, Partition>>& work) {
  std::int64_t needed = 0;
  for (const auto& [key, header] : work) {
    const auto bytes = static_cast<double>(survey.splits[key.split].stored_bytes[key.size]);
    needed += static_cast<std::int64_t>(bytes * static_cast<double>(header.samples) /
                                        static_cast<double>(header.split_samples));
  }
  comm.sum(std::span(&needed, 1), "bytes of partitions to make");
  std::error_code reason;
  const auto room = fs::space(job.spec.out, reason);
  if (comm.rank() != 0 || reason || static_cast<double>(room.available) >= static_cast<double>(needed)) return;
  log::warn("'{}' has {:.1f} MB of room, the partitions need {:.1f} MB; make room, or give --spill another disk",
            job.spec.out, static_cast<double>(room.available) / 1e6, static_cast<double>(needed) / 1e6);
}

/// Collective.
void write_partitions(Communicator& comm, const Job& job, const std::vector<RunReader>& runs, const Survey& survey,
                      Preparation& preparation) {
  auto work = find_work(comm, job, survey, preparation);
  auto made = static_cast<std::int64_t>(work.size());
  comm.sum(std::span(&made, 1), "count of partitions to make");
  if (made > 0) {
    warn_of_little_space(comm, job, survey, work);
    const auto means = measure_mean_images(comm, job.spec, runs, survey);
    agree(comm, "writing partitions", [&] {
      for (std::size_t i = 0; i < work.size(); ++i) {
        auto& [key, header] = work[i];
        leave_if_stopped("writing partitions");
        if (comm.rank() == 0) log::progress(fmt::format("writing: partition {} of {} of rank 0", i + 1, work.size()));
        header.mean_image = means[key.size];
        write_images(job.spec, runs, survey, header, key);
      }
    });
  }
  for (std::size_t s = 0; s < job.spec.recipe.sizes.size(); ++s) {
    for (const SplitPlan& split : survey.splits) {
      log::info("{}{}: {}, {:.1f} MB, in {}",
                job.spec.recipe.sizes.size() > 1 ? size_name(job.spec.recipe.sizes[s]) + "/" : "", split.name,
                counted(split.range.count, "image"), static_cast<double>(split.stored_bytes[s]) / 1e6,
                counted(split.partitions(s), "partition"));
    }
  }
  log::info("{} made, {} kept, in '{}'", counted(made, "partition"),
            static_cast<Index>(preparation.files.size()) - made, job.spec.out);
}

/// Collective. The report, and what --strict makes of it.
void report(Communicator& comm, const Job& job, const Survey& survey) {
  agree(comm, "writing the report", [&] {
    if (comm.rank() != 0) return;
    const std::string path = (fs::path(job.spec.out) / report_file).string();
    write_report(path, survey.notes);
    for (const auto& line : report_table(survey.images_read, survey.notes)) log::info("{}", line);
    if (!survey.splits.empty()) {
      for (const auto& line : class_table(survey)) log::info("{}", line);
      for (const auto& line : class_warnings(survey)) log::warn("{}", line);
    }
    require_strict(job.spec.strict, count_findings(survey.notes), path, survey.notes);
  });
}

/// Collective. Another source or other options would find their way barred by what this one leaves, which is nothing.
void leave_empty(Communicator& comm, const Job& job, const Survey& survey) {
  agree(comm, "looking for images", [&] {
    if (comm.rank() != 0) return;
    remove_spill(job.spill);
    fail(Exit::data, "no image of the train split is left ({} images read); see '{}', and check the source",
         survey.images_read, (fs::path(job.spec.out) / report_file).string());
  });
}

/// Collective.
void run(Communicator& comm, const PrepareSpec& given) {
  const Instant start = real_clock().now();
  Job job{.spec = given};
  const PrepareSpec& spec = job.spec;
  // Always a folder of its own: it is removed in the end.
  job.spill = (fs::path(spec.spill.empty() ? spec.out : spec.spill) / "unfinished").string();
  open_sources(comm, job);
  job.scan = scan_splits(comm, spec, job.splits, job.given);
  job.identity.labels = job.identity.source;
  job.identity.source = fmt::format("{:016x}", hash_text(job.identity.source + job.scan.digest));
  job.identity.names = fmt::format("{:016x}", job.scan.trace.names);
  job.identity.sizes = fmt::format("{:016x}", job.scan.trace.sizes);
  job.identity.times = fmt::format("{:016x}", job.scan.trace.times);
  if (!job.scan.left_out.empty() && comm.rank() == 0) {
    std::string text;
    for (const auto& [what, files] : job.scan.left_out) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", files, what);
    }
    log::warn(
        "files that are not read: {} (--exts names the extensions of images, as in jpg,jpeg,png,webp: JPEG, PNG and WebP can be read)",
        text);
  }
  agree(comm, "looking at the output folder", [&] {
    if (comm.rank() == 0 && !spec.overwrite) require_no_others(job);
  });
  FolderLock lock;
  if (!spec.overwrite && is_done(comm, job)) {
    agree(comm, "removing intermediate files", [&] {
      if (comm.rank() == 0) finish_done(job, lock);
    });
    return;
  }
  agree(comm, "preparing the folder", [&] {
    if (comm.rank() != 0) return;
    lock.take(spec.out);
    prepare_spill(job.spill, request_of(job));
    if (spec.overwrite) remove_preparation(spec.out);
  });
  log::info("source: {} in {}, {} with {} that decode",
            job.scan.objects == 1 ? "1 file or archive" : fmt::format("{} files or archives", job.scan.objects),
            counted(job.scan.shards.size(), "shard"), counted(comm.size(), "rank"),
            counted(std::max(spec.threads, 1), "thread"));

  const auto runs = read_source(comm, job);
  std::set<ClassText> known;
  for (const Shard& shard : job.scan.shards) {
    if (!shard.class_name.empty()) known.insert(shard.class_name);
  }
  std::vector<Index> numbered_lines(split_count);
  for (const OpenSplit& split : job.splits) {
    if (split.labels) numbered_lines[static_cast<std::size_t>(split.source.split)] = split.labels->numbered_lines();
  }
  const Survey survey = survey_runs(comm, {spec, job.given, {known.begin(), known.end()}, numbered_lines}, runs);
  if (job.provenance.digest.empty()) job.provenance.digest = survey.source_digest;
  report(comm, job, survey);
  if (survey.splits.empty()) leave_empty(comm, job, survey);
  Preparation preparation{job.identity, layout_text(spec),  job.provenance.digest,
                          {},           survey.images_read, count_findings(survey.notes)};
  write_partitions(comm, job, runs, survey, preparation);
  agree(comm, "finishing", [&] {
    if (comm.rank() != 0) return;
    write_preparation(spec.out, preparation);
    remove_spill(job.spill);
  });
  const double seconds = seconds_since(start);
  log::info("done in {:.1f} s on {}", seconds, counted(comm.size(), "rank"));
}

}  // namespace

Exit prepare(Communicator& comm, const PrepareSpec& spec) {
  try {
    run(comm, spec);
    return Exit::ok;
  } catch (const AgreedError& error) {
    if (error.code == Exit::stopped) {
      log::info("stopped on request ({}); start it again to continue from here", name_of(stop_reason()));
    }
    return error.code;
  }
}

}  // namespace convoy::preparation
