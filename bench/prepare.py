#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`convoy-preprocess folder` on one rank and on several, by turns; the ratio, and a line for results.md.

    bench/prepare.py ARCHIVE [--ranks 4] [--copies 8] [--rounds 3]

ARCHIVE: a tar file with class folders of JPEG files. COPIES archives with all of its images are made of it; each rank decodes with one
thread. Seconds are the wall's; the processors' seconds of all ranks together stand in brackets. What the machine can do at most is
measured too: as many separate programs at once, each of one rank with its share of the archives. They have as many threads as the
ranks, so other work on the machine takes the same share of its cores from both, whereas the one rank gets less of a busy machine than
the several do.
"""
import argparse
import datetime
import io
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compare_step import cpu_model  # noqa: E402  (the path is set above)


def make_archives(source, folder, copies):
    with tarfile.open(source) as tar:
        members = [(os.path.basename(m.name), tar.extractfile(m).read()) for m in tar if m.isfile()]
    for n in range(copies):
        with tarfile.open(f"{folder}/class{n:03}.tar", "w") as tar:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, fileobj=io.BytesIO(data))
    return copies * len(members)


def run(program, ranks, sources, out):
    """One program a source, all at once: seconds of the wall and of the processors."""
    shutil.rmtree(out, ignore_errors=True)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_mpi_yield_when_idle": "1"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    programs = [subprocess.Popen(["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), program, "folder", "--train",
                                  source, "--sizes", "256", "--partitions", "8", "--threads", "1", "--memory", "256", "--out",
                                  f"{out}/{i}"], env=environment, stdout=subprocess.DEVNULL) for i, source in enumerate(sources)]
    if any(p.wait() != 0 for p in programs):
        sys.exit("a preparation failed")
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=str(HERE.parent / "build/release"))
    args = parser.parse_args()
    program = f"{args.build}/preprocess/convoy-preprocess"
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as work:
        shares = [f"{work}/share{n}" for n in range(args.ranks)]
        for folder in (f"{work}/all", *shares):
            os.mkdir(folder)
        images = make_archives(args.archive, f"{work}/all", args.copies)
        for n in range(args.copies):
            os.link(f"{work}/all/class{n:03}.tar", f"{shares[n % args.ranks]}/class{n:03}.tar")
        runs = {"one": [], "several": [], "separate": []}
        for _ in range(args.rounds):
            runs["one"].append(run(program, 1, [f"{work}/all"], f"{work}/out"))
            runs["several"].append(run(program, args.ranks, [f"{work}/all"], f"{work}/out"))
            runs["separate"].append(run(program, 1, shares, f"{work}/out"))
        texts = [f"{statistics.median(s[0] for s in r):.2f} ({statistics.median(s[1] for s in r):.2f})" for r in runs.values()]
        ratios = [statistics.median(a[0] / b[0] for a, b in zip(runs["one"], runs[name])) for name in ("several", "separate")]
        print("| date | images | 1 rank, s | ranks | s | separate programs, s | ratio | of the programs | rounds | machine |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        print(f"| {datetime.date.today()} | {images} | {texts[0]} | {args.ranks} | {texts[1]} | {texts[2]} | {ratios[0]:.2f} | "
              f"{ratios[1]:.2f} | {args.rounds} | {cpu_model()} |")


if __name__ == "__main__":
    main()
