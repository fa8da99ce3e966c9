# SPDX-License-Identifier: Apache-2.0
"""--recompute: blocks that run forward twice change no bit, on 1 and 2 ranks, with synchronised statistics and dropout; memory falls, and
what is printed says so."""
import re
import sys

from runner import check, everything, last, run, same_bits, train, work_folder

DATA = ("--synthetic", "--synthetic-samples", 32, "--synthetic-classes", 5)
COMMON = (*DATA, "--lr", 0.02, "--lr-schedule", "constant", "--max-steps", 3, "--skip-eval", "--replicas", 2, "--reproducible", "--sync", "gradients")
# A sum, dropout, pools, a gate, a norm over channels and a concatenation lie within what runs again.
MIXED = """name = mixed

[network]
stem = convolution out=16 bias=true
bn0 = batch_norm
act0 = activation
a = mix repeat=3
avgpool = global_average_pool
flatten = flatten
fc = linear out=classes

[block mix]
conv1 = convolution out=16
bn1 = batch_norm
act1 = activation kind=silu
drop = dropout rate=0.4
lrn = local_response_norm size=5
pool = pool kernel=3 stride=1 pad=1
conv2 = convolution out=16
squeeze = global_average_pool
gate1 = convolution out=16 kernel=1 pad=0 bias=true
gate = channel_gate from=conv2,gate1
bn2 = batch_norm
add = add from=bn2,in
act2 = activation
left = convolution from=act2 out=8
right = convolution from=act2 out=8 kernel=1 pad=0
join = concatenation from=left,right
bn3 = batch_norm
act3 = activation kind=tanh
mean = pool mode=average kernel=3 stride=1 pad=1
"""
# Residual blocks, bottlenecks of version 2, dense layers, inception blocks, depthwise and gated convolutions, no norms.
NETWORKS = {"resnet20": ("--model", "resnet20", "--synthetic-size", 16, "--batch-size", 4),
            "bottleneck": ("--model", "resnet29", "--resnet-version", "v2", "--synthetic-size", 16, "--batch-size", 4),
            "dense": ("--model", "densenet121", "--synthetic-size", 32, "--batch-size", 2),
            "inception": ("--model", "googlenet", "--synthetic-size", 64, "--batch-size", 2),
            "gates": ("--model", "efficientnet_b0", "--synthetic-size", 64, "--batch-size", 2),
            "mixed": ("--model-file", "mixed.cfg", "--synthetic-size", 16, "--batch-size", 4),
            "chain": ("--model", "squeezenet1_1", "--synthetic-size", 64, "--batch-size", 2, "--precision", "bf16", "--lr", 1e-4)}
SAYS = re.compile(r"recomputation: (\d+) of (\d+) blocks run forward twice: activations of ([\d.]+) MB instead of ([\d.]+) MB, (\d+) % more arithmetic")


def bits(work, name):
    with open(f"{work}/mixed.cfg", "w", encoding="utf-8") as file:
        file.write(MIXED)
    words = [f"{work}/{word}" if word == "mixed.cfg" else word for word in NETWORKS[name]]
    plain = f"{work}/plain"
    train(1, plain, *COMMON, *words)
    kept = everything(last(plain))
    everywhere = name in ("resnet20", "mixed")
    for ranks in (1, 2) if everywhere else (2,):
        for sync_bn in ((), ("--sync-bn",)) if everywhere else ((),):
            expected = kept
            if sync_bn and ranks == 1:  # one replica a rank
                continue
            if sync_bn:
                train(ranks, f"{work}/synchronised-{ranks}", *COMMON, *words, *sync_bn)
                expected = everything(last(f"{work}/synchronised-{ranks}"))
            out = f"{work}/again-{ranks}{''.join(sync_bn)}"
            log = "".join(train(ranks, out, *COMMON, *words, *sync_bn, "--recompute", "all"))
            said = SAYS.search(log)
            check(said and said.group(1) == said.group(2) != "0", f"{name}, {ranks} ranks {sync_bn}: {said and said.group(0)}")
            check(same_bits(expected, everything(last(out))), f"{name}, {ranks} ranks {sync_bn}: the same bits")


def resume(work):
    """A run may go on with another choice: the configuration is the same, and so are the bits."""
    words = (*COMMON, *NETWORKS["resnet20"])
    train(1, f"{work}/whole", *words)
    train(1, f"{work}/parts", *words, "--max-steps", 1)
    log = "".join(train(1, f"{work}/parts", "--resume", "auto", "--recompute", "all", "--max-steps", 2, "--replicas", 2))
    check("not bit for bit" not in log and "recomputation: " in log, "the resumed run recomputes, and takes no notice of the change")
    check(same_bits(everything(last(f"{work}/whole")), everything(last(f"{work}/parts"))), "resumed with --recompute all: the same bits")


def megabytes(*words):
    out, _ = run(1, "train", *DATA, "--synthetic-size", 64, "--model", "resnet50", "--batch-size", 8, "--threads", 1, "--dry-run", "--dry-run-seconds", 0, *words)
    return out, float(re.search(r"  activations +([\d.]+) MB", out).group(1))


def texts(_):
    out, plain = megabytes()
    check("the largest batch that fits is " in out, "a dry run tells the largest batch")
    out, least = megabytes("--recompute", "all")
    check(f"{plain:.1f} MB with --recompute off" in out and least < 0.7 * plain, f"activations of {least} MB instead of {plain} MB")
    _, automatic = megabytes("--recompute", "auto")
    check(automatic == plain, "auto changes nothing where memory is enough")
    out, _ = run(1, "inspect", "plan", "--model", "resnet50", "--batch-size", 4, "--image-size", 64, "--threads", 1, "--device", "cpu", "--recompute", "all")
    said, passes = SAYS.search(out), [line.split()[2] for line in out.splitlines() if line.startswith("stage ")]
    check(said and passes.count("again") >= int(said.group(1)), f"the plan shows {passes.count('again')} passes that run again: {said.group(0)}")
    log = "".join(run(1, "bench", "compute", "--model", "resnet8", "--batch-size", 4, "--threads", 1, "--device", "cpu", "--recompute", "all", "--steps", 1, "--warmup-steps", 0, "--profile"))
    check(SAYS.search(log), "a benchmark tells it")
    check(re.search(r"%  again +\w", log), "and its table of parts shows what runs again")
    _, log = run(1, "train", *DATA, "--recompute", "some", expect=2)
    said = next(line for line in log.splitlines() if "error" in line)
    check(all(word in said for word in ("--recompute", "off", "auto", "all", "some")), f"another word is refused: {said}")
    _, log = run(1, "evaluate", "x.h5", "--recompute", "all", expect=2)
    check("recompute" in log, "an evaluation has no such option")


with work_folder() as folder:
    if sys.argv[1] in NETWORKS:
        bits(folder, sys.argv[1])
    else:
        {"resume": resume, "texts": texts}[sys.argv[1]](folder)
