// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cctype>
#include <string_view>

#include "config/options.hpp"

namespace convoy {
namespace {

struct Foreign {
  std::string_view name, hint;
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

// Of torchvision's references, timm, Horovod's examples, NVIDIA's, MXNet's train_imagenet.py, TensorFlow's official
// models, LBANN, FFCV and llm.c.
constexpr std::array known{
    Foreign{"adam", rule},
    Foreign{"adamw", rule},
    Foreign{"amp", precision},
    Foreign{"amp-dtype", precision},
    Foreign{"amplevel", precision},
    Foreign{"augmix-severity", "Convoy has no AugMix; use --auto-augment trivial, randaugment or autoaugment"},
    Foreign{"backbone", "use --model"},
    Foreign{"base-lr", scaled},
    Foreign{"batch-per-gpu", "use --batch-size, which is per replica"},
    Foreign{"bce-loss", "the loss is the cross entropy of one label per image"},
    Foreign{"benchmark", "use 'convoy bench compute', or --synthetic"},
    Foreign{"bf16", "use --precision bf16"},
    Foreign{"bn-statistics-group-size", "use --sync-bn, over all ranks"},
    Foreign{"balanced-sampling", "use --balance classes"},
    Foreign{"cache-dataset", "use --data-cache ram, stream or stage"},
    Foreign{"channels-last", layout},
    Foreign{"check-data", "use 'convoy-preprocess verify DIR'"},
    Foreign{"clip-mode", "use --clip-grad-norm, the norm of all gradients together"},
    Foreign{"color-jitter", jitter},
    Foreign{"colour-jitter", jitter},
    Foreign{"compile", "programs are compiled at the start without being asked"},
    Foreign{"compression", compressed},
    Foreign{"cooldown-epochs", none},
    Foreign{"cpu", cpu},
    Foreign{"crop-pct", "use --resize: the image size divided by the share"},
    Foreign{"cuda", "use --device cuda"},
    Foreign{"d", "use --global-batch"},
    Foreign{"data-backend", "use --data DIR, or --synthetic"},
    Foreign{"data-format", layout},
    Foreign{"dataset", "use --data DIR, a folder that convoy-preprocess wrote"},
    Foreign{"decay", "use --weight-decay, or --ema-decay"},
    Foreign{"decay-epochs", "use --lr-step-epochs with --lr-schedule step"},
    Foreign{"deterministic", repeatable},
    Foreign{"disable-cuda", cpu},
    Foreign{"dist-url", ranks},
    Foreign{"drop-path", "use --dropout, where the network has it; there is no stochastic depth"},
    Foreign{"dynamic-loss-scale", scale},
    Foreign{"e", evaluate},
    Foreign{"early-stopping", "use --patience N, or --target-accuracy PERCENT"},
    Foreign{"eval-only", evaluate},
    Foreign{"evaluate", evaluate},
    Foreign{"experiment", "use --output-dir, or --name"},
    Foreign{"finetune", weights},
    Foreign{"fp16", precision},
    Foreign{"fp16-allreduce", "use --wire fp16, or bf16, whose range is that of fp32"},
    Foreign{"gpu", ranks},
    Foreign{"gpus", ranks},
    Foreign{"grad-checkpointing", "use --recompute auto or all"},
    Foreign{"grad-clip", "use --clip-grad-norm"},
    Foreign{"half", precision},
    Foreign{"hflip", "use --flip random"},
    Foreign{"horizontal-flip", "use --flip random"},
    Foreign{"image-shape", "use --image-size; channels are those of the data set"},
    Foreign{"interpolation", "images are resized as Pillow does it, bilinear with antialiasing"},
    Foreign{"is-training", "use 'convoy train' or 'convoy evaluate'"},
    Foreign{"kv-store", "use --sync gradients or weights; --backend auto, mpi, shared or nccl does the all-reduce"},
    Foreign{
        "layer-before-fullc",
        "the last layer is found in the network; use --weights PATH with --freeze backbone, or --lr-mult backbone=0.1"},
    Foreign{"layer-decay", "use --lr-mult with a factor for each layer, such as layer1=0.5,layer2=0.7"},
    Foreign{"load-epoch", "use --resume PATH, a checkpoint, or --resume auto"},
    Foreign{"local-rank", launcher},
    Foreign{"log-wandb", trackers},
    Foreign{"loginterval", "use --print-freq STEPS"},
    Foreign{"loss", "the loss is the cross entropy; --label-smoothing softens it"},
    Foreign{"lr-base", scaled},
    Foreign{"lr-find", find_rate},
    Foreign{"lr-finder", find_rate},
    Foreign{"lr-warmup-decay", "use --warmup-lr, the first learning rate itself and not a share of --lr"},
    Foreign{"lr-warmup-method", "the warm-up is linear, from --warmup-lr on; --warmup-epochs says how long it is"},
    Foreign{"master-addr", launcher},
    Foreign{"master-port", launcher},
    Foreign{"max-epochs", "use --epochs"},
    Foreign{"memory-format", layout},
    Foreign{"mixed-precision", precision},
    Foreign{"model-ema", ema},
    Foreign{"model-prefix", "use --output-dir, or --checkpoint-dir"},
    Foreign{"multiprocessing-distributed", ranks},
    Foreign{"n-epochs", "use --epochs"},
    Foreign{"nb-classes", classes},
    Foreign{"nesterov", "use --optimizer nesterov"},
    Foreign{"ngpus", ranks},
    Foreign{"nnodes", launcher},
    Foreign{"no-accel", cpu},
    Foreign{"no-aug", "nothing is augmented unless an option says so; see 'convoy train --help augmentation'"},
    Foreign{
        "no-bn-wd",
        "weight decay leaves norms and biases alone unless --norm-weight-decay or --bias-weight-decay says otherwise"},
    Foreign{"no-cuda", cpu},
    Foreign{"no-gpu", cpu},
    Foreign{"nproc-per-node", launcher},
    Foreign{"num-classes", classes},
    Foreign{"num-examples", "the number of images is read from the data set; --limit-train-batches takes fewer"},
    Foreign{"num-gpus", ranks},
    Foreign{"ntrain", "the number of images is read from the data set; --limit-train-batches takes fewer"},
    Foreign{"nval", "the number of images is read from the data set; --limit-val-batches takes fewer"},
    Foreign{"opt-betas", "use --beta1 and --beta2"},
    Foreign{"pin-mem", none},
    Foreign{"pin-memory", none},
    Foreign{"period", period},
    Foreign{"preset", "use --config FILE; each file of the folder configs is an experiment"},
    Foreign{"pretrained", weights},
    Foreign{"pretrained-model", weights},
    Foreign{"ra-sampler", "use --repeated-augmentation N"},
    Foreign{"randaug", "use --auto-augment randaugment"},
    Foreign{"random-crop", "use --crop window with --pad, or --crop resized"},
    Foreign{"random-flip", "use --flip random"},
    Foreign{"random-mirror", "use --flip random"},
    Foreign{"random-resized-crop", "use --crop resized"},
    Foreign{"rank", launcher},
    Foreign{"recount", erasing},
    Foreign{"remode", erasing},
    Foreign{"resnet-size", "use --model resnetN, or --model resnet --num-layers N"},
    Foreign{"sample-list", "the samples are those that convoy-preprocess stored; see its kind 'list'"},
    Foreign{"scale", "use --min-random-area and --max-random-area with --crop resized"},
    Foreign{"save-best", best},
    Foreign{"save-best-only", best},
    Foreign{"scheduler", "use --lr-schedule"},
    Foreign{"short-epoch", "use --limit-train-batches N"},
    Foreign{"slowmo", slow_momentum},
    Foreign{"start-localsgd-iter", post_local},
    Foreign{"steps-per-epoch", "an epoch is one pass over the data; --limit-train-batches N makes it shorter"},
    Foreign{"stop-threshold", "use --target-accuracy PERCENT"},
    Foreign{"tb", "TensorBoard events are written unasked; --no-tensorboard leaves them out"},
    Foreign{"test-io", "use 'convoy bench io'"},
    Foreign{"test-only", evaluate},
    Foreign{"train-split", splits},
    Foreign{"trivial-augment", policy},
    Foreign{"use-amp", precision},
    Foreign{"use-deterministic-algorithms", repeatable},
    Foreign{"use-ema", ema},
    Foreign{"use-wandb", trackers},
    Foreign{"val-split", splits},
    Foreign{"validate", evaluate},
    Foreign{"vflip", "Convoy mirrors images left to right alone, by --flip"},
    Foreign{"wandb", trackers},
    Foreign{"warmup-steps", post_local},
    Foreign{"warmup-strategy", "the warm-up is linear; for MXNet's lars use --optimizer lars"},
    Foreign{"world-size", ranks},
};

constexpr std::string_view prepare = "convoy-preprocess makes data sets";
constexpr std::array commands{
    Foreign{"benchmark", "use 'convoy bench'"},
    Foreign{"check", "use 'convoy preflight', or 'convoy-preprocess verify DIR' for a data set"},
    Foreign{"classify", "use 'convoy predict'"},
    Foreign{"eval", "use 'convoy evaluate'"},
    Foreign{"find-lr", find_rate},
    Foreign{"finetune", "use 'convoy train --weights PATH'"},
    Foreign{"fit", "use 'convoy train'"},
    Foreign{"lr-find", find_rate},
    Foreign{"infer", "use 'convoy predict'"},
    Foreign{"inference", "use 'convoy predict'"},
    Foreign{"info", "use 'convoy inspect' or 'convoy status'"},
    Foreign{"ls", "use 'convoy summary RUN_DIR ...'"},
    Foreign{"prepare", prepare},
    Foreign{"preprocess", prepare},
    Foreign{"resume", "use 'convoy train --resume auto --output-dir RUN_DIR'"},
    Foreign{"run", "use 'convoy train'"},
    Foreign{"test", "use 'convoy evaluate'"},
    Foreign{"val", "use 'convoy evaluate'"},
    Foreign{"validate", "use 'convoy evaluate'"},
    Foreign{"verify", "use 'convoy-preprocess verify DIR'"},
};

template <std::size_t N>
std::string hint_in(const std::array<Foreign, N>& table, std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Foreign& foreign : table) {
    if (foreign.name == name) return std::string(foreign.hint);
  }
  return "";
}

}  // namespace

std::string foreign_hint(const std::string& name) { return hint_in(known, name); }
std::string foreign_command(const std::string& name) { return hint_in(commands, name); }

}  // namespace convoy
