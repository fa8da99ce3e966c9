# SPDX-License-Identifier: Apache-2.0
"""The epoch report names the rank that the others waited for, and what it was slow at."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import check, on_hosts_of_their_own, records, train, work_folder  # noqa: E402

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 160, "--model", "lenet", "--batch-size", 8, "--epochs", 2,
       "--lr", 0.01, "--skip-eval", "--no-checkpoints"]


def slow_host(work):
    """Against the median of three hosts; --exclude-slow keeps the next job off it."""
    program, job = on_hosts_of_their_own(work), [*JOB, "--inject-fault", "slow-compute@1@0", "--slow-factor", 2]
    _, err = train(3, f"{work}/named", *job, program=program)
    check(re.search(r"host n1 is slow: it worked [\d.]+ s in epoch 1, [\d.]+ times the median of the hosts; --exclude-slow", err) is not None,
          "a slow host is named")
    check("host n0" not in err and "host n2" not in err and not os.path.exists(f"{work}/named/excluded-hosts"), "and no other, nor is one left out")
    train(3, f"{work}/excluded", *job, "--exclude-slow", program=program)
    with open(f"{work}/excluded/excluded-hosts", encoding="utf-8") as file:
        check([line.split("\t")[0] for line in file] == ["n1"], "--exclude-slow writes it down once")


def main():
    with work_folder() as work:
        for kind, rank, part in (("slow-data", 1, "data"), ("slow-compute", 0, "compute")):
            out, _ = train(2, f"{work}/{kind}", *JOB, "--inject-fault", f"{kind}@{rank}@0", "--prefetch", 1)
            last = records(f"{work}/{kind}", "epoch")[-1]
            check(last["slowest_rank"] == rank, f"{kind} on rank {rank}: rank {last['slowest_rank']} is named")
            check(last["slowest_part"] == part, f"{kind}: {last['slowest_part']} is named")
            # 10 steps of 100 ms: most of that is the slow rank's own, and the other one waited for it.
            own, waited = last[f"{part}_time_max"], last["comm_time_max"]
            check(0.3 < own < 5, f"{kind}: {own:.2f} s of {part}")
            check(waited > 0.4 * own, f"{kind}: the other rank waited {waited:.2f} s")
            check(last[f"{part}_time_min"] <= last[f"{part}_time_mean"] <= own, f"{kind}: min, mean and max are in order")
            line = re.search(rf"epoch 2: 2 ranks worked .* slowest: rank {rank} on \S+, .*: {part} [\d.]+ s", out)
            check(line is not None, f"{kind}: the log says so")
        slow_host(work)
        train(1, f"{work}/alone", *JOB)
        check("slowest_rank" not in records(f"{work}/alone", "epoch")[-1], "one rank is compared with nobody")


if __name__ == "__main__":
    main()
