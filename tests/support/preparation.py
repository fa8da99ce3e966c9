# SPDX-License-Identifier: Apache-2.0
"""Runs convoy-preprocess as users do."""
import os
import subprocess
import sys

PROGRAM = os.environ["CONVOY_PREPROCESS"]


def command(words, ranks=0, program=None):
    """ranks = 0: without mpirun."""
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] if ranks else []
    return launcher + [program or PROGRAM] + [str(w) for w in words]


def run(*words, ranks=0, expect=0, env=None, program=None, timeout=60):
    """Output and errors of one run."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "127.0.0.1", **(env or {})}
    # What mpirun itself says when ranks end one after the other is now and then damaged.
    done = subprocess.run(command(words, ranks, program), capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                          env=settings)
    text = done.stdout + done.stderr
    if expect is not None and done.returncode != expect:
        sys.exit(f"{' '.join(command(words, ranks, program))}\nended with {done.returncode}, expected {expect}\n{text}")
    return text


def prepare(work, out, *words, **options):
    if "--threads" not in words:
        words += ("--threads", 1)
    return run(*words, "--out", f"{work}/{out}", **options)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok", what, flush=True)
