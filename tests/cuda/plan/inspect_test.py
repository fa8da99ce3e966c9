# SPDX-License-Identifier: Apache-2.0
"""`convoy inspect plan --card FILE` compiles for a described card, on a machine without GPU and driver."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CONVOY = os.environ["CONVOY"]
CARDS = pathlib.Path(sys.argv[1])


def inspect(card, *options, expect=0):
    words = [CONVOY, "inspect", "plan", "--card", str(card), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == expect, (words, done)
    return done.stdout if expect == 0 else done.stderr


fused = inspect(CARDS / "h100.json", "--model", "resnet50", "--batch-size", "32", "--precision", "fp16")
assert "NVIDIA H100 80GB HBM3 sm_90, cuDNN" in fused
assert "54 convolutions: 52 with statistics, 32 with a norm in front, 15 with a join in front" in fused
assert "forward [join] +statistics" in fused and "MB moved per image" in fused
plain = inspect(CARDS / "a100.json", "--model", "resnet20", "--batch-size", "32", "--precision", "fp16", "--kernels", "no-fusion")
assert "22 convolutions: 0 with statistics" in plain and "[norm]" not in plain
assert "has no kernel option 'magic'" in inspect(CARDS / "a100.json", "--kernels", "magic", expect=2)
assert "cannot read the card's description" in inspect("/nowhere", expect=2)
assert "has no 'deviceName'" in inspect(pathlib.Path(__file__), expect=2)


def dry_run(card, batch, *options, expect=0):
    words = [CONVOY, "train", "--synthetic", "--synthetic-samples", "9000", "--model", "resnet8", "--dry-run", "--card", str(card), "--precision", "fp16", "--batch-size", str(batch), "--threads", "1", *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == expect, (words, done)
    return done.stdout if expect == 0 else done.stderr


# resnet8's 9 matrices, filled up to whole tiles of 64 x 64, are 64 x 64 (three), 64 x 192 (three), 64 x 320 (two) and 64 x 576: twice each,
# and twice 64 x 64 for each.
scratch = 4 * 64 * (2 * (3 * 64 + 3 * 192 + 2 * 320 + 576) + 2 * 9 * 64) / 1e6
plain, muon = (dry_run(CARDS / "h100.json", 64, "--optimizer", name) for name in ("adamw", "muon"))
found = float(re.search(r"  update +([\d.]+) MB to compute an update\n", muon).group(1))
assert abs(found - scratch) <= 0.06, (found, scratch)
taken = [float(re.search(r"largest batch +([\d.]+) of", out).group(1)) for out in (plain, muon)]
assert abs(taken[1] - taken[0] - scratch) <= 0.16, (taken, scratch)

# A card with a tenth of the memory: the batch that fits and the next one, by the same count.
with tempfile.TemporaryDirectory() as work:
    description = json.loads((CARDS / "h100.json").read_text())
    description["totalGlobalMem"] = 2 * 10**9
    small = pathlib.Path(work) / "small.json"
    small.write_text(json.dumps(description, separators=(",", ":")))
    figures = re.compile(r"largest batch +([\d.]+) of ([\d.]+) MB are taken \(the 2.0 GB of the card\): the largest batch that fits is (\d+)")
    largest = int(figures.search(dry_run(small, 64)).group(3))
    fits, over = (float(figures.search(dry_run(small, batch)).group(1)) for batch in (largest, largest + 1))
    assert 64 < largest and fits <= 2000 < over, (largest, fits, over)
    again = re.search(r"the largest batch that fits is (\d+) \(--batch-size\); with --recompute auto it is (\d+)\n", dry_run(small, 64))
    assert int(again.group(1)) == largest and int(again.group(2)) > 1.2 * largest, again.group(0)
    for words in (("--recompute", "all"), ("--recompute", "auto")):
        out = dry_run(small, int(again.group(2)), *words)
        taken, there, told = figures.search(out).groups()
        assert told == again.group(2) and float(taken) <= float(there), (words, out)
    del description["totalGlobalMem"]
    small.write_text(json.dumps(description))
    assert "has no 'totalGlobalMem'" in dry_run(small, 64, expect=2)
