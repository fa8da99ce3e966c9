# SPDX-License-Identifier: Apache-2.0
"""Jobs of a cluster, as their users handle them: submit, wait, read."""
import os
import pathlib
import re
import subprocess
import time

SOURCE = pathlib.Path(os.environ["CONVOY_SOURCE"])
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY"}


class Job:
    def __init__(self, number, log):
        self.number, self.log = number, pathlib.Path(log)

    def facts(self):
        """What `scontrol show job` says, as a dictionary."""
        text = subprocess.run(["scontrol", "-o", "show", "job", self.number], capture_output=True, text=True, timeout=30,
                              check=False).stdout
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def state(self):
        return self.facts().get("JobState", "")

    def restarts(self):
        return int(self.facts().get("Restarts", 0))

    def hosts(self):
        """Those it has, batch host first."""
        listed = self.facts().get("NodeList", "")
        return subprocess.run(["scontrol", "show", "hostnames", listed], capture_output=True, text=True, timeout=30,
                              check=False).stdout.split()

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def wait_for(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            state = self.state()
            if time.monotonic() > end or (state in ENDED and not condition()):
                raise AssertionError(f"job {self.number} ({state}): no {what} within {seconds} s; its log:\n{self.text()[-6000:]}")
            time.sleep(0.05)

    def wait(self, seconds=60, state="COMPLETED"):
        """Until it has ended for good, in that state."""
        end = time.monotonic() + seconds
        while self.state() not in ENDED:
            if time.monotonic() > end:
                raise AssertionError(f"job {self.number} did not end within {seconds} s; its log:\n{self.text()[-6000:]}")
            time.sleep(0.1)
        if self.state() != state:
            raise AssertionError(f"job {self.number}: {self.facts()}\nits log:\n{self.text()[-6000:]}")
        return self


def sbatch(log, *words, **variables):
    """From the root of the source tree, as the documents say. The hosts here have few cores."""
    done = subprocess.run(["sbatch", "--parsable", f"--output={log}", "--cpus-per-task=1", *map(str, words)], cwd=SOURCE, text=True,
                          capture_output=True, timeout=30, check=False, env=dict(os.environ, **{k: str(v) for k, v in variables.items()}))
    if done.returncode != 0:
        raise AssertionError(f"sbatch {' '.join(map(str, words))}: {done.stderr}")
    return Job(done.stdout.strip().split(";")[0], log)
