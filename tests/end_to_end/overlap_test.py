# SPDX-License-Identifier: Apache-2.0
"""--overlap-average: the same bits on any number of ranks and after stops and a death within a period. Usage: overlap_test.py
ranks|resume|switched|choices"""
import sys

from runner import check, everything, last, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 4, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--sync", "weights", "--local-steps", 3, "--overlap-average", "--reproducible", "--replicas", 4]
POLICIES = {"constant": [], "post-local": ["--local-sgd-start", 4], "adamw": ["--optimizer", "adamw", "--lr", 0.002]}


def ranks(work):
    for name, words in POLICIES.items():
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{name}-{count}", *JOB, *words, "--max-steps", 11)
            check(same_bits(everything(last(f"{work}/{name}-{count}")), everything(last(f"{work}/{name}-1"))),
                  f"{name}: 4 replicas on {count} ranks, the same bits")
    plain = [w for w in JOB if w != "--overlap-average"]
    train(2, f"{work}/plain", *plain, "--max-steps", 11)
    check(not same_bits(tensors(last(f"{work}/plain")), tensors(last(f"{work}/constant-2"))), "which are others than without overlap")


def resume(work):
    for name, words in POLICIES.items():
        job = [*JOB, *words]
        straight = f"{work}/{name}"
        train(2, straight, *job, "--max-steps", 11)
        for stop, count in ((4, 1), (6, 3), (8, 4)):
            folder = f"{work}/{name}-{stop}-{count}"
            train(2, folder, *job, "--max-steps", stop)
            said, _ = train(count, folder, *job, "--resume", "auto", "--max-steps", 11 - stop)
            check("not bit for bit" not in said and same_bits(everything(last(folder)), everything(last(straight))),
                  f"{name}: stopped after step {stop}, resumed on {count} ranks, the same bits")
    train(2, f"{work}/whole", *JOB, "--epochs", 1)
    folder = f"{work}/died"
    train(2, folder, *JOB, "--epochs", 1, "--save-every-steps", 4, "--inject-fault", "throw@1@9", expect=1)
    train(3, folder, "--resume", "auto", "--take-over", "--wait-for-other", 0)
    check(same_bits(everything(last(folder)), everything(last(f"{work}/whole"))), "died within a period, goes on by its own configuration on 3 ranks, the same bits")


def switched(work):
    """A run goes on with or without late averages. Until the next average is due both compute the same."""
    for name, begun, then, other, stop, most in (("on", "--no-overlap-average", "--overlap-average", "false then, true now", 6, 8),
                                                 ("off", "--overlap-average", "--no-overlap-average", "true then, false now", 4, 5)):
        job, folder, straight = [w for w in JOB if w != "--overlap-average"], f"{work}/{name}", f"{work}/{name}-straight"
        train(2, straight, *job, begun, "--max-steps", most)
        train(2, folder, *job, begun, "--max-steps", stop)
        _, err = train(2, folder, *job, then, "--resume", "auto", "--max-steps", most - stop)
        check(f"overlap-average {other}" in err and same_bits(tensors(last(folder)), tensors(last(straight))), f"switched {name} after step {stop}: it is said, and nothing is lost")
        has = [name for name in everything(last(folder)) if name.startswith("optimiser/correction/")]
        check(bool(has) == (name == "on"), f"switched {name}: its checkpoints have what they need")
        train(3, folder, *job, then, "--resume", "auto", "--max-steps", 4)


def choices(work):
    said, _ = train(2, f"{work}/said", *JOB, "--max-steps", 4)
    check("weights every 3 steps, a period late" in said and "travels beside the next steps" in said, "the log says what is done")
    for words, text in ((["--local-momentum", "average"], "--overlap-average is not possible with --local-momentum"),
                        (["--outer-optimizer", "momentum"], "not possible with --outer-optimizer"),
                        (["--wire", "bf16"], "not possible with --wire"), (["--local-steps", 4, "--node-steps", 2], "not possible with --node-steps")):
        _, err = train(2, f"{work}/refused", *JOB, *words, "--max-steps", 1, expect=2)
        check(text in err, f"refused: {' '.join(map(str, words))}")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (ranks, resume, switched, choices)}
    with work_folder() as folder:
        cases[sys.argv[1]](folder)
