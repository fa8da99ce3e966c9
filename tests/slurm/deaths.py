# SPDX-License-Identifier: Apache-2.0
"""Ranks that freeze, hosts that crash, cables that are cut, in a job of four ranks on four hosts: who is missing is named in time,
nothing is left, and the job goes on where a host was lost."""
import json
import os
import re
import signal
import subprocess
import time

from training import CONVOY, TRAINING, check

WARN, ABORT, GRACE = 2, 5, 10  # seconds: the program's two deadlines, and what naming may take beyond the second
DEADLINES = ["--stall-warning-seconds", WARN, "--stall-abort-seconds", ABORT, "--watchdog-seconds", ABORT]


class Death:
    """One job and what happens to the rank of one of its hosts."""

    def __init__(self, training, name, launcher):
        self.cluster, self.training, self.launcher = training.cluster, training, launcher
        self.pace = training.pace(name, 6)
        self.run, self.job = training.submit(name, 4, launcher=launcher, options=DEADLINES, program=self.pace.program)
        self.job.wait_for(lambda: len(training.steps(self.run)) > 6, 60, "some steps")
        self.batch_host = self.job.hosts()[0]

    def happens(self, kind, host):
        self.kind, self.host, self.began, self.before = kind, host, time.monotonic(), len(self.job.text())
        if kind == "freeze":
            for where, process, _ in self.cluster.processes("convoy"):
                if where == host:
                    os.kill(process, signal.SIGSTOP)
        else:
            getattr(self.cluster, kind)(host)
        self.pace.hurry()

    def rank(self):
        return int(self.host.removeprefix("n"))

    def is_named(self):
        """That rank, or for a cut cable its host, by the job's own words since, or, where its first host is
        gone, by `convoy status` on the login host."""
        text, status = self.job.text()[self.before:], {"silent": "", "lost_hosts": ""}
        if self.kind != "freeze" and self.host == self.batch_host:
            said = subprocess.run([CONVOY, "status", "--json", self.run], capture_output=True, text=True, timeout=30, check=False)
            text, status = "", json.loads(said.stdout)
        if status["lost_hosts"] == self.host:  # the launcher went with its host, and has ended the ranks of all others
            return True
        if self.kind == "cut":
            return f"no answer from {self.host};" in text
        wanted, named = (str(self.rank()), self.host), lambda clause: set(re.findall(r"rank (\d+) on (\w+)", clause))
        if any(named(clause) == {wanted} for clause in re.findall(r"did not arrive: (.*)", text)):
            return True
        # mpirun ends the others when it has lost a host: what is found after the end may name one that was ended within the same second.
        most = 2 if self.kind == "crash" and self.launcher == "mpirun" else 1
        after = [*re.findall(r"died first, frozen or cut off: (.*)", text), status["silent"]]
        return any(wanted in named(clause) and len(named(clause)) <= most for clause in after)

    def wait_until_named(self):
        self.job.wait_for(self.is_named, ABORT + GRACE, f"word of rank {self.rank()} on {self.host}")
        return time.monotonic() - self.began

    def is_clean(self):
        return self.cluster.processes(*TRAINING) == []


def run_death(training, kind, host, launcher, reference):
    """Returns seconds until the dead rank was named."""
    cluster = training.cluster
    what = f"{kind} of {host}, {launcher.split()[0]}"
    death = Death(training, f"{kind}-{host}-{launcher.split()[0]}-{time.monotonic_ns()}", launcher)
    death.happens(kind, host)
    seconds = death.wait_until_named()
    print(f"     {what}: rank {death.rank()} on {host} is named after {seconds:.1f} s", flush=True)
    if kind == "freeze":
        death.job.wait(40, state="FAILED")
        check(death.job.facts()["ExitCode"] == "5:0", f"{what}: the job ends with 5 and is not submitted again")
        cluster.until(death.is_clean, 20, "no process left")
        return seconds
    cluster.until(lambda: death.job.restarts() == 1 or death.job.state() == "PENDING", 60, f"{what}: another start")
    if kind == "cut":
        cluster.until(lambda: [host_ for host_, _, name in cluster.processes(*TRAINING) if name == "convoy" and host_ == host] == [], 60,
                      "the ranks that were cut off ended by themselves")
        cluster.heal(host)
    else:
        cluster.start(host)
    training.compare(reference, death.run, death.job, what)
    cluster.until(death.is_clean, 20, "no process left")
    return seconds
