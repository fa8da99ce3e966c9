# SPDX-License-Identifier: Apache-2.0
"""Every qsub line of the documents, as it stands there, starts what it says under PBS with options that the program takes."""
import os
import shlex
import subprocess

from complex import Complex, enter_or_skip
from document_lines import finish, lines, make_tree, report


def main():
    failures = 0
    with Complex(enter_or_skip(), 4) as pbs:
        tree, stand_in, _ = make_tree(pbs.work, os.environ["CONVOY"], os.environ["CONVOY_PREPROCESS"])
        with open(pbs.home / ".bash_profile", "a", encoding="utf-8") as profile:  # nothing of this environment reaches a job
            profile.write(f"export CONVOY={stand_in} CONVOY_PREPROCESS={stand_in} CONVOY_SOURCE={os.environ['CONVOY_SOURCE']} CONVOY_DEVICE=cpu\n")
        found = lines("qsub")
        submitted = {line: subprocess.run([pbs.folder / "bin/qsub", *shlex.split(line)[1:]], cwd=tree, text=True, capture_output=True, timeout=30,
                                          check=False) for _, line in found}
        pbs.wait_idle(120)
        for where, line in found:
            done = submitted[line]
            text = done.stderr + (pbs.output(done.stdout.strip()) if done.returncode == 0 else "")
            good = done.returncode == 0 and pbs.job(done.stdout.strip())["exit"] == 0 and "accepted: " in text
            failures += report(where, line, good, text)
    finish(len(found), 5, failures)


if __name__ == "__main__":
    main()
