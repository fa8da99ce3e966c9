# SPDX-License-Identifier: Apache-2.0
"""Phases that change image size, batch and crops: steps are counted right, the change costs less than a step, and a run stopped in
the middle of a phase goes on to the same bits, on another number of ranks too, odd ones and at a border of phases as well."""
import os
import re

from runner import check, everything, last, records, same_bits, train, work_folder

PHASES = """
lr-schedule = cosine
lr = 0.02
epochs = 5
batch-size = 10
model = resnet8
augment = imagenet
[phase.1]
epochs = 0:2
image-size = 24
min-random-area = 0.5
[phase.2]
epochs = 2:4
image-size = 32
batch-size = 5
[phase.3]
epochs = 4:5
image-size = 40
batch-size = 5
"""
DATA = ["--synthetic", "--synthetic-samples", 83, "--synthetic-size", 40, "--sync", "gradients", "--reproducible", "--replicas", 2,
        "--print-freq", 1]

with work_folder() as folder:
    config = os.path.join(folder, "phases.cfg")
    with open(config, "w", encoding="utf-8") as file:
        file.write(PHASES)
    straight, parts = f"{folder}/straight", f"{folder}/parts"
    out, err = train(2, straight, "--config", config, *DATA)
    log = records(straight, "train")
    # 83 images in steps of 20 make 5, in steps of 10 they make 9.
    check([r["step"] for r in log] == list(range(1, 2 * 5 + 3 * 9 + 1)), "37 steps, one line each")
    check([r["step_in_epoch"] for r in log][:12] == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2], "steps within epochs start anew")
    check(log[-1]["images_seen"] == 5 * 83, "every image once an epoch")
    check("24 x 24 pixels, global batch 20, 5 steps" in out + err and "40 x 40 pixels, global batch 10, 9 steps" in out + err,
          "the log tells the phases")
    rates = [r["lr"] for r in log]
    check(all(a > b for a, b in zip(rates[1:], rates[2:])), "the rate falls along one cosine over all phases")

    def delays_of(run_folder):
        """In steps of the new phase."""
        log_, delays_ = records(run_folder, "train"), []
        for first in (11, 29):
            after = sorted(r["step_time"] for r in log_[first:first + 7])
            typical = after[len(after) // 2]
            delays_.append((log_[first - 1]["step_time"] - typical) / typical)
        return delays_

    # The better of the two, and of up to nine runs: a machine that others use too delays any step of a few milliseconds.
    delays = delays_of(straight)
    for again in range(8):
        if min(delays) >= 1:
            train(2, f"{folder}/again{again}", "--config", config, *DATA)
            delays = delays_of(f"{folder}/again{again}")
    check(min(delays) < 1, f"a change of phase costs {delays[0]:.2f} and {delays[1]:.2f} steps")

    train(1, parts, "--config", config, *DATA, "--max-steps", 14)
    train(2, parts, "--config", config, *DATA, "--resume", "auto", "--max-steps", 9)
    train(2, parts, "--config", config, *DATA, "--resume", "auto")
    dry, _ = train(2, f"{folder}/dry", "--config", config, *DATA, "--dry-run", "--dry-run-seconds", 1)
    forecast = re.search(r"^# forecast .*\(5 steps .*\), of later phases (.+) and (.+), to the end of the run (.+)$", dry, re.M)
    check(forecast is not None, f"a dry run foretells the epochs of each phase: {forecast[0] if forecast else dry}")
    check(same_bits(everything(last(straight)), everything(last(parts))), "stopped in the middle of phases: the same bits")
    epochs = [r["epoch"] for r in records(straight, "val")], [r["epoch"] for r in records(parts, "val")]
    check(epochs[0] == [1, 2, 3, 4, 5], f"a validation an epoch: {epochs}")

    gaps = f"{folder}/gaps.cfg"
    with open(gaps, "w", encoding="utf-8") as file:
        file.write("model = lenet\nepochs = 4\n[phase.1]\nepochs = 0:1\nlr = 0.1\n[phase.2]\nepochs = 2:4\nlr = 0.05\n")
    _, err = train(1, f"{folder}/gaps", "--config", gaps, "--synthetic", "--synthetic-samples", 16, "--batch-size", 8, "--max-steps", 1)
    check("no [phase.N] has the learning rate of epochs 1:2, so it stays at 0.1" in err, "epochs without a phase are named")

    # Three replicas: 83 images make 3 steps of 30, then 6 of 15. Stopped at the border of two phases, and in the first step after it.
    three, odd = ["--config", config, *DATA[:-4], "--replicas", 3, "--print-freq", 1], f"{folder}/odd"
    train(3, f"{folder}/three", *three)
    train(3, odd, *three, "--max-steps", 6)
    train(2, odd, *three, "--resume", "auto", "--max-steps", 13)
    train(3, odd, *three, "--resume", "auto")
    log = records(f"{folder}/three", "train")
    check([r["step"] for r in log] == list(range(1, 2 * 3 + 3 * 6 + 1)) and log[-1]["images_seen"] == 5 * 83, "3 ranks: 24 steps, all images")
    check(same_bits(everything(last(f"{folder}/three")), everything(last(odd))), "3 ranks, 2 after a border, 3 again: the same bits")
    # --max-steps validates where it stops: at the border that is the epoch's own.
    check([r["epoch"] for r in records(odd, "val")] == [1, 2, 3, 4, 5, 5], "the border's validation is made once")
