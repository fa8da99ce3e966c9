// SPDX-License-Identifier: Apache-2.0
// THE SEAM. A backend compiles a plan into a program: a static list of stages. The trainer launches, sync submits, comm
// moves; the backend never communicates. Everything that changes from step to step enters by feed() and set_step() and
// lies in fixed device memory, so that replay() can capture what is launched.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/profile.hpp"
#include "backend/rules/device_state.hpp"
#include "backend/rules/padding.hpp"
#include "core/counters.hpp"
#include "core/device.hpp"
#include "core/function_ref.hpp"
#include "network/plan.hpp"
#include "optim/optimisers.hpp"

namespace convoy {

/// One parameter set: raw, one replica's, EMA or averaged. The trainer owns it (memory from Device::allocate).
struct ParameterSet {
  float* block = nullptr;  ///< values | optimiser state | running statistics | device state
  Index count = 0;         ///< one checkpoint write, one weight average
};

struct SetLayout {
  Range values;                        ///< begin 0, table.parameters.count
  Range trained;                       ///< the part of `values` that is not frozen, begin 0
  Range optimiser;                     ///< slots.size() * trained.count
  Range statistics;                    ///< running mean and variance, as ParameterTable::norms
  Range moving;                        ///< the part of `statistics` that is no frozen norm's
  Range state;                         ///< a DeviceState
  std::span<const char* const> slots;  ///< names of the optimiser's state of each weight, as its rule says
  Index count() const { return state.end(); }
  /// A slot has the places of `trained`.
  Range slot(std::size_t i) const { return {optimiser.begin + static_cast<Index>(i) * trained.count, trained.count}; }
  /// In the set's own memory, which the host may not be able to read.
  DeviceState* device_state(float* block) const { return reinterpret_cast<DeviceState*>(block + state.begin); }
};

/// How one sample becomes network input; all of it may change with every launch.
struct SampleSpec {
  Index sample = 0;                ///< index into a resident set, or row of Batch::images
  Index position = 0;              ///< in the epoch: with the step it is the key of this sample's dropout masks
  std::int16_t y = 0, x = 0;       ///< top left corner of the crop window in source pixels; outside the source: padding
  std::uint8_t flip = 0;           ///< 1: mirrored left to right after the crop
  std::uint8_t vertical_flip = 0;  ///< 1: mirrored top to bottom after the crop
  std::int16_t erase_y = 0, erase_x = 0, erase_h = 0,
               erase_w = 0;  ///< output pixels set to 0 after normalisation; h = 0: none
  Index partner = -1;        ///< whose image is mixed in, made its own way: position in this batch, -1: none
  std::int16_t mix_y = 0, mix_x = 0, mix_h = 0,
               mix_w = 0;  ///< output pixels that are the partner's, all others its own (cut-mix); h = 0: all are mixed
                           ///< by lambda (mix-up)
  std::int32_t a = 0, b = 0;  ///< labels, weighted lambda and 1 - lambda
  float lambda = 1;
};

struct Batch {
  std::span<const SampleSpec> samples;   ///< Program's samples; past valid_count repeated and masked
  const std::uint8_t* images = nullptr;  ///< rows n h w c, one per sample; null: a resident set
  int resident = 0;                      ///< which one, by keep_resident
  Index valid_count = 0;                 ///< evaluation masks the rest; training programs are fed full
  int replica = 0;                       ///< its slot among the W flags
  float scale = 0;  ///< of each sample's loss: 1 / samples of the whole step (gradients) or of this batch (weights)
  float norm_scale = 0;  ///< 1 / samples that share batch-norm statistics (own batch, or the step's with sync_bn)
};

/// From stored uint8 n h w c to network input. x = (pixel - mean[c]) / std[c], or (pixel - mean_image) / std[c], or
/// per image: (pixel - m) / max(s, 1/sqrt(count)) over all pixels and channels of the crop, pixels in [0, 1].
/// Constant padding is black (0) before normalisation (torchvision's RandomCrop); with mean_image it is 0 after it.
struct InputSpec {
  enum class Normalise : std::uint8_t { channel, mean_image, per_image };
  Index height = 0, width = 0, channels = 0;  ///< stored
  Normalise normalise = Normalise::channel;
  Padding padding = Padding::constant;
  std::array<float, 4> mean{}, std{1, 1, 1, 1};  ///< in pixel units (0 to 255)
  std::vector<float> mean_image;                 ///< height * width * channels, pixel units
};

struct StepParams {
  float learning_rate = 0, ema_decay = 0;
  std::uint64_t seed = 0;
  Index step = 0;
  OptionValues options;  ///< of the optimiser's rule
};

/// Factor of the loss in backward, so that small gradients don't vanish in fp16; the gradient block is without it. A
/// dynamic one is halved by every update that is skipped (down to 1) and doubled after `grow_every` good ones. The
/// current one is device state of the set; a new set starts with `start`.
struct LossScale {
  float start = 1;
  Index grow_every = 0;  ///< 0: it stays as it is
};

struct OptimiserSpec {
  Rule rule = Rule::sgd;
  float clip_norm = 0;  ///< 0: off
  LossScale loss_scale;
  bool keeps_correction = false;  ///< sets have one more slot, the last, for SyncSpec::overlap
};

/// blocking: the next launch needs its sum and all sums before it (synchronised batch norm). overlapped: no launch
/// before the next blocking row's does; a bucket, or norms whose sums are needed together.
enum class SumTiming : std::uint8_t { overlapped, blocking };
struct ReadyRange {
  Range range;  ///< of the gradient block; empty: nothing
  SumTiming timing = SumTiming::overlapped;
};

/// train; evaluate: running statistics, no gradients; score: forward with batch statistics, for choosing samples.
enum class Mode : std::uint8_t { train, score, evaluate };

/// How kernels are chosen. rule: by shape, the same on every machine of a kind; measured: timed when compiled.
enum class Tuning : std::uint8_t { rule, measured };

/// Which blocks of a network training runs forward a second time, instead of keeping what they make. automatic:
/// those that spare most for their cost first, until the program fits into the memory.
enum class Recompute : std::uint8_t { off, automatic, all };

struct CompileSpec {
  Index samples = 0, height = 0, width = 0;  ///< of the network input
  Mode mode = Mode::train;
  Precision precision = Precision::fp32;
  InputSpec input;
  int topk = 5;
  std::vector<float> class_weights;  ///< factors of the classes in the loss, in Mode::train alone; empty: all are 1
  Tuning tuning = Tuning::rule;
  std::string options;                   ///< backend's own, e.g. `no-winograd`
  std::string choices;                   ///< from another rank or a checkpoint: taken instead of choosing
  Recompute recompute = Recompute::off;  ///< in Mode::train alone
  Index arena_limit = 0;                 ///< floats that the arena should not exceed, for Recompute::automatic
};

/// What recomputation does to a training program.
struct Recomputation {
  int blocks = 0, found = 0;  ///< that run forward twice, and that could
  Index floats_without = 0;   ///< of the arena, if none did
  double more_flops = 0;      ///< of convolutions and linear layers, as a share of a step's
};

class Program {
 public:
  virtual ~Program() = default;
  virtual Index arena_floats() const = 0;
  /// Before the first launch. The arena may be shared with other programs; gradients is the plan's gradient block
  /// (null in evaluate and score).
  virtual void bind(float* arena, float* gradients) = 0;
  /// Static, the same on all ranks and for all sizes. One empty row in evaluate and score.
  virtual std::span<const ReadyRange> stages() const = 0;
  /// Numbers, labels and images go to fixed device memory, in queue order. The span may be reused after the call;
  /// `images` must stay until counters or an event show the launch done.
  virtual void feed(const Batch& batch) = 0;
  /// Queued in order; on a CPU it may be done on return. Stage 0 contains input, forward and loss.
  virtual void launch(std::size_t stage, const ParameterSet& set) = 0;
  /// Device memory, [samples][classes] and [samples], of the last forward pass.
  virtual const float* logits() const = 0;
  virtual const float* loss_per_sample() const = 0;
  /// What was chosen, as text: rank 0's is everybody's and goes into the checkpoint.
  virtual const std::string& choices() const = 0;
  /// One line per node or fused unit: which kernels, for `convoy inspect plan`.
  virtual std::string describe() const = 0;
  virtual Recomputation recomputation() const { return {}; }
  virtual std::vector<ProgramPart> parts() const = 0;
  /// Later launches, which must not be captured, time each part.
  virtual void time_parts() = 0;
  /// Seconds of each of parts() in the last launch of its stage; waits for the device.
  virtual std::vector<double> part_seconds() = 0;
};

/// An optimiser compiled for a parameter table.
class Updater {
 public:
  virtual ~Updater() = default;
  virtual Index arena_floats() const = 0;
  virtual void bind(float* arena) = 0;
  /// Nothing happens where any flag of `gradients` is set (counted as skipped). Else: update, fold the tail's
  /// statistics into the running ones, rewrite compute copies.
  virtual void launch(const ParameterSet& set, const float* gradients) = 0;
};

/// What a device has been asked for since it was made.
struct DeviceCounts {
  Index graph_launches = 0, allocations = 0;  ///< of captured graphs; of device and pinned memory. A CPU counts none
};

class Backend : public Device {
 public:
  /// Any thread; touches no block. Throws Error(device) for what this backend can't do, naming the node.
  virtual std::unique_ptr<Program> compile(const Plan& plan, const CompileSpec& spec) = 0;
  virtual std::unique_ptr<Updater> compile(const Plan& plan, const OptimiserSpec& spec) = 0;
  virtual SetLayout layout(const Plan& plan, const OptimiserSpec& spec) const = 0;
  virtual void set_step(const StepParams& params) = 0;
  /// EMA: to = decay * to + (1 - decay) * from over values and statistics, but of what is frozen; decay from
  /// StepParams.
  virtual void blend(const ParameterSet& to, const ParameterSet& from) = 0;
  /// Compute copies (blocked, low precision) of a set after load, average or EMA.
  virtual void refresh(const ParameterSet& set) = 0;
  /// Captures what body launches, once per key, and replays it later without calling body. A CPU calls body. Addresses
  /// and shapes are in the key, numbers never.
  virtual void replay(std::uint64_t key, FunctionRef body) = 0;
  /// Keeps `count` images (n h w c) for Batches without rows and returns the number of the set, from 0. -1: there is no
  /// room for it, so batches bring rows. A CPU refers to the memory, which must outlive it.
  virtual int keep_resident(const std::uint8_t* images, Index count, Index bytes_per_image) = 0;
  /// comm waits for this event, with its deadline, before take_counters().
  virtual Event counters_ready() = 0;
  virtual Counters take_counters() = 0;
  /// `cpu oneDNN 2.6.3 AVX-512 2 threads`: for logs, and part of the configuration hash where it decides bits.
  virtual std::string describe() const = 0;
  virtual DeviceCounts counts() const { return {}; }
  /// Measures for about a second, at set-up. Throws Error(device) if the precision isn't possible here.
  virtual Ceilings measure_ceilings(const CeilingSpec& spec) = 0;
};

}  // namespace convoy
