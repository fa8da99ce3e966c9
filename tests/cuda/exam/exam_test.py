# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-exam.sh rehearsed: all parts from a bundle, in a root folder that has a shell and the usual tools, with stand-ins
for the GPU's libraries, its tools and PyTorch. Their tables say what ran and what failed, peers that fail or never end fail
nothing, and whatever was printed before a kill is in the archive."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
from PIL import Image

SOURCE = pathlib.Path(os.environ["CONVOY_SOURCE"])
MODULE, DRIVER = map(pathlib.Path, sys.argv[1:])
INSIDE = ["bash", str(pathlib.Path(__file__).with_name("inside.sh"))]
EXAM = "/opt/convoy/scripts/gpu-exam.sh"
STAND_INS = {
    "bin/nvidia-smi": 'case "$*" in *memory.used*) echo 1000 ;; *) echo "Stand-in, 1.0, 2 MiB" ;; esac',
    "bin/compute-sanitizer": """while [ $# -gt 0 ]; do
  case $1 in --target-processes | --print-limit | --tool | --kernel-regex) shift 2 ;; *) break ;; esac
done
"$@"
echo "========= ERROR SUMMARY: 0 errors\"""",
    # One of the kernels' tests fails.
    "opt/convoy/tests/gpu.kernels": """echo "[       OK ] All/Flat.Adds/f32 (1 ms)"
echo "[  FAILED  ] All/Flat.Adds/f16 (1 ms)"
exit 1""",
    # PyTorch: eager answers, compiled fails for one network and never ends for another.
    "bin/python3": """case "$*" in
  *"import nvidia"*) ;;
  *"import torch"*) echo "1.0 stand-in" ;;
  *cifar10_torch*) echo '{"epoch": 1, "loss": 1.0, "top1": 94.5, "seconds": 2.25}'; echo '{"top1": 94.5, "seconds": 2.5}' ;;
  *resnet18*--compile) echo "RuntimeError: no compiler" >&2; exit 1 ;;
  *resnet20*--compile) sleep 100 ;;
  *) echo '{"images_per_second": 100.5, "loss": 1.0}' ;;
esac""",
}


def make_root(root):
    subprocess.run([*INSIDE, "make", root], check=True)
    (root / "opt").mkdir()
    (root / "out").mkdir()
    bundle = root / "opt/convoy"
    subprocess.run([SOURCE / "scripts/bundle.sh", "--build", os.environ["CONVOY_BUILD"], "--out", bundle, "--no-archive"], check=True)
    for library in MODULE.glob("*.so"):
        shutil.copy(library, bundle / "lib/convoy")
    shutil.copy(DRIVER / "libcuda.so.1", bundle / "lib")
    for name, text in STAND_INS.items():
        (root / name).write_text("#!/bin/sh\n" + text + "\n")
        (root / name).chmod(0o755)
    # As many images as two batches need.
    draws = np.random.RandomState(1)
    binary = root / "binary"
    binary.mkdir()
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        records = draws.randint(256, size=(4, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        records.tofile(binary / name)
    archive = [sys.executable, SOURCE / "bench/cifar10_archive.py"]
    subprocess.run([*archive, "pack", binary, root / "out/cifar10.tar.xz", "--quality", "95"], check=True)
    subprocess.run([*archive, "unpack", root / "out/cifar10.tar.xz", root / "again"], check=True)
    labels = [sorted(np.fromfile(folder / name, np.uint8).reshape(-1, 3073)[:, 0].tolist() for name in ("test_batch.bin",))
              for folder in (binary, root / "again")]
    assert [sorted(found[0]) for found in labels][0] == sorted(labels[1][0]), labels


def kept(root, part):
    """name: text of the archive"""
    with tarfile.open(root / f"out/exam-{part}.tar.gz") as archive:
        return {os.path.normpath(member.name): archive.extractfile(member).read().decode(errors="replace") for member in archive if member.isfile()}


def examine(root, part, *words, expect=0):
    command = [*INSIDE, "run", root, EXAM, part, "--rehearse", "--out", "/out", "--work", "/tmp/work", *words]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    print(f"{part} {' '.join(words)}: {time.monotonic() - begin:.1f} s", flush=True)
    files = kept(root, part)
    told = done.stdout + done.stderr + "".join(f"\n--- {name}\n{text[-2000:]}" for name, text in files.items() if name.endswith(".txt"))
    assert done.returncode == expect, told
    assert done.stderr == "", told
    assert files["printed.txt"] == done.stdout, told
    result = json.loads(files["results.json"])
    assert result["part"] == part and result["rehearsal"] and result["card"] == "Stand-in, 1.0, 2 MiB" and "convoy" in result["program"], result
    table = (root / f"out/exam-{part}.txt").read_text()
    assert table == files["table.txt"] and table in done.stdout, told
    steps = {step["name"]: step for step in result["steps"]}
    for name, step in steps.items():
        assert f"| {name} | {step['result']}" in table, told
    return steps, files, told


def results(steps):
    return {name: step["result"] for name, step in steps.items()}


def part_a(root):
    steps, files, told = examine(root, "A", expect=1)
    good = dict.fromkeys(("facts", "smoke", "parity", "fusion", "speed", "same_bits"), "ok")
    assert results(steps) == good | {"kernels": "failed", "kernels.again": "failed"}, told
    assert steps["kernels"]["failed"] == ["All/Flat.Adds/f16"] and steps["kernels"]["values"]["passed"] == 1, told
    assert steps["kernels"]["values"]["racecheck_errors"] == 0 and steps["kernels"]["values"]["program_errors"] == 0, told
    values = steps["smoke"]["values"]
    assert values["resnet50_fp16_finite_losses"] == values["resnet20_fp32_finite_losses"] == 3, told
    assert values["plan_resnet50_as_for_an_h100"] == 0 and values["plan_resnet50_for_an_h100"].startswith("54 52 32 15 32 32 15 161 "), told
    plan = values["plan_resnet20"].split()
    assert "forward [norm]" in files["plan.resnet50.txt"], told
    values = steps["parity"]["values"]
    assert values["fp16_passed"] > 5 and values["fp16_failed"] == values["fp16_processes_not_ok"] == 0 and values["golden_passed"] == 1, told
    values = steps["fusion"]["values"]
    assert values["gradients_that_differ"] > 10 and values["gradients_worst"] > values["statistics_worst"] > 0, told
    values = steps["speed"]["values"]
    assert values["resnet20_graph_launches"] == 1 and values["resnet20_allocations"] == 0 and values["resnet20_copy_gb_per_second"] > 0, told
    assert "data gradient" in files["profile.resnet20.txt"] and "roofline" in files["profile.resnet20.txt"] and "seconds" in files["profile.resnet20.csv"], told
    values = steps["same_bits"]["values"]
    assert values["resume_same_bits"] == values["ranks_same_bits"] == 1 and values["resume_steps"] == values["ranks_steps"] == 6, told
    assert "ranks" in files["same_bits.two.jsonl"], told
    # A committed plan that the card's equals.
    names = ("convolutions", "statistics", "prologues", "joins", "weight prologues", "data borders", "data joins", "graphs", "beside", "kernels", "MB an image")
    (root / "opt/convoy/tests/plan/h100.txt").write_text(
        "program: cifar10_resnet20 fp16 n128 train: " + " ".join(map(" ".join, zip(names, plan))) + " hidden 0.25\n")
    shutil.copy(root / "out/exam-A.txt", root / "out/A.txt")
    golden = root / "opt/convoy/tests/parity.golden"
    golden.write_text("""#!/bin/sh
echo "[ RUN      ] Golden.One"
echo "[  FAILED  ] Golden.One (7 ms)"
echo "[ RUN      ] Golden.Two"
echo "[       OK ] Golden.Two (7 ms)"
echo "[ RUN      ] Golden.Three"
kill -SEGV $$
""")
    steps, _, told = examine(root, "A", "--only", "smoke,parity", expect=1)
    assert results(steps) == {"smoke": "ok", "parity": "failed", "parity.again": "failed"}, told
    assert steps["parity"]["failed"] == ["Golden.One", "Golden.Three (never ended)"], told
    assert steps["parity"]["values"]["golden_passed"] == steps["parity"]["values"]["golden_processes_not_ok"] == 1, told
    golden.unlink()
    assert steps["smoke"]["values"]["plan_resnet20_as_for_an_h100"] == 1 and steps["smoke"]["values"]["plan_resnet18_as_for_an_h100"] == 0, told


def part_b(root):
    steps, files, told = examine(root, "B", "--again", "/out/A.txt", "--data", "/out/cifar10.tar.xz", expect=1)
    good = dict.fromkeys(("start", "memory", "tuning", "to_94", "curve", "nccl"), "ok")
    assert results(steps) == good | {"kernels": "failed", "kernels.again": "failed"}, told
    assert steps["start"]["values"].keys() == {"seconds_1", "seconds_2", "seconds_3"}, told
    assert steps["memory"]["values"]["resnet20_mb"] == 1000 and steps["tuning"]["values"]["resnet20_measured_to_rule"] > 0, told
    assert steps["tuning"]["values"]["resnet20_row_to_rule"] > 0 and steps["tuning"]["values"]["one_stream_same_bits"] == 1, told
    assert steps["tuning"]["values"]["resnet20_early_to_rule"] > 0 and steps["tuning"]["values"]["early_launch_same_bits"] == 1, told
    assert "top1" in steps["to_94"]["values"] and "top1_of_epoch_1" in steps["to_94"]["values"], told
    assert "fp32_steps" in steps["curve"]["values"], told
    assert steps["curve"]["values"]["fp32_steps"] == steps["curve"]["values"]["fp16_steps"] == 20, told
    assert steps["curve"]["values"]["muon_steps"] == 20 and steps["curve"]["values"]["muon_cuda_seconds_per_step"] > 0, told
    assert steps["nccl"]["values"] == {"plain_steps": 4, "tree_steps": 4, "same_bits_as_without": 1}, told
    assert '"split":"val"' in files["to_94.jsonl"], told


def part_c(root):
    steps, _, told = examine(root, "C", "--data", "/binary")
    assert set(results(steps).values()) == {"ok"} and len(steps) == 7, told
    assert steps["torch"]["values"]["version"] == "1.0 stand-in", told
    assert steps["eager"]["values"]["resnet20_eager"] == 100.5 and steps["eager"]["values"]["resnet20_ratio_to_eager"] > 0, told
    assert steps["compiled_50"]["values"]["resnet50_ratio_to_compiled"] > 0, told
    assert steps["compiled_18"]["values"]["resnet18_compiled"] == "none: RuntimeError: no compiler", told
    assert steps["compiled_20"]["values"]["resnet20_compiled"] == "none: more than 2 s", told
    for name in ("18", "20"):  # ours is measured all the same
        assert steps["compiled_" + name]["values"]["resnet" + name] > 0, told
    assert steps["torch_to_94"]["values"] == {"top1_of_epoch_1": 94.5, "seconds_of_epoch_1": 2.25, "seconds": 2.5, "top1": 94.5}, told


def killed(root, lines, pause):
    """The namespace's processes end at once when this many lines were read."""
    for old in (root / "out").glob("exam-A*"):
        old.unlink()
    command = [*INSIDE, "run", root, EXAM, "A", "--rehearse", "--out", "/out", "--only", "facts,smoke,fusion,same_bits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as exam:
        seen = [exam.stdout.readline() for _ in range(lines)]
        time.sleep(pause)
        exam.kill()
        seen += exam.stdout.readlines()
    files = kept(root, "A")
    assert files["printed.txt"].startswith("".join(seen)), (lines, pause, seen, files["printed.txt"])
    table = (root / "out/exam-A.txt").read_text()
    steps = {step["name"]: step for step in json.loads(files["results.json"])["steps"]}
    for line in seen[2:]:
        name, key = line.split()[2:4]
        if key in ("ok", "failed") and "after" in line:
            assert steps[name]["result"] == key and f"| {name} | {key}" in table, (line, steps, table)
        else:
            assert key in steps[name]["values"] and f"{key} " in table, (line, steps, table)


def ended(root):
    """A signal that it can answer, in the middle of a step that does not end by itself: it ends what it started, too."""
    (root / "bin/python3").write_text("#!/bin/sh\ncase $* in *torch*) echo >/out/started; sleep 100 ;; esac\n")
    command = [*INSIDE, "run", root, "bash", "-c", f"{EXAM} C --rehearse --out /out --only torch & "
               "until [ -e /out/started ]; do sleep 0.05; done; kill -TERM $!; wait $!; echo $?; ps -eo args | grep -c '[s]leep 100'"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-2:] == ["143", "0"], (done.stdout, done.stderr)
    step = json.loads(kept(root, "C")["results.json"])["steps"][0]
    assert (step["name"], step["result"], step["note"]) == ("torch", "failed", "the examination was ended by TERM"), step
    # A step that exceeds its limit: what is left of the part's time, but for two seconds.
    steps, _, told = examine(root, "C", "--only", "torch", "--seconds", "8", expect=1)
    assert steps["torch"]["note"].startswith("ended after its limit of ") and steps["torch.again"]["result"] == "left out", told


def limits():
    """A step may take two seconds to end after its limit."""
    for words in (["A"], ["B"], ["B", "--again", "facts,smoke,parity,fusion,speed,same_bits,kernels"],
                  ["B", "--again", "smoke,parity", "--only", "smoke,parity"], ["C"]):
        text = subprocess.run([SOURCE / "scripts/gpu-exam.sh", *words, "--list"], check=True, capture_output=True, text=True).stdout
        each = {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}
        chosen = [limit for name, limit in each.items() if "--only" not in words or name in words[-1].split(",")]
        assert len(each) >= 6 and sum(limit + 2 for limit in chosen if limit) <= 238, (words, text)
        assert all(limit >= 8 for limit in chosen) or ("--again" in words and each["smoke"] == 40), (words, text)


def main():
    limits()
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", *(() if os.getuid() == 0 else ("--map-root-user",)), "true"], check=False).returncode != 0:
        print("no namespaces here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        root.mkdir()
        make_root(root)
        part_a(root)
        part_b(root)
        part_c(root)
        draws = random.Random(16)
        for _ in range(3):
            killed(root, draws.randint(3, 24), draws.random() / 4)
        ended(root)


main()
