# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch on images in memory: forward, loss, backward, momentum SGD. One line of JSON at the end."""
import argparse
import contextlib
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from networks import NETWORKS


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=NETWORKS, default="resnet20")
    parser.add_argument("--batch-size", type=int, default=128, help="of a process")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--contiguous", action="store_true", help="NCHW instead of channels_last")
    parser.add_argument("--processes", type=int, default=1, help="more than one: DistributedDataParallel over gloo")
    parser.add_argument("--threads", type=int, default=0, help="of a process; 0: cores / processes")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    return parser.parse_args()


def run(rank, args, port, result):
    torch.set_num_threads(args.threads or max(1, len(os.sched_getaffinity(0)) // args.processes))
    if args.processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=args.processes)
    torch.manual_seed(rank)
    build, size, classes = NETWORKS[args.model]
    layout = torch.contiguous_format if args.contiguous else torch.channels_last
    net = build().to(memory_format=layout)
    images = torch.randn(args.batch_size, 3, size, size).to(memory_format=layout)
    labels = torch.randint(classes, (args.batch_size,))
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    if args.processes > 1:
        net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
    if args.compile:
        net = torch.compile(net)
    loss_of = torch.nn.CrossEntropyLoss()
    autocast = torch.autocast("cpu", torch.bfloat16) if args.precision == "bf16" else contextlib.nullcontext()

    def step():
        with autocast:
            loss = loss_of(net(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.item()

    seconds = []
    for i in range(args.warmup + args.steps):
        begin = time.perf_counter()
        loss = step()
        if i >= args.warmup:
            seconds.append(time.perf_counter() - begin)
    if rank == 0:
        images_a_step = args.batch_size * args.processes
        result.put({
            "images_per_second": images_a_step / statistics.mean(seconds),
            "best_images_per_second": images_a_step / min(seconds),
            "loss": loss,
            "torch": torch.__version__,
        })
    if args.processes > 1:
        dist.destroy_process_group()


def main():
    args = parse()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = mp.get_context("spawn").SimpleQueue()
    if args.processes == 1:
        run(0, args, port, result)
    else:
        mp.spawn(run, (args, port, result), nprocs=args.processes)
    print(json.dumps({**vars(args), **result.get()}))


if __name__ == "__main__":
    main()
