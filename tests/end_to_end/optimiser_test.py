# SPDX-License-Identifier: Apache-2.0
"""--optimizer adamw in jobs of 1 and 2 ranks: the formula step by step, the slots in checkpoints, and resuming bit for bit; the latter for
muon, too. --decay-mult in a step of sgd. Usage: optimiser_test.py [decays]"""
import shutil
import sys

import h5py
import numpy as np
from runner import check, everything, last, run, same_bits, tensors, train, work_folder

BETA1, BETA2, EPSILON, DECAY, RATE = 0.875, 0.99, 1e-6, 0.5, 0.0078125
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 8, "--seed", 5,
       "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--skip-eval", "--shuffle", "global", "--lr-schedule", "constant",
       "--lr", RATE, "--optimizer", "adamw", "--beta1", BETA1, "--beta2", BETA2, "--adam-epsilon", EPSILON,
       "--weight-decay", DECAY]
WITHOUT_RULE = JOB[: JOB.index("--optimizer")]
MUON = [*WITHOUT_RULE, "--optimizer", "muon", "--muon-momentum", 0.875, "--weight-decay", DECAY]
# Steps 13 and 17 lie in the middle of a period of 4.
MODES = {
    "gradients": ["--sync", "gradients", "--clip-grad-norm", 1],
    "keep": ["--sync", "weights", "--local-steps", 4, "--local-momentum", "keep"],
    "average": ["--sync", "weights", "--local-steps", 4, "--local-momentum", "average"],
    "reset": ["--sync", "weights", "--local-steps", 4, "--local-momentum", "reset"],
}


def check_formula(work):
    """Each step from the weights and slots of the checkpoint before it, in double."""
    folder = f"{work}/formula"
    said = "".join(train(2, folder, *JOB, *MODES["gradients"], "--max-steps", 5, "--save-every-steps", 1, "--keep-checkpoints", 9))
    check(f"optimizer adamw, peak learning rate {RATE}" in said, "the log names the rule")
    worst = 0
    for step in range(2, 6):
        before, after = (f"{folder}/checkpoints/step-{s:08}.h5" for s in (step - 1, step))
        w0, w1 = tensors(before), tensors(after)
        m0, m1 = tensors(before, "optimiser/exp_avg"), tensors(after, "optimiser/exp_avg")
        v0, v1 = tensors(before, "optimiser/exp_avg_sq"), tensors(after, "optimiser/exp_avg_sq")
        check(w0.keys() == m0.keys() == v0.keys(), f"step {step}: two slots for each parameter")
        for name in w0:
            w, m, v = (x[name].astype(np.float64) for x in (w0, m1, v1))
            g = (m - BETA1 * m0[name]) / (1 - BETA1)
            # g is a difference of numbers that were rounded to 2^-24 of m; its error is divided by 1 - beta1.
            rounding = 2.0**-22 * np.abs(m).max() / (1 - BETA1)
            deviation = np.abs(v - (BETA2 * v0[name] + (1 - BETA2) * g**2)).max()
            assert deviation < (1 - BETA2) * 2 * np.abs(g).max() * rounding + 2.0**-22 * v.max() + 1e-30, (name, deviation)
            update = m / (1 - BETA1**step) / (np.sqrt(v / (1 - BETA2**step)) + EPSILON)
            decay = DECAY if w.ndim > 1 else 0
            worst = max(worst, np.abs(w1[name] - (w - RATE * (update + decay * w))).max())
    check(worst < 2e-7, f"every step is AdamW's, with decoupled decay and bias corrected by its number: {worst:.1e}")


def check_mode(work, mode, words, job=JOB):
    """2 ranks, 1 rank with 2 replicas, and both after a stop end with the same bits."""
    straight = f"{work}/{mode}"
    train(2, straight, *job, *words, "--reproducible", "--max-steps", 20, "--check-weights", 4)
    train(2, f"{work}/{mode}-start", *job, *words, "--reproducible", "--max-steps", 13)
    for ranks in (1, 2):
        folder = f"{work}/{mode}-{ranks}"
        shutil.copytree(f"{work}/{mode}-start", folder)
        said, _ = train(ranks, folder, *job, *words, "--reproducible", "--resume", "auto", "--replicas", 2, "--max-steps", 7)
        check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(straight))),
              f"{mode}: stopped at step 13, resumed on {ranks} ranks, the same bits")
    state = state_of(last(straight))
    zeroed = 20 if mode == "reset" else 0
    check(state[2] == 20 and state[4] == zeroed, f"{mode}: 20 updates, slots zeroed after {zeroed:.0f}")


def state_of(path):
    with h5py.File(path, "r") as file:
        return file["state"][()]


def check_decays(work):
    """A step of sgd is w - rate (g + decay w), so runs that differ in the decay alone differ by rate times that part of w."""
    job = [*WITHOUT_RULE, "--optimizer", "sgd", "--momentum", 0, "--sync", "gradients", "--weight-decay", 0.25, "--norm-weight-decay", 0.5, "--max-steps", 1]
    factors = {"conv1": 0, "*.bn?": 2, "layer2": 0.5}
    runs = {"start": ["--lr-mult", "*=0"], "plain": [], "multiplied": ["--decay-mult", ",".join(f"{p}={f}" for p, f in factors.items())]}
    for name, words in runs.items():
        train(2, f"{work}/decay-{name}", *job, *words)
    start, plain, multiplied = (tensors(last(f"{work}/decay-{name}")) for name in runs)
    seen = set()
    for name, w in start.items():
        # The last pattern that matches counts: layer2 for the norms in it.
        factor = 0.5 if name.startswith("layer2.") else 2 if ".bn" in name else 0 if name.startswith("conv1.") else 1
        decay = 0.25 if w.ndim > 1 else 0.5 if "bn" in name or ".downsample.1." in name else 0
        expected = RATE * decay * (1 - factor) * w.astype(np.float64)
        moved = multiplied[name].astype(np.float64) - plain[name]
        limit = 2.0**-23 * np.abs(plain[name]).max()
        assert np.abs(moved - expected).max() <= limit, (name, np.abs(moved - expected).max(), limit)
        if np.abs(expected).max() > 100 * limit:
            seen.add(factor)
    check(seen == {0, 0.5, 2}, f"weight decays times 0, 0.5 and 2 by patterns: {seen}")
    _, err = run(1, "train", *job, "--decay-mult", "layer9=2", "--output-dir", f"{work}/none", expect=2)
    check("--decay-mult 'layer9' matches no parameter of resnet8" in err, "a pattern that matches nothing")
    said, _ = run(1, "train", *job, "--decay-mult", "fc=0", "--output-dir", f"{work}/dry", "--dry-run", "--dry-run-seconds", 0)
    check("decay-mult = fc=0\n" in said, "a dry run shows the factors")


def main():
    with work_folder() as work:
        if sys.argv[1:] == ["decays"]:
            check_decays(work)
            return
        check_formula(work)
        for mode, words in MODES.items():
            check_mode(work, mode, words)
        check_mode(work, "muon", MODES["gradients"], MUON)
        other = [*WITHOUT_RULE, "--optimizer", "momentum"]
        shutil.copytree(f"{work}/gradients", f"{work}/other")
        _, err = run(2, "train", *other, *MODES["gradients"], "--output-dir", f"{work}/other", "--resume", "auto", expect=3)
        check("'/optimiser/0/" in err and "is missing in the file" in err and "the number of classes and the optimizer of its run" in err,
              "momentum does not go on from AdamW's checkpoint, and the message says why")


main()
