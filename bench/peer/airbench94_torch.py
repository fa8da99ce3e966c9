# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of configs/cifar10_fast.cfg: the published recipe of airbench94 (Jordan 2024, arXiv 2404.00498) on one process, written
from its description, on the same binary files. One line of JSON per epoch and at the end."""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from cifar10_torch import read
from networks import NETWORKS

BATCH, MOMENTUM, LR, DECAY, SMOOTHING, BIAS_FACTOR, WHITEN_EPOCHS = 1024, 0.85, 1.5, 1.3304e-3, 0.2, 64, 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of data_batch_1.bin ... test_batch.bin")
    parser.add_argument("--epochs", type=float, default=9.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    return parser.parse_args()


def whiten(conv, images):
    """The eigenvectors of all 2x2 patches, each over the root of its eigenvalue, and their negatives."""
    patches = F.unfold(images, 2).transpose(1, 2).reshape(-1, 12).double()
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (vectors / torch.sqrt(values + 5e-4)).T.flip(0).reshape(12, 3, 2, 2).float()
    conv.weight.data.copy_(torch.cat([filters, -filters]))


def start(net, images):
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    whiten(convolutions[0], images[:5000])
    for conv in convolutions[1:]:
        torch.nn.init.dirac_(conv.weight.data[:conv.weight.shape[1]])


def logits(net, images):
    """Mean of the image, two of its shifts, and their mirror images."""
    def mirrored(x):
        return 0.5 * net(x) + 0.5 * net(x.flip(3))
    padded = F.pad(images, (1, 1, 1, 1), mode="reflect")
    return 0.5 * mirrored(images) + 0.25 * (mirrored(padded[:, :, 0:32, 0:32]) + mirrored(padded[:, :, 2:34, 2:34]))


def main():
    args = parse()
    torch.manual_seed(args.seed)
    images, labels = read(args.data, [f"data_batch_{i}.bin" for i in range(1, 6)])
    test_images, test_labels = read(args.data, ["test_batch.bin"])
    mean, std = images.float().mean((0, 2, 3), keepdim=True), images.float().std((0, 2, 3), keepdim=True)
    images, test_images = (images.float() - mean) / std, (test_images.float() - mean) / std
    net = NETWORKS["airbench94"][0]().to(memory_format=torch.channels_last)
    start(net, images)
    biases = [m.bias for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    known = {id(b) for b in biases}
    others = [p for p in net.parameters() if p.requires_grad and id(p) not in known]
    optimiser = torch.optim.SGD([{"params": biases, "lr": LR * BIAS_FACTOR, "weight_decay": DECAY / BIAS_FACTOR},
                                 {"params": others, "lr": LR, "weight_decay": DECAY}], lr=LR, momentum=MOMENTUM, nesterov=True)
    per_epoch = len(images) // BATCH
    steps = int(np.ceil(per_epoch * args.epochs))
    triangle = np.interp(np.arange(steps + 1), [0, int(0.23 * steps), steps], [0.2, 1, 0.07])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda i: triangle[i])
    trained = torch.compile(net) if args.compile else net
    state = [t for t in net.state_dict().values() if t.is_floating_point()]
    slow = [t.clone() for t in state]
    whitening_bias = net.layers[0].bias
    mirror, padded = torch.rand(len(images)) < 0.5, F.pad(images, (2, 2, 2, 2), mode="reflect")
    begin, done, epoch = time.perf_counter(), 0, 0
    while done < steps:
        net.train()
        whitening_bias.requires_grad = epoch < WHITEN_EPOCHS
        total, hits, order = 0.0, 0, torch.randperm(len(images))
        for chosen in order[:min(per_epoch, steps - done) * BATCH].split(BATCH):
            y, x = torch.randint(5, (2, len(chosen), 1)) + torch.arange(32)
            batch = padded[chosen[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)
            turned = mirror[chosen] ^ (epoch % 2 == 1)  # each image alternates from epoch to epoch
            batch = torch.where(turned[:, None, None, None], batch.flip(3), batch).contiguous(memory_format=torch.channels_last)
            out = trained(batch)
            loss = F.cross_entropy(out, labels[chosen], label_smoothing=SMOOTHING)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            total, hits, done = total + loss.item() * len(chosen), hits + (out.argmax(1) == labels[chosen]).sum().item(), done + 1
            if done % 5 == 0:
                with torch.no_grad():
                    keep = 0.95**5 * (done / steps) ** 3
                    torch._foreach_lerp_(slow, state, 1 - keep)
                    torch._foreach_copy_(state, slow)
        epoch += 1
        print(json.dumps({"epoch": epoch, "loss": total / len(order), "train_top1": 100 * hits / (len(order) // BATCH * BATCH),
                          "images_per_second": done * BATCH / (time.perf_counter() - begin)}), flush=True)
    seconds = time.perf_counter() - begin
    with torch.no_grad():
        torch._foreach_copy_(state, slow)
        net.eval()
        tries = {"top1_one_view": net, "top1": lambda x: logits(net, x)}
        found = {name: sum((f(x.contiguous(memory_format=torch.channels_last)).argmax(1) == y).sum().item()
                           for x, y in zip(test_images.split(500), test_labels.split(500))) / 100 for name, f in tries.items()}
    print(json.dumps({"seed": args.seed, "epochs": args.epochs, "seconds": seconds, **found}))


if __name__ == "__main__":
    main()
