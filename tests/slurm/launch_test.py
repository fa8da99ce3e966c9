# SPDX-License-Identifier: Apache-2.0
"""Every way to start ranks on several hosts gives one world of them. The hosts behave like hosts: they crash, lose their
cable, come back, and nothing of a job stays."""
import os
import subprocess
import sys

from cluster import Cluster, enter_or_skip

CONVOY = os.environ["CONVOY"]
BENCH = [CONVOY, "bench", "comm", "--steps", "1", "--megabytes", "0.1"]


def check(condition, text):
    print(("ok   " if condition else "FAIL ") + text, flush=True)
    if not condition:
        sys.exit(1)


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def launches(cluster):
    text = output("srun", "--mpi=pmix", "--nodes=2", "--ntasks-per-node=2", *BENCH)
    check(text.count("over 4 ranks") == 1, "srun --mpi=pmix: one world of 4 ranks on 2 hosts")
    text = output("salloc", "--quiet", "--nodes=2", "--ntasks-per-node=2", "mpirun", "--bind-to", "none", *BENCH)
    check(text.count("over 4 ranks") == 1, "mpirun in an allocation takes its 2 hosts by itself")
    hosts = cluster.folder / "hostfile"
    hosts.write_text("n0 slots=1\nn3 slots=2\n", encoding="utf-8")
    text = output("mpirun", "--mca", "plm_rsh_agent", cluster.remote_shell(), "--hostfile", hosts, "--bind-to", "none", *BENCH)
    check(text.count("over 3 ranks") == 1, "mpirun --hostfile: one world of 3 ranks on 2 hosts")
    text = output("mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", *BENCH)
    check(text.count("over 4 ranks") == 1, "mpirun -np 4 on the login host")


def hosts_behave(cluster):
    names = output("srun", "--nodes=4", "hostname").split()
    check(sorted(names) == ["n0", "n1", "n2", "n3"], "each host has its own name")
    # A job per host: a job on all of them would end everywhere as soon as srun missed one.
    jobs = [subprocess.Popen(["srun", "--nodelist", host, "sleep", "1000"], stderr=subprocess.DEVNULL) for host in sorted(names)]
    sleepers = lambda: [host for host, _, _ in cluster.processes("sleep")]
    cluster.until(lambda: sleepers() == ["n0", "n1", "n2", "n3"], 20, "a process on each host")
    cluster.crash("n1")
    check(sleepers() == ["n0", "n2", "n3"], "a crash ends what ran there and nothing else")
    for job in jobs:
        job.kill()


if __name__ == "__main__":
    with Cluster(enter_or_skip()) as one:
        launches(one)
        hosts_behave(one)
