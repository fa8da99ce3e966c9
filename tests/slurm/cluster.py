#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of several hosts on one machine, for as long as a script or a command runs. Needs root and Debian's packages.

    tests/slurm/cluster.py [--hosts N] [--pbs] COMMAND ...    runs a command, or bash, on the cluster's login host

Everything lives in namespaces of its own: several clusters stand side by side, and nothing is left when it ends."""
import argparse
import dataclasses
import os
import signal
import subprocess
import sys
import time

import configuration
import hosts

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "qsub")


@dataclasses.dataclass
class Spec:
    hosts: int = 4
    cpus: int = 2
    gpus: int = 4
    memory: int = 4000
    pbs: bool = False
    mpi: str = "pmix"  # of plain srun
    kill_wait: int = 3  # seconds from SIGTERM to SIGKILL
    requeue_delay: int = 5  # seconds that a requeued job waits, 5 at least
    down_after: int = 5  # seconds without an answer until a host is down


def enter_or_skip():
    return hosts.enter_or_skip(*PROGRAMS)


class Cluster(hosts.Hosts):
    """Hosts with a Slurm. `folder` is from enter_or_skip()."""

    def __init__(self, folder, **spec):
        self.spec = Spec(**spec)
        super().__init__(folder, self.spec.hosts, ["slurmd", "-D", "-N", "NAME", "-f", folder / "slurm.conf"])
        self._daemons = []

    def __enter__(self):
        configuration.write(self.folder, self.spec, self.addresses)
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        super().__enter__()
        key = self.folder / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(128))
        self._start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                    f"--pid-file={self.folder}/run/munged.pid", f"--seed-file={self.folder}/munge.seed", "--num-threads=2")
        self.began = time.monotonic()
        self._start("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self.wait_idle()
        return self

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()

    def _start(self, *command):
        with open(self.folder / f"log/{command[0]}.out", "wb") as log:
            self._daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True))

    def wait_idle(self, names=None, seconds=40):
        wanted = set(names or self.addresses)
        self.until(lambda: wanted <= set(self.ask("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()), seconds,
                   f"{sorted(wanted)} idle")

    @staticmethod
    def ask(*command):
        """Standard output of a command; empty where it fails."""
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()

    def kill_slurmd(self, name):
        """The daemon alone: jobs go on."""
        for host, process, _ in self.processes("slurmd"):
            if host == name:
                os.kill(process, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--pbs", action="store_true", help="a qsub too")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with Cluster(enter_or_skip(), hosts=options.hosts, pbs=options.pbs, cpus=64, memory=64000):  # what the scripts ask for
        sys.exit(subprocess.run(options.command or ["bash"], check=False).returncode)


if __name__ == "__main__":
    main()
