#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image pipelines on one core by turns; medians, ratios within the rounds, and lines for results.md.

    bench/compare_images.py ARCHIVE [--python /path/to/python-with-torchvision] [--rounds 7]

ARCHIVE: a tar file of class folders with JPEG files. From files in memory: a whole decoding by libjpeg-turbo alone; random resized crops
of 224 as the loader makes them; the same with scaled decoding; centre crops; torchvision's way through Pillow. From prepared
partitions of 256 x 256 pixels, in the system's memory: samples read by pread alone; crops of 224 from samples whose CRC was checked.
Seconds are those that the core spent for the program.
"""
import argparse
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compare_step import cpu_model  # noqa: E402  (the path is set above)



class Server:
    """A program that runs one pass a line, on one core."""

    def __init__(self, *command):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([str(w) for w in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.name = self.line().removeprefix("ready").strip()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return line

    def rate(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        images, seconds, _ = self.line().split()
        return int(images) / float(seconds)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(passes, rounds):
    """passes: name -> (server, word). Rates of each by round, after a round that doesn't count."""
    rates = {name: [] for name in passes}
    for round_number in range(rounds + 1):
        for name, (server, word) in passes.items():
            rate = server.rate(word)
            if round_number > 0:
                rates[name].append(rate)
    return rates


def print_line(rates, ours, base, note):
    ratio = statistics.median(a / b for a, b in zip(rates[ours], rates[base]))
    both = " | ".join(f"{statistics.median(rates[n]):.0f} ({min(rates[n]):.0f} to {max(rates[n]):.0f})" for n in (ours, base))
    print(f"| {datetime.date.today()} | {ours} | {base}{note} | {both} | {ratio:.2f} | {len(rates[ours])} | one of {cpu_model()} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive")
    parser.add_argument("--python", help="interpreter with torchvision; without: no comparison with it")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--build", default=str(HERE.parent / "build/release"))
    args = parser.parse_args()
    print("| date | what | against | images/s | images/s of that | ratio | rounds | machine |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as work:
        with tarfile.open(args.archive) as tar:
            tar.extractall(f"{work}/files", filter="data")
        program = f"{args.build}/bench/image_speed"
        own, peer = Server(program, f"{work}/files"), None
        passes = {"whole decoding by libjpeg-turbo": (own, "full"), "random resized crop 224": (own, "crop"),
                  "random resized crop 224, scaled decoding": (own, "scaled"), "centre crop 224": (own, "centre")}
        if args.python:
            peer = Server(args.python, HERE / "peer/images_torchvision.py", f"{work}/files")
            passes["RandomResizedCrop(224)"] = (peer, "go")
        rates = compare(passes, args.rounds)
        for ours in list(passes)[1:4]:
            print_line(rates, ours, "whole decoding by libjpeg-turbo", "")
        if peer:
            for ours in list(passes)[1:3]:
                print_line(rates, ours, "RandomResizedCrop(224)", f" ({peer.name})")
            peer.close()
        own.close()
        train = f"{work}/files/train" if os.path.isdir(f"{work}/files/train") else f"{work}/files"
        subprocess.run([f"{args.build}/preprocess/convoy-preprocess", "folder", "--train", train, "--sizes", "256", "--resize",
                        "crop", "--partitions", "4", "--out", f"{work}/raw"], check=True, stdout=subprocess.DEVNULL)
        own = Server(program, f"{work}/raw")
        passes = {"pread alone": (own, "pread"), "crop 224 of 256, CRC checked": (own, "raw")}
        print_line(compare(passes, args.rounds * 5), "crop 224 of 256, CRC checked", "pread alone", "")
        own.close()


if __name__ == "__main__":
    main()
