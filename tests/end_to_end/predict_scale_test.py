# SPDX-License-Identifier: Apache-2.0
"""bench comm and bench compute with --machine, and predict-scale: from a measured machine and from the committed example."""
import csv
import json
import os
import shutil
import stat
import subprocess

from runner import CONVOY, check, run, work_folder

SOURCE = os.environ["CONVOY_SOURCE"]
EXAMPLE = os.path.join(SOURCE, "configs", "machine_example.json")
JOB = ["--model", "resnet8", "--image-size", 16, "--batch-size", 8]


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measured(work):
    machine = f"{work}/machine.json"
    said, _ = run(2, "bench", "comm", "--machine", machine, "--machine-name", "here", "--steps", 2, "--warmup-steps", 1)
    check("inside a host" in said and "of the all-reduce is hidden" in said, "bench comm says what it has fitted")
    _, err = run(1, "predict-scale", "--machine", machine, *JOB, "--nodes", 1, expect=2)
    check("knows no step time of resnet8" in err and "bench compute --no-gradients" in err, "without a step's time: says how to measure it")
    for batch in (8, 16):
        run(2, "bench", "compute", "--no-gradients", "--machine", machine, *JOB[:4], "--batch-size", batch, "--steps", 2, "--warmup-steps", 1,
            "--threads", 1)
    # OMP_NUM_THREADS is 1 here: what the ranks compute with counts, not what the host has.
    run(2, "bench", "compute", "--no-gradients", "--machine", machine, *JOB, "--steps", 2, "--warmup-steps", 1)
    with open(machine, encoding="utf-8") as file:
        found = json.load(file)
    check(found["name"] == "here" and found["ranks_per_host"] == 2 and found["inside"]["measured"] and "between" not in found,
          "the description has the links inside the host, and none between hosts")
    check(found["inside"]["seconds_per_byte"] > 0 and 0 <= found["overlap"] <= 1, "a link takes time")
    check([(step["batch"], step["ranks_per_host"], step["threads"]) for step in found["steps"]] == [(16, 2, 1), (8, 2, 1)],
          "a step that is measured again replaces the older time")
    check(found["inside"]["transport"] == "mpi", "it says who all-reduced")
    conditions(work, machine, found["steps"])

    table = f"{work}/table.csv"
    said, _ = run(1, "predict-scale", "--machine", machine, *JOB, "--nodes", 1, "--csv", table)
    check("measured  inside a host" in said and "machine: here" in said, "the prediction says what is measured")
    first = rows_of(table)[0]
    step = next(step for step in found["steps"] if step["batch"] == 8)
    check(abs(float(first["compute_ms"]) - step["seconds"] * 1e3) < 1e-3, "its computation is the measured step")
    check(float(first["low_ms"]) <= float(first["step_ms"]) <= float(first["high_ms"]), "with a range around it")
    _, err = run(1, "predict-scale", "--machine", machine, *JOB, "--nodes", "1..8", expect=2)
    check("links between hosts" in err and "--nodes 1" in err, "several nodes need a link between them")


def policies(work):
    """A job's own policy is priced with all that it has, and refused where training refuses it."""
    job = ["predict-scale", "--machine", EXAMPLE, "--model", "resnet50", "--batch-size", 64, "--epochs", 1, "--nodes", "2,4", "--csv", f"{work}/policy.csv"]

    def own(*words):
        run(1, *job, *words)
        return rows_of(f"{work}/policy.csv")

    plain, often = own("--local-steps", 8), own()
    grouped = own("--local-steps", 8, "--node-steps", 2)
    late = own("--local-steps", 8, "--overlap-average")
    exposed = [float(rows[0]["exposed_ms"]) for rows in (plain, often, grouped, late)]
    check(exposed[3] < exposed[0] < exposed[2] < exposed[1], f"late < every 8 steps < with groups every 2 < every step: {exposed}")
    check(grouped[0]["policy"] == "weights every 8 steps, every 2 steps in groups of 4 replicas", "groups are those of a host")
    check(late[0]["policy"] == "weights every 8 steps, a period late", "and a late average is called late")
    # Plain policies stand beside it, none that training refuses.
    others = {row["policy"] for row in late} - {late[0]["policy"]}
    check("weights every 8 steps in bf16" in others and not any("late" in name for name in others), f"beside a late one: {sorted(others)}")
    # An epoch is 1281167 / 512 = 2503 steps on two nodes.
    start = own("--local-steps", 8, "--local-sgd-start", 1000)
    share = 1000 / 2503
    check(abs(float(start[0]["exposed_ms"]) - share * exposed[1] - (1 - share) * exposed[0]) < 2e-3, "steps before the start average every time")
    check(start[0]["policy"] == "weights every 8 steps, before step 1000 every step", "and the name says so")
    for words, text in (
        (["--local-steps", 7, "--node-steps", 2], "--node-steps 2 must be a part of --local-steps 7"),
        (["--local-steps", 8, "--overlap-average", "--outer-optimizer", "nesterov"], "--overlap-average is not possible with --outer-optimizer"),
        (["--sync", "gradients", "--local-steps", 64], "--local-steps 64 needs --sync weights"),
        (["--local-steps", 8, "--overlap-average", "--wire", "bf16"], "--overlap-average is not possible with --wire"),
        (["--local-steps", 8, "--ema-decay", 0.9, "--ema-steps", 12], "is no multiple of --local-steps 8"),
        (["--local-steps", 8, "--node-steps", 2, "--node-replicas", 16], "can't be dealt to groups of 16 (--node-replicas); choose a divisor (on 2 nodes of 4 ranks)"),
        (["--local-steps", 8, "--node-steps", 2, "--node-replicas", 1], None),
    ):
        if text is None:
            check(float(own(*words)[0]["exposed_ms"]) == exposed[0], "a group of one replica sends nothing")
            continue
        _, err = run(1, *job, *words, expect=2)
        check(text in err, text)


def conditions(work, machine, plain):
    """Steps under other conditions stand beside the plain ones, and each job gets its own."""
    for words in (["--threads", 2], ["--threads", 1, "--recompute", "all"]):
        _, err = run(1, "predict-scale", "--machine", machine, *JOB, *words, "--nodes", 1, expect=2)
        given = " ".join(str(word) for word in words)
        check(f"with {given}; add one by" in err and f"bench compute --no-gradients --machine FILE {given}'" in err, f"{given}: not known yet, says how to add it")
        run(2, "bench", "compute", "--no-gradients", "--machine", machine, *JOB, *words, "--steps", 2, "--warmup-steps", 1)
    with open(machine, encoding="utf-8") as file:
        text = file.read()
    steps = json.loads(text)["steps"]
    check(steps[:2] == plain and [(step["threads"], step["recompute"]) for step in steps] == [(1, "off"), (1, "off"), (2, "off"), (1, "all")],
          "they replace no plain step")
    changed = json.loads(text)
    for number, step in enumerate(changed["steps"]):
        step["seconds"] = number + 1  # 1: batch 16; 2, 3, 4: batch 8
    changed["cores_per_host"] = 4  # threads of two ranks that share two cores take longer
    with open(f"{work}/changed.json", "w", encoding="utf-8") as file:
        json.dump(changed, file)
    for words, seconds in ((["--threads", 1], 2), (["--threads", 2], 3), ([], 3), (["--threads", 1, "--recompute", "all"], 4)):
        run(1, "predict-scale", "--machine", f"{work}/changed.json", *JOB, *words, "--nodes", 1, "--csv", f"{work}/changed.csv")
        check(float(rows_of(f"{work}/changed.csv")[0]["compute_ms"]) == seconds * 1e3, f"{words or 'as many threads as cores'}: the step of its own")


def example(work):
    table, plot = f"{work}/table.csv", f"{work}/plot.html"
    said, _ = run(1, "predict-scale", "--config", os.path.join(SOURCE, "configs/imagenet_resnet50.cfg"), "--machine", EXAMPLE, "--nodes", "1..512",
                  "--csv", table, "--plot", plot)
    check("an example, invented" in said, "the committed machine says that it is invented")
    check("weak scaling, by policy" in said and "strong scaling, by policy" in said and "cheapest on" in said, "fastest and cheapest by policy")
    rows = rows_of(table)
    policies = {row["policy"] for row in rows}
    check({"gradients", "gradients in bf16", "weights every step", "weights every 16 steps", "weights every 16 steps in bf16"} <= policies,
          f"every policy: {sorted(policies)}")
    by = {(row["policy"], row["scaling"], int(row["nodes"])): row for row in rows}
    check([int(row["nodes"]) for row in rows if row["policy"] == "gradients" and row["scaling"] == "weak"] == [2**i for i in range(10)],
          "1 to 512 nodes")
    steps = [float(by["gradients", "weak", 2**i]["step_ms"]) for i in range(10)]
    check(steps == sorted(steps), "with the same batch on each rank a step never gets shorter")
    for nodes in (2, 512):
        often, seldom = (float(by[policy, "weak", nodes]["exposed_ms"]) for policy in ("weights every step", "weights every 16 steps"))
        check(abs(often / seldom - 16) < 0.01, "averages every 16 steps cost a sixteenth")
    with open(plot, encoding="utf-8") as file:
        page = file.read()
    check(page.count("<svg") == 6 and ">nodes<" in page and ">256<" in page, "six charts over nodes")
    longer = f"{work}/longer.csv"
    run(1, "predict-scale", "--config", os.path.join(SOURCE, "configs/imagenet_resnet50.cfg"), "--machine", EXAMPLE, "--nodes", "1,8",
        "--sync", "weights", "--local-steps", 64, "--ranks-per-node", 8, "--samples", 100000, "--csv", longer)
    check(rows_of(longer)[0]["policy"] == "weights every 64 steps" and rows_of(longer)[1]["ranks"] == "64", "options of train count")


def wrong_machines(work):
    """What a person mistypes in a description is refused, and not predicted from."""
    with open(EXAMPLE, encoding="utf-8") as file:
        example_text = file.read()
    for key, value, text in (
        ("seconds", 0, "a step takes time"),
        ("seconds_error", -0.5, "'seconds_error' is -0.5; it must be a part between 0 and 1"),
        ("seconds_per_byte", 25e9, "'seconds_per_byte' is 25000000000; it must be a number from 0 to 0.001 (it counts seconds per byte, which is 1 / bandwidth)"),
        ("cores_per_host", -4, "'cores_per_host' is -4; it must be a whole number from 0"),
        ("ranks_per_host", 2.5, "'ranks_per_host' is 2.5; it must be a whole number from 1"),
    ):
        machine = json.loads(example_text)
        holder = next(part for part in (machine, machine["between"], machine["steps"][0]) if key in part)
        holder[key] = value
        with open(f"{work}/wrong.json", "w", encoding="utf-8") as file:
            json.dump(machine, file)
        _, err = run(1, "predict-scale", "--machine", f"{work}/wrong.json", "--model", "resnet50", "--nodes", 1, expect=2)
        check("describes no machine" in err and text in err, f"{key}: {value} is refused")


def outputs(work):
    """A table or page replaces files only, and none that the command reads."""
    job = ["predict-scale", "--machine", f"{work}/m.json", "--config", f"{work}/c.cfg", "--nodes", "1..512"]
    shutil.copyfile(EXAMPLE, f"{work}/m.json")
    shutil.copyfile(os.path.join(SOURCE, "configs/imagenet_resnet50.cfg"), f"{work}/c.cfg")
    os.symlink(f"{work}/m.json", f"{work}/link.json")
    os.mkfifo(f"{work}/pipe")
    for words, text in (
        (["--csv", f"{work}/m.json"], "--csv would replace"),
        (["--csv", f"{work}/link.json"], "--csv would replace"),
        (["--plot", f"{work}/./c.cfg"], "--plot would replace"),
        (["--csv", f"{work}/same", "--plot", f"{work}/same"], "--plot would replace"),
        (["--plot", f"{work}/pipe"], "choose a file for --plot"),
        (["--csv", f"{work}/pipe"], "choose a file for --csv"),
    ):
        _, err = run(1, *job, *words, expect=2)
        check(text in err, f"{text}: {words[1]}")
    _, err = run(2, "bench", "compute", *JOB, "--no-gradients", "--machine", f"{work}/pipe", expect=2)
    check("choose a file for --machine" in err, "a pipe is no description")
    check(stat.S_ISFIFO(os.stat(f"{work}/pipe").st_mode) and os.path.islink(f"{work}/link.json") and not os.path.exists(f"{work}/same"),
          "pipe and link are as before")
    with open(f"{work}/m.json", "rb") as file, open(EXAMPLE, "rb") as example_file:
        check(file.read() == example_file.read(), "and so is the description")
    open(f"{work}/target.csv", "w", encoding="utf-8").close()
    os.symlink(f"{work}/target.csv", f"{work}/table-link")
    said, _ = run(1, *job, "--global-batch", 256, "--csv", f"{work}/table-link")
    check(os.path.islink(f"{work}/table-link") and len(rows_of(f"{work}/target.csv")) > 10, "a link stays one")
    check(said.count("it ends here: the 256 images of a batch can't be dealt to the 512 ranks of 128 nodes") == 1, "a strong table says why it ends")


def mistakes(work):
    for words, text in (
        ([], "no machine is given"),
        (["--machine", f"{work}/none.json"], "there is no file"),
        (["--machine", EXAMPLE, "--nodes", "8..1"], "ends before it begins"),
        (["--machine", EXAMPLE, "--model", "alexnet"], "knows no step time of alexnet"),
        (["--machine", EXAMPLE, "file.cfg"], "is not an option"),
        (["--machine", EXAMPLE, "--model", "resnet50", "--backend", "mpi"], "bench comm --backend mpi --machine FILE"),
        (["--machine", EXAMPLE, "--model", "resnet50", "--device", "cpu"], "--device cpu can't be predicted"),
        (["--machine", EXAMPLE, "--model", "resnet50", "--kernels", "no-winograd"], "with --kernels no-winograd; add one by"),
    ):
        _, err = run(1, "predict-scale", *words, expect=2)
        check(text in err, text)
    out, _ = run(1, "predict-scale", "--machine", EXAMPLE, "--model", "resnet50", "--check-weights", 100)
    check("assumed   the checks of --check-weights 100 take no time" in out, "checks are not counted, and that is said")
    for words, text in (
        (["io", "--synthetic", "--machine", f"{work}/m.json"], "--machine has no effect on 'bench io'"),
        (["comm", "--backend", "all", "--machine", f"{work}/m.json"], "--backend all with --machine"),
        (["compute", "--freeze", "backbone", "--machine", f"{work}/new.json"], "--freeze with --machine"),
        (["comm", "--megabytes", 1, "--machine", f"{work}/new.json"], "--megabytes 1 with --machine"),
        (["comm", "--machine", EXAMPLE, "--machine-name", "other"], "--machine-name says 'other'"),
        (["compute", *JOB, "--no-gradients", "--machine", EXAMPLE, "--machine-name", "other"], "--machine-name says 'other'"),
    ):
        _, err = run(1, "bench", *words, expect=2)
        check(text in err, text)
    _, err = run(2, "bench", "compute", *JOB, "--machine", f"{work}/new.json", expect=2)
    check("--no-gradients" in err, "a step with sums is no time of a step alone")
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
        return  # no right to give hosts other names
    for hosts in ("baa", "aab"):
        program = f"{work}/on-{hosts}"
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\nnames={hosts}\nexec unshare --uts bash -c 'hostname $1 && shift && exec \"$@\"' bash "
                       f"${{names:OMPI_COMM_WORLD_RANK:1}} '{CONVOY}' \"$@\"\n")
        os.chmod(program, 0o755)
        for words in (["comm"], ["compute", *JOB, "--no-gradients"]):
            _, err = run(3, "bench", *words, "--machine", f"{work}/new.json", program=program, expect=2)
            check("host b has 1 rank and host a has 2" in err and not os.path.exists(f"{work}/new.json"), f"{words[0]} on hosts {hosts}: refused")


with work_folder() as scratch:
    measured(scratch)
    example(scratch)
    policies(scratch)
    wrong_machines(scratch)
    outputs(scratch)
    mistakes(scratch)
