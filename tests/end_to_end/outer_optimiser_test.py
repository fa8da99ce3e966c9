# SPDX-License-Identifier: Apache-2.0
"""--outer-optimizer: its steps against the formulas, stops within a period, numbers of ranks, and what is refused. Usage:
outer_optimiser_test.py formula|resume|ranks|choices"""
import os
import shutil
import sys

import h5py
import numpy as np

from runner import check, everything, last, run, same_bits, tensors, train, work_folder

PERIOD = 3
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--sync", "weights", "--local-steps", PERIOD, "--reproducible", "--replicas", 2]
RULES = {
    "momentum": ["--outer-optimizer", "momentum", "--outer-lr", 0.9, "--outer-momentum", 0.6],
    "nesterov": ["--outer-optimizer", "nesterov", "--outer-lr", 0.7, "--outer-momentum", 0.9],
}


def checkpoint(folder, step):
    return os.path.join(folder, "checkpoints", f"step-{step:08d}.h5")


def formula(work):
    """Five periods: the average is that of a job that goes on for one period without the optimiser, the rest is computed in double."""
    for rule, words in RULES.items():
        folder, rate, momentum = f"{work}/{rule}", words[3], words[5]
        train(2, folder, *JOB, *words, "--max-steps", 5 * PERIOD, "--save-every-steps", PERIOD, "--keep-checkpoints", 9)
        worst = 0
        for period in range(1, 6):
            now = checkpoint(folder, period * PERIOD)
            before = checkpoint(folder, (period - 1) * PERIOD) if period > 1 else None
            plain = f"{work}/{rule}-{period}"
            train(2, plain, *JOB, "--max-steps", PERIOD, *(["--resume", before] if before else []))
            average, anchor, m1 = tensors(last(plain)), tensors(now, "outer/anchor"), tensors(now, "outer/momentum")
            if before:
                a0, m0 = tensors(before, "outer/anchor"), tensors(before, "outer/momentum")
            else:
                train(2, f"{work}/first", *JOB, "--max-steps", 1, "--lr", 1e-30, "--weight-decay", 0)
                a0 = tensors(last(f"{work}/first"))
                m0 = {name: np.zeros_like(value) for name, value in a0.items()}
            check(same_bits(anchor, tensors(now)), f"{rule}: the anchor after period {period} is the model")
            for name, a in a0.items():
                d = a.astype(np.float64) - average[name]
                m = momentum * m0[name].astype(np.float64) + d
                wanted = a - rate * (m if rule == "momentum" else d + momentum * m)
                worst = max(worst, np.abs(m1[name] - m).max(), np.abs(anchor[name] - wanted).max())
        check(worst < 1e-6, f"{rule}: five periods are the formula's: {worst:.1e}")


def resume(work):
    """Stopped in the middle of a period and at its end, resumed on 1, 2 and 3 ranks: the same bits."""
    for rule, words in RULES.items():
        straight = f"{work}/{rule}"
        train(2, straight, *JOB, *words, "--max-steps", 11, "--check-weights", 3)
        check("outer/anchor/conv1.weight" in everything(last(straight)), "a checkpoint holds anchor and momentum")
        for stop, ranks in ((4, 1), (4, 3), (6, 2)):
            folder = f"{work}/{rule}-{stop}-{ranks}"
            train(2, folder, *JOB, *words, "--max-steps", stop)
            said, _ = train(ranks, folder, *JOB, *words, "--resume", "auto", "--max-steps", 11 - stop)
            check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(straight))),
                  f"{rule}: stopped after step {stop}, resumed on {ranks} ranks, the same bits")


def ranks(work):
    job = [*JOB, "--replicas", 4, "--batch-size", 4, "--max-steps", 10, "--model", "resnet8"]
    for rule, words in RULES.items():
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{rule}-{count}", *job, *words)
            check(same_bits(everything(last(f"{work}/{rule}-{count}")), everything(last(f"{work}/{rule}-1"))),
                  f"{rule}: 4 replicas on {count} ranks, the same bits")
    # One replica makes steps of its own (Lookahead), with and without ranks that have none.
    for count in (1, 2):
        train(count, f"{work}/one-{count}", *JOB, *RULES["momentum"], "--replicas", 1, "--max-steps", 7)
    check(same_bits(everything(last(f"{work}/one-1")), everything(last(f"{work}/one-2"))), "one replica, on 1 and 2 ranks")
    train(1, f"{work}/one", *JOB, "--replicas", 1, "--max-steps", 7)
    check(not same_bits(tensors(last(f"{work}/one")), tensors(last(f"{work}/one-1"))), "which the optimiser moves")


def choices(work):
    plain, named = f"{work}/plain", f"{work}/named"
    train(2, plain, *JOB, "--max-steps", 4)
    train(2, named, *JOB, "--outer-optimizer", "average", "--max-steps", 4)
    check(same_bits(everything(last(plain)), everything(last(named))) and not tensors(last(named), "outer"), "average is what there was before")
    with h5py.File(last(named), "r") as file:
        check(file.attrs["version"] == 1, "and its checkpoint is one that older programs read")

    outer = f"{work}/outer"
    said, _ = train(2, outer, *JOB, *RULES["nesterov"], "--max-steps", 5)
    check("weights every 3 steps, outer Nesterov momentum 0.9 at learning rate 0.7" in said, "the log says what is done")
    with h5py.File(last(outer), "r") as file:
        check(file.attrs["version"] == 4, "older programs refuse its checkpoint")
    text, _ = run(1, "inspect", "checkpoint", last(outer))
    check("below /outer" in text and "/outer/momentum/conv1.weight" in text, "inspect checkpoint shows it")
    run(2, "evaluate", "--checkpoint", last(outer), "--threads", 1, "--output-dir", f"{work}/evaluated")

    mean = f"{work}/mean.h5"
    run(1, "average", last(outer), last(plain), "--output", mean)
    with h5py.File(mean, "r") as file:
        check("outer" not in file and file.attrs["version"] == 1, "a mean of models has no optimiser, the outer one neither")

    said, _ = train(2, f"{work}/usual", *JOB, "--outer-optimizer", "nesterov", "--max-steps", 1)
    check("outer Nesterov momentum 0.9 at learning rate 0.7" in said, "nesterov alone: DiLoCo's values")
    folder = f"{work}/older"
    said, _ = train(2, f"{work}/slow", *JOB, "--outer-optimizer", "momentum", "--max-steps", 1)
    check("outer momentum 0.5 at learning rate 1" in said, "momentum alone: 0.5")
    train(2, folder, *JOB, "--outer-optimizer", "momentum", "--outer-momentum", 0.7, "--max-steps", 4)
    said, err = train(2, folder, *JOB, "--outer-optimizer", "momentum", "--resume", "auto", "--max-steps", 1)
    check("outer momentum 0.7 at learning rate 1" in said and "changed" not in err and "not bit for bit" not in said, "a run that began with 0.7 keeps it")

    folder = f"{work}/begun"
    said, _ = train(2, folder, *JOB, *RULES["nesterov"], "--resume", last(plain), "--max-steps", 1)
    check("holds no state of an outer optimizer: it starts from the weights" in said, "a checkpoint without one: says so")
    check(same_bits(tensors(last(folder), "outer/anchor"), tensors(last(plain))), "a checkpoint without one: the anchor is its weights")
    folder = f"{work}/dropped"
    said, _ = train(2, folder, *JOB, "--resume", last(outer), "--max-steps", 1)
    check("holds the weights of the last average, which --outer-optimizer or --wire needed: this job drops them" in said and not tensors(last(folder), "outer"), "without one: it is dropped, and said")
    folder = f"{work}/more"
    said, _ = train(4, folder, *JOB, *RULES["nesterov"], "--replicas", 4, "--resume", last(outer), "--max-steps", 1)
    check("continues from the averaged model" in said, "4 replicas: says how it goes on")
    check(same_bits(tensors(last(folder), "outer"), tensors(last(outer), "outer")), "4 replicas: with anchor and momentum")
    shutil.copytree(outer, f"{work}/own")
    said, _ = run(2, "train", "--output-dir", f"{work}/own", "--resume", "auto", "--max-steps", 1)
    check("outer Nesterov momentum 0.9 at learning rate 0.7" in said, "a resumed run takes its own")

    for words, text in (
        (["--sync", "gradients", "--outer-optimizer", "momentum"], "--outer-optimizer momentum has no effect: it needs --sync weights"),
        (["--outer-optimizer", "nesterov"], "--outer-optimizer nesterov needs --local-steps above 1"),
        (["--local-steps", 2, "--outer-lr", 0.5], "--outer-lr 0.5 has no effect: it needs --outer-optimizer momentum or nesterov"),
    ):
        _, err = run(1, "train", "--synthetic", *words, expect=2)
        check(text in err, text)
    said = [run(2, "train", *JOB, *words, "--dry-run", "--dry-run-seconds", 0)[0] for words in ((), RULES["momentum"])]
    check("  outer " not in said[0] and "  outer " in said[1], "--dry-run counts its memory")


with work_folder() as scratch:
    {"formula": formula, "resume": resume, "ranks": ranks, "choices": choices}[sys.argv[1]](scratch)
