# SPDX-License-Identifier: Apache-2.0
"""Laws of data-parallel training, on real runs of the program: what a job computes depends on its replicas, not on ranks."""
import sys

from runner import check, difference, everything, last, same_bits, tensors, train, work_folder

DATA = ["--synthetic", "--synthetic-classes", 5, "--skip-eval", "--save-every", 0]
SMOOTH = ["--model", "lenet", "--activation", "tanh", "--pooling", "average"]
EXACT = ["--shuffle", "global", "--weight-decay", 1e-4, "--momentum", 0.9, "--lr-schedule", "constant", "--seed", 3]


def large_batch(folder):
    """R x B = 1 x R*B after 50 steps of a network without kinks and without batch norm."""
    weights = {}
    for ranks, batch in ((1, 24), (2, 12), (3, 8), (4, 6)):
        out = f"{folder}/large-{ranks}"
        train(ranks, out, *DATA, *SMOOTH, *EXACT, "--synthetic-size", 16, "--synthetic-samples", 240, "--sync", "gradients", "--batch-size", batch,
              "--epochs", 5, "--lr", 0.05, "--flip", "random", "--pad", 2)
        weights[ranks] = tensors(last(out))
    worst = max(difference(weights[1], weights[r]) for r in (2, 3, 4))
    check(worst < 5e-6, f"R x B = 1 x R*B: weights differ by {worst:.2e} < 5e-6 after 50 steps")


def local_steps_one(folder):
    """Averaging weights after every step = averaging gradients. With uneven shares (250 = 10 * 24 + 4 + 3 + 3 images) the
    momenta must be averaged with the same weights; with even ones each replica may keep its own."""
    for samples, policy in ((240, "keep"), (250, "average")):
        weights = {}
        for sync in ("gradients", "weights"):
            out = f"{folder}/one-{sync}-{policy}"
            extra = ["--local-momentum", policy, "--local-steps", 1] if sync == "weights" else []
            train(3, out, *DATA, *SMOOTH, *EXACT, "--synthetic-size", 16, "--synthetic-samples", samples, "--sync", sync,
                  "--batch-size", 8, "--epochs", 4, "--lr", 0.05, "--check-weights", 1, *extra)
            weights[sync] = tensors(last(out))
        worst = difference(weights["gradients"], weights["weights"])
        check(worst < 5e-6, f"local-steps 1 = gradient averaging, {samples} images, momentum {policy}: {worst:.2e} < 5e-6")


def one_step_gradient(folder):
    """The gradient of one step, read off a step of rate 1 without momentum: 1 rank x 24 against 3 ranks x 8."""
    for name, model, bound in (("lenet", ["--model", "lenet"], 5e-7), ("resnet20 --sync-bn", ["--model", "resnet20"], 2e-5)):
        found = {}
        for ranks, batch in ((1, 24), (3, 8)):
            out = f"{folder}/gradient-{model[1]}-{ranks}"
            extra = ["--sync-bn"] if "sync-bn" in name else []
            train(ranks, out, *DATA, *model, "--shuffle", "global", "--synthetic-size", 16, "--synthetic-samples", 24, "--sync", "gradients",
                  "--batch-size", batch, "--max-steps", 1, "--lr", 1, "--lr-schedule", "constant", "--momentum", 0,
                  "--weight-decay", 0, "--optimizer", "sgd", *extra)
            found[ranks] = everything(last(out))
        worst = difference(found[1], found[3])
        check(worst < bound, f"one-step gradient of {name}: differs by {worst:.2e} < {bound:.0e}")


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
