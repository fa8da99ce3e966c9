// SPDX-License-Identifier: Apache-2.0
#include "infer/predict.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "comm/agreed_error.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/text.hpp"
#include "data/batch_queue.hpp"
#include "engine/data.hpp"
#include "engine/engine.hpp"
#include "engine/model_data.hpp"
#include "infer/image_source.hpp"

namespace convoy {
namespace {

// Where predictions go.

/// Standard output; or a file that appears under its name when it is whole, in place of an older one (of the one that a
/// link leads to); or, where something else has the name already (a device, a pipe), that, written in place.
/// Errors are Error(usage) with path and reason.
class OutputFile {
 public:
  /// Empty: standard output.
  explicit OutputFile(const std::string& path);
  /// Where finish() was not called, nothing is left.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const std::string& text);
  void finish();

 private:
  std::FILE* open();
  [[noreturn]] void refuse() const;
  void remove_unfinished() const;

  std::string path_;
  std::string target_, temporary_;  ///< empty: written in place
  std::FILE* file_;
};

namespace fs = std::filesystem;

/// `/dev/stdout` and what a shell's >(...) gives lead to files that somebody else has open: these are written in place.
bool names_open_file(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/") || text.starts_with("/proc/");
}

/// What a chain of links leads to, whether it is there or not.
fs::path follow_links(fs::path path) {
  constexpr int longest_chain = 40;  // the kernel's own
  std::error_code none;
  for (int i = 0; i < longest_chain && fs::is_symlink(path, none); ++i) {
    const fs::path to = fs::read_symlink(path, none);
    if (none) break;
    path = path.parent_path() / to;  // an absolute one replaces all
  }
  return path;
}

/// Opens it for appending: a log that is somebody's standard output keeps what it holds. A pipe to which nobody listens
/// is an error.
std::FILE* open_in_place(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  ::fcntl(descriptor, F_SETFL, O_APPEND);  // from here on a slow reader is waited for
  return ::fdopen(descriptor, "a");
}

OutputFile::OutputFile(const std::string& path) : path_(path), file_(open()) {
  if (file_ == nullptr) refuse();
}

std::FILE* OutputFile::open() {
  if (path_.empty()) return stdout;
  std::error_code none;
  const fs::file_status status = fs::status(path_, none);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    return nullptr;
  }
  if (names_open_file(path_) || fs::is_other(status)) return open_in_place(path_);
  target_ = follow_links(path_).string();
  temporary_ = target_ + ".tmp";
  return std::fopen(temporary_.c_str(), "w");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  remove_unfinished();
}

void OutputFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) refuse();
}

void OutputFile::finish() {
  if (std::fflush(file_) != 0) refuse();
  if (file_ == stdout) return;
  if (std::fclose(std::exchange(file_, nullptr)) != 0) refuse();
  if (!temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0) refuse();
}

void OutputFile::refuse() const {
  const int reason = errno;
  remove_unfinished();
  fail(Exit::data, "cannot write '{}' ({}); make room, or choose another --output",
       path_.empty() ? "standard output" : path_, std::strerror(reason));
}

void OutputFile::remove_unfinished() const {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

/// Images are dealt to ranks in blocks of one batch, in turns: block b is rank b % ranks's. Rank 0 can write each
/// turn's text as soon as it is there, and the batches don't depend on the number of ranks.
struct Blocks {
  Index images = 0, batch = 1;
  int ranks = 1, rank = 0;

  Index turns() const {
    const Index all = (images + batch - 1) / batch;
    return (all + ranks - 1) / ranks;
  }
  Range images_of(Index turn) const {
    const Index begin = std::min(images, (turn * ranks + rank) * batch);
    return {begin, std::min(batch, images - begin)};
  }
};

/// Images are read ahead by threads, run through the network, and become predictions.
class Predictor {
 public:
  struct Parts {
    Engine& engine;
    Collectives& collectives;
    const ParameterSet& set;
    ImageSource& source;
    const Blocks& blocks;
    const DataConfig& threads;  ///< workers and prefetch
    int topk = 5;
  };
  explicit Predictor(const Parts& parts) : at_(parts), image_bytes_(bytes_of(parts.source)) {
    const Index batch = at_.blocks.batch;
    augment(at_.source.augment(), 0, 0, 0, centre_);
    logits_.resize(static_cast<std::size_t>(batch * at_.source.info().classes));
    made_.resize(static_cast<std::size_t>(at_.threads.prefetch) + 2);
    queue_ =
        std::make_unique<BatchQueue>(BatchQueueSpec{.workers = at_.threads.workers,
                                                    .prefetch = at_.threads.prefetch,
                                                    .batch = batch,
                                                    .image_bytes = static_cast<std::size_t>(batch * image_bytes_),
                                                    .memory = image_memory(at_.engine.backend())},
                                     [this](Index turn, int worker, BatchSlot& slot) { read(turn, worker, slot); });
    queue_->begin(at_.blocks.turns(), [] {});
  }

  /// Returns the predictions of this rank's block of a turn, asked for in order.
  std::vector<Prediction> predict(Index turn) {
    const BatchSlot& slot = queue_->next(turn);
    std::vector<Prediction> predictions = std::move(made_[place(turn)]);
    if (slot.count == 0) return predictions;
    Program& program = at_.engine.evaluation();
    program.feed({.samples = slot.specs, .images = slot.images, .valid_count = slot.count});
    program.launch(0, at_.set);
    Backend& backend = at_.engine.backend();
    const Index classes = at_.source.info().classes;
    at_.collectives.await(backend.download(logits_.data(), program.logits(), slot.count * classes, backend.record()),
                          "download of the logits");
    const float* logits = logits_.data();
    for (Prediction& prediction : predictions) {
      if (prediction.error.empty() && !std::all_of(logits, logits + classes, [](float z) { return std::isfinite(z); }))
        prediction.error = "the network gives values that are not finite; check its weights and the normalisation";
      if (prediction.error.empty()) prediction.classes = likeliest(logits, classes, at_.topk);
      logits += classes;
    }
    return predictions;
  }

 private:
  static Index bytes_of(const ImageSource& source) {
    const AugmentSpec& augment = source.augment();
    return augment.on_host() ? augment.height * augment.width * augment.channels : source.info().image_bytes();
  }
  std::size_t place(Index turn) const { return static_cast<std::size_t>(turn) % made_.size(); }

  void read(Index turn, int worker, BatchSlot& slot) {
    const Range images = at_.blocks.images_of(turn);
    slot.count = images.count;
    std::vector<Prediction> predictions(static_cast<std::size_t>(images.count));
    for (Index row = 0; row < at_.blocks.batch; ++row) {
      SampleSpec& spec = slot.specs[static_cast<std::size_t>(row)];
      spec = centre_;
      spec.sample = row;
      std::uint8_t* const to = slot.images + row * image_bytes_;
      bool empty = true;
      if (row < images.count) {
        Prediction& prediction = predictions[static_cast<std::size_t>(row)];
        at_.source.put(images.begin + row, worker, to, prediction);
        empty = !prediction.error.empty();
      }
      if (empty) std::fill_n(to, image_bytes_, std::uint8_t{0});
    }
    made_[place(turn)] = std::move(predictions);
  }

  Parts at_;
  Index image_bytes_;
  SampleSpec centre_;
  std::vector<float> logits_;
  std::vector<std::vector<Prediction>> made_;  ///< of the turns in the queue
  std::unique_ptr<BatchQueue> queue_;          ///< last: its threads use all the others
};

/// What was found, summed over the ranks.
struct Tally {
  std::array<std::int64_t, 3> counts{};  ///< unreadable, labelled, right

  void add(const Prediction& p) {
    if (!p.error.empty()) {
      ++counts[0];
    } else if (p.label >= 0) {
      ++counts[1];
      counts[2] += p.classes.front().index == p.label ? 1 : 0;
    }
  }
  std::string text(Index images) const {
    std::string line = fmt::format("{}, {} unreadable", counted(images, "image"), counts[0]);
    if (counts[1] > 0)
      line += fmt::format("; top-1 {:.2f} % ({} of {} with labels)",
                          100 * static_cast<double>(counts[2]) / static_cast<double>(counts[1]), counts[2], counts[1]);
    return line;
  }
};

EngineSpec engine_spec(const PredictConfig& config, const ImageSource& source, Index batch) {
  const AugmentSpec& augment = source.augment();
  return {.device = config.device,
          .sizes = {{.eval_input = input_spec(source.data(), source.info(), augment),
                     .height = augment.height,
                     .width = augment.width,
                     .eval_size = batch}},
          .topk = 1};
}

/// What a file that says nothing of its input is taken to want.
std::string tell_assumed_input(const ModelFile& model, const ImageSource& source) {
  const TrainedData taken = trained_data(source.data(), source.info(), 0);
  return fmt::format(
      "'{}' doesn't tell how images become its input; assumed: {}; {} (--image-size, --resize, --rgb-mean and --rgb-std say "
      "otherwise)",
      model.found.path, describe(source.augment()), normalisation_text(taken));
}

/// What is read isn't written over.
void refuse_inputs(const std::string& output, const ImageSource& source, const std::string& checkpoint) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(output, none)) return;
  if (source.reads(output) || std::filesystem::equivalent(output, checkpoint, none))
    fail(Exit::usage, "--output '{}' is one of the files that are read; choose another", output);
}

}  // namespace

Exit predict(Communicator& communicator, const PredictConfig& config) try {
  const bool speaks = communicator.rank() == 0;
  if (config.output.empty()) log::set_level(log::Level::warn);  // standard output is for the predictions
  ModelFile model;
  std::unique_ptr<ImageSource> source;
  progress().doing("opening model and images");
  run_alike(communicator, [&] { model = open_model(communicator, config.checkpoint, config.model, config.choice); });
  run_agreed(communicator, "opening the images", [&] {
    source = open_image_source(config, model, std::max(config.data.workers, 1), speaks);
    if (source->count() == 0)
      fail(Exit::data, "'{}' holds no files; give image files, folders of them, or a prepared data set",
           config.paths.front());
  });
  const DatasetInfo& info = source->info();
  communicator.require_equal(fmt::format("{} {} images {:016x}, {} classes", model.found.path, source->count(),
                                         source->digest(), info.classes),
                             "model and images");
  const Blocks blocks{.images = source->count(),
                      .batch = std::min(config.batch, source->count()),
                      .ranks = communicator.size(),
                      .rank = communicator.rank()};
  EngineSpec spec;
  Graph graph;
  run_alike(communicator, [&] {
    spec = engine_spec(config, *source, blocks.batch);
    GraphSpec network = graph_spec(model.config.model, source->data(), info);
    network.image_size = source->augment().height;
    graph = build_graph(network);
  });
  log::info("{}: {}", counted(source->count(), "image"), describe(source->augment()));
  if (assumes_input(model) && speaks) {
    const std::string assumed = tell_assumed_input(model, *source);
    if (config.output.empty()) fmt::print(stderr, "{}\n", assumed);
    log::info("{}", assumed);
  }
  const auto engine = make_engine(communicator, graph, spec);
  auto collectives = make_mpi_collectives(communicator, engine->backend(), {.max_count = engine->layout().count()});
  const ParameterSet set = load_model(communicator, model, *engine, *collectives);
  std::unique_ptr<OutputFile> output;
  const int k = static_cast<int>(std::min<Index>(config.topk, info.classes));
  run_agreed(communicator, "opening the output", [&] {
    if (!speaks) return;
    refuse_inputs(config.output, *source, model.found.path);
    output = std::make_unique<OutputFile>(config.output);
    output->write(print_head(config.format, k));
  });

  Predictor predictor({.engine = *engine,
                       .collectives = *collectives,
                       .set = set,
                       .source = *source,
                       .blocks = blocks,
                       .threads = config.data,
                       .topk = k});
  Tally tally;
  for (Index turn = 0; turn < blocks.turns(); ++turn) {
    progress().mark();
    std::string text;
    for (const Prediction& p : predictor.predict(turn)) {
      text += print(p, config.format, info.class_names);
      if (!p.error.empty()) log::warn("no prediction for '{}' ({})", p.name, p.error);
      tally.add(p);
    }
    for (const std::string& part : communicator.all_gather(text, "predictions")) {
      if (speaks) output->write(part);
    }
  }
  communicator.sum(std::span<std::int64_t>(tally.counts), "counts of the predictions");
  run_agreed(communicator, "writing the predictions", [&] {
    if (speaks) output->finish();
  });
  const std::string told = tally.text(blocks.images);
  if (speaks && config.output.empty()) fmt::print(stderr, "{}\n", told);
  log::info("{}; written to '{}'", told, config.output);
  return tally.counts[0] == blocks.images ? Exit::data : Exit::ok;
} catch (const AgreedError& error) {
  return error.code;
}
}  // namespace convoy
