# SPDX-License-Identifier: Apache-2.0
"""--lookahead-steps: the slow weights against their formula in double, the return of the weights to them, and that a run goes on with
them bit for bit. Usage: lookahead_test.py values|resume|mistakes"""
import os
import shutil
import sys

import numpy as np

from runner import check, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05,
       "--seed", 5, "--epochs", 2, "--save-every", 0, "--print-freq", 1, "--shuffle", "global"]  # 11 steps an epoch on 2 replicas
STEPS = 22
MODES = {"gradients": (["--sync", "gradients"], 3), "weights": (["--sync", "weights", "--local-steps", 2], 4)}
ALPHA, POWER = 0.3, 2
LOOKAHEAD = ["--lookahead-alpha", ALPHA, "--lookahead-power", POWER]


def checkpoint(folder, step):
    return os.path.join(folder, "checkpoints", f"step-{step:08d}.h5")


def weights(path):
    return {f"{g}/{n}": v for g in ("parameters", "statistics") for n, v in tensors(path, g).items()}


def values(work):
    """The weights before they return are those of a run that takes the last step before without a lookahead."""
    for name, (mode, every) in MODES.items():
        folder = f"{work}/{name}"
        train(2, folder, *JOB, *mode, *LOOKAHEAD, "--lookahead-steps", every, "--max-steps", 2 * every, "--save-every-steps", 1,
              "--keep-checkpoints", 20, "--skip-eval", "--check-weights", 1)
        for step in (every, 2 * every):
            before, after = checkpoint(folder, step - 1), checkpoint(folder, step)
            plain = f"{work}/{name}-{step}"
            train(2, plain, *JOB, *mode, "--skip-eval", "--resume", before, "--max-steps", 1)
            fast, slow = weights(last(plain)), tensors(before, "ema")
            keep = (1 - ALPHA) * (step / STEPS) ** POWER
            wanted = {k: keep * slow[k].astype(np.float64) + (1 - keep) * fast[k].astype(np.float64) for k in fast}
            found = tensors(after, "ema")
            # decay, products and sum are rounded to fp32; the largest weight counts.
            off = max(float(np.max(np.abs(found[k] - wanted[k])) / (1 + np.max(np.abs(wanted[k])))) for k in wanted)
            moved = max(float(np.max(np.abs(slow[k] - fast[k]))) for k in fast)
            check(off < 4 * 2**-24 < moved, f"sync {name}, step {step}: slow weights by the formula ({off:.1e}; they were {moved:.1e} apart)")
            check(same_bits(weights(after), found), f"sync {name}, step {step}: the weights return to them, statistics too")
            check(same_bits(tensors(after, "optimiser"), tensors(last(plain), "optimiser")), f"sync {name}, step {step}: the momentum stays")
        check(same_bits(tensors(checkpoint(folder, every), "ema"), tensors(checkpoint(folder, every + 1), "ema")),
              f"sync {name}: between two returns they stay")
        train(2, f"{work}/{name}-end", *JOB, *mode, *LOOKAHEAD, "--lookahead-steps", every, "--skip-eval", "--save-every-steps", 1,
              "--keep-checkpoints", 2)
        slow, end = tensors(checkpoint(f"{work}/{name}-end", STEPS - 1), "ema"), last(f"{work}/{name}-end")
        plain = f"{work}/{name}-last"
        train(2, plain, *JOB, *mode, "--skip-eval", "--resume", checkpoint(f"{work}/{name}-end", STEPS - 1))
        fast, found = weights(last(plain)), tensors(end, "ema")
        wanted = {k: (1 - ALPHA) * slow[k].astype(np.float64) + ALPHA * fast[k].astype(np.float64) for k in fast}
        off = max(float(np.max(np.abs(found[k] - wanted[k])) / (1 + np.max(np.abs(wanted[k])))) for k in wanted)
        check(off < 4 * 2**-24 and not same_bits(found, slow), f"sync {name}: they take in the last steps of the run ({off:.1e})")


def resume(work):
    for name, (mode, every) in MODES.items():
        job = [*JOB, *mode, "--reproducible", "--lookahead-steps", every, *LOOKAHEAD]
        train(2, f"{work}/{name}", *job)
        train(2, f"{work}/{name}-start", *job, "--max-steps", 7)  # between two returns, and two averages of weights
        for ranks in (2, 1, 3):
            folder = f"{work}/{name}-{ranks}"
            shutil.copytree(f"{work}/{name}-start", folder)
            train(ranks, folder, *job, "--resume", "auto")
            check(same_bits(everything(last(folder)), everything(last(f"{work}/{name}"))),
                  f"sync {name}: stopped after 7 steps and resumed on {ranks} ranks: the same bits, the slow weights too")
        for ranks in (1, 4):
            folder = f"{work}/{name}-whole-{ranks}"
            train(ranks, folder, *job, "--replicas", 2)
            check(same_bits(everything(last(folder)), everything(last(f"{work}/{name}"))), f"sync {name}: {ranks} ranks from the start: the same bits")
        said = records(f"{work}/{name}", "val")[-1]
        out = f"{work}/{name}-evaluated"
        run(1, "evaluate", "--checkpoint", last(f"{work}/{name}"), "--threads", 1, "--output-dir", out)
        plain = f"{work}/{name}-plain"
        train(2, plain, *JOB, *mode)
        check(said["loss"] != records(plain, "val")[-1]["loss"], "it changes the run")
    old = last(f"{work}/gradients-plain")
    said, _ = train(2, f"{work}/begun", *JOB, "--sync", "gradients", "--skip-eval", "--lookahead-steps", 1000, "--resume", old, "--epochs", 3,
                    "--max-steps", 2)
    check("it starts from them" in said and same_bits(tensors(last(f"{work}/begun"), "ema"), weights(old)), "without slow weights it starts from the weights")
    average = f"{work}/average"
    train(2, average, *JOB, "--sync", "gradients", "--skip-eval", "--ema-decay", 0.9, "--max-steps", 5)
    said, _ = train(2, f"{work}/changed", *JOB, "--sync", "gradients", "--skip-eval", "--lookahead-steps", 1000, "--resume", last(average),
                    "--max-steps", 1)
    check("the average of --ema-decay" in said and same_bits(tensors(last(f"{work}/changed"), "ema"), weights(last(average))),
          "a moving average is no slow weights: says so and starts from the weights")


def mistakes(work):
    def refuses(words, *texts):
        _, err = run(1, "train", *JOB, *words, "--output-dir", f"{work}/none", expect=2)
        check(all(text in err for text in texts), f"{words}: {err.strip()[-300:]}")

    refuses(["--lookahead-steps", 5, "--ema-decay", 0.9], "both keep an average of the weights")
    refuses(["--lookahead-steps", 5, "--sync", "weights", "--local-steps", 2], "no multiple of --local-steps 2", "--lookahead-steps 6")
    refuses(["--lookahead-steps", 4, "--sync", "weights", "--local-steps", 2, "--outer-optimizer", "nesterov"], "drop one")
    refuses(["--lookahead-steps", 4, "--sync", "weights", "--local-steps", 2, "--overlap-average"], "never hold the same weights", "drop one")
    for period, said in ((STEPS, 0), (500, 1)):
        out, err = train(1, f"{work}/run-{period}", *JOB, "--lookahead-steps", period, "--replicas", 2, "--max-steps", 1, "--skip-eval")
        check((out + err).count(f"--lookahead-steps {period}, but the run has 22 steps: the slow weights") == said, f"{period} steps: {err[-300:]}")
    refuses(["--lookahead-alpha", 0.3], "--lookahead-alpha", "--lookahead-steps")
    refuses(["--lookahead-steps", 5, "--lookahead-alpha", 1], "--lookahead-alpha")


with work_folder() as scratch:
    {"values": values, "resume": resume, "mistakes": mistakes}[sys.argv[1]](scratch)
