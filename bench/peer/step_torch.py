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
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="fp32",
                        help="bf16, fp16: autocast; fp16 with loss scaling")
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
    on_gpu = args.device == "cuda"
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    build, size, classes = NETWORKS[args.model]
    layout = torch.contiguous_format if args.contiguous else torch.channels_last
    net = build().to(args.device, memory_format=layout)
    images = torch.randn(args.batch_size, 3, size, size).to(args.device, memory_format=layout)
    labels = torch.randint(classes, (args.batch_size,)).to(args.device)
    optimiser = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    if args.processes > 1:
        net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
    if args.compile:
        net = torch.compile(net)
    loss_of = torch.nn.CrossEntropyLoss()
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    autocast = torch.autocast(args.device, low) if low else contextlib.nullcontext()
    scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")

    def step():
        with autocast:
            loss = loss_of(net(images), labels)
        optimiser.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return loss

    # A GPU is asked for its results a few times only, since it computes while the host is ahead.
    block = max(1, args.steps // 4) if on_gpu else 1
    for _ in range(args.warmup):
        loss = step()
    loss.item()
    seconds, cpu_begin = [], time.process_time()
    for _ in range(0, args.steps, block):
        begin = time.perf_counter()
        for _ in range(block):
            loss = step()
        loss = loss.item()
        seconds.append((time.perf_counter() - begin) / block)
    if rank == 0:
        images_a_step = args.batch_size * args.processes
        answer = {
            "images_per_second": images_a_step / statistics.mean(seconds),
            "best_images_per_second": images_a_step / min(seconds),
            "images_per_cpu_second": args.batch_size * len(seconds) * block / (time.process_time() - cpu_begin),
            "loss": loss,
            "torch": torch.__version__,
        }
        if on_gpu:
            answer |= {"card": torch.cuda.get_device_name(), "peak_megabytes": torch.cuda.max_memory_reserved() / 1e6}
        result.put(answer)
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
