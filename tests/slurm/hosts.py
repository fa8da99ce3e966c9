# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine, for as long as a script runs: kernel namespaces joined by a bridge. Needs root."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import namespaces

SKIPPED = 77
LOGIN = "10.77.0.254"


def enter_or_skip(*programs):
    """Once at the start of a script. From here on it runs on the login host, and returns a folder that all hosts see. Where
    that can't be, or one of the programs is missing: 77, or 1 where it is demanded."""
    missing = [program for program in ("ip", "nsenter", *programs) if shutil.which(program) is None]
    if os.geteuid() != 0:
        reason = "hosts of one's own need root"
    elif missing:
        reason = f"no {', '.join(missing)} here: scripts/install-deps.sh installs them"
    else:
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


class Hosts:
    """A context manager. `folder`, from enter_or_skip(), is seen by all hosts; each runs `daemon` (`NAME` in it is the
    host's)."""

    def __init__(self, folder, count, daemon):
        self.folder, self._daemon = folder, [str(word) for word in daemon]
        self.addresses = {f"n{i}": f"10.77.0.{i + 1}" for i in range(count)}
        self.work = folder / "work"  # for what runs here
        self._first, self._keepers = {}, {}  # first process of each host as seen from here, and who waits for it
        for name in ("run", "log", "private", "work"):
            (folder / name).mkdir()

    def __enter__(self):
        namespaces.set_host_name("login")
        names = ["127.0.0.1 localhost", f"{LOGIN} login", *(f"{a} {n}" for n, a in self.addresses.items())]
        (self.folder / "hosts").write_text("\n".join(names) + "\n", encoding="utf-8")
        namespaces.mount(self.folder / "hosts", "/etc/hosts", flags=namespaces.BIND)
        # Open MPI names its files by host and process number, which are the same in every cluster.
        namespaces.mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")
        os.environ["OMPI_MCA_orte_tmpdir_base"] = str(self.folder / "run")
        for words in ("link set lo up", "link add switch type bridge", f"addr add {LOGIN}/24 dev switch", "link set switch up"):
            subprocess.run(["ip", *words.split()], check=True)
        # The hosts share the machine's cores and Open MPI can't see it: ranks that spin in a wait would starve the others,
        # and each host would bind its first rank to core 0.
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                          OMPI_MCA_hwloc_base_binding_policy="none")
        for name in self.addresses:
            self.start(name)
        return self

    def __exit__(self, kind, value, _):
        if kind is not None and not (kind is SystemExit and value.code == 0):
            self.print_logs()
        for name in list(self._first):
            self.crash(name)

    def print_logs(self):
        for log in sorted((self.folder / "log").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-8:]
            print(f"--- {log.name}", *lines, sep="\n", file=sys.stderr)

    def start(self, name):
        """Switches a host on, or starts its daemon again."""
        if name in self._first:
            (self.folder / f"run/start.{name}").touch()
            return
        words = [word.replace("NAME", name) for word in self._daemon]
        host = pathlib.Path(__file__).with_name("host.py")
        keeper = subprocess.Popen([sys.executable, host, name, self.addresses[name], self.folder, *words],
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
        # The kernel takes its network away some time later, and would leave no name for the next start.
        subprocess.run(["ip", "link", "delete", f"to-{name}"], stderr=subprocess.DEVNULL, check=False)

    def cut(self, name):
        """The network cable out: what runs there goes on."""
        subprocess.run(["ip", "link", "set", f"to-{name}", "down"], check=True)

    def heal(self, name):
        subprocess.run(["ip", "link", "set", f"to-{name}", "up"], check=True)

    def processes(self, *names):
        """(host, process number here, name) of the living processes with one of these names, on all hosts."""
        home = os.readlink("/proc/self/ns/pid")
        spaces = {os.readlink(f"/proc/{first}/ns/pid"): name for name, first in self._first.items()}
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text, space = (entry / "stat").read_text(), os.readlink(entry / "ns/pid")
            except OSError:  # it has just ended
                continue
            name, state = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2]
            if name in names and state not in "ZX":
                found.append(("login" if space == home else spaces.get(space, "?"), int(entry.name), name))
        return sorted(found)

    def remote_shell(self):
        """A command that takes a host and a command line, as ssh does, for programs that want one."""
        script = self.folder / "remote-shell"
        if not script.exists():
            script.write_text(f"#!/bin/sh\nfirst=$(cat {self.folder}/run/first.$1)\nshift\n"
                              'exec nsenter --target "$first" --all /bin/sh -c "cd $PWD; $*"\n', encoding="utf-8")
            script.chmod(0o755)
        return str(script)

    @staticmethod
    def until(condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {what}")
            time.sleep(0.05)
