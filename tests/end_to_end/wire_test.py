# SPDX-License-Identifier: Apache-2.0
"""--wire: the same bits on any number of ranks and after a stop, the bytes that ranks send against the formula, how near the result
is to fp32, and what is refused. Usage: wire_test.py ranks|resume|bytes|choices"""
import json
import os
import sys

import h5py

from runner import check, difference, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 192, "--model", "resnet8", "--batch-size", 4, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--replicas", 4]
POLICIES = {
    "gradients": ["--sync", "gradients", "--fusion-threshold-mb", 0.05],
    "weights": ["--sync", "weights"],
    "local": ["--sync", "weights", "--local-steps", 3, "--local-momentum", "average"],
    "outer": ["--sync", "weights", "--local-steps", 3, "--outer-optimizer", "nesterov", "--outer-lr", 0.7, "--outer-momentum", 0.9],
}


def ranks(work):
    for name, words in POLICIES.items():
        for wire in ("bf16", "fp16") if name in ("gradients", "local") else ("bf16",):
            job = [*JOB, *words, "--wire", wire, "--reproducible", "--max-steps", 8]
            for count in (1, 2, 3, 4):
                train(count, f"{work}/{name}-{wire}-{count}", *job, "--check-weights", 3)
                check(same_bits(everything(last(f"{work}/{name}-{wire}-{count}")), everything(last(f"{work}/{name}-{wire}-1"))),
                      f"{name} in {wire}: 4 replicas on {count} ranks, the same bits")
        train(2, f"{work}/{name}", *JOB, *words, "--reproducible", "--max-steps", 8)
        apart = difference(tensors(last(f"{work}/{name}")), tensors(last(f"{work}/{name}-bf16-2")))
        moved = difference(tensors(last(f"{work}/{name}")), first_weights(work))
        check(0 < apart < 0.15 * moved, f"{name}: bf16 moves the weights by {apart / moved:.2e} of what training moves them")


def first_weights(work):
    folder = f"{work}/first"
    if not os.path.exists(folder):
        train(1, folder, *JOB, "--sync", "gradients", "--max-steps", 1, "--lr", 1e-30, "--weight-decay", 0)
    return tensors(last(folder))


def resume(work):
    """Stopped within a period and at its end, and killed within one; resumed on other numbers of ranks."""
    for name in ("gradients", "local", "outer"):
        job = [*JOB, *POLICIES[name], "--wire", "bf16", "--reproducible"]
        straight = f"{work}/{name}"
        train(2, straight, *job, "--max-steps", 11)
        for stop, count in ((4, 1), (4, 3), (6, 2)):
            folder = f"{work}/{name}-{stop}-{count}"
            train(2, folder, *job, "--max-steps", stop)
            said, _ = train(count, folder, *job, "--resume", "auto", "--max-steps", 11 - stop)
            check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(straight))),
                  f"{name}: stopped after step {stop}, resumed on {count} ranks, the same bits")
    job = [*JOB, *POLICIES["local"], "--wire", "bf16", "--reproducible", "--epochs", 1]
    train(2, f"{work}/whole", *job)
    folder = f"{work}/died"
    # The save of step 8 waits for that of step 4; both lie within periods of 3.
    train(2, folder, *job, "--save-every-steps", 4, "--inject-fault", "throw@1@9", expect=1)
    train(3, folder, *job, "--resume", "auto", "--take-over", "--wait-for-other", 0)
    check(same_bits(everything(last(folder)), everything(last(f"{work}/whole"))), "died within a period, resumed on 3 ranks, the same bits")


def padded(count):
    return (count + 15) // 16 * 16


def bytes_of_epoch(name, wire, count, steps, parameters, statistics, replicas=4):
    """What all ranks send: of an array of n numbers 2 (R - 1) n, in 4 bytes a number, or 2 where `wire` says so."""
    narrow, whole = {"fp32": 4}.get(wire, 2) * parameters, 4
    if name == "gradients":
        return 2 * (count - 1) * steps * (narrow + whole * (statistics + replicas))
    period = narrow + whole * (8 * replicas + 2 * statistics)  # reports of the replicas, means and variances
    if name == "local":
        period += whole * parameters  # the momentum, which is averaged too
    return 2 * (count - 1) * (steps if name == "weights" else steps // 3) * period


def sizes(path):
    parameters = sum(padded(value.size) for value in tensors(path).values())
    return parameters, sum(padded(value.size) for value in tensors(path, "statistics").values())


def bytes_sent(work):
    for name, words in POLICIES.items():
        # Each rank's replicas are one node of the tree.
        for wire, jobs in {"fp32": ((2, False), (4, True)), "bf16": ((2, True), (2, False), (4, True)), "fp16": ((2, True),)}.items():
            for count, tree in jobs:
                folder = f"{work}/{name}-{wire}-{count}-{tree}"
                train(count, folder, *JOB, *words, "--wire", wire, "--epochs", 2, *(["--reproducible"] if tree else []))
                parameters, statistics = sizes(last(folder))
                wanted = bytes_of_epoch(name, wire, count, 12, parameters, statistics)
                found = [record["sent_bytes"] for record in records(folder, "epoch")]
                check(found == [wanted, wanted], f"{name} in {wire} on {count} ranks{', tree' if tree else ''}: {found} = 2 x {wanted} bytes")
    folder = f"{work}/alone"
    train(1, folder, *JOB, "--sync", "gradients", "--wire", "bf16", "--epochs", 1)
    check([record["sent_bytes"] for record in records(folder, "epoch")] == [0], "one rank sends nothing")


def choices(work):
    plain, named = f"{work}/plain", f"{work}/named"
    train(2, plain, *JOB, *POLICIES["local"], "--max-steps", 4)
    said, _ = train(2, named, *JOB, *POLICIES["local"], "--wire", "fp32", "--max-steps", 4)
    check(same_bits(everything(last(plain)), everything(last(named))) and " in fp32" not in said, "fp32 is what there was before")
    hashes = []
    for folder in (plain, named):
        with h5py.File(last(folder), "r") as file:
            hashes.append(json.loads(file.attrs["meta"])["configuration_hash"])
            check(file.attrs["version"] == 1, "and its checkpoint is one that older programs read")
    check(hashes[0] == hashes[1], "with the same hash of its configuration")

    half = f"{work}/half"
    said, _ = train(2, half, *JOB, *POLICIES["local"], "--wire", "bf16", "--max-steps", 4)
    check("weights every 3 steps in bf16" in said, "the log says what travels")
    with h5py.File(last(half), "r") as file:
        check(file.attrs["version"] == 4 and "anchor" in file["outer"], "weights in 16 bits need the weights of the last average")
    said, _ = train(2, f"{work}/changed", *JOB, *POLICIES["local"], "--wire", "fp16", "--resume", last(half), "--max-steps", 1)
    check("wire bf16 then, fp16 now" in said and "not bit for bit" in said, "another wire goes on, and it is said")
    train(2, f"{work}/began", *JOB, *POLICIES["local"], "--wire", "bf16", "--resume", last(plain), "--max-steps", 4)
    said, _ = train(3, f"{work}/fewer", *JOB, *POLICIES["local"], "--local-steps", 50, "--replicas", 3, "--wire", "bf16", "--resume",
                    last(half), "--max-steps", 1)
    check("continues from the averaged model" in said, "another number of replicas goes on from the average")
    check(same_bits(tensors(last(f"{work}/fewer"), "outer/anchor"), tensors(last(half))), "which is then the anchor")

    # One replica averages nothing, so nothing is rounded.
    for count in (1, 2):
        train(count, f"{work}/one-{count}", *JOB, "--replicas", 1, "--sync", "weights", "--wire", "bf16", "--max-steps", 3)
    train(1, f"{work}/one", *JOB, "--replicas", 1, "--sync", "weights", "--max-steps", 3)
    for count in (1, 2):
        check(same_bits(tensors(last(f"{work}/one")), tensors(last(f"{work}/one-{count}"))), f"one replica on {count} ranks is not rounded")

    for words, text in (
        (["--wire", "int8"], "fp32, bf16"),
        (["--wire", "bf16", "--cuda-aware"], "--wire bf16 is not possible with --cuda-aware"),
        (["--compression", "fp16"], "use --wire bf16 or fp16"),
        (["--fp16-allreduce"], "use --wire fp16"),
    ):
        _, err = run(1, "train", "--synthetic", *words, expect=2)
        check(text in err, f"{' '.join(words)}: {text}")
    said = [run(2, "train", *JOB, *POLICIES["local"], "--wire", wire, "--dry-run", "--dry-run-seconds", 0)[0] for wire in ("fp32", "bf16")]
    check("  outer " not in said[0] and "  outer " in said[1], "--dry-run counts the memory of the anchor")


with work_folder() as scratch:
    {"ranks": ranks, "resume": resume, "bytes": bytes_sent, "choices": choices}[sys.argv[1]](scratch)
