# SPDX-License-Identifier: Apache-2.0
"""--check-arithmetic: flipped bits in the result of a convolution, in memory and in a sum are found, and the rank is named.
Usage: arithmetic_test.py named [COUNT [SEED]] | quiet [STEPS] | local | cost | two | hosts | weights | goes_on | renumbered | refused   (bench/arithmetic.sh has the long form)"""
import glob
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import check, everything, last, on_hosts_of_their_own, run, same_bits, train, work_folder  # noqa: E402

TINY = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 2400, "--model", "lenet", "--batch-size", 4, "--lr", 0.01,
        "--skip-eval", "--shuffle", "global", "--epochs", 9]
EVERY, RANKS = 2, 3
POLICIES = {"gradients": ["--sync", "gradients"], "weights": [], "seldom": ["--local-steps", 4],
            "reproducible": ["--sync", "gradients", "--reproducible"], "late": ["--local-steps", 4, "--overlap-average"]}
# Whose weights are alike on all ranks after every step, so that a flip in memory stays on its rank.
EQUAL = ["gradients", "reproducible"]


def excluded(folder):
    path = f"{folder}/excluded-hosts"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def flip(work, number, kind, rank, step, words, most, program):
    """Trains with that fault. Returns the ranks that the program names, with their hosts."""
    folder = f"{work}/{number}"
    _, err = train(RANKS, folder, *TINY, *words, "--check-arithmetic", EVERY, "--max-steps", most, "--no-checkpoints", "--inject-fault",
                   f"flip-{kind}@{rank}@{step}", expect=None, program=program)
    found = re.search(r"error: (.*)", err)
    with open(f"{folder}/state.json", encoding="utf-8") as file:
        state = json.load(file)
    named = re.findall(r"rank (\d+) on (\S+) \((.*?)\)", found.group(1)) if found else []
    good = state["exit"] == 7 and len(named) == 1 and [own[0] for own in excluded(folder)] == [named[0][1]]
    return [(int(own[0]), own[1]) for own in named] if good else err


def named(work, count=6, seed=1):
    """In a job of three ranks. A flip in a convolution concerns the step alone, so it is made in one that is checked. One in memory stays in
    the weights of its rank if it takes gradients from sums, and is found at the next check. One in a sum is found before the next average takes it in: with local SGD
    if each average is checked."""
    rng, right, program = random.Random(seed), 0, on_hosts_of_their_own(work)
    for number in range(count):
        kind = ["convolution", "memory", "sum"][number % 3]
        policy = rng.choice({"convolution": list(POLICIES), "memory": EQUAL, "sum": [*EQUAL, "seldom", "late"]}[kind])
        turn = rng.randrange(12)
        step, rank = (EVERY * turn, turn % RANKS) if kind == "convolution" else (rng.randrange(24), rng.randrange(RANKS))
        found = flip(work, number, kind, rank, step, POLICIES[policy], step + 4 * EVERY + 1, program)
        good = found == [(rank, f"n{rank}")]
        right += good
        print(f"     {number + 1}: {kind}, rank {rank}, step {step + 1}, {policy}: {'named' if good else found}", flush=True)
    check(right == count, f"{right} of {count} flipped bits found, and the right rank and host named")


def quiet(work, steps=40):
    """Checked in every step, by each policy: no alarm, and the bits of a run that isn't checked."""
    for name, words in POLICIES.items():
        job = [*TINY, *words, "--max-steps", steps // len(POLICIES), "--epochs", 99]
        train(RANKS, f"{work}/{name}-plain", *job)
        out, err = train(RANKS, f"{work}/{name}", *job, "--check-arithmetic", 1, timeout=600)
        said = re.search(r"arithmetic: (\d+) steps repeated by other ranks, always the same bits", out)
        check(said is not None and int(said.group(1)) == steps // len(POLICIES) and "error" not in err,
              f"{name}: {steps // len(POLICIES)} steps checked, no alarm")
        check(same_bits(everything(last(f"{work}/{name}-plain")), everything(last(f"{work}/{name}"))), f"{name}: the run's bits are the same")
        with open(f"{work}/{name}/metrics.jsonl", encoding="utf-8") as file:
            events = [r for r in map(json.loads, file) if r.get("event") == "arithmetic"]
        check(len(events) == 1 and events[0]["checks"] == steps // len(POLICIES) and events[0]["percent_of_time"] > 0,
              f"{name}: metrics.jsonl has the number and the cost")


def local(work):
    """The average of one rank gets another bit: found whether or not averages come in steps that are to be checked. So does --check-weights."""
    program = on_hosts_of_their_own(work)
    check_arithmetic, check_weights = ("--check-arithmetic", 2), ("--check-weights", 2)
    for name, policy, option in (("late", POLICIES["late"], check_arithmetic), ("odd", ["--local-steps", 3], check_arithmetic), ("late_odd", ["--local-steps", 3, "--overlap-average"], check_arithmetic),
                                 ("weights_late", POLICIES["late"], check_weights), ("weights_odd", ["--local-steps", 3], check_weights)):
        folder = f"{work}/{name}"
        _, err = train(RANKS, folder, *TINY, *policy, *option, "--max-steps", 16, "--no-checkpoints", "--inject-fault", "flip-sum@1@7", expect=None, program=program)
        with open(f"{folder}/state.json", encoding="utf-8") as file:
            state = json.load(file)
        check(state["exit"] == 7 and "rank 1 on n1" in err and [own[0] for own in excluded(folder)] == ["n1"], f"{name}: found, and the rank named: {err.strip().splitlines()[:1]}")


def cost(work):
    """For bench/arithmetic.sh: what checks every 100 steps take of a job of two ranks, as the program says."""
    job = ["--synthetic", "--synthetic-samples", 12800, "--model", "resnet20", "--batch-size", 64, "--lr", 0.05, "--skip-eval",
           "--no-checkpoints", "--epochs", 5, "--max-steps", 401, "--check-arithmetic", 100]
    for name in ("gradients", "seldom"):
        out, _ = train(2, f"{work}/{name}", *job, *POLICIES[name], timeout=900)
        print(f"{name}: " + re.search(r"arithmetic: .*", out).group(0), flush=True)


def two(work):
    """Two ranks: a fault that one of them does not repeat is its own; else nothing shows which rank is wrong."""
    job = [*TINY, "--sync", "gradients", "--check-arithmetic", 1, "--max-steps", 12, "--no-checkpoints"]
    _, err = train(2, f"{work}/once", *job, "--inject-fault", "flip-convolution@1@5", expect=7)
    check("rank 1 on" in err and "than it and other ranks did when they repeated it" in err, "a result that is not repeated: its rank is named")
    _, err = train(2, f"{work}/memory", *job, "--inject-fault", "flip-memory@1@4", expect=7)
    check(re.search(r"rank 0 on .* and rank 1 on .*one of them is wrong, and nothing shows which: test this host", err) is not None, "weights that differ: both are named")
    check(excluded(f"{work}/memory") == [], "and no host is left out")


def hosts(work):
    """Ranks of one host that all compute with another rounding agree with each other: they must not outvote the ranks of another host."""
    job = [*TINY, "--sync", "gradients", "--check-arithmetic", 1, "--max-steps", 4, "--no-checkpoints"]
    env = {"LD_PRELOAD": os.environ["CONVOY_OTHER_ROUNDING"], "OTHER_ROUNDING_HOST": "n0", "OTHER_ROUNDING_BYTES": str(4 * 16 * 16 * 3)}
    for name, of_rank, certain in (("two", "0 0 1", False), ("three", "0 0 1 2", True)):
        program = on_hosts_of_their_own(work, hosts=of_rank.split())
        _, err = train(len(of_rank.split()), f"{work}/{name}", *job, expect=7, program=program, env=env)
        if certain:
            check({own[0] for own in excluded(f"{work}/{name}")} == {"n0"} and "leave this host out" in err, f"{name} hosts: the sick one is left out")
        else:
            check(excluded(f"{work}/{name}") == [] and "nothing shows which (the ranks of a host have one vote): test both hosts" in err
                  and "on n0" in err and "on n1" in err, f"{name} hosts: both are named, none is left out")


def weights(work):
    """--check-weights ends the job as --check-arithmetic does, and with one message."""
    job = [*TINY, "--sync", "gradients", "--check-weights", 3, "--save-every-steps", 2, "--keep-checkpoints", 9, "--max-steps", 12, "--inject-fault", "flip-memory@2@7"]
    folder = f"{work}/three"
    _, err = train(RANKS, folder, *job, expect=7, program=on_hosts_of_their_own(work))
    check(err.count("error:") == 1 and "rank 2 on n2" in err and "held other weights than most ranks" in err and "step 9" in err, "the minority is named once")
    check([own[0] for own in excluded(folder)] == ["n2"] and excluded(folder)[0][2].startswith("rank 2: arithmetic"), "its host is left out")
    check(sorted(map(os.path.basename, glob.glob(f"{folder}/checkpoints.old-1/*.h5"))) == ["step-00000008.h5"], "checkpoints after step 6, whose check passed, are aside")
    _, err = train(2, f"{work}/two", *job[:-1], "flip-memory@1@7", expect=7)
    check("rank 0 on" in err and "rank 1 on" in err and "nothing shows which" in err and excluded(f"{work}/two") == [], "two ranks: both are named, and no host is left out")
    _, err = train(2, f"{work}/average", *TINY, "--ema-decay", 0.9, "--sync", "weights", "--replicas", 4, "--check-weights", 2, "--max-steps", 6, "--no-checkpoints")
    check("error" not in err, "four replicas with a moving average: no alarm")


def goes_on(work):
    """From the last checkpoint before the last check that passed, with the bits of an undisturbed run."""
    job = [*TINY, "--sync", "gradients", "--reproducible", "--replicas", 3, "--check-arithmetic", 4, "--save-every-steps", 3, "--keep-checkpoints", 9, "--max-steps", 20]
    train(RANKS, f"{work}/straight", *job)
    folder = f"{work}/run"
    _, err = train(RANKS, folder, *job, "--inject-fault", "flip-memory@1@9", expect=7)
    check("rank 1 on" in err and "held other weights" in err and "step 13" in err, "found at the next check")
    aside = sorted(os.path.basename(p) for p in glob.glob(f"{folder}/checkpoints.old-1/*.h5"))
    kept = sorted(os.path.basename(p) for p in glob.glob(f"{folder}/checkpoints/*.h5"))
    check(aside == ["step-00000009.h5", "step-00000012.h5"] and kept == ["step-00000003.h5", "step-00000006.h5"],
          f"checkpoints after step 8, whose check passed, are aside: {aside}, {kept}")
    code = run(1, "status", folder, "--after", 7, "--attempts-before", 0, expect=None)
    check("the next job leaves out" in code[0], f"a job script is told to go on: {code[0].strip()}")
    said, _ = train(2, folder, *job, "--resume", "auto", "--max-steps", 14)
    check("step 6" in said and "rank 0 runs on" not in said, "it goes on from step 6")
    check(same_bits(everything(last(folder)), everything(last(f"{work}/straight"))), "and ends with the bits of an undisturbed run")


def renumbered(work):
    """A resumed attempt with twice the batch counts half the steps: the checkpoint of step 8, with which it begins at step 4, is older than its
    checks, whatever its number."""
    job = [*TINY, "--sync", "gradients", "--save-every-steps", 2, "--keep-checkpoints", 9]
    for name, option, newer, older in (("weights", "--check-weights", (6,), (2, 4, 8)), ("arithmetic", "--check-arithmetic", (6, 8), (2, 4))):
        folder = f"{work}/{name}"
        train(RANKS, folder, *job, "--max-steps", 8)
        words = [*job, "--batch-size", 8, option, 4, "--resume", "auto", "--max-steps", 12]
        _, err = train(RANKS, folder, *words, "--inject-fault", "flip-memory@1@5", expect=7)
        aside, kept = (sorted(os.path.basename(p) for p in glob.glob(f"{folder}/{place}/*.h5")) for place in ("checkpoints.old-1", "checkpoints"))
        check(aside == [f"step-0000000{s}.h5" for s in newer] and kept == ["last.h5", *(f"step-0000000{s}.h5" for s in older)],
              f"{name}: only what this attempt saved is aside: {aside}, {kept}")
        check(f"the checkpoints after step 4 are in '{folder}/checkpoints.old-1'" in err, f"{name}: and said")


def refused(work):
    for name, ranks, words, text in (
            ("one rank", 1, [], "needs two ranks with a replica each"),
            ("one replica", 2, ["--replicas", 1], "needs two ranks with a replica each"),
            ("sync-bn", 2, ["--sync", "gradients", "--sync-bn", "--model", "resnet8"], "can't repeat a step alone with --sync-bn")):
        _, err = train(ranks, f"{work}/{name}", *TINY, *words, "--check-arithmetic", 5, "--max-steps", 2, expect=2)
        check(text in err, f"{name}: refused")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (named, quiet, local, cost, two, hosts, weights, goes_on, renumbered, refused)}
    with work_folder() as folder:
        cases[sys.argv[1]](folder, *map(int, sys.argv[2:]))
