# SPDX-License-Identifier: Apache-2.0
"""--node-steps: replicas of a host average more often than all do. Numbers of ranks, stops and a death within both periods, and what is
refused. Usage: two_level_test.py ranks|resume|choices|warned"""
import sys

from runner import check, everything, last, on_hosts_of_their_own, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--sync", "weights", "--local-steps", 4, "--node-steps", 2, "--reproducible", "--replicas", 4, "--batch-size", 4]
GROUPS = ["--node-replicas", 2]
POLICIES = {"keep": [], "average": ["--local-momentum", "average"],
            "outer": ["--outer-optimizer", "nesterov", "--outer-lr", 0.7, "--outer-momentum", 0.9],
            "bf16": ["--wire", "bf16", "--local-momentum", "reset"]}


def ranks(work):
    for name, words in POLICIES.items():
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{name}-{count}", *JOB, *GROUPS, *words, "--max-steps", 10, "--check-weights", 1)
            check(same_bits(everything(last(f"{work}/{name}-{count}")), everything(last(f"{work}/{name}-1"))),
                  f"{name}: 4 replicas in groups of 2 on {count} ranks, the same bits")


def one_level(words):
    at = words.index("--node-steps")
    return words[:at] + words[at + 2:]


def resume(work):
    """After an average of groups, within a period, and after one of all; killed within one."""
    for name in ("keep", "outer"):
        job = [*JOB, *GROUPS, *POLICIES[name]]
        straight = f"{work}/{name}"
        train(2, straight, *job, "--max-steps", 11)
        for stop, count in ((5, 1), (6, 4), (6, 3), (8, 2)):
            folder = f"{work}/{name}-{stop}-{count}"
            train(2, folder, *job, "--max-steps", stop)
            said, _ = train(count, folder, *job, "--resume", "auto", "--max-steps", 11 - stop)
            check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(straight))),
                  f"{name}: stopped after step {stop}, resumed on {count} ranks, the same bits")
    job = [*JOB, *GROUPS, "--epochs", 1]
    train(2, f"{work}/whole", *job)
    folder = f"{work}/died"
    train(2, folder, *job, "--save-every-steps", 3, "--inject-fault", "throw@1@7", expect=1)
    train(4, folder, "--resume", "auto", "--take-over", "--wait-for-other", 0)
    check(same_bits(everything(last(folder)), everything(last(f"{work}/whole"))), "died within a period, goes on by its own configuration on 4 ranks, the same bits")


def padded(count):
    return (count + 15) // 16 * 16


def count_bytes(work):
    """12 steps: 3 averages of all, and 3 of each of the two groups. Each sends 2 (R - 1) arrays of 4 bytes a number."""
    folder = f"{work}/bytes"
    train(4, folder, *JOB, *GROUPS, "--epochs", 1, "--synthetic-samples", 192)
    values, statistics = (sum(padded(value.size) for value in tensors(last(folder), group).values()) for group in ("parameters", "statistics"))
    of_average = lambda ranks: 2 * (ranks - 1) * 4 * (values + 2 * statistics + 8 * ranks)
    (record,) = records(folder, "epoch")
    check(record["sent_bytes"] == 3 * of_average(4), f"averages of all send {record['sent_bytes']} bytes")
    check(record["group_sent_bytes"] == 3 * 2 * of_average(2), f"averages of groups send {record['group_sent_bytes']} bytes")
    train(2, f"{work}/none", *one_level(JOB), "--epochs", 1)
    check("group_sent_bytes" not in records(f"{work}/none", "epoch")[0], "without groups nothing is said of them")


def choices(work):
    count_bytes(work)
    said, _ = train(2, f"{work}/host", *JOB, "--max-steps", 4)
    check("weights every 4 steps, every 2 steps in groups of 4 replicas" in said and "those of a host every 2 steps" in said,
          "the replicas of a host are a group, and the log says so")
    # One group of all: an average of all every 2 steps, since nothing else is done at the seldom ones.
    train(2, f"{work}/often", *one_level(JOB), "--local-steps", 2, "--max-steps", 4)
    check(same_bits(tensors(last(f"{work}/host")), tensors(last(f"{work}/often"))), "one group of all is local SGD with the shorter period")
    train(2, f"{work}/groups", *JOB, *GROUPS, "--max-steps", 4)
    check(not same_bits(tensors(last(f"{work}/host")), tensors(last(f"{work}/groups"))), "two groups are something else")
    for words, text in (
            (["--node-steps", 3], "--node-steps 3 must be a part of --local-steps 4"),
            (["--node-steps", 4], "--node-steps 4 must be a part of --local-steps 4"),
            (["--node-replicas", 3], "4 replicas can't be dealt to groups of 3"),
            (["--sync", "gradients", "--local-steps", 1], "--node-steps"),
            (["--replicas", 6, "--node-replicas", 3, "--batch-size", 2], "lie in several groups of 3 in part")):
        count = 4 if "--replicas" in words else 2
        _, err = train(count, f"{work}/refused", *JOB, *words, "--max-steps", 1, expect=2)
        check(text in err, f"refused: {' '.join(map(str, words))}")
    out, _ = run(1, "train", *JOB, "--dry-run", "--dry-run-seconds", 0)
    check("groups of 4 replicas" in out, "a dry run takes all ranks for one host")


def warned(work):
    """Periods and groups that do nothing, or not what they are for."""
    program = on_hosts_of_their_own(work)
    for name, words, text in (("no group", JOB, "--node-steps 2 has no effect: each group has one replica"),
                              ("network", [*JOB, *GROUPS], "replicas 0 to 1 are a group (--node-replicas 2) and lie on n0, n1"),
                              ("period", [*one_level(JOB), "--local-steps", 1000], "--local-steps 1000 is too long: the run has"),
                              ("start", [*one_level(JOB), "--local-sgd-start", 5000], "--local-sgd-start 5000 is not reached: the run has"),
                              ("well", one_level(JOB), "")):
        _, err = train(4, f"{work}/{name}", *words, "--max-steps", 1, "--no-checkpoints", program=program)
        check(text in err if text else "warning" not in err, f"{name}: {text or 'no warning'}")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (ranks, resume, choices, warned)}
    with work_folder() as folder:
        cases[sys.argv[1]](folder)
