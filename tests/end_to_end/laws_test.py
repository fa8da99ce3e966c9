# SPDX-License-Identifier: Apache-2.0
"""Laws of data-parallel training, on real runs of the program: what a job computes depends on its replicas, not on ranks."""
import math
import sys

import numpy as np
from runner import check, everything, last, same_bits, tensors, train, work_folder

DATA = ["--synthetic", "--synthetic-classes", 5, "--skip-eval", "--save-every", 0]
SMOOTH = ["--model", "lenet", "--activation", "tanh", "--pooling", "average"]
EXACT = ["--shuffle", "global", "--weight-decay", 1e-4, "--momentum", 0.9, "--lr-schedule", "constant", "--seed", 3]

UNIT = 2.0 ** -24  # half the distance from 1 to the next number of fp32


def rounding(parameters, pixels):
    """What rounding may do to gradients and statistics, relative to their norms: depth u (4 + sqrt(longest sum)), as
    tests/support/rounding.hpp derives it, for networks without kinks. Sums go over the pixels of a batch, or over the inputs or
    outputs of a weight. 2: both runs that are compared deviate. Winograd's kernels take 3x3."""
    weights = [value.shape for name, value in parameters.items() if name.endswith("weight")]
    longest = max([pixels] + [math.prod(shape) // shape[side] for shape in weights for side in range(min(2, len(shape)))])
    gain = 4 if any(len(shape) == 4 and shape[2:] == (3, 3) for shape in weights) else 1
    return 2 * gain * len(weights) * UNIT * (4 + math.sqrt(longest))


def training(folder, ranks, samples, *words):
    """Trains the smooth network on batches of 24 images for some epochs; returns its weights."""
    train(ranks, folder, *DATA, *SMOOTH, *EXACT, "--synthetic-size", 16, "--synthetic-samples", samples, "--lr", 0.05, *words)
    return tensors(last(folder))


def far_apart(a, b, start, steps):
    """The largest distance of two runs' weights, as a share of what rounding explains: an error of each gradient, so of the way
    that the weights went, and the rounding of weights and momentum in each step, which add in squares."""
    def share(key):
        way, size = (np.linalg.norm(a[key].astype(np.float64) - before) for before in (start[key], 0))
        explained = rounding(start, pixels=24 * 16 * 16) * way + 4 * UNIT * math.sqrt(steps) * size
        return np.linalg.norm(a[key].astype(np.float64) - b[key]) / explained
    return max(map(share, a))


def large_batch(folder):
    """R x B = 1 x R*B after 50 steps of a network without kinks and without batch norm."""
    def run(ranks, *words):
        return training(f"{folder}/large-{ranks}{len(words)}", ranks, 240, "--sync", "gradients", "--batch-size", 24 // ranks,
                        "--epochs", 5, "--flip", "random", "--pad", 2, *words)

    one, start = run(1), run(1, "--lr", 1e-30)
    worst = max(far_apart(one, run(ranks), start, steps=50) for ranks in (2, 3, 4))
    check(worst < 1, f"R x B = 1 x R*B: weights after 50 steps differ by {worst:.1%} of what rounding explains")


def local_steps_one(folder):
    """Averaging weights after every step = averaging gradients. With uneven shares (250 = 10 * 24 + 4 + 3 + 3 images) the
    momenta must be averaged with the same weights; with even ones each replica may keep its own."""
    def run(samples, *words):
        return training(f"{folder}/one-{samples}-{'-'.join(map(str, words))}", 3, samples, "--batch-size", 8, "--epochs", 4,
                        "--check-weights", 1, *words)

    start = run(240, "--sync", "gradients", "--lr", 1e-30)
    for samples, policy in ((240, "keep"), (250, "average")):
        weights = run(samples, "--sync", "weights", "--local-momentum", policy, "--local-steps", 1)
        worst = far_apart(run(samples, "--sync", "gradients"), weights, start, steps=4 * 11)
        check(worst < 1, f"local-steps 1 = gradient averaging, {samples} images, momentum {policy}: {worst:.1%} of what rounding explains")


def one_step_gradient(folder):
    """The gradient of one step, read off a step of rate 1 without momentum: 1 rank x 24 against 3 ranks x 8. A rate of
    nearly 0 shows the initial weights."""
    def result(ranks, lr, *words):
        out = f"{folder}/gradient-{ranks}-{lr}"
        train(ranks, out, *DATA, *words, "--shuffle", "global", "--synthetic-size", 16, "--synthetic-samples", 24, "--sync", "gradients",
              "--batch-size", 24 // ranks, "--max-steps", 1, "--lr", lr, "--lr-schedule", "constant", "--momentum", 0,
              "--weight-decay", 0, "--optimizer", "sgd")
        return last(out)

    for name, words in (("lenet", SMOOTH), ("resnet20 --sync-bn", ["--model", "resnet20", "--activation", "tanh", "--sync-bn"])):
        one, three, start = result(1, 1, *words), result(3, 1, *words), tensors(result(1, 1e-30, *words))
        bound = rounding(start, pixels=24 * 16 * 16)
        worst = 0
        a, b = tensors(one), tensors(three)
        for key, before in start.items():
            gradient = np.linalg.norm(a[key].astype(np.float64) - before)
            # Subtracting a gradient from a weight rounds the new weight.
            stored = UNIT * np.linalg.norm(before)
            worst = max(worst, (np.linalg.norm(a[key].astype(np.float64) - b[key]) - 2 * stored) / gradient)
        check(worst < bound, f"one-step gradient of {name}: differs by {worst:.2e} < {bound:.1e} of its norm")
        a, b = tensors(one, "statistics"), tensors(three, "statistics")
        worst = max([np.linalg.norm(a[key].astype(np.float64) - b[key]) / np.linalg.norm(a[key]) for key in a], default=0)
        check(worst < bound, f"statistics of {name}: differ by {worst:.2e} < {bound:.1e} of their norm")


def reproducible(folder):
    """The same bits for 4, 6, 7 replicas on 1, 2, 3, 4 ranks in both modes, uneven shares included (61 images)."""
    for sync, period in (("gradients", []), ("weights", ["--local-steps", 2])):
        for replicas in (4, 6, 7):
            found = {}
            for ranks in (1, 2, 3, 4):
                out = f"{folder}/bits-{sync}-{replicas}-{ranks}"
                train(ranks, out, *DATA, "--synthetic-size", 8, "--model", "resnet20", "--synthetic-samples", 61, "--sync", sync, *period, "--replicas", replicas,
                      "--batch-size", 3, "--epochs", 1, "--lr", 0.1, "--reproducible", "--check-weights", 1)
                found[ranks] = everything(last(out))
            same = all(same_bits(found[1], found[r]) for r in (2, 3, 4))
            check(same, f"--reproducible, sync {sync}, {replicas} replicas: the same bits on 1, 2, 3 and 4 ranks")


if __name__ == "__main__":
    laws = {f.__name__: f for f in (large_batch, local_steps_one, one_step_gradient, reproducible)}
    with work_folder() as work:
        for law in sys.argv[1:] or laws:
            laws[law](work)
