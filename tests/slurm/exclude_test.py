# SPDX-License-Identifier: Apache-2.0
"""A host whose memory flips a bit: --check-arithmetic names it, the job submits itself again without it, and ends with the bits of an
undisturbed run."""
import pathlib

from cluster import Cluster, enter_or_skip
from training import CONVOY, Training, check

FAULTY, STEP = "n1", 9


def main():
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        training.options += ["--sync", "gradients", "--reproducible"]
        program = pathlib.Path(training.folder) / "convoy-on-bad-memory"
        program.write_text(f"#!/bin/sh\nfault=\nif [ \"$(hostname)\" = {FAULTY} ] && [ \"$1\" = train ]; then fault='--inject-fault "
                           f"flip-memory@1@{STEP}'; fi\nexec '{CONVOY}' \"$@\" $fault\n", encoding="utf-8")
        program.chmod(0o755)
        reference = training.reference(3)
        run, job = training.submit("faulty", 3, program=program,
                                   options=["--check-arithmetic", 5, "--save-every-steps", 2, "--keep-checkpoints", 9])
        job.wait_for(lambda: job.restarts() == 1, 60, "the job is submitted again")
        text = job.text()
        check(f"rank 1 on {FAULTY} " in text and "held other weights than most ranks" in text and f"the next job leaves out {FAULTY}" in text,
              "the host is named")
        job.wait(100)
        hosts = job.hosts()
        check(FAULTY not in hosts and len(hosts) == 3, f"without that host: {hosts}")
        training.compare(reference, run, job, "after a flip in memory")
        training.nothing_left()


if __name__ == "__main__":
    main()
