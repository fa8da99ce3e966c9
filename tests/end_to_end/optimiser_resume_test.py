# SPDX-License-Identifier: Apache-2.0
"""Every rule of --optimizer, and both averages of the weights, go on from a checkpoint bit for bit: what `convoy train --help` names is run whole
and in two parts. Usage: optimiser_resume_test.py [WORD ...] (default: every rule, lookahead and ema)"""
import re
import sys

import numpy as np

from runner import check, everything, last, run, same_bits, tensors, train, work_folder

# 20 steps; the run stops after the 11th, in the second epoch.
JOB = ["--synthetic", "--synthetic-size", 8, "--synthetic-samples", 80, "--model", "resnet8", "--batch-size", 8, "--seed", 5, "--epochs", 2,
       "--warmup-epochs", 0.5, "--lr-schedule", "cosine", "--weight-decay", 0.01, "--save-every", 0, "--skip-eval", "--flip", "random"]
AVERAGES = {"lookahead": ["--lookahead-steps", 4], "ema": ["--ema-decay", 0.9]}


def rules():
    """As the help has them: --optimizer sgd|nesterov|..."""
    said, _ = run(1, "train", "--help")
    return re.search(r"--optimizer (\S+)", said)[1].split("|")


def main():
    with work_folder() as work:
        found = {}
        for word in sys.argv[1:] or [*rules(), *AVERAGES]:
            job = [*JOB, *AVERAGES.get(word, ["--optimizer", word])]
            whole, parts = f"{work}/{word}", f"{work}/{word}-parts"
            train(1, whole, *job)
            train(1, parts, *job, "--max-steps", 11)
            before = tensors(last(parts))
            train(1, parts, *job, "--resume", "auto")
            found[word] = everything(last(whole))
            check(same_bits(found[word], everything(last(parts))), f"{word}: stopped after 11 of 20 steps and resumed, the same bits")
            check(not same_bits(before, tensors(last(parts))), f"{word}: the second part trains")
            kept = [name for name, value in found[word].items() if name.startswith(("optimiser/", "ema/")) and np.any(value)]
            check(kept, f"{word}: the checkpoint holds what it goes on from, {len(kept)} tensors")
        ends = {b"".join(v.tobytes() for k, v in sorted(of.items()) if k.startswith("parameters/")) for of in found.values()}
        # A moving average leaves the weights of sgd as they are.
        check(len(ends) == len(found) - ({"sgd", "ema"} <= found.keys()), "each ends with weights of its own")


main()
