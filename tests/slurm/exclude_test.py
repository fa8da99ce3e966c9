# SPDX-License-Identifier: Apache-2.0
"""A host whose memory flips a bit: --check-arithmetic names it, the job submits itself again without it, and ends with the bits of an
undisturbed run. If Slurm refuses the list of such hosts, the job waits for its user."""
import pathlib
import subprocess

from cluster import Cluster, enter_or_skip
from training import CONVOY, Training, check

FAULTY, STEP = "n1", 9


def stays_held(cluster, training):
    """A name that Slurm doesn't know, in a file that somebody edited: the job must not start on the other hosts of the list."""
    run = pathlib.Path(training.folder) / "refused"
    run.mkdir()
    (run / "excluded-hosts").write_text("# n3 is repaired\r\n\r\nnowhere.cluster\t1\tx\r\nn0.cluster.local\n", encoding="utf-8")
    pace = training.pace("refused", 2)
    _, job = training.submit("refused", 2, program=pace.program)
    job.wait_for(lambda: training.steps(run), 60, "a step")
    check("this job runs on n0.cluster.local, excluded by" in job.text(), "the start on an excluded host is told")
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)
    pace.hurry()
    job.wait_for(lambda: "so this job stays held" in job.text(), 60, "word that Slurm refused the list")
    check("Slurm refused to exclude n0,nowhere (from " in job.text(), "names without domains, no comments")
    job.wait_for(lambda: job.state() == "PENDING", 20, "end of the first start")
    check(job.facts()["Priority"] == "0", f"the job is held: {job.facts()['Reason']}")
    (run / "excluded-hosts").write_text("n0\n", encoding="utf-8")
    subprocess.run(["scontrol", "update", f"JobId={job.number}", "ExcNodeList=n0"], check=True)
    subprocess.run(["scontrol", "release", job.number], check=True)
    job.wait(100)
    check("n0" not in job.hosts(), f"it goes on where its user wants: {job.hosts()}")


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
        check(job.facts()["ExcNodeList"] == FAULTY, "as Slurm's list says")
        training.compare(reference, run, job, "after a flip in memory")
        stays_held(cluster, training)
        training.nothing_left()


if __name__ == "__main__":
    main()
