# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check.sh rehearsed on the CPU: its steps run, and its result says which did not."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(os.environ["CONVOY_SOURCE"], "scripts/gpu-check.sh")


def examine(folder, build, steps):
    """(exit code, steps by name, the table)"""
    out = pathlib.Path(folder, "out")
    words = [str(SCRIPT), "first", "--rehearse", "--only", steps, "--out", str(out), "--python", sys.executable]
    done = subprocess.run(words, env={**os.environ, "CONVOY_BUILD": str(build)}, capture_output=True, text=True, timeout=200)
    result = json.loads((out / "results.json").read_text())
    assert result["half"] == "first" and result["rehearsal"] and "convoy" in result["program"], result
    return done.returncode, {step["name"]: step for step in result["steps"]}, (out / "table.txt").read_text()


with tempfile.TemporaryDirectory() as folder:
    code, steps, table = examine(folder, os.environ["CONVOY_BUILD"], "golden,resume,nccl,launches")
    assert code == 0, (steps, table)
    assert {name: step["result"] for name, step in steps.items()} == {
        "golden": "ok", "resume": "ok", "nccl": "left out", "launches": "ok"}, steps
    assert steps["resume"]["values"] == {"steps": 12, "largest_difference": 0, "same_bits": 1}, steps
    assert "| resume | ok |" in table and "same_bits 1" in table, table

    # Runs that go on to a loss in other bits, or that lose theirs.
    other = pathlib.Path(folder, "other/src/cli")
    other.mkdir(parents=True)
    program = pathlib.Path(os.environ["CONVOY_BUILD"], "src/cli/convoy")
    for when, edit, values, note in (("*--resume*", r's/("loss":[0-9]+[.][0-9]+)/\11/', {"same_bits": 0}, "differ in their bits"),
                                     ("train*", r's/"loss":[^,}]+/"loss":null/', {"steps": 0}, "0 pairs in 12 lines")):
        (other / "convoy").write_text(f"""#!/bin/bash
'{program}' "$@" || exit
folder=$(sed -E 's/.*--output-dir ([^ ]*).*/\\1/' <<<"$*")
case "$*" in {when}) sed -i -E '{edit}' "$folder/metrics.jsonl" ;; esac
""")
        (other / "convoy").chmod(0o755)
        code, steps, table = examine(folder, pathlib.Path(folder, "other"), "resume")
        assert code == 1 and steps["resume"]["result"] == "failed" and note in steps["resume"]["note"], (steps, table)
        assert values.items() <= steps["resume"]["values"].items(), steps

    # A build without its tests.
    broken = pathlib.Path(folder, "build")
    (broken / "tests/parity").mkdir(parents=True)
    for part in ("src", "preprocess"):
        (broken / part).symlink_to(pathlib.Path(os.environ["CONVOY_BUILD"], part))
    code, steps, table = examine(folder, broken, "golden,launches")
    assert code == 1, (steps, table)
    assert steps["golden"]["result"] == "failed" and "No such file" in steps["golden"]["note"], steps
    assert steps["launches"]["result"] == "ok" and "| golden | failed: " in table, (steps, table)
