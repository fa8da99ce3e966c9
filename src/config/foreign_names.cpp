// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include "config/options.hpp"

namespace convoy {
namespace {

struct Foreign {
  std::string_view name, hint;
};

constexpr std::string_view precision = "use --precision fp16 or bf16";
constexpr std::string_view ranks =
    "there is one rank a GPU: start them with mpirun -np N, or srun, and give --device cuda";
constexpr std::string_view classes = "the number of classes is read from the data set";

// Of torchvision's references, timm, Horovod's examples and MXNet's train_imagenet.py.
constexpr std::array known{
    Foreign{"amp", precision},
    Foreign{"fp16", precision},
    Foreign{"half", precision},
    Foreign{"bf16", "use --precision bf16"},
    Foreign{"gpus", ranks},
    Foreign{"gpu", ranks},
    Foreign{"num-gpus", ranks},
    Foreign{"world-size", ranks},
    Foreign{"dist-url", ranks},
    Foreign{"kv-store", "use --sync gradients or weights; --backend auto, mpi or nccl moves the sums"},
    Foreign{"dist-backend", "use --backend auto, mpi or nccl"},
    Foreign{"num-classes", classes},
    Foreign{"nb-classes", classes},
    Foreign{"num-examples", "the number of images is read from the data set; --limit-train-batches takes fewer"},
    Foreign{"pretrained", "use --weights PATH, a checkpoint or a run directory"},
    Foreign{"finetune", "use --weights PATH, a checkpoint or a run directory"},
    Foreign{"val-crop-size", "validation takes --image-size from images of --resize"},
    Foreign{"train-crop-size", "use --image-size"},
    Foreign{"val-resize-size", "use --resize"},
    Foreign{"nesterov", "use --optimizer nesterov"},
    Foreign{"model-ema", "use --ema-decay"},
    Foreign{"channels-last", "the device chooses the layout"},
    Foreign{"compile", "programs are compiled at the start without being asked"},
    Foreign{"evaluate", "use 'convoy evaluate'"},
    Foreign{"e", "use 'convoy evaluate'"},
    Foreign{"test-only", "use 'convoy evaluate'"},
    Foreign{"eval-only", "use 'convoy evaluate'"},
    Foreign{"test-io", "use 'convoy bench io'"},
    Foreign{"benchmark", "use 'convoy bench compute'"},
};

}  // namespace

std::string foreign_hint(const std::string& name) {
  for (const Foreign& foreign : known) {
    if (foreign.name == name) return std::string(foreign.hint);
  }
  return "";
}

}  // namespace convoy
