# SPDX-License-Identifier: Apache-2.0
"""A PBS complex as a job sees it, on several hosts of this machine. No PBS server is packaged for Debian, and Slurm's front end
differs where it matters: here a job starts in the home folder with a login environment and a bare one on other hosts, its id is
like 0.pbs, mpirun sees one host, and nothing knows Slurm. What is imitated was seen on OpenPBS 23.06."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../slurm"))

import commands  # noqa: E402
import mom  # noqa: E402
from hosts import Hosts, enter_or_skip  # noqa: E402,F401

KILL_DELAY = 3  # seconds between SIGTERM and SIGKILL at the end of the wall time
LATE = 10  # OpenPBS looks at wall times now and then: a limit of 10 s was seen to end a job after 26 s


class Complex(Hosts):
    def __init__(self, folder, count):
        super().__init__(folder, count, [sys.executable, pathlib.Path(__file__).with_name("mom.py"), "NAME", folder])
        self.home = folder / "home"
        self._up = dict.fromkeys(self.addresses, True)

    def __enter__(self):
        for name in ("jobs", "bin", "home", "spool"):
            (self.folder / name).mkdir()
        for name in ("qsub", "qstat", "qdel", "pbs_tmrsh"):
            script = self.folder / "bin" / name
            script.write_text(commands.program(self.folder, name), encoding="utf-8")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
        # What a user's login shell sets, and root in a test needs.
        wanted = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_mpi_yield_when_idle")
        super().__enter__()
        (self.home / ".bash_profile").write_text(
            f"export PATH={self.folder}/bin:$PATH\n" + "".join(f"export {name}={os.environ[name]}\n" for name in wanted),
            encoding="utf-8")
        for name in self.addresses:
            self.until(lambda name=name: (self.folder / f"run/mom.{name}").exists(), 20, f"a mom on {name}")
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def crash(self, name):
        self._up[name] = False
        super().crash(name)

    # Jobs.

    def qsub(self, *words, cwd, **variables):
        """As in a user's shell on the login host; returns the id."""
        environment = dict(os.environ, **{name: str(value) for name, value in variables.items()})
        done = commands_output(self.folder, "qsub", words, cwd, environment)
        return done.strip()

    def job(self, identity):
        return json.loads(commands.path_of(self.folder, identity).read_text(encoding="utf-8"))

    def jobs(self):
        """All, in the order of their submission."""
        numbers = sorted(int(path.parent.name) for path in self.folder.glob("jobs/*/job.json"))
        return [self.job(str(number)) for number in numbers]

    def output(self, identity):
        job = self.job(identity)
        path = pathlib.Path(job["workdir"]) / f"{job['name']}.o{identity.partition('.')[0]}"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def wait_idle(self, seconds):
        """Until no job is queued or running."""
        self.until(lambda: all(job["state"] == "F" for job in self.jobs()), seconds, f"jobs {self.jobs()} ended")

    def _serve(self):
        busy = {}
        while True:
            for job in self.jobs():
                after = job["after"] and self.job(job["after"])["state"] != "F"
                if job["state"] != "Q" or after:
                    continue
                chunks = sum(number for number, _ in commands.chunks_of(job))
                free = [host for host, up in self._up.items() if up and not (host in busy and busy[host].is_alive())]
                if len(free) < chunks:
                    continue
                runner = threading.Thread(target=self._run, args=(job, free[:chunks]), daemon=True)
                busy.update(dict.fromkeys(free[:chunks], runner))
                runner.start()
            time.sleep(0.1)

    def _run(self, job, hosts):
        number = job["id"].partition(".")[0]
        nodefile, script = self.folder / f"spool/{job['id']}.nodes", self.folder / f"spool/{job['id']}.SC"
        nodefile.write_text("".join(f"{host}\n" for host in commands.node_lines(job, hosts)), encoding="utf-8")
        script.write_text(job["text"], encoding="utf-8")
        script.chmod(0o700)
        job.update(state="R", stime=time.time(), hosts=hosts)
        commands.write(self.folder, job)
        environment = commands.environment_of(job, nodefile, self.home)
        timer = threading.Timer(seconds_of(job["resources"]["walltime"]) + LATE, self._end, args=(hosts[0],))
        timer.daemon = True
        timer.start()
        # A login shell reads the script's name from its standard input.
        asked, tell = os.pipe()
        os.write(tell, f"{script}\n".encode())
        os.close(tell)
        output = os.open(pathlib.Path(job["workdir"]) / f"{job['name']}.o{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        answer = mom.ask(self.folder, hosts[0], {"run": ["/bin/bash", "-l"], "env": environment, "cwd": str(self.home)},
                         [asked, output, output])
        timer.cancel()
        job.update(state="F", exit=answer["exit"] if answer else -1)
        commands.write(self.folder, job)

    def _end(self, host):
        mom.ask(self.folder, host, {"signal": signal.SIGTERM})
        time.sleep(KILL_DELAY)
        mom.ask(self.folder, host, {"signal": signal.SIGKILL})


def seconds_of(text):
    seconds = 0
    for part in text.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds


def commands_output(folder, name, words, cwd, environment):
    done = subprocess.run([folder / "bin" / name, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True,
                          timeout=30, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{name} {words}: {done.stderr}")
    return done.stdout
