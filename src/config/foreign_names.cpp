// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "config/options.hpp"

namespace convoy {
namespace {

/// `names`: in small letters with hyphens, blanks between them; one that ends in * stands for all that begin so.
struct Foreign {
  std::string_view names, hint;
};

constexpr std::string_view precision = "use --precision fp16 or bf16";
constexpr std::string_view scale =
    "use --precision fp16, whose loss scale is dynamic unless --loss-scale says otherwise";
constexpr std::string_view ranks =
    "there is one rank per GPU: start them with mpirun -np N, or srun, and give --device cuda";
constexpr std::string_view launcher = "the launcher gives this: mpirun -np N, or srun";
constexpr std::string_view classes = "the number of classes is read from the data set";
constexpr std::string_view weights =
    "use --weights PATH: a checkpoint, a run directory, a safetensors, PyTorch or ONNX file";
constexpr std::string_view evaluate = "use 'convoy evaluate'";
constexpr std::string_view ema = "use --ema-decay";
constexpr std::string_view layout = "the device chooses the layout";
constexpr std::string_view scaled = "use --lr with --lr-scaling linear; --lr-base-batch says for how many images it is";
constexpr std::string_view compressed =
    "use --wire bf16 or fp16: gradients, or changes of weights, travel in 16 bits; or, gradients alone, 2bit, topk or powersgd";
constexpr std::string_view period = "use --local-steps with --sync weights";
constexpr std::string_view post_local = "use --local-sgd-start with --sync weights";
constexpr std::string_view slow_momentum = "use --outer-optimizer momentum with --sync weights and --local-steps";
constexpr std::string_view repeatable =
    "two equal runs give the same bits by default; --reproducible with --threads N: also on other numbers of ranks";
constexpr std::string_view cpu = "use --device cpu";
constexpr std::string_view rule = "use --optimizer; 'convoy train --help optimizer' lists the rules";
constexpr std::string_view jitter = "use --brightness, --contrast, --saturation and --hue";
constexpr std::string_view splits = "a prepared set holds its splits; use --train-data and --val-data for two folders";
constexpr std::string_view erasing = "use --random-erasing P; the box has the usual area and shape";
constexpr std::string_view find_rate = "use 'convoy tune lr'";
constexpr std::string_view none = "Convoy has nothing like it";
constexpr std::string_view trackers =
    "Convoy writes metrics.jsonl and TensorBoard events to the run directory (docs/metrics.md)";
constexpr std::string_view policy = "use --auto-augment trivial, randaugment or autoaugment";
constexpr std::string_view best = "the best checkpoint is kept unasked, as best.h5";
constexpr std::string_view scheduler = "the scheduler takes this, as an option of sbatch or qsub (docs/cluster.md)";
constexpr std::string_view fixed_ranks = "a job keeps its number of ranks; --resume auto goes on with another number";
constexpr std::string_view prepared = "use --data DIR, a folder that convoy-preprocess wrote";
constexpr std::string_view records = "use --data DIR, a folder that 'convoy-preprocess recordio' makes from .rec files";
constexpr std::string_view shards = "use --data DIR, a folder that 'convoy-preprocess webdataset' makes from shards";
constexpr std::string_view bucket = "'convoy-preprocess folder --source s3://BUCKET/PREFIX' reads from a bucket";
constexpr std::string_view resized = "images are resized as Pillow does it, bilinear with antialiasing";
constexpr std::string_view area =
    "use --min-random-area and --max-random-area with --crop resized, shares of the image";
constexpr std::string_view memory = "use --data-cache ram, stream or stage";
constexpr std::string_view compiled = "programs are compiled at the start without being asked";
constexpr std::string_view policies =
    "Convoy has AugMix without a loss that compares copies of an image; use --auto-augment augmix";
constexpr std::string_view cross_entropy = "the loss is the cross entropy of one label per image";
constexpr std::string_view elsewhere = "leave it out; nothing in Convoy depends on it";

// Of torchvision's references, timm, Horovod's examples, NVIDIA's, MXNet's and GluonCV's, TensorFlow's official models,
// LBANN, FFCV, imagenet18, Ray, webdataset and llm.c.
constexpr std::array known{
    // Data.
    Foreign{"dataset reader metadata data-filedir-* data-filename-* label-filename-*", prepared},
    Foreign{"data-backend", "use --data DIR, or --synthetic"},
    Foreign{"use-rec rec-train rec-train-idx rec-val rec-val-idx data-train-idx data-val-idx", records},
    Foreign{"shards valshards", shards},
    Foreign{"bucket s3-bucket key-prefix", bucket},
    Foreign{"label-file", "'convoy-preprocess folder --label-file FILE' reads labels"},
    Foreign{"class-map", "'convoy-preprocess folder --classes FILE' gives the classes their numbers"},
    Foreign{"sample-list", "the samples are those that convoy-preprocess stored; see its kind 'list'"},
    Foreign{"train-dataset", "use --train-data DIR, a folder that convoy-preprocess wrote"},
    Foreign{"val-dataset", "use --val-data DIR, a folder that convoy-preprocess wrote"},
    Foreign{"train-split val-split", splits},
    Foreign{"nb-classes num-classes", classes},
    Foreign{"in-chans", "the channels are those of the data set"},
    Foreign{"num-examples ntrain trainsize",
            "the number of images is read from the data set; --limit-train-batches takes fewer"},
    Foreign{"nval valsize", "the number of images is read from the data set; --limit-val-batches takes fewer"},
    Foreign{"check-data", "use 'convoy-preprocess verify DIR'"},
    Foreign{"cache-dataset", memory},
    Foreign{"data-store-* use-data-store preload-data-store vmtouch in-memory", "use --data-cache ram"},
    Foreign{"balanced-sampling", "use --balance classes"},
    Foreign{"ra-sampler", "use --repeated-augmentation N"},
    // From images to the network's input.
    Foreign{"resolution", "use --image-size, and --val-image-size for validation"},
    Foreign{"image-shape", "use --image-size; channels are those of the data set"},
    Foreign{"crop-pct", "use --resize: the image size divided by the share"},
    Foreign{"interpolation train-interpolation val-interpolation", resized},
    Foreign{"crop-mode", "evaluation takes the centre of the image"},
    Foreign{"train-crop-mode random-resized-crop", "use --crop resized"},
    Foreign{"random-crop", "use --crop window with --pad, or --crop resized"},
    Foreign{"scale min-crop-size max-crop-size", area},
    Foreign{"hflip horizontal-flip random-flip random-mirror", "use --flip random"},
    Foreign{"no-aug", "nothing is augmented unless an option says so; see 'convoy train --help augmentation'"},
    Foreign{"color-jitter colour-jitter", jitter},
    Foreign{"color-jitter-prob grayscale-prob gaussian-blur-prob",
            "Convoy makes no image grey or blurred at random; use --auto-augment trivial or randaugment"},
    Foreign{"randaug", "use --auto-augment randaugment"},
    Foreign{"automatic-augmentation trivial-augment", policy},
    Foreign{"aug-splits jsd-loss", policies},
    Foreign{"recount remode", erasing},
    Foreign{"mixup-mode", "each image has a partner and a share of its own"},
    Foreign{"mixup-switch-prob",
            "with --mixup and --cutmix, each image is mixed in one of the two ways, with equal probability"},
    Foreign{"mixup-off-epoch", "images are mixed in all epochs"},
    Foreign{"cutmix-minmax", "use --cutmix ALPHA"},
    Foreign{"use-v2", elsewhere},
    // Networks and weights.
    Foreign{"backbone", "use --model"},
    Foreign{"resnet-size", "use --model resnetN, or --model resnet --num-layers N"},
    Foreign{"prototext", "use --config FILE, and --model or --model-file for the network"},
    Foreign{"finetune pretrained pretrained-model use-pretrained", weights},
    Foreign{
        "layer-before-fullc",
        "the last layer is found in the network; use --weights PATH with --freeze backbone, or --lr-mult backbone=0.1"},
    Foreign{"drop-path drop-connect drop-block", "use --dropout, if the network has it; there is no stochastic depth"},
    Foreign{"bn-statistics-group-size", "use --sync-bn, over all ranks"},
    Foreign{"dist-bn", "running statistics are those of all ranks without being asked"},
    Foreign{"split-bn blurpool use-blurpool", none},
    Foreign{"grad-checkpointing", "use --recompute auto or all"},
    Foreign{"transformer-embedding-decay", "Convoy has no transformers"},
    Foreign{"find-unused-parameters", "all parameters take part in each step; leave it out"},
    // Optimiser, learning rate and loss.
    Foreign{"adam adamw", rule},
    Foreign{"nesterov", "use --optimizer nesterov"},
    Foreign{"enable-lars", "use --optimizer lars"},
    Foreign{"opt-betas", "use --beta1 and --beta2"},
    Foreign{"base-lr lr-base lr-base-scale", scaled},
    Foreign{"scale-lr", "multiply --lr, or use --lr-scaling linear"},
    Foreign{"lr-find lr-finder", find_rate},
    Foreign{"scheduler lr-schedule-type", "use --lr-schedule"},
    Foreign{"phases", "use sections [phase.N] of a file for --config"},
    Foreign{"min-res max-res start-ramp end-ramp", "use sections [phase.N] of a file for --config, with image-size"},
    Foreign{"step-ratio", "use --lr-factor"},
    Foreign{"step-length", "use --lr-step-epochs with --lr-schedule step"},
    Foreign{"decay-epochs", "use --lr-step-epochs with --lr-schedule step"},
    Foreign{"lr-cycle-*", "no schedule starts again; use --lr-schedule cosine or onecycle"},
    Foreign{"lr-peak-epoch", "use --lr-schedule onecycle, with --onecycle-start, or --warmup-epochs"},
    Foreign{"cooldown-epochs lr-k-decay lr-noise lr-noise-* ltfb-*", none},
    Foreign{"lr-warmup-decay", "use --warmup-lr, the first learning rate itself and not a share of --lr"},
    Foreign{"lr-warmup-method", "the warm-up is linear, from --warmup-lr on; --warmup-epochs says how long it is"},
    Foreign{"warmup-strategy", "the warm-up is linear; for MXNet's lars use --optimizer lars"},
    Foreign{"decay", "use --weight-decay, or --ema-decay"},
    Foreign{
        "bn-wd no-bn-wd",
        "weight decay leaves norms and biases alone unless --norm-weight-decay or --bias-weight-decay says otherwise"},
    Foreign{"layer-decay", "use --lr-mult with a factor for each layer, such as layer1=0.5,layer2=0.7"},
    Foreign{"clip-mode", "use --clip-grad-norm, the norm of all gradients together"},
    Foreign{"grad-clip", "use --clip-grad-norm"},
    Foreign{"model-ema use-ema", ema},
    Foreign{"loss", "the loss is the cross entropy; --label-smoothing softens it"},
    Foreign{"bce-*", cross_entropy},
    Foreign{"kd-* distillation-*", "Convoy has no distillation"},
    // Length, epochs and evaluation.
    Foreign{"d", "use --global-batch"},
    Foreign{"validation.batch-size", "use --eval-batch-size"},
    Foreign{"batch-per-gpu samples-per-gpu train-batch-size", "use --batch-size, which is per replica"},
    Foreign{"max-epochs n-epochs epoch-repeats", "use --epochs"},
    Foreign{"train-steps prof", "use --max-steps, which counts from where the job starts or resumes"},
    Foreign{"steps-per-epoch", "an epoch is one pass over the data; --limit-train-batches N makes it shorter"},
    Foreign{"no-validate", "use --skip-eval"},
    Foreign{"short-epoch smoke-test", "use --limit-train-batches N"},
    Foreign{"early-stopping", "use --patience N, or --target-accuracy PERCENT"},
    Foreign{"stop-threshold", "use --target-accuracy PERCENT"},
    Foreign{"e eval-only evaluate test-only validate", evaluate},
    Foreign{"is-training mode", "use 'convoy train' or 'convoy evaluate'"},
    Foreign{"tta use-tta lr-tta", "use --flip-test"},
    Foreign{"benchmark", "use 'convoy bench compute', or --synthetic"},
    Foreign{"test-io", "use 'convoy bench io'"},
    Foreign{"exit-after-setup", "use --dry-run"},
    // Output and checkpoints.
    Foreign{"folder work-dir", "use --output-dir"},
    Foreign{"experiment", "use --output-dir, or --name"},
    Foreign{"eval-dir", "validations are logged with the training, in --output-dir"},
    Foreign{"model-prefix", "use --output-dir, or --checkpoint-dir"},
    Foreign{"checkpoint-filename checkpoint-format",
            "checkpoints are named after their epoch or step; --checkpoint-dir says where they lie"},
    Foreign{"load-epoch resume-epoch resume-from resume-params", "use --resume PATH, a checkpoint, or --resume auto"},
    Foreign{"save-best save-best-only", best},
    Foreign{"gather-checkpoints", "use --keep-checkpoints N"},
    Foreign{"batches-per-commit", "use --save-every-steps"},
    Foreign{"export-dir", "use 'convoy export' after training"},
    Foreign{"preset", "use --config FILE; each file of the folder configs is an experiment"},
    Foreign{"loginterval report-interval", "use --print-freq STEPS"},
    Foreign{"log-file logging-file", "the log is log.txt in the run directory"},
    Foreign{"raport-file", "metrics.jsonl in the run directory has all numbers (docs/metrics.md)"},
    Foreign{"tb", "TensorBoard events are written unasked; --no-tensorboard leaves them out"},
    Foreign{"log-wandb use-wandb wandb wandb-*", trackers},
    Foreign{"timeline-filename", "use --trace-steps A:B, which writes trace.json into the run directory"},
    // Device.
    Foreign{"amp amp-dtype amplevel apex apex-* fp16 half mixed-precision use-amp", precision},
    Foreign{"bf16", "use --precision bf16"},
    Foreign{"dynamic-loss-scale", scale},
    Foreign{"cpu disable-cuda no-accel no-cuda no-gpu", cpu},
    Foreign{"cuda", "use --device cuda"},
    Foreign{"channels-last data-format memory-format", layout},
    Foreign{"compile torchcompile torchscript enable-xla", compiled},
    Foreign{"deterministic use-deterministic-algorithms", repeatable},
    Foreign{"pin-mem pin-memory", none},
    Foreign{"steps-per-loop", "steps are queued ahead of the device without being asked"},
    // Ranks, and what they exchange.
    Foreign{"dist-url distributed gpu gpus multiprocessing-distributed ngpus num-gpus world-size", ranks},
    Foreign{"address hostfile hosts launcher local-rank machines master-addr master-port network-interfaces nnodes "
            "node-rank nodes np nproc nproc-per-node port procs-per-node rank redis-address task-index worker-hosts",
            launcher},
    Foreign{"account partition", scheduler},
    Foreign{"job-name", "the scheduler names the job; --name names the run"},
    Foreign{"host-discovery-script max-np min-np", fixed_ranks},
    Foreign{"procs-per-trainer", "all ranks are one trainer; --replicas says how many batches make a step"},
    Foreign{"distribution-strategy", "use --sync gradients or weights; the launcher starts the ranks"},
    Foreign{"kv-store",
            "use --sync gradients or weights, which wait for all ranks (there is no dist_async); --backend auto, mpi, "
            "shared or nccl does the all-reduce"},
    Foreign{"all-reduce-alg", "use --backend auto, mpi, shared or nccl"},
    Foreign{"compression", compressed},
    Foreign{"fp16-allreduce", "use --wire fp16, or bf16, whose range is that of fp32"},
    Foreign{"adasum use-adasum gradient-predivide-factor", "gradients are averaged as they are; Convoy has no Adasum"},
    Foreign{"autotune cycle-time-ms",
            "gradients travel as soon as their bucket is complete; --fusion-threshold-mb says how large it is"},
    Foreign{"period local-sgd-steps", period},
    Foreign{"post-local-sgd start-localsgd-iter warmup-steps", post_local},
    Foreign{"slowmo", slow_momentum},
    Foreign{"skip-auto-shutdown", "Convoy starts and stops no machines"},
};

/// For commands that use a trained network and train nothing.
constexpr std::array known_of_use{
    Foreign{"model-prefix", "give the checkpoint, or the run directory, as PATH"},
    Foreign{"load-epoch", "give the checkpoint of that epoch as PATH"},
    Foreign{"e eval-only evaluate test-only validate", "leave it out; nothing is trained here"},
};

constexpr std::string_view prepare = "convoy-preprocess makes data sets";
constexpr std::array commands{
    Foreign{"benchmark", "use 'convoy bench'"},
    Foreign{"check", "use 'convoy preflight', or 'convoy-preprocess verify DIR' for a data set"},
    Foreign{"classify infer inference", "use 'convoy predict'"},
    Foreign{"eval test val validate", evaluate},
    Foreign{"find-lr lr-find", find_rate},
    Foreign{"finetune", "use 'convoy train --weights PATH'"},
    Foreign{"fit run", "use 'convoy train'"},
    Foreign{"info", "use 'convoy inspect' or 'convoy status'"},
    Foreign{"ls", "use 'convoy summary RUN_DIR ...'"},
    Foreign{"prepare preprocess", prepare},
    Foreign{"resume", "use 'convoy train --resume auto --output-dir RUN_DIR'"},
    Foreign{"verify", "use 'convoy-preprocess verify DIR'"},
};

/// Calls see(name, hint) for each name of a table.
template <std::size_t N, class See>
void walk(const std::array<Foreign, N>& table, const See& see) {
  for (const Foreign& foreign : table) {
    for (std::string_view rest = foreign.names; !rest.empty();) {
      const auto end = std::min(rest.find(' '), rest.size());
      see(std::string(rest.substr(0, end)), foreign.hint);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

template <std::size_t N>
std::string hint_in(const std::array<Foreign, N>& table, std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string found;
  walk(table, [&](const std::string& each, std::string_view hint) {
    if (found.empty() && is_pattern_of(each, name)) found = hint;
  });
  return found;
}

}  // namespace

std::string foreign_hint(const std::string& command, const std::string& name) {
  const bool uses = command == "evaluate" || command == "predict" || command == "export";
  const std::string hint = uses ? hint_in(known_of_use, name) : "";
  return hint.empty() ? hint_in(known, name) : hint;
}

std::vector<std::string> foreign_names() {
  std::vector<std::string> names;
  walk(known, [&](const std::string& name, std::string_view) { names.push_back(name); });
  return names;
}

std::string foreign_command(const std::string& name) { return hint_in(commands, name); }

}  // namespace convoy
