# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of configs/cifar10_resnet20_10ep.cfg and, with --device cuda, of configs/cifar10_resnet18_fast.cfg: the same
network, recipe and binary files, DistributedDataParallel over gloo, or local SGD with --local-steps. One line of JSON an
epoch and at the end."""
import argparse
import json
import os
import socket
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from networks import NETWORKS


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of data_batch_1.bin ... test_batch.bin")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128, help="of a process")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.4, help="peak of the one-cycle schedule")
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--decay-all", action="store_true", help="decay norms and biases too")
    parser.add_argument("--local-steps", type=int, default=0, help="average weights every so many steps; 0: gradients")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: one process, the data on the GPU")
    parser.add_argument("--model", choices=NETWORKS, default="resnet20")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--target", type=float, default=0, help="end where a validation reaches so many percent")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def read(folder, names):
    records = np.concatenate([np.fromfile(os.path.join(folder, n), np.uint8).reshape(-1, 3073) for n in names])
    return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(records[:, 0].astype(np.int64))


def augmented(images, generator):
    """Padded by 4 black pixels, cropped and flipped at random; uint8."""
    n, on = len(images), images.device
    padded = F.pad(images, (4, 4, 4, 4))
    y, x = (torch.randint(9, (n, 1), generator=generator, device=on) + torch.arange(32, device=on) for _ in range(2))
    crops = padded[torch.arange(n, device=on)[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)
    flip = torch.rand(n, generator=generator, device=on) < 0.5
    crops[flip] = crops[flip].flip(3)
    return crops


def average(net, processes):
    with torch.no_grad():
        for tensor in net.state_dict().values():
            if tensor.is_floating_point():
                dist.all_reduce(tensor)
                tensor /= processes


def run(rank, args, port):
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // args.processes))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.processes)
    torch.backends.cudnn.benchmark = True
    images, labels = (t.to(args.device) for t in read(args.data, [f"data_batch_{i}.bin" for i in range(1, 6)]))
    test_images, test_labels = (t.to(args.device) for t in read(args.data, ["test_batch.bin"]))
    mean = images.float().mean((0, 2, 3), keepdim=True)
    std = images.float().std((0, 2, 3), keepdim=True)

    torch.manual_seed(args.seed)  # the same start on all processes
    net = NETWORKS[args.model][0]().to(args.device, memory_format=torch.channels_last)
    matrices = [p for p in net.parameters() if p.dim() > 1 or args.decay_all]
    vectors = [p for p in net.parameters() if not (p.dim() > 1 or args.decay_all)]
    optimiser = torch.optim.SGD([{"params": matrices, "weight_decay": args.weight_decay},
                                 {"params": vectors, "weight_decay": 0.0}], lr=args.lr, momentum=0.9, nesterov=True)
    steps = len(images) // (args.batch_size * args.processes)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, args.lr, args.epochs * steps, cycle_momentum=False)
    trained = net if args.local_steps or args.processes == 1 else torch.nn.parallel.DistributedDataParallel(net)
    if args.compile:
        trained = torch.compile(trained)
    draws = torch.Generator(args.device).manual_seed(args.seed * 1000 + rank)
    low = torch.float16 if args.precision == "fp16" else torch.bfloat16
    autocast = torch.autocast(args.device, low, enabled=args.precision != "fp32")
    scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")

    def prepared(batch):
        return ((batch.float() - mean) / std).contiguous(memory_format=torch.channels_last)

    begin, done, top1 = time.perf_counter(), 0, 0.0
    for epoch in range(args.epochs):
        net.train()
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(args.seed * 1000 + 500 + epoch))
        own = order[: steps * args.batch_size * args.processes].view(steps, args.processes, args.batch_size)[:, rank]
        total = torch.zeros((), device=args.device)
        for chosen in own:
            with autocast:
                loss = F.cross_entropy(trained(prepared(augmented(images[chosen], draws))), labels[chosen])
            optimiser.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            schedule.step()
            total += loss.detach()
            done += 1
            if args.local_steps and done % args.local_steps == 0:
                average(net, args.processes)
        if args.local_steps:
            average(net, args.processes)
        net.eval()
        with torch.no_grad(), autocast:
            hits = sum((net(prepared(test_images[i : i + 500])).argmax(1) == test_labels[i : i + 500]).sum()
                       for i in range(rank * 500, len(test_images), 500 * args.processes)).reshape(1).cpu()
        dist.all_reduce(hits)
        top1 = 100.0 * hits.item() / len(test_images)
        if rank == 0:
            print(json.dumps({"epoch": epoch + 1, "loss": total.item() / steps, "top1": top1,
                              "seconds": time.perf_counter() - begin}), flush=True)
        if args.target and top1 >= args.target:
            break
    if rank == 0:
        print(json.dumps({**vars(args), "top1": top1, "seconds": time.perf_counter() - begin, "torch": torch.__version__}))
    dist.destroy_process_group()


def main():
    args = parse()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(run, (args, port), nprocs=args.processes)


if __name__ == "__main__":
    main()
