# SPDX-License-Identifier: Apache-2.0
"""The program itself on two "GPUs" that are the host: steps are captured and replayed, sums go by NCCL or staged by MPI.
A job equals the CPU's, ends where it should (communicators are freed before the graphs that hold their sums), and goes
on on another card."""
import csv
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["CONVOY_SOURCE"], "tests", "end_to_end"))
from runner import CONVOY, check, difference, everything, last, records, run, same_bits, train, work_folder  # noqa: E402

MODULE, DRIVER = sys.argv[1:]
GPU = {"CONVOY_MODULE_DIR": MODULE, "LD_LIBRARY_PATH": DRIVER + ":" + os.environ.get("LD_LIBRARY_PATH", "")}
SMALL = ["--synthetic", "--synthetic-size", 8, "--synthetic-samples", 24, "--model", "resnet8", "--batch-size", 4, "--lr", 0.05,
         "--lr-schedule", "constant", "--workers", 1, "--eval-batch-size", 8, "--limit-val-batches", 1, "--print-freq", 1]
ENDS_WITHIN = 40  # seconds; a job takes about two


def on_gpu(ranks, folder, *words, sm=90, more=(), **kwargs):
    env = dict(GPU, CONVOY_HOST_SM=str(sm), **dict(more))
    return train(ranks, folder, *SMALL, "--device", "cuda", *words, env=env, timeout=ENDS_WITHIN, **kwargs)


def equals_the_cpu(folder):
    for name, words in {
        "gradients": ["--sync", "gradients"],
        "several turns": ["--sync", "gradients", "--grad-accum-steps", 3, "--batch-size", 2],
        "the tree": ["--sync", "gradients", "--reproducible", "--replicas", 3],
        "synchronised norms": ["--sync", "gradients", "--sync-bn"],
        "weights": ["--sync", "weights", "--local-steps", 2],
        "an outer optimiser": ["--sync", "weights", "--local-steps", 2, "--outer-optimizer", "nesterov", "--outer-momentum", 0.5],
        "muon": ["--sync", "gradients", "--optimizer", "muon", "--lr", 0.005],
        "a moving average": ["--sync", "gradients", "--ema-decay", 0.8, "--ema-steps", 2],
        "gradients in bf16": ["--sync", "gradients", "--wire", "bf16"],
        "gradients in fp16, the tree": ["--sync", "gradients", "--wire", "fp16", "--reproducible", "--replicas", 3],
        "weights in bf16, the tree": ["--sync", "weights", "--local-steps", 2, "--wire", "bf16", "--reproducible"],
        "weights in fp16": ["--sync", "weights", "--local-steps", 2, "--wire", "fp16"],
    }.items():
        # A kink would make rounding errors large within a few steps.
        words = ["--epochs", 2, "--activation", "tanh", *words]
        cpu = os.path.join(folder, name)
        train(2, cpu, *SMALL, "--device", "cpu", *words, timeout=ENDS_WITHIN)
        for backend, said in (("nccl", "NCCL"), ("mpi", "MPI")):
            gpu = f"{cpu} {backend}"
            out, err = on_gpu(2, gpu, "--backend", backend, *words)
            check(f"all-reduce: {said}" in out + err, f"{name}: the all-reduce goes by {said}")
            far = difference(everything(last(gpu)), everything(last(cpu)))
            # What differs by rounding of fp32 can be rounded to neighbours of 16 bits.
            bound = 1e-2 if "16" in name else 1e-4
            check(far < bound, f"{name}, by {said}: {far:.1e} from the CPU's job")


def evaluates(folder):
    """An evaluation captures its second batch and replays the others, of the set and of its average, also the last, which is masked, and
    with mirrored images: what it counts is what the CPU counts."""
    words = ["--epochs", 2, "--activation", "tanh", "--synthetic-samples", 120, "--batch-size", 24, "--limit-val-batches", 5, "--eval-batch-size", 5,
             "--ema-decay", 0.8, "--flip-test"]  # a fifth of the samples are for validation
    for more in (words, words[:-1]):
        runs = {device: os.path.join(folder, f"{device} {len(more)}") for device in ("cpu", "cuda")}
        train(1, runs["cpu"], *SMALL, "--device", "cpu", *more, timeout=ENDS_WITHIN)
        on_gpu(1, runs["cuda"], *more)
        found = {device: records(run, "val") for device, run in runs.items()}
        check(len(found["cuda"]) >= 2 and all(record["images"] == 24 for record in found["cuda"]), "every image is counted once")
        far = max(abs(a["loss"] - b["loss"]) for a, b in zip(found["cuda"], found["cpu"]))
        check(far < 1e-4 and [a["top1"] for a in found["cuda"]] == [b["top1"] for b in found["cpu"]], f"evaluations: losses within {far:.1e} of the CPU's")


def goes_on(folder):
    # Joins of its blocks have forms on the newer card only.
    words = ["--epochs", 2, "--sync", "gradients", "--backend", "nccl", "--precision", "fp16", "--model", "resnet11_bottleneck",
             "--resnet-version", "v1.5"]
    whole, half = os.path.join(folder, "whole"), os.path.join(folder, "half")
    on_gpu(2, whole, *words)
    on_gpu(2, half, *words, "--run-epochs", 1)
    first = last(half)
    same, other = os.path.join(folder, "same"), os.path.join(folder, "other")
    on_gpu(2, same, *words, "--resume", first)
    check(same_bits(everything(last(same)), everything(last(whole))), "resumed on the same cards: the same bits")
    _, err = on_gpu(2, other, *words, "--resume", first, sm=80)
    check("they are chosen anew" in err and "as sm_90" in err, "resumed on other cards: says that kernels are chosen anew")
    far = difference(everything(last(other)), everything(last(whole)))
    check(0 < far < 0.5, f"resumed on other cards: goes on, {far:.1e} from the same cards' job")


def goes_on_with_muon(folder):
    """With copies of the filters in bf16, a clipped norm and a layer that stays as it is."""
    words = ["--epochs", 2, "--optimizer", "muon", "--lr", 0.005, "--precision", "bf16", "--clip-grad-norm", 1, "--freeze", "layer1.*"]
    whole, half, same = (os.path.join(folder, name) for name in ("muon whole", "muon half", "muon same"))
    on_gpu(1, whole, *words)
    on_gpu(1, half, *words, "--run-epochs", 1)
    on_gpu(1, same, *words, "--resume", last(half))
    check(same_bits(everything(last(same)), everything(last(whole))), "muon resumed: the same bits")


def profiles(folder):
    """`bench compute --profile` on the emulated card: a row for each step of the plan, with its bytes and FLOP, and every step took some time."""
    table, net = os.path.join(folder, "profile.csv"), ["--model", "resnet11_bottleneck", "--resnet-version", "v1.5", "--classes", 10, "--image-size", 8, "--batch-size", 4]
    env = dict(GPU, CONVOY_HOST_SM="90")
    said, _ = run(1, "bench", "compute", "--device", "cuda", "--precision", "fp16", *net, "--steps", 3, "--warmup-steps", 2, "--profile", "--csv", table, env=env,
                  timeout=ENDS_WITHIN)
    plan, _ = run(1, "inspect", "plan", "--device", "cuda", "--precision", "fp16", *net, env=env, timeout=ENDS_WITHIN)
    wanted = re.findall(r"^ +\d+ (?:forward|backward|beside) +(\S.*?) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) ", plan, re.MULTILINE)
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check([row["kernels"] for row in rows] == [step[0] for step in wanted] and len(rows) > 50, "the profile has the steps of the plan, in their order")
    megabytes = [4 * float(step[1]) + float(step[3]) for step in wanted]
    check(all(abs(float(row["bytes"]) / 1e6 - mb) <= 0.0071 for row, mb in zip(rows, megabytes)), "with their bytes")
    check(all(float(row["seconds"]) > 0 for row in rows) and "graph launches: 1.00 per step" in said and "roofline" in said, "each took some time")


def without_nccl(folder):
    """A machine that has no NCCL: one GPU needs none, and several ranks sum by MPI."""
    modules = os.path.join(folder, "modules")
    os.makedirs(modules)
    os.symlink(os.path.join(MODULE, "libconvoy_cuda.so"), os.path.join(modules, "libconvoy_cuda.so"))
    env = {"CONVOY_MODULE_DIR": modules}
    words = ["--epochs", 1, "--sync", "gradients"]
    _, err = on_gpu(1, os.path.join(folder, "one"), *words, more=env)
    check("NCCL" not in err, "one rank does not miss it")
    _, err = on_gpu(2, os.path.join(folder, "two"), *words, more=env)
    check("the all-reduce goes through host memory" in err and "libconvoy_nccl.so" in err, "two ranks sum without NCCL, with a warning")
    _, err = on_gpu(2, os.path.join(folder, "asked"), *words, "--backend", "nccl", more=env, expect=4)
    check("--backend nccl is not possible (rank 0: this build of Convoy has no libconvoy_nccl.so)" in err, "--backend nccl is refused")


def alone(folder):
    """One rank that sums by NCCL in captured steps has the bits of one that does not."""
    words = ["--epochs", 2, "--sync", "gradients", "--backend", "nccl"]
    plain, alone_ = os.path.join(folder, "plain"), os.path.join(folder, "alone")
    on_gpu(1, plain, *words)
    on_gpu(1, alone_, *words, more={"CONVOY_NCCL_ALONE": "1"})
    check(same_bits(everything(last(plain)), everything(last(alone_))), "CONVOY_NCCL_ALONE: the same bits")


def unlike_ranks(folder):
    """Rank 1 has an older card than rank 0."""
    env = dict(os.environ, OMP_NUM_THREADS="1", **GPU)
    job = [CONVOY, "train", "--threads", "1", "--output-dir", folder, *map(str, SMALL), "--device", "cuda", "--epochs", "1",
           "--precision", "fp16", "--backend", "nccl", "--sync", "gradients"]
    command = ["mpirun", "--oversubscribe", "--bind-to", "none"]
    for sm in (90, 80):
        command += [*([":"] if sm == 80 else []), "-np", "1", "-x", f"CONVOY_HOST_SM={sm}", *job]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_WITHIN, env=env, check=False)
    return done.returncode, done.stdout + done.stderr


with work_folder() as work:
    evaluates(work)
    goes_on(work)
    goes_on_with_muon(work)
    equals_the_cpu(work)
    profiles(work)
    without_nccl(work)
    alone(work)
    code, text = unlike_ranks(os.path.join(work, "unlike"))
    check(code == 0, "unlike cards go together by rule" + ("" if code == 0 else f"; exit code {code}:\n{text}"))
