# SPDX-License-Identifier: Apache-2.0
"""Preparations that are killed or stopped go on, and end in the bytes of one that wasn't. Arguments: how many kills."""
import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
import servers  # noqa: E402
from preparation import check, command, prepare, run  # noqa: E402


def start(words, ranks):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "127.0.0.1"}
    return subprocess.Popen(command(words, ranks), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def kill_ranks(process, out):
    """SIGKILL to every rank: they are the ones that name the output folder and are no launcher."""
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if out.encode() in words and b"convoy-preprocess" in words[0]:
            os.kill(int(os.path.basename(folder)), signal.SIGKILL)
    process.kill()
    process.communicate()


def whole_files(out, expected):
    """What lies under a final name is whole, at any moment."""
    for path, digest in sets.digest(out).items():
        if path.endswith(".h5"):
            assert expected[path] == digest, path


kills = int(sys.argv[1])
with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    files = sets.make_set(40, side=96)
    sets.write_folder(files, f"{work}/in")
    for name, data in sets.class_tars(files).items():
        sets.write(f"{work}/tars/{name}.tar", data)
    base = ("folder", "--train", f"{work}/tars", "--sizes", "224,64", "--partitions", 9, "--memory", 16, "--threads", 1)
    begin = time.monotonic()
    prepare(work, "whole", *base)
    seconds = time.monotonic() - begin
    expected = sets.digest(f"{work}/whole")

    rng, out, hits, rounds = random.Random(7), f"{work}/killed", 0, 0
    phases = {"reading": 0, "writing": 0}
    while hits < kills:
        rounds += 1
        assert rounds < 20 * kills, "the preparation is over before it can be killed"
        ranks = rng.choice((0, 1, 2, 3))
        process = start((*base, "--out", out), ranks)
        time.sleep(rng.uniform(0.02, 1.2 * seconds))
        if process.poll() is not None:
            text = process.communicate()[0]
            assert process.returncode == 0, text
            check(sets.digest(out) == expected, f"after {hits} kills: the same bytes")
            for path in glob.glob(f"{out}/**/*", recursive=True):
                if os.path.isfile(path):
                    os.remove(path)
            continue
        kill_ranks(process, out)
        hits += 1
        phases["writing" if glob.glob(f"{out}/*/*.h5*") else "reading"] += 1
        whole_files(out, expected)
    run(*base, "--out", out, ranks=2)
    check(sets.digest(out) == expected, f"{kills} kills in {rounds} runs ({phases}): the same bytes")
    check(not os.path.exists(f"{out}/unfinished"), "nothing is left behind")
    if len(sys.argv) > 2:
        sys.exit(0)

    # A stop on request, while a rank waits for a server that has fallen silent, keeps what was read.
    objects = {f"{name}.tar": sets.tar_of([(n, d) for n, (d, _) in files.items() if n.startswith(name)])
               for name in sets.CLASSES}
    silent = f"{sets.CLASSES[2]}.tar"
    for before, phase in ((0, "looking into it"), (1, "listing it"), (2, "reading it")):
        with servers.Faulty(objects, {silent: ["ok"] * before + ["stall:200000" if before != 1 else "stall:100"]}) as server:
            web = ("folder", "--train", f"{server.address}/{{{','.join(sets.CLASSES)}}}.tar", *base[3:])
            out = f"{work}/stopped{before}"
            process = start((*web, "--out", out), 2)
            while [r[:2] for r in server.requests].count(("GET", silent)) < before + 1 and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.5)
            process.send_signal(signal.SIGUSR1)
            text = process.communicate(timeout=30)[0]
            check(process.returncode == 75 and "stopped on request (SIGUSR1)" in text, f"SIGUSR1 while {phase} ends it with 75: {text[-300:]}")
            text = run(*web, "--out", out)
            check((before < 2 or "continuing: about" in text) and sets.digest(out) == expected, "it goes on")

    # Two at once: one is refused or finds all done, the other isn't disturbed.
    out = f"{work}/twice"
    with servers.Faulty(objects, {silent: ["ok", "ok", "stall:200000"]}) as server:
        web = ("folder", "--train", f"{server.address}/{{{','.join(sets.CLASSES)}}}.tar", *base[3:])
        first = start((*web, "--out", out), 2)
        while [r[:2] for r in server.requests].count(("GET", silent)) < 3 and first.poll() is None:
            time.sleep(0.01)
        text = run(*web, "--out", out, expect=2, ranks=2)
        check("another preparation is writing into" in text and text.count("error:") == 1, "a second one is refused")
        server.released.set()
        text = first.communicate(timeout=60)[0]
        check(first.returncode == 0 and sets.digest(out) == expected, "and the first goes on")

    # A damaged intermediate file is found, and what depends on it is read again.
    out = f"{work}/damaged"
    process = start((*base, "--out", f"{work}/again"), 0)
    while len(glob.glob(f"{work}/again/unfinished/*.run")) < 2 and process.poll() is None:
        time.sleep(0.002)
    kill_ranks(process, f"{work}/again")
    runs = sorted(glob.glob(f"{work}/again/unfinished/*.run"))
    check(len(runs) >= 2, f"{len(runs)} runs")
    with open(runs[0], "r+b") as file:
        file.seek(-20, os.SEEK_END)
        byte = file.read(1)
        file.seek(-20, os.SEEK_END)
        file.write(bytes([byte[0] ^ 4]))
    text = run(*base, "--out", f"{work}/again")
    check("is damaged" in text and sets.digest(f"{work}/again") == expected, "a damaged run is read again")
