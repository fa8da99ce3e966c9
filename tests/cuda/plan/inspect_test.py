# SPDX-License-Identifier: Apache-2.0
"""`convoy inspect plan --card FILE` compiles for a described card, on a machine without GPU and driver."""
import os
import pathlib
import subprocess
import sys

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
