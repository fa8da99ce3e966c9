# SPDX-License-Identifier: Apache-2.0
"""Runs the programs as users do, and reads what they leave behind. Used by the scripts of tests/."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import traceback

import h5py
import numpy as np

CONVOY = os.environ["CONVOY"]
PREPROCESS = os.environ["CONVOY_PREPROCESS"]
SOURCE = os.environ.get("CONVOY_SOURCE", "")


def mpirun(ranks):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]


def run(ranks, *words, program=None, expect=0, timeout=100, env=None):
    """Runs one of the programs on some ranks; checks the exit code; returns (stdout, stderr)."""
    command = mpirun(ranks) + [program or CONVOY] + [str(w) for w in words]
    settings = dict(os.environ, OMP_NUM_THREADS="1", **(env or {}))
    # What mpirun itself says when ranks end one after the other is now and then damaged.
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, env=settings, check=False)
    if expect is not None and done.returncode != expect:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def peak_of(call):
    """Largest resident size of the processes that a call starts, MB of 10^6 bytes, and what it returned, which JSON can hold. In a process of
    its own: the kernel keeps one maximum for all children."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = call()
            with os.fdopen(writer, "w", encoding="utf-8") as pipe:
                json.dump([resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6, result], pipe)
            os._exit(0)
        except BaseException:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the measured call failed")
    return json.loads(text)


def train(ranks, folder, *words, **kwargs):
    """One thread a rank: bits depend on the threads of a replica, not on the number of ranks."""
    return run(ranks, "train", "--output-dir", folder, "--threads", 1, "--no-tensorboard", *words, **kwargs)


def tensors(path, group="parameters"):
    with h5py.File(path, "r") as file:
        found = {}
        if group not in file:  # ema of a run without an average
            return found
        file[group].visititems(
            lambda name, item: found.__setitem__(name, item[()]) if isinstance(item, h5py.Dataset) else None
        )
        return found


def everything(path):
    """All tensors that decide how training goes on."""
    groups = ("parameters", "optimiser", "statistics", "ema", "outer", "basis")
    return {f"{g}/{n}": v for g in groups for n, v in tensors(path, g).items()}


def difference(a, b):
    assert a.keys() == b.keys(), sorted(a.keys() ^ b.keys())
    return max(float(np.max(np.abs(a[k].astype(np.float64) - b[k].astype(np.float64)))) for k in a)


def same_bits(a, b):
    assert a.keys() == b.keys(), sorted(a.keys() ^ b.keys())
    return all(a[k].tobytes() == b[k].tobytes() for k in a)


def records(folder, split):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return [r for r in map(json.loads, file) if r.get("split") == split]


def check(condition, text):
    print(("ok   " if condition else "FAIL ") + text, flush=True)
    if not condition:
        sys.exit(1)


def on_hosts_of_their_own(folder, program=None, hosts=None):
    """A program whose rank R believes to be on host nR, or n of `hosts`[R]; exits with 77 where names of hosts can't be had (no root)."""
    path = os.path.join(folder, "on-its-own-host")
    with open(path, "w", encoding="utf-8") as file:
        number = "$OMPI_COMM_WORLD_RANK" if hosts is None else f"$(set -- {' '.join(hosts)}; shift $OMPI_COMM_WORLD_RANK; echo $1)"
        file.write(f"#!/bin/sh\nname=n{number} exec unshare --uts sh -c 'hostname $name && exec \"$@\"' sh '{program or CONVOY}' \"$@\"\n")
    os.chmod(path, 0o755)
    if subprocess.run(["unshare", "--uts", "hostname", "n0"], capture_output=True, check=False).returncode != 0:
        print("no right to give hosts other names")
        sys.exit(77)
    return path


def work_folder():
    return tempfile.TemporaryDirectory(prefix="convoy-test-")


def last(folder):
    return os.path.join(folder, "checkpoints", "last.h5")
