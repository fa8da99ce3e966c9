// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "backend/set_layout.hpp"
#include "cli/command.hpp"
#include "cli/output_file.hpp"
#include "cli/step_conditions.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"
#include "core/table.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "engine/data.hpp"
#include "io/file.hpp"
#include "report/chart.hpp"
#include "report/page.hpp"
#include "scaling/prediction.hpp"
#include "train/job.hpp"

namespace convoy {
namespace {

struct PredictScaleConfig {
  std::string machine, nodes = "1..64", csv, plot;
  int ranks_per_node = 0;
  Index samples = 0, other_steps = 16;
  TrainConfig train;
};

std::vector<OptionGroup> options_of(PredictScaleConfig& config) {
  OptionGroup group{"Prediction", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("machine", "FILE", config.machine,
                  "description of the machine; 'convoy bench comm' and 'bench compute' write it with --machine"));
  add(text_option("nodes", "COUNTS", config.nodes, "numbers of nodes: 1..512 in powers of two, or 1,2,12"));
  add(number_option("ranks-per-node", "N", config.ranks_per_node, from_to(0, 1 << 16),
                    "ranks of a node; 0: as many as the machine has"));
  add(number_option("samples", "N", config.samples, at_least(0),
                    "training images of an epoch; 0: those of --data, else of the usual set"));
  add(number_option("compare-local-steps", "N", config.other_steps, from_to(2, 1 << 20),
                    "local steps of the policy that is compared, if --local-steps says nothing else"));
  add(text_option("csv", "FILE", config.csv, "also write all predictions to this file"));
  add(text_option("plot", "FILE", config.plot, "also write an HTML page with charts to this file"));
  std::vector<OptionGroup> groups{std::move(group)};
  for (OptionGroup& of_training : options_of(config.train)) groups.push_back(std::move(of_training));
  return groups;
}

const char* name_of(ScalingKind scaling) { return scaling == ScalingKind::weak ? "weak" : "strong"; }

/// Images of an epoch, and how that is known.
std::pair<Index, std::string> samples_of(const PredictScaleConfig& config, const GraphSpec& model) {
  if (config.samples > 0) return {config.samples, "as given"};
  const DataConfig& data = config.train.data;
  const std::string& folder = data.train_folder.empty() ? data.folder : data.train_folder;
  if (!folder.empty()) return {open_split(data, "train").samples, fmt::format("of '{}'", folder)};
  if (model.classes == 1000) return {1281167, "of ImageNet"};
  if (model.image_size == 28) return {60000, "of MNIST"};
  return {50000, "of CIFAR"};
}

/// A policy on every number of nodes.
struct Row {
  std::string policy;
  ScalingKind scaling = ScalingKind::weak;
  std::vector<ScalePrediction> predictions;
};

/// What is predicted, and for what.
class Study {
 public:
  explicit Study(const PredictScaleConfig& config)
      : config_(config), counts_(counts_of(config.nodes)), machine_(read_machine(config.machine)) {
    const TrainConfig& train = config.train;
    if (config.ranks_per_node > 0) machine_.ranks_per_host = config.ranks_per_node;
    model_ = with_usual_input(train.model, 0, 0, train.data.image_size);
    graph_ = build_graph(model_);
    const auto [samples, origin] = samples_of(config, model_);
    samples_origin_ = origin;
    const Index replicas = train.sync.replicas > 0 ? train.sync.replicas : machine_.ranks_per_host;
    job_ = {.model = graph_.model,
            .precision = name_of(train.device.precision),
            .image_size = model_.image_size,
            .conditions = conditions_of(train.device),
            .threads = train.device.threads,
            .batch = train.global_batch > 0 ? std::max<Index>(1, train.global_batch / replicas) : train.batch,
            .global_batch = train.global_batch > 0 ? train.global_batch : train.batch * replicas,
            .samples = samples,
            .epochs = train.epochs};
    predict();
  }

  std::string text() const {
    std::string text = fmt::format("{}, {} pixels, {}; {} images per epoch ({}), {}; {} per node\nmachine: {}{}\n",
                                   job_.model, job_.image_size, job_.precision, job_.samples, samples_origin_,
                                   fmt::format("{:g} epochs", job_.epochs), counted(machine_.ranks_per_host, "rank"),
                                   machine_.name, machine_.note.empty() ? "" : " (" + machine_.note + ")");
    for (const Row& row : rows_) {
      if (row.policy == rows_.front().policy) text += table_of(row);
    }
    for (const ScalingKind scaling : {ScalingKind::weak, ScalingKind::strong}) text += comparison(scaling);
    return text + basis();
  }

  std::string csv() const {
    std::vector<TableRow> lines{{"policy", "scaling", "nodes", "ranks", "batch", "global_batch", "step_ms", "low_ms",
                                 "high_ms", "compute_ms", "sums_ms", "exposed_ms", "efficiency", "images_per_sec",
                                 "hours", "node_hours"}};
    for (const Row& row : rows_)
      for (const ScalePrediction& p : row.predictions) {
        TableRow& line = lines.emplace_back(TableRow{row.policy, name_of(row.scaling)});
        for (const Index whole : {Index{p.nodes}, Index{p.ranks}, p.batch, p.global_batch})
          line.push_back(fmt::format("{}", whole));
        for (const double seconds : {p.step, p.low, p.high, p.compute, p.sums, p.exposed})
          line.push_back(fmt::format("{:.4f}", seconds * 1e3));
        for (const double number : {p.efficiency, p.images_per_second(), p.hours, p.node_hours})
          line.push_back(fmt::format("{:.4f}", number));
      }
    return table_text(lines, TableFormat::csv);
  }

  std::string page() const {
    std::vector<std::string> charts;
    for (const ScalingKind scaling : {ScalingKind::weak, ScalingKind::strong}) {
      const std::string of = fmt::format("{} scaling", name_of(scaling));
      charts.push_back(
          chart("Efficiency, " + of, "%", scaling, [](const ScalePrediction& p) { return p.efficiency * 100; }));
      charts.push_back(
          chart("Time of all epochs, " + of, "hours", scaling, [](const ScalePrediction& p) { return p.hours; }));
      charts.push_back(chart("Cost of all epochs, " + of, "node-hours", scaling,
                             [](const ScalePrediction& p) { return p.node_hours; }));
    }
    return chart_page(fmt::format("{} on {}", job_.model, machine_.name), build_id(), charts);
  }

 private:
  static std::vector<int> counts_of(const std::string& text) {
    try {
      return node_counts(text);
    } catch (const std::invalid_argument& e) {
      fail(Exit::usage, "--nodes {}: {}; give 1..512, or a list such as 1,2,12", text, e.what());
    }
  }

  SyncSpec own_policy() const {
    SyncSpec own = policy_of(config_.train.sync);
    if (own.group.is_on() && own.group.replicas == 0) own.group.replicas = machine_.ranks_per_host;
    return own;
  }

  /// Throws Error(usage) where training would refuse the policy.
  void require_possible(const SyncSpec& policy, int nodes) const {
    try {
      check(policy, BatchNormSamples::of_replica);
    } catch (const Error& e) {
      fail(e.code(), "{} (on {} of {})", e.what(), counted(nodes, "node"), counted(machine_.ranks_per_host, "rank"));
    }
  }

  /// How the description's sums travel. Ranks with devices of their own sum by NCCL where it doesn't say. Throws
  /// Error(usage) if the job's travel in another way.
  Transport transport() const {
    std::string known = machine_.cores_per_host == 0 ? "nccl" : "mpi";
    for (const std::optional<Link>& link : {machine_.inside, machine_.between})
      if (link && !link->transport.empty()) known = link->transport;
    // Descriptions know mpi and nccl only; the link inside a host covers shared memory.
    const std::string& wanted = config_.train.sync.backend;
    if (wanted != "auto" && (wanted == "shared" ? "mpi" : wanted) != known)
      fail(
          Exit::usage,
          "--backend {0} can't be predicted (the links of '{1}' were measured with {2}); leave --backend out, or measure them by 'convoy bench comm --backend {0} --machine FILE'",
          wanted, machine_.name, known);
    return known == "nccl" ? Transport::nccl : Transport::mpi;
  }

  /// Throws Error(usage) for what changes a step in a way that no description knows.
  void refuse_unknown_steps() const {
    const TrainConfig& train = config_.train;
    const bool shares_cores = machine_.cores_per_host > 0;
    if (train.device.device != "auto" && (train.device.device == "cpu") != shares_cores)
      fail(
          Exit::usage,
          "--device {} can't be predicted (the ranks of '{}' {}); leave --device out, or give the description of another "
          "machine",
          train.device.device, machine_.name,
          shares_cores ? "share the cores of their host, says 'cores_per_host'"
                       : "have devices of their own, says 'cores_per_host'");
  }

  void predict() {
    refuse_unknown_steps();
    const Predictor predictor(machine_, job_);
    const Transport transport = this->transport();
    basis_ = predictor.basis();
    const SyncConfig& sync = config_.train.sync;
    check_averages(config_.train);
    if (sync.wire.compression != Compression::none)
      fail(Exit::usage,
           "--wire {} can't be predicted (the time to compress was not measured); give --wire fp32 or bf16",
           name_of(sync.wire));
    for (const auto& [option, every] :
         {std::pair{"check-arithmetic", sync.check_arithmetic}, std::pair{"check-weights", sync.digest_every}})
      if (every > 0) basis_.push_back({false, fmt::format("the checks of --{} {} take no time", option, every)});
    if (sync.replicas > 0 || sync.grad_accum_steps > 1)
      basis_.push_back({false, "every rank has one replica, whatever --replicas and --grad-accum-steps say"});
    constexpr double floats_per_mb = 262144;
    const auto bucket = std::max<Index>(16, static_cast<Index>(config_.train.sync.bucket_mb * floats_per_mb));
    std::vector<Plan> plans;
    for (const int nodes : counts_)
      plans.push_back(make_plan(graph_, {.replicas = nodes * machine_.ranks_per_host, .bucket_floats = bucket}));
    const OptimiserSpec optimiser{.rule = config_.train.optimiser.rule};
    for (const SyncSpec& policy : policies_beside(own_policy(), config_.other_steps))
      for (const ScalingKind scaling : {ScalingKind::weak, ScalingKind::strong}) {
        std::vector<Traffic> traffic;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
          SyncSpec spec = policy;
          spec.replicas = spec.ranks = counts_[i] * machine_.ranks_per_host;
          require_possible(spec, counts_[i]);
          if (spec.replicas == 1) spec.wire = Wire::fp32;
          traffic.push_back(traffic_of(spec, plans[i], set_layout(plans[i].table, optimiser), transport));
        }
        rows_.push_back({name_of_policy(policy), scaling, predict_all(predictor, traffic, counts_, scaling)});
      }
  }

  /// Why a table ends before --nodes does: some ranks would have no image.
  std::string end_of(const Row& row) const {
    const std::size_t known = row.predictions.size();
    if (known == counts_.size()) return {};
    return fmt::format(
        "  it ends here: the {} of a batch can't be dealt to the {} of {}; give a larger --global-batch\n",
        counted(job_.global_batch, "image"), counted(counts_[known] * machine_.ranks_per_host, "rank"),
        counted(counts_[known], "node"));
  }

  std::string table_of(const Row& row) const {
    std::vector<TableRow> lines{{"nodes", "ranks", "batch", "step ms", "low", "high", "compute ms", "all-reduce ms",
                                 "exposed ms", "efficiency", "images/s", "hours", "node-hours"}};
    for (const ScalePrediction& p : row.predictions)
      lines.push_back({fmt::format("{}", p.nodes), fmt::format("{}", p.ranks), fmt::format("{}", p.batch),
                       fmt::format("{:.2f}", p.step * 1e3), fmt::format("{:.2f}", p.low * 1e3),
                       fmt::format("{:.2f}", p.high * 1e3), fmt::format("{:.2f}", p.compute * 1e3),
                       fmt::format("{:.2f}", p.sums * 1e3), fmt::format("{:.2f}", p.exposed * 1e3),
                       fmt::format("{:.1f} %", p.efficiency * 100), fmt::format("{:.0f}", p.images_per_second()),
                       fmt::format("{:.2f}", p.hours), fmt::format("{:.1f}", p.node_hours)});
    return fmt::format("\n{} scaling, {} (batch: of a rank)\n{}{}", name_of(row.scaling), row.policy,
                       table_text(lines, TableFormat::text), end_of(row));
  }

  /// Of all policies: the fastest and the cheapest number of nodes.
  std::string comparison(ScalingKind scaling) const {
    std::vector<TableRow> lines{
        {"policy", "fastest on", "hours", "cheapest on", "node-hours", "efficiency at the end"}};
    for (const Row& row : rows_) {
      if (row.scaling != scaling || row.predictions.empty()) continue;
      const auto& all = row.predictions;
      const auto fastest = std::min_element(
          all.begin(), all.end(), [](const ScalePrediction& a, const ScalePrediction& b) { return a.hours < b.hours; });
      const auto cheapest = std::min_element(
          all.begin(), all.end(),
          [](const ScalePrediction& a, const ScalePrediction& b) { return a.node_hours < b.node_hours; });
      lines.push_back({row.policy, counted(fastest->nodes, "node"), fmt::format("{:.2f}", fastest->hours),
                       counted(cheapest->nodes, "node"), fmt::format("{:.1f}", cheapest->node_hours),
                       fmt::format("{:.1f} % on {}", all.back().efficiency * 100, counted(all.back().nodes, "node"))});
    }
    return fmt::format("\n{} scaling, by policy\n{}", name_of(scaling), table_text(lines, TableFormat::text));
  }

  std::string basis() const {
    std::string text = "\nhow sure this is (low and high: all terms at the ends of their ranges)\n";
    for (const Basis& one : basis_) text += fmt::format("  {}  {}\n", one.measured ? "measured" : "assumed ", one.text);
    return text +
           "  not counted: [phase.N] sections, reading data, validation, checkpoints, slower ranks, and how accuracy\n"
           "  changes with the global batch and the policy\n";
  }

  template <class Value>
  std::string chart(const std::string& title, const std::string& unit, ScalingKind scaling, const Value& value) const {
    std::vector<Line> lines;
    for (const Row& row : rows_) {
      if (row.scaling != scaling) continue;
      Line line{.name = row.policy, .colour = static_cast<int>(lines.size()) % chart_colours, .points = {}};
      for (const ScalePrediction& p : row.predictions) line.points.push_back({std::log2(p.nodes), value(p)});
      lines.push_back(std::move(line));
    }
    return line_chart(title, unit, lines, {.name = "nodes", .base = 2});
  }

  const PredictScaleConfig& config_;
  std::vector<int> counts_;
  Machine machine_;
  GraphSpec model_;
  Graph graph_;
  std::string samples_origin_;
  PredictedJob job_;
  std::vector<Basis> basis_;
  std::vector<Row> rows_;  ///< the job's own policy first
};

Exit run_predict_scale(const Words& words) {
  PredictScaleConfig config;
  std::vector<std::string> inputs;
  const Words rest = read_words("predict-scale", options_of(config), words, [&](const std::string& path) {
    inputs.push_back(path);
    return read_text_file(path);
  });
  if (!rest.empty()) fail(Exit::usage, "'{}' is not an option; give a configuration as --config FILE", rest.front());
  if (config.machine.empty())
    fail(Exit::usage, "no machine is given; use --machine FILE, which 'convoy bench comm --machine FILE' writes");
  if (!config.train.frozen.empty() || config.train.sync.sync_bn)
    fail(
        Exit::usage,
        "predict-scale can't count {} (a machine's steps are those of a network that trains whole, with norms of each rank); leave it out",
        config.train.frozen.empty() ? "the all-reduces of --sync-bn" : "what --freeze saves");
  inputs.push_back(config.machine);
  check_output("csv", config.csv, inputs);
  inputs.push_back(config.csv);
  check_output("plot", config.plot, inputs);
  const Study study(config);
  write_output(study.text());
  if (!config.csv.empty()) replace_text_file(link_target(config.csv), study.csv());
  if (!config.plot.empty()) replace_text_file(link_target(config.plot), study.page());
  return Exit::ok;
}

}  // namespace

Command predict_scale_command() {
  return {
      .name = "predict-scale",
      .overview = {"predict-scale --config FILE --machine FILE", "step time and cost on more nodes"},
      .usage = "convoy predict-scale --config FILE --machine FILE [--nodes 1..512] [options of train]",
      .text =
          "Predicts how a job scales: step time, all-reduces that computation does not hide, efficiency, hours and\n"
          "node-hours, the fastest and the cheapest number of nodes, for each way to average, with the same batch on each rank\n"
          "(weak) and with the same batch in each step (strong). It needs no MPI, and says which numbers are measured.",
      .see_options = see_options<PredictScaleConfig>,
      .alone = run_predict_scale};
}

}  // namespace convoy
