# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of several hosts on one machine, for as long as a script or a command runs. Needs root and Debian's packages.

    tests/slurm/cluster.py [--hosts N] [--pbs] COMMAND ...    runs a command, or bash, on the cluster's login host

Everything lives in namespaces of its own: several clusters stand side by side, and nothing is left when it ends."""
import argparse
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import configuration
import namespaces

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "ip", "qsub")
SKIPPED = 77


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
    login: str = "10.77.0.254"


def why_not():
    """What is missing for a cluster here; None: nothing."""
    if os.geteuid() != 0:
        return "a Slurm of one's own needs root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"no {', '.join(missing)} here: scripts/install-deps.sh installs them"
    return None


def enter_or_skip():
    """Once at the start of a script. From here on it runs on the login host, and returns the folder of its cluster. Where
    that can't be: 77, or 1 where Slurm is demanded."""
    reason = why_not()
    if reason is None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="convoy-cluster-"))
        try:
            namespaces.enter(clean=folder.rmdir)
            # Lives in this mount namespace only, and goes with it.
            namespaces.mount("tmpfs", folder, "tmpfs", data="mode=0755")
            return folder
        except OSError as error:
            folder.rmdir()
            reason = f"no namespaces: {error}"
    demanded = os.environ.get("CONVOY_REQUIRE_SLURM") == "1"
    print(f"{'FAIL' if demanded else 'skipped'}: {reason}")
    sys.exit(1 if demanded else SKIPPED)


class Cluster:
    """A context manager. `folder`, from enter_or_skip(), is seen by all hosts."""

    def __init__(self, folder, **spec):
        self.spec = Spec(**spec)
        self.hosts = {f"n{i}": f"10.77.0.{i + 1}" for i in range(self.spec.hosts)}
        self.folder = folder
        self._first = {}  # first process of each host
        self._daemons = []
        self._keepers = {}

    def __enter__(self):
        configuration.write(self.folder, self.spec, self.hosts)
        namespaces.set_host_name("login")
        names = ["127.0.0.1 localhost", f"{self.spec.login} login", *(f"{a} {n}" for n, a in self.hosts.items())]
        (self.folder / "hosts").write_text("\n".join(names) + "\n", encoding="utf-8")
        namespaces.mount(self.folder / "hosts", "/etc/hosts", flags=namespaces.BIND)
        for words in ("link set lo up", "link add switch type bridge", f"addr add {self.spec.login}/24 dev switch",
                      "link set switch up"):
            subprocess.run(["ip", *words.split()], check=True)
        self._use()
        key = self.folder / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(128))
        self._daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                     f"--pid-file={self.folder}/run/munged.pid", f"--seed-file={self.folder}/munge.seed", "--num-threads=2")
        self._daemon("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        for name in self.hosts:
            self.start(name)
        self.wait_idle()
        return self

    def __exit__(self, kind, *_):
        if kind is not None and kind is not SystemExit:
            self.print_logs()
        for name in list(self._first):
            self.crash(name)
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()

    def _use(self):
        """The environment in which jobs are submitted; sbatch hands it on."""
        os.environ.update(
            SLURM_CONF=str(self.folder / "slurm.conf"), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            # The hosts share the machine's cores and Open MPI can't see it: ranks that spin in a wait would starve the
            # others, and each host would bind its first rank to core 0.
            OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_hwloc_base_binding_policy="none")

    def _daemon(self, *command):
        with open(self.folder / f"log/{command[0]}.out", "wb") as log:
            self._daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True))

    def print_logs(self):
        for log in sorted((self.folder / "log").iterdir()):
            lines = log.read_text(errors="replace").splitlines()[-15:]
            print(f"--- {log.name}", *lines, sep="\n", file=sys.stderr)

    def wait_idle(self, hosts=None, seconds=40):
        wanted = set(hosts or self.hosts)
        self.until(lambda: wanted <= set(self.ask("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()), seconds,
                   f"{sorted(wanted)} idle")

    @staticmethod
    def until(condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {what}")
            time.sleep(0.05)

    @staticmethod
    def ask(*command):
        """Standard output of a command; empty where it fails."""
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()

    # Hosts.

    def start(self, name):
        """Switches a host on, or starts its slurmd again."""
        if name in self._first:
            (self.folder / f"run/start.{name}").touch()
            return
        keeper = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("host.py"), name, self.hosts[name], self.folder],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        first = int(keeper.stdout.readline())
        subprocess.run(["ip", "link", "add", f"to-{name}", "master", "switch", "type", "veth", "peer", "name", "eth0",
                        "netns", str(first)], check=True)
        subprocess.run(["ip", "link", "set", f"to-{name}", "up"], check=True)
        keeper.stdin.write("\n")
        keeper.stdin.flush()
        self._first[name], self._keepers[name] = first, keeper
        (self.folder / f"run/first.{name}").write_text(str(first), encoding="utf-8")

    def crash(self, name):
        """Power failure: every process on the host ends at once."""
        os.kill(self._first.pop(name), signal.SIGKILL)
        self._keepers.pop(name).wait()

    def cut(self, name):
        """The network cable out: what runs there goes on."""
        subprocess.run(["ip", "link", "set", f"to-{name}", "down"], check=True)

    def heal(self, name):
        subprocess.run(["ip", "link", "set", f"to-{name}", "up"], check=True)

    def processes(self, *names):
        """(host, process number here, name) of the living processes with one of these names, on all hosts."""
        home = os.readlink("/proc/self/ns/pid")
        space = {os.readlink(f"/proc/{first}/ns/pid"): name for name, first in self._first.items()}
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text, host = (entry / "stat").read_text(), os.readlink(entry / "ns/pid")
            except OSError:  # it has just ended
                continue
            name, state = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2]
            if name in names and state not in "ZX":
                found.append(("login" if host == home else space.get(host, "?"), int(entry.name), name))
        return sorted(found)

    def kill_slurmd(self, name):
        """The daemon alone: jobs go on."""
        for host, process, _ in self.processes("slurmd"):
            if host == name:
                os.kill(process, signal.SIGKILL)

    def remote_shell(self):
        """A command that takes a host and a command line, as ssh does, for programs that want one."""
        script = self.folder / "remote-shell"
        if not script.exists():
            script.write_text(f"#!/bin/sh\nfirst=$(cat {self.folder}/run/first.$1)\nshift\n"
                              'exec nsenter --target "$first" --all /bin/sh -c "cd $PWD; $*"\n', encoding="utf-8")
            script.chmod(0o755)
        return str(script)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--pbs", action="store_true", help="a qsub too")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with Cluster(enter_or_skip(), hosts=options.hosts, pbs=options.pbs):
        sys.exit(subprocess.run(options.command or ["bash"], check=False).returncode)


if __name__ == "__main__":
    main()
