# SPDX-License-Identifier: Apache-2.0
"""--wire 2bit, topk and powersgd: the same bits on any number of ranks and after a stop, the bytes that ranks send against the formula,
that the network learns, and what is refused. Usage: compression_test.py ranks|resume|bytes|choices"""
import glob
import math
import os
import sys

import h5py

from runner import check, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 192, "--model", "resnet8", "--batch-size", 4, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--replicas", 4, "--sync", "gradients"]
KINDS = {
    "2bit": ["--wire", "2bit", "--wire-threshold", 0.1],
    "topk": ["--wire", "topk", "--wire-fraction", 0.02],
    "powersgd": ["--wire", "powersgd", "--wire-rank", 2],
}


def all_state(folder):
    """With what each replica has not sent."""
    state = everything(last(folder))
    shards = sorted(glob.glob(os.path.join(folder, "checkpoints", "last.shard-*")))
    check(len(shards) == 4, "a shard of each replica")
    for replica, path in enumerate(shards):
        state.update({f"residual/{replica}/{name}": value for name, value in tensors(path, "residual").items()})
    return state


def ranks(work):
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible", "--max-steps", 8]
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{name}-{count}", *job, "--check-weights", 3, *(["--check-arithmetic", 4] if count > 1 else []))
            check(same_bits(all_state(f"{work}/{name}-{count}"), all_state(f"{work}/{name}-1")), f"{name}: 4 replicas on {count} ranks, the same bits")
    # Ranks without a replica, and replicas that can't be dealt evenly.
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible", "--max-steps", 4, "--replicas", 3]
        for count in (1, 2, 4):
            train(count, f"{work}/{name}-three-{count}", *job)
            check(same_bits(everything(last(f"{work}/{name}-three-{count}")), everything(last(f"{work}/{name}-three-1"))),
                  f"{name}: 3 replicas on {count} ranks, the same bits")


def resume(work):
    """Stopped and resumed on other numbers of ranks; killed; sent back after a spike."""
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible"]
        straight = f"{work}/{name}"
        train(2, straight, *job, "--max-steps", 9)
        for stop, count in ((4, 1), (5, 3)):
            folder = f"{work}/{name}-{stop}-{count}"
            train(2, folder, *job, "--max-steps", stop)
            said, _ = train(count, folder, *job, "--resume", "auto", "--max-steps", 9 - stop)
            check("not bit for bit" not in said and same_bits(all_state(folder), all_state(straight)),
                  f"{name}: stopped after step {stop}, resumed on {count} ranks, the same bits")
    job = [*JOB, *KINDS["powersgd"], "--reproducible", "--epochs", 1]
    train(2, f"{work}/whole", *job)
    folder = f"{work}/died"
    train(2, folder, *job, "--save-every-steps", 4, "--inject-fault", "throw@1@9", expect=1)
    train(3, folder, *job, "--resume", "auto", "--take-over", "--wait-for-other", 0)
    check(same_bits(all_state(folder), all_state(f"{work}/whole")), "died, resumed on 3 ranks, the same bits")


def padded(count):
    return (count + 15) // 16 * 16


def bytes_of_step(name, count, path, replicas=4):
    """Sums: 2 (R - 1) times 4 bytes a float. Messages: R - 1 times those of all replicas."""
    shapes = {key: value.shape for key, value in tensors(path).items()}
    is_matrix = {key: len(shape) > 1 for key, shape in shapes.items()}
    if name == "powersgd":
        for key, shape in shapes.items():
            if is_matrix[key]:
                columns = math.prod(shape[1:])
                is_matrix[key] = 2 * (shape[0] + columns) < shape[0] * columns
    plain = sum(padded(math.prod(shape)) for key, shape in shapes.items() if not is_matrix[key])
    tail = sum(padded(value.size) for value in tensors(path, "statistics").values()) + replicas
    sums, message = padded(plain + tail), 0
    for key, shape in shapes.items():
        rows, values = shape[0], math.prod(shape)
        if not is_matrix[key]:
            continue
        if name == "2bit":
            message += (math.ceil(values / 4) + 3) // 4 * 4
        elif name == "topk":
            message += 8 * math.ceil(0.02 * values)
        else:
            sums += padded(2 * rows) + padded(2 * values // rows)
    return (count - 1) * (2 * 4 * sums + replicas * message)


def bytes_sent(work):
    whole = None
    for count in (2, 4):
        for name, words in KINDS.items():
            folder = f"{work}/{name}-{count}"
            train(count, folder, *JOB, *words, "--epochs", 2)
            wanted = 12 * bytes_of_step(name, count, last(folder))
            found = [record["sent_bytes"] for record in records(folder, "epoch")]
            check(found == [wanted, wanted], f"{name} on {count} ranks: {found} = 2 x {wanted} bytes")
            if whole is None:
                train(2, f"{work}/whole", *JOB, "--epochs", 1)
                whole = records(f"{work}/whole", "epoch")[0]["sent_bytes"]
            if count == 2:
                check(wanted < whole / 4, f"{name}: {whole / wanted:.1f} times fewer than fp32")


def losses(folder):
    return [record["loss"] for record in records(folder, "train")]


def choices(work):
    # It learns: what is held back comes later.
    long = [*JOB, "--epochs", 8, "--lr", 0.1]
    train(2, f"{work}/whole", *long)
    begin, end = losses(f"{work}/whole")[0], losses(f"{work}/whole")[-1]
    for name, words in KINDS.items():
        said, _ = train(2, f"{work}/{name}", *long, *words)
        now = losses(f"{work}/{name}")[-1]
        check(now < begin - 0.25 * (begin - end), f"{name}: the loss falls from {begin:.3f} to {now:.3f}, with fp32 to {end:.3f}")
        text = {"2bit": "gradients in 2 bits", "topk": "gradients, the largest 2 % of each tensor", "powersgd": "gradients of rank 2 (PowerSGD)"}
        check(text[name] in said, f"the log says {text[name]}")

    low = f"{work}/powersgd"
    with h5py.File(last(low), "r") as file:
        check(file.attrs["version"] == 5 and "basis" in file, "older programs refuse its checkpoint")
    text, _ = run(1, "inspect", "checkpoint", last(low))
    check("powersgd: what each replica has not sent is in its shard" in text, "inspect checkpoint says it")
    run(1, "evaluate", "--checkpoint", last(low), "--threads", 1, "--output-dir", f"{work}/evaluated")
    run(1, "average", last(low), last(f"{work}/whole"), "--output", f"{work}/mean.h5")
    with h5py.File(f"{work}/mean.h5", "r") as file:
        check("basis" not in file and file.attrs["version"] == 1, "a mean of models has no bases")

    short = [*JOB, "--epochs", 9, "--max-steps", 1]
    for words, sentence in (
        (["--wire", "fp32"], "(--wire powersgd) is dropped: this job has another --wire"),
        (KINDS["topk"], "(--wire powersgd) is dropped: this job has another --wire"),
        (["--wire", "powersgd", "--wire-rank", 1], "is dropped: this job has another number of replicas, or rank"),
        ([*KINDS["powersgd"], "--replicas", 2], "is dropped: this job has another number of replicas, or rank"),
    ):
        said, _ = train(2, f"{work}/changed", *short, *words, "--resume", last(low))
        check(sentence in said, f"{' '.join(map(str, words))}: {sentence}")
    said, _ = train(2, f"{work}/begun", *short, *KINDS["2bit"], "--resume", last(f"{work}/whole"))
    check("wire fp32 then, 2bit now" in said, "a checkpoint without residuals goes on, and it is said")

    said, _ = run(2, "train", *JOB, "--gc-type", "2bit", "--gc-threshold", 0.25, "--dry-run", "--dry-run-seconds", 0)
    check("gradients in 2 bits" in said and "  residuals " in said, "MXNet's names are taken, and the memory is counted")
    for words, sentence in (
        (["--wire", "2bit"], "--wire 2bit needs --sync gradients"),
        (["--sync", "gradients", "--wire", "topk", "--device", "cuda"], "--wire topk is not possible with --device cuda"),
        (["--sync", "gradients", "--wire", "2bit", "--wire-rank", 3], "--wire-rank 3 has no effect: it needs --wire powersgd"),
        (["--sync", "weights", "--local-steps", 2, "--overlap-average", "--wire", "powersgd"], "--wire powersgd"),
    ):
        _, err = run(2, "train", "--synthetic", "--model", "resnet8", *words, expect=2)
        check(sentence in err, f"{' '.join(map(str, words))}: {sentence}")


with work_folder() as scratch:
    {"ranks": ranks, "resume": resume, "bytes": bytes_sent, "choices": choices}[sys.argv[1]](scratch)
