# SPDX-License-Identifier: Apache-2.0
"""--on-spike: a gradient that is a thousand times too large in one step. Usage: spike_test.py rollback|ranks|boundary|line|renumbered|copied|limit|warning|choices"""
import glob
import os
import re
import shutil
import sys

from runner import check, everything, last, records, same_bits, train, work_folder

STEP = 31  # of the fault, counted from 0
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 2400, "--model", "lenet", "--batch-size", 4, "--lr", 0.02, "--seed", 5,
       "--epochs", 1, "--save-every", 0, "--save-every-steps", 6, "--keep-checkpoints", 99, "--print-freq", 3, "--shuffle", "global", "--skip-eval",
       "--lr-schedule", "constant", "--momentum", 0, "--sync", "gradients", "--reproducible", "--replicas", 4]
FAULT = ["--inject-fault", f"spike@0@{STEP}"]
POLICIES = {"powersgd": ["--wire", "powersgd"], "gradients": [], "weights": ["--sync", "weights", "--local-steps", 4, "--momentum", 0.9], "ema": ["--ema-decay", 0.9]}


def events(folder):
    return [r for r in records(folder, "run") if r.get("event") == "spike"]


def rollback(work):
    folder = f"{work}/run"
    _, err = train(2, folder, *JOB, *FAULT, "--on-spike", "rollback", "--max-steps", 60)
    found = events(folder)
    check(len(found) == 1 and found[0]["action"] == "rollback", f"one spike: {found}")
    spike = found[0]
    check(STEP < spike["step"] <= STEP + 9 and spike["checkpoint_step"] <= STEP and spike["checkpoint_step"] % 6 == 0,
          f"seen at step {spike['step']}, back to step {spike['checkpoint_step']}, before the fault")
    check(spike["undone_steps"] == spike["step"] - spike["checkpoint_step"] and spike["skipped_images"] == 16 * spike["undone_steps"],
          "undone steps and skipped images are counted")
    check(f"{spike['undone_steps']:.0f} steps since then are undone, and their batches are skipped" in err, "and said")
    # What the checkpoint's weights make of the next batches: the run that never had them goes on from there.
    train(2, f"{work}/plain", *JOB, "--on-spike", "rollback", "--max-steps", 60)
    before = [r["loss"] for r in records(folder, "train") if r["step"] <= STEP]
    after = [r["loss"] for r in records(folder, "train") if r["step"] > spike["step"]]
    plain = [r["loss"] for r in records(f"{work}/plain", "train") if r["step"] > spike["step"]]
    check(max(after) < 1.5 * max(plain) and max(after) <= max(before), f"the loss is low again: {max(after):.3f}, undisturbed {max(plain):.3f}")
    end = [r for r in records(folder, "run") if r.get("event") == "end"][-1]
    check(end["undone_steps"] == spike["undone_steps"] and events(f"{work}/plain") == [], "the end has the sum, an undisturbed run has none")


def ranks(work):
    """The same bits on 1 to 4 ranks, and after a stop between spike and end."""
    for name, words in POLICIES.items():
        job = [*JOB, *words, "--on-spike", "rollback"]
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{name}-{count}", *job, *FAULT, "--max-steps", 57)
            check(len(events(f"{work}/{name}-{count}")) >= 1 and same_bits(everything(last(f"{work}/{name}-{count}")), everything(last(f"{work}/{name}-1"))),
                  f"{name}: on {count} ranks, the same bits")
        folder = f"{work}/{name}-stopped"
        train(2, folder, *job, *FAULT, "--max-steps", 45)
        said, _ = train(3, folder, *job, "--resume", "auto", "--max-steps", 12)
        check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(f"{work}/{name}-1"))),
              f"{name}: stopped after the return, resumed on 3 ranks, the same bits")


def boundary(work):
    """With averages of weights, the last step before a checkpoint that ends an interval: its loss was calm, and what it did to the weights shows
    in the next one only."""
    folder = f"{work}/run"
    job = [*JOB, "--sync", "weights", "--local-steps", 3, "--replicas", 2, "--on-spike", "rollback", "--spike-factor", 3]
    train(2, folder, *job, "--inject-fault", "spike@0@41", "--max-steps", 60)
    found = [(spike["step"], spike["checkpoint_step"]) for spike in events(folder)]
    check(found == [(45, 36)], f"step 42 is the fault, and the checkpoint of step 36 is taken: {found}")
    losses = {r["step"]: r["loss"] for r in records(folder, "train")}
    check(max(losses[s] for s in losses if s > 45) < 1.2 * max(losses[s] for s in losses if s < 42), "the loss is low again")


def steps_saved(folder):
    return sorted(int(re.search(r"step-(\d+)", path).group(1)) for path in glob.glob(f"{folder}/step-*.h5"))


def line(work):
    """No job goes on from what was saved between a spike and its discovery."""
    folder = f"{work}/run"
    job = [*JOB, "--on-spike", "rollback", "--save-every-steps", 4]
    _, err = train(2, folder, *job, *FAULT, "--max-steps", 42)
    spike = events(folder)[0]
    saved, aside = steps_saved(f"{folder}/checkpoints"), steps_saved(f"{folder}/checkpoints.old-1")
    check(aside and min(aside) > spike["checkpoint_step"] and max(aside) < spike["step"], f"checkpoints of the spike are aside: {aside}")
    check("the checkpoints since then are in" in err and not [s for s in saved if spike["checkpoint_step"] < s < spike["step"]], f"and not among {saved}")
    check(spike["step"] in saved, f"the run has saved at step {spike['step']}, at once")
    for path in [last(folder), *(f"{folder}/checkpoints/step-{s:08}.h5" for s in saved if s > spike["step"])]:
        os.remove(path)  # as if the job had died there
    said, _ = train(2, folder, *job, "--resume", "auto", "--max-steps", 12)
    losses = [r["loss"] for r in records(folder, "train")]
    before = max(r["loss"] for r in records(folder, "train") if r["step"] <= STEP)
    check(f"step {spike['step']:.0f}" in said and len(events(folder)) == 1 and max(losses[-3:]) <= before, "a job that died after it goes on from there, without another spike")

    # Stopped after the fault, before the interval's loss: what that stop saved is not returned to.
    folder = f"{work}/stopped"
    train(2, folder, *job, *FAULT, "--max-steps", STEP + 1)
    train(2, folder, *job, "--resume", "auto", "--max-steps", 12)
    found = events(folder)
    check(len(found) == 1 and found[0]["checkpoint_step"] <= STEP, f"stopped within the interval: back to step {found[0]['checkpoint_step']:.0f}, before the fault")


def renumbered(work):
    """An attempt with twice the batch counts half the steps. Files of before it have higher numbers than its own steps, and are older all the same."""
    folder = f"{work}/run"
    train(2, folder, *JOB, "--on-spike", "rollback", "--max-steps", 24)
    job = [*JOB, "--on-spike", "rollback", "--batch-size", 8, "--resume", "auto", "--max-steps", 12]
    _, err = train(2, folder, *job, "--inject-fault", "spike@0@13")
    found = events(folder)
    check(len(found) == 1 and found[0]["checkpoint"].endswith("last.h5"), f"a spike in the first interval: back to the checkpoint that the attempt began with: {found}")
    check(found[0]["checkpoint_step"] == 12 and found[0]["undone_steps"] == found[0]["step"] - 12 and found[0]["skipped_images"] == 32 * found[0]["undone_steps"],
          "told in the steps of this attempt")
    check(f"back to the weights of '{folder}/checkpoints/last.h5' (step 12)" in err and re.search(r"the loss of steps 13 to 15|the gradient of step 15", err) is not None, f"and said: {err}")
    check(not os.path.exists(f"{folder}/checkpoints.old-1"), "no older one is moved aside")


def copied(work):
    """Checkpoints alone were copied, so their attempts aren't known: one from between fault and discovery is not returned to."""
    job = [*JOB, "--on-spike", "rollback", "--save-every-steps", 4]
    train(1, f"{work}/run", *job, "--max-steps", 12)
    train(1, f"{work}/run", *job, *FAULT, "--resume", "auto", "--max-steps", 24)
    os.makedirs(f"{work}/copy/checkpoints")
    for path in (f"{work}/run/checkpoints/step-00000028", f"{work}/run/checkpoints.old-1/step-00000032"):
        for file in glob.glob(f"{path}.*"):
            shutil.copy(file, f"{work}/copy/checkpoints")
    train(1, f"{work}/copy", *job, "--resume", "auto", "--max-steps", 6)
    found = events(f"{work}/copy")
    check(len(found) == 1 and found[0]["checkpoint_step"] == 28, f"back to step 28, before the fault: {found}")


def limit(work):
    """A learning rate with which every return ends in the next spike."""
    folder = f"{work}/run"
    _, err = train(2, folder, *JOB, "--lr", 30, "--save-every-steps", 4, "--on-spike", "rollback", "--max-steps", 150, expect=2)
    check("the run diverges (rolled back 3 times, with fewer than 20 intervals without a spike between them)" in err and len(events(folder)) == 3, "a run that diverges ends after three returns")
    check(err.count("error:") == 1 and "--clip-grad-norm" in err and "MPI_ABORT" not in err, f"with one message: {err}")
    step = int(re.search(r"continue from step (\d+)", err).group(1))
    check(max(steps_saved(f"{folder}/checkpoints")) == step, f"the newest checkpoint is that of step {step}")
    said, _ = train(2, folder, *JOB, "--lr", 0.001, "--save-every-steps", 4, "--on-spike", "rollback", "--resume", "auto", "--max-steps", 2)
    check(f"step {step}" in said, "and the run goes on from it")


def warning(work):
    """By default the run warns, and nothing changes."""
    _, err = train(2, f"{work}/warn", *JOB, *FAULT, "--max-steps", 45, "--spike-factor", 2)
    check("--on-spike rollback would go back" in err and events(f"{work}/warn")[0]["action"] == "warn", "it is said")
    _, err = train(2, f"{work}/off", *JOB, *FAULT, "--max-steps", 45, "--on-spike", "off")
    check("on-spike" not in err and not events(f"{work}/off"), "off: not a word")
    check(same_bits(everything(last(f"{work}/warn")), everything(last(f"{work}/off"))), "and the bits are the same")


def choices(work):
    folder = f"{work}/none"
    _, err = train(2, folder, *JOB, *FAULT, "--on-spike", "rollback", "--save-every-steps", 0, "--max-steps", 45)
    check("there is no checkpoint from before it" in err, "nothing to go back to: says so, and goes on")
    for words, text in ((["--on-spike", "rollback", "--no-checkpoints"], "needs checkpoints to go back to"),
                        (["--on-spike", "off", "--spike-factor", 3], "--on-spike warn or rollback"),
                        (["--spike-factor", 1], "spike-factor")):
        _, err = train(1, f"{work}/refused", *[w for w in JOB if w not in ("--save-every-steps", "--keep-checkpoints", 6, 99)], *words, "--max-steps", 1, expect=2)
        check(text in err, f"refused: {' '.join(map(str, words))}")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (rollback, ranks, boundary, line, renumbered, copied, limit, warning, choices)}
    with work_folder() as folder:
        cases[sys.argv[1]](folder)
