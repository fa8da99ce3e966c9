# SPDX-License-Identifier: Apache-2.0
"""The moving average of the weights: its values, who evaluates it, and that a run goes on with it bit for bit. Usage:
moving_average_test.py values|resume|evaluation"""
import json
import os
import re
import shutil
import sys

import numpy as np

from runner import check, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05,
       "--seed", 5, "--epochs", 2, "--save-every", 0, "--print-freq", 1, "--shuffle", "global"]  # 11 steps an epoch
GRADIENTS = ["--sync", "gradients"]
WEIGHTS = ["--sync", "weights", "--local-steps", 2]
NEARLY_ONE = 0.9999999


def checkpoint(folder, step):
    return os.path.join(folder, "checkpoints", f"step-{step:08d}.h5")


def weights(path):
    return {f"{g}/{n}": v for g in ("parameters", "statistics") for n, v in tensors(path, g).items()}


def without_average(path):
    return {name: value for name, value in everything(path).items() if not name.startswith("ema/")}


def farthest(a, b):
    assert a.keys() == b.keys(), sorted(a.keys() ^ b.keys())
    return max(float(np.max(np.abs(a[k].astype(np.float64) - b[k].astype(np.float64)))) for k in a)


def values(work):
    """Against the formula in double, from a checkpoint after every step. Training itself doesn't notice."""
    for name, mode, every in (("gradients", GRADIENTS, 1), ("weights", WEIGHTS, 4)):
        plain, folder = f"{work}/plain-{name}", f"{work}/{name}"
        # Saving in the middle of a period makes averages of its own, which nothing may see.
        job = [*JOB, *mode, "--max-steps", 9, "--save-every-steps", 1, "--keep-checkpoints", 20, "--skip-eval", "--check-weights", 1]
        train(2, plain, *job)
        train(2, folder, *job, "--ema-decay", 0.8, "--ema-steps", every)
        worst = 0
        before = tensors(checkpoint(folder, 1), "ema")
        for step in range(2, 10):
            now, average = weights(checkpoint(folder, step)), tensors(checkpoint(folder, step), "ema")
            if step % every == 0:
                wanted = {k: 0.8 * before[k].astype(np.float64) + 0.2 * now[k].astype(np.float64) for k in now}
                worst = max(worst, farthest(average, wanted))
            else:
                check(same_bits(average, before), f"sync {name}: step {step} leaves the average as it is")
            before = average
        check(worst < 1e-6, f"sync {name}: each {every} steps D * average + (1 - D) * weights, statistics too ({worst:.1e})")
        check(same_bits(without_average(last(folder)), everything(last(plain))), f"sync {name}: training is the same with it")
    folder = f"{work}/warm"
    train(2, folder, *JOB, *GRADIENTS, "--max-steps", 5, "--save-every-steps", 1, "--keep-checkpoints", 20, "--skip-eval",
          "--ema-decay", 0.9, "--warmup-epochs", 0.25)
    same = [same_bits(tensors(checkpoint(folder, step), "ema"), weights(checkpoint(folder, step))) for step in range(1, 6)]
    check(same == [True, True, True, False, False], f"it is the weights while the rate warms up, 3 steps: {same}")


def resume(work):
    for name, mode, every in (("gradients", GRADIENTS, 3), ("weights", WEIGHTS, 4)):
        job = [*JOB, *mode, "--skip-eval", "--ema-decay", 0.9, "--ema-steps", every, "--reproducible"]
        train(2, f"{work}/{name}", *job)
        train(2, f"{work}/{name}-start", *job, "--max-steps", 7)  # between two updates, and two averages of weights
        for ranks in (2, 1, 3):
            folder = f"{work}/{name}-{ranks}"
            shutil.copytree(f"{work}/{name}-start", folder)
            train(ranks, folder, *job, "--resume", "auto")
            check("ema/parameters/conv1.weight" in everything(last(folder)), "a checkpoint holds the average")
            check(same_bits(everything(last(folder)), everything(last(f"{work}/{name}"))),
                  f"sync {name}: stopped after 7 steps and resumed on {ranks} ranks: the same bits, the average too")

    start = last(f"{work}/weights-start")
    rest = [*JOB, *WEIGHTS, "--skip-eval", "--ema-decay", 0.9, "--ema-steps", 1000]
    folder = f"{work}/replicas"
    said, _ = train(4, folder, *rest, "--replicas", 4, "--resume", start, "--max-steps", 1)
    check("continues from the averaged model" in said, "4 replicas: says how it goes on")
    check(same_bits(tensors(last(folder), "ema"), tensors(start, "ema")), "4 replicas: with the average of the checkpoint")

    train(2, f"{work}/without", *JOB, *GRADIENTS, "--skip-eval", "--max-steps", 5)
    folder, old = f"{work}/begun", last(f"{work}/without")
    said, _ = train(2, folder, *JOB, *GRADIENTS, "--skip-eval", "--ema-decay", 0.9, "--ema-steps", 1000, "--resume", old, "--max-steps", 2)
    check("holds no moving average of the weights: it starts from them" in said, "a checkpoint without one: says so")
    check(same_bits(tensors(last(folder), "ema"), weights(old)), "a checkpoint without one: it starts from the weights")
    folder = f"{work}/dropped"
    said, _ = train(2, folder, *JOB, *GRADIENTS, "--skip-eval", "--resume", last(f"{work}/gradients-start"), "--max-steps", 1)
    check("is dropped" in said and not tensors(last(folder), "ema"), "--ema-decay 0 drops it and says so")


def evaluation(work):
    def validated(name, *words):
        train(2, f"{work}/{name}", *JOB, *words)
        return [(r["top1"], r["loss"]) for r in records(f"{work}/{name}", "val")]

    # The first epoch ends between two updates, the second with one.
    plain, tiny = validated("local", *WEIGHTS), validated("local-tiny", *WEIGHTS, "--ema-decay", 1e-30, "--ema-steps", 2)
    check(tiny[0] != plain[0] and tiny[1] == plain[1], f"sync weights: a decay of nearly 0 validates the weights of the last update: {tiny}")
    plain = validated("plain", *GRADIENTS)
    check(validated("tiny", *GRADIENTS, "--ema-decay", 1e-30) == plain, f"a decay of nearly 0 validates like the weights: {plain}")
    kept = validated("kept", *GRADIENTS, "--ema-decay", NEARLY_ONE)
    drift = abs(kept[1][1] - kept[0][1])
    check(drift < 1e-3 < abs(plain[1][1] - plain[0][1]) and kept[0][0] == kept[1][0],
          f"a decay of nearly 1 stays with the first weights (losses {kept}, of the weights {plain})")

    best = validated("average", *GRADIENTS, "--ema-decay", 0.8)
    folder = f"{work}/average"
    for ranks, path in ((1, last(folder)), (3, last(folder))):
        out = f"{work}/evaluated-{ranks}"
        said, _ = run(ranks, "evaluate", "--checkpoint", path, "--threads", 1, "--output-dir", out)
        with open(f"{out}/result.json", encoding="utf-8") as file:
            result = json.load(file)
        check(result["top1"] == best[-1][0] and abs(result["loss"] - best[-1][1]) < 1e-6 * abs(best[-1][1]),
              f"evaluate on {ranks} ranks finds what the run said of its average: {result['top1']} %, loss {result['loss']:.6f}")
        check("moving average" in said and result["weights"] == "moving average", "evaluate says what it takes")
    chosen = {}
    for word in ("--ema", "--no-ema"):
        said, _ = run(1, "evaluate", "--checkpoint", last(folder), "--threads", 1, word)
        chosen[word] = json.loads(said.splitlines()[-1])
    trained = f"{work}/trained.safetensors"
    run(1, "export", last(folder), "--no-ema", "--output", trained)
    wanted = json.loads(run(1, "evaluate", trained, "--threads", 1)[0].splitlines()[-1])
    check(abs(chosen["--ema"]["loss"] - result["loss"]) < 1e-6 and chosen["--no-ema"]["weights"] == "trained", f"both kinds by name: {chosen}")
    check(chosen["--no-ema"]["loss"] == wanted["loss"] != result["loss"], f"--no-ema takes the trained weights: loss {wanted['loss']}")
    _, err = run(1, "evaluate", trained, "--no-ema", "--threads", 1, expect=2)
    check("holds one set of weights" in err, f"a file has no choice: {err[-200:]}")
    _, err = run(1, "evaluate", last(f"{work}/plain"), "--ema", "--threads", 1, expect=3)
    check("has no moving average" in err, f"nor has a run without an average: {err[-200:]}")
    check(best != plain, "which is not what the weights have")
    diverged = f"{work}/diverged"
    said = "".join(train(1, diverged, "--synthetic", "--synthetic-size", 16, "--synthetic-samples", 40, "--model", "mlp", "--batch-size", 40,
                         "--lr", 1e30, "--lr-schedule", "constant", "--epochs", 1, "--save-every", 1))
    check("the loss of this validation is not finite, so best.h5 stays as it is" in said, f"a validation without a loss: {said[-300:]}")
    check(not os.path.exists(f"{diverged}/checkpoints/best.h5") and os.path.exists(last(diverged)), "it is never the best")
    table, _ = run(1, "summary", diverged, "--format", "csv")
    row = dict(zip(*(line.split(",") for line in table.splitlines()[:2]), strict=True))
    run(1, "report", diverged, "--output", f"{work}/report.html")
    with open(f"{work}/report.html", encoding="utf-8") as file:
        shown = file.read()
    check(row["best_epoch"] in ("", "-"), f"nor in the summary: {row}")
    check(not re.search(r'<td class="n">[0-9.]+ %</td>', shown), f"nor in the report: {re.findall('<t[dh].*', shown)[:20]}")
    text, _ = run(1, "inspect", "checkpoint", last(folder))
    check("moving, decay 0.8" in text and "/ema/statistics/bn1.running_var" in text, "inspect checkpoint shows it")
    train(1, f"{work}/new", *JOB, "--weights", last(folder), "--max-steps", 1, "--lr", 1e-9, "--lr-schedule", "constant", "--skip-eval",
          "--weight-decay", 0)
    far = farthest(tensors(last(f"{work}/new")), {k.removeprefix("parameters/"): v for k, v in tensors(last(folder), "ema").items()
                                                  if k.startswith("parameters/")})
    check(far < 1e-6, f"--weights starts from it ({far:.1e})")
    sets = [run(2, "train", *JOB, *GRADIENTS, *words, "--dry-run", "--dry-run-seconds", 0)[0] for words in ((), ("--ema-decay", 0.9))]
    check("in 1 set\n" in sets[0] and "in 2 sets" in sets[1], "--dry-run counts it")


with work_folder() as scratch:
    {"values": values, "resume": resume, "evaluation": evaluation}[sys.argv[1]](scratch)
