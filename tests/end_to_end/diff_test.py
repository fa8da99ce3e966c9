# SPDX-License-Identifier: Apache-2.0
"""convoy diff: what it finds between runs that are alike, that part at a step, and that have nothing in common."""
import json
import os
import shutil
import subprocess

from runner import CONVOY, check, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 80, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05, "--seed", 5,
       "--epochs", 2, "--print-freq", 1, "--lr-schedule", "constant", "--reproducible", "--replicas", 2, "--skip-eval"]  # 5 steps per epoch


def diff(*words, code=0):
    done = subprocess.run([CONVOY, "diff", *map(str, words)], capture_output=True, text=True, timeout=30, check=False)
    check(done.returncode == code, f"diff ends with {code}" + ("" if done.returncode == code else f", not {done.returncode}: {done.stdout}{done.stderr}"))
    return done.stdout + done.stderr


def main(work):
    train(1, f"{work}/one", *JOB)
    train(2, f"{work}/two", *JOB)
    text = diff(f"{work}/one", f"{work}/two")
    check(text.startswith(f"A {work}/one\nB {work}/two\n"), "it says which is which")
    check("options: the same\n" in text and "data: the same\n" in text, "1 and 2 ranks: the same options and data")
    check("environment:\n  ranks: 1 in A, 2 in B\n" in text, "another number of ranks")
    check("numbers: the same in 12 common records up to step 10" in text, "the same numbers in 10 steps and 2 epochs")
    check("tensors of step 10" in text and "have the same bits" in text, "the same model")

    check("logged at different steps" not in text and "in another order" not in text, "logs of one interval")

    train(2, f"{work}/seldom", *JOB, "--print-freq", 2)
    text = diff(f"{work}/one", f"{work}/seldom")
    check("training is logged at different steps (10 in A, 6 in B): compared at 6 common steps" in text and "  print-freq: 1 in A, 2 in B" in text,
          "logs of other intervals: what could be compared")
    found = json.loads(diff("--json", f"{work}/one", f"{work}/seldom"))["numbers"]
    check((found["train_records"], found["common_train_records"]) == ([10, 6], 6), "in JSON, too")
    shutil.copytree(f"{work}/one", f"{work}/rounded")
    lines = [json.loads(line) for line in open(f"{work}/one/metrics.jsonl", encoding="utf-8")]
    for factor, rounds in ((1 + 1e-7, True), (1.01, False)):
        changed = [dict(line, loss=line["loss"] * factor) if line.get("split") == "train" and line["step"] == 4 else line for line in lines]
        with open(f"{work}/rounded/metrics.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in changed)
        text = diff(f"{work}/one", f"{work}/rounded")
        check("they differ from step 4 on" in text and "have the same bits" in text and ("add up the same losses in another order" in text) == rounds,
              f"a loss that is {factor} times the other: {'told as rounding' if rounds else 'told alone'}")

    train(1, f"{work}/elsewhere", *JOB, "--checkpoint-dir", f"{work}/kept")
    check("tensors of step 10" in diff(f"{work}/one", f"{work}/elsewhere"), "checkpoints outside the run directory are found")
    for words in (["export", f"{work}/elsewhere", "-o", f"{work}/elsewhere.pth"], ["inspect", "checkpoint", f"{work}/elsewhere"]):
        check(subprocess.run([CONVOY, *words], capture_output=True, check=False).returncode == 0, f"{words[0]} finds them, too")

    # The learning rate falls after the first epoch: the numbers of step 6 are of weights that are still the same.
    train(2, f"{work}/steps", *JOB, "--lr-schedule", "multistep", "--lr-step-epochs", 1, "--lr-factor", 0.5)
    text = diff(f"{work}/two", f"{work}/steps")
    check("  lr-schedule: constant in A, multistep in B\n" in text and "  lr-step-epochs: " in text and "  seed" not in text, "options that differ")
    check("they differ from step 6 on, in the record of 'train'; the last equal ones are of step 5" in text, "the step")
    check("  lr: 0.05 in A, 0.025 in B\n" in text and "  loss" not in text, "and what differs first")
    check("  first /parameters/conv1.weight: largest difference" in text, "the first tensor of the network")
    found = json.loads(diff("--json", f"{work}/two", f"{work}/steps"))
    tensors = found["checkpoints"]["differing"]
    check(found["numbers"]["first_step"] == 6 and found["numbers"]["numbers"]["lr"] == [0.05, 0.025] and found["options"]["lr-schedule"] ==
          ["constant", "multistep"] and found["checkpoints"]["step"] == 10 and found["data"] == {}, "the same as JSON")
    check(0 < tensors[0]["relative"] < 1 and 0 < tensors[0]["largest"] < 1, f"sizes of a difference: {tensors[0]}")

    # Saved every two steps, the last equal ones are of step 5, the end of the first epoch.
    often = ("--save-every-steps", 2, "--keep-checkpoints", 10)
    train(2, f"{work}/two-often", *JOB, *often)
    train(2, f"{work}/steps-often", *JOB, *often, "--lr-schedule", "multistep", "--lr-step-epochs", 1, "--lr-factor", 0.5)
    text = diff(f"{work}/two-often", f"{work}/steps-often")
    check("tensors of step 6 (" in text and "), the first that differs (those of step 5 have the same bits): " in text, "the first checkpoint that differs")
    found = json.loads(diff("--json", f"{work}/two-often", f"{work}/steps-often"))["checkpoints"]
    check((found["step"], found["equal_to_step"], found["equal_pairs"], found["left_out"]) == (6, 5, 3, []), "in JSON, too: 2, 4 and 5 are the same")
    check("), and of 5 common checkpoints before: all " in diff(f"{work}/two-often", f"{work}/two-often"), "if none differs: how many are the same")

    # A copy goes on by itself; it has no checkpoint of the steps that its original saves later.
    train(2, f"{work}/original", *JOB, *often, "--max-steps", 4)
    shutil.copytree(f"{work}/original", f"{work}/branch")
    train(2, f"{work}/original", *JOB, *often, "--resume", "auto")
    train(2, f"{work}/branch", *JOB, "--lr", 0.5, "--resume", "auto", "--max-steps", 3, "--save-every", 0, "--save-every-steps", 0)
    text = diff(f"{work}/original", f"{work}/branch")
    check(f"tensors of step 4 ('{work}/original/checkpoints/" in text and f"', '{work}/branch/checkpoints/" in text and "have the same bits" in text,
          "a copied run has checkpoints of its own alone")
    check("  lr: 0.05 in A, 0.5 in B\n" in text, "and the option that makes it a branch")

    train(2, f"{work}/seed", *JOB, "--seed", 6, "--synthetic-samples", 96, "--max-steps", 7, "--save-every", 0)
    text = diff(f"{work}/two", f"{work}/seed")
    check("  seed: 5 in A, 6 in B\n" in text and "  train split: " in text and "they differ from step 1 on" in text and "no record before is the same" in text, "another seed and other images: other numbers from the first step on")
    check("tensors: not compared (A's newest is of step 10, B's of step 7, and no step has one in both)" in text, "no checkpoints at one step")

    shutil.rmtree(f"{work}/seed/checkpoints")
    os.remove(f"{work}/seed/metrics.jsonl")
    text = diff(f"{work}/two", f"{work}/seed")
    check("data: not known" in text and "no record in common" in text and "tensors: not compared" in text, "a run without logs and checkpoints")
    check("is no run directory" in diff(f"{work}/two", work, code=2), "another folder: 2")
    check("use 'convoy diff RUN_A RUN_B'" in diff(f"{work}/two", code=2), "one run: 2")


with work_folder() as scratch:
    main(scratch)
