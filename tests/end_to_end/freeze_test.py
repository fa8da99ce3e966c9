# SPDX-License-Identifier: Apache-2.0
"""--freeze: what is frozen keeps its bits, on 1 and 3 ranks, with both ways of averaging, beside a moving average and an outer
optimiser; it has no optimiser state, no gradient memory and no backward pass; and a run that was stopped goes on to the same bits."""
import json
import re
import sys

from runner import check, everything, last, records, run, same_bits, tensors, train, work_folder

DATA = ("--synthetic", "--synthetic-samples", 90, "--synthetic-size", 16)
COMMON = (*DATA, "--synthetic-classes", 5, "--model", "resnet8", "--batch-size", 6, "--replicas", 3, "--lr", 0.05, "--lr-schedule", "constant")
FREEZE = "conv1,bn1,layer1,layer2.*.bn?"
MODES = {"gradients": ("--sync", "gradients"),
         "weights": ("--sync", "weights", "--local-steps", 2),
         "outer": ("--sync", "weights", "--local-steps", 2, "--outer-optimizer", "nesterov", "--local-momentum", "average"),
         "sixteen bits": ("--sync", "weights", "--local-steps", 2, "--wire", "bf16"),
         "gradients of sixteen bits": ("--sync", "gradients", "--wire", "fp16"),
         "average": ("--sync", "gradients", "--ema-decay", 0.9)}


def is_frozen(name):
    """Of a parameter or a statistic."""
    return name.startswith(("conv1.", "bn1.", "layer1.")) or bool(re.match(r"layer2\.\d\.bn\d\.", name))


def check_tensors(base, checkpoint, group, what):
    before, after = tensors(base, group.split("/")[-1]), tensors(checkpoint, group)
    check(before.keys() == after.keys(), f"{what}: the names of {group}")
    stay = {name for name in before if before[name].tobytes() == after[name].tobytes()}
    frozen = {name for name in before if is_frozen(name)}
    check(stay == frozen, f"{what}: {len(frozen)} of {len(before)} tensors of {group} stay, all others move {sorted(stay ^ frozen)}")


def training(work, base):
    for mode, words in MODES.items():
        reproduced, name = {}, mode.replace(" ", "-")
        for ranks in (1, 3):
            out = f"{work}/{name}-{ranks}"
            train(ranks, out, *COMMON, *words, "--reproducible", "--weights", base, "--freeze", FREEZE, "--epochs", 2)
            check_tensors(base, last(out), "parameters", f"{mode}, {ranks} ranks")
            check_tensors(base, last(out), "statistics", f"{mode}, {ranks} ranks")
            if mode == "average":
                check_tensors(base, last(out), "ema/parameters", f"{mode}, {ranks} ranks")
                check_tensors(base, last(out), "ema/statistics", f"{mode}, {ranks} ranks")
            reproduced[ranks] = everything(last(out))
            kept = [key for key in reproduced[ranks] if key.startswith(("optimiser/", "outer/")) and is_frozen(key.split("/", 2)[2])]
            check(not kept, f"{mode}, {ranks} ranks: no optimiser state of what is frozen {kept}")
        check(same_bits(reproduced[1], reproduced[3]), f"{mode}: 1 and 3 ranks, the same bits")
        stopped = f"{work}/{name}-stopped"
        train(3, stopped, *COMMON, *words, "--reproducible", "--weights", base, "--freeze", FREEZE, "--epochs", 2, "--max-steps", 3)
        train(1, stopped, "--resume", "auto", "--replicas", 3)
        check(same_bits(reproduced[1], everything(last(stopped))), f"{mode}: stopped after 3 steps and resumed, the same bits")
    found = records(f"{work}/gradients-1", "val")[-1]
    out, _ = run(3, "evaluate", last(f"{work}/gradients-1"), "--threads", 1)
    result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    check(result["top1_count"] == found["top1_count"] and abs(result["loss"] - found["loss"]) < 1e-5, "evaluate says what the validation did")


def head_alone(work, base):
    """Feature extraction: other classes, and only their layer trains."""
    before = tensors(base)
    for ranks in (1, 3):
        out = f"{work}/head-{ranks}"
        train(ranks, out, *DATA, "--synthetic-classes", 7, "--model", "resnet8", "--batch-size", 6, "--replicas", 3, "--epochs", 1, "--weights", base,
              "--freeze", "backbone")
        after = tensors(last(out))
        moved = sorted(name for name in after if before[name].tobytes() != after[name].tobytes())
        check(moved == ["fc.bias", "fc.weight"] and after["fc.weight"].shape[0] == 7, f"{ranks} ranks: only the new head learns: {moved}")
        with_slots = sorted(name for name in tensors(last(out), "optimiser"))
        check(all(name.endswith(("fc.bias", "fc.weight")) for name in with_slots) and with_slots, f"and only it has a momentum: {with_slots}")


def cost(work):
    sizes = {}
    for name, words in (("all", ()), ("backbone", ("--freeze", "backbone"))):
        # With 6 images the scratch memory of a kernel is as large as activations.
        out, _ = run(1, "train", *COMMON, "--batch-size", 24, *words, "--skip-eval", "--dry-run", "--dry-run-seconds", 0, "--output-dir", f"{work}/dry", "--threads", 1)
        sizes[name] = {part: float(re.search(rf"^# +{part} +([0-9.]+) MB", out, re.M)[1]) for part in ("optimiser", "gradients", "activations")}
        sizes[name]["training"] = float(re.search(r"^# training +([0-9.]+) GFLOP", out, re.M)[1])
        if words:
            check(" of them frozen" in out, "a dry run counts what is frozen")
        plan, _ = run(1, "inspect", "plan", "--model", "resnet8", "--batch-size", 6, "--device", "cpu", "--threads", 1, *words)
        backward = [line.split("|")[1].strip() for line in plan.splitlines() if re.match(r"stage +\d+ backward", line)]
        check(len(backward) >= 8 and "conv1" in backward if not words else backward == ["fc"], f"{name}: backward passes of {backward}")
    check(all(sizes["backbone"][part] <= sizes["all"][part] / 2 for part in sizes["all"]), f"memory and work fall: {sizes}")


def mistakes(work, base):
    for ranks in (1, 3):
        for words, text in ((("--freeze", "layer7"), "--freeze 'layer7' matches no parameter of resnet8"),
                            (("--freeze", "*"), "leaves nothing of resnet8")):
            _, err = run(ranks, "train", *COMMON, *words, "--output-dir", f"{work}/wrong", "--threads", 1, expect=2)
            check(text in err and err.count("error:") == 1, f"{ranks} ranks, {words}: said once")
        _, err = train(ranks, f"{work}/wrong-head", *DATA, "--synthetic-classes", 7, "--model", "resnet8", "--batch-size", 6, "--weights", base, "--freeze",
                       "fc", expect=2)
        check("'fc.weight' starts anew" in err, f"{ranks} ranks: a frozen new head is refused")
        _, err = train(ranks, f"{work}/gradients-1", "--resume", "auto", "--replicas", 3, "--freeze", "conv1", "--epochs", 3, expect=2)
        check(f"the run froze '{FREEZE}' and --freeze says 'conv1'" in err, f"{ranks} ranks: another --freeze is no resume")
    out, err = train(1, f"{work}/random", *COMMON, "--freeze", "conv1", "--max-steps", 1)
    check("keeps layers at their random first values" in out + err, "frozen random layers are warned of")
    counts = re.search(r"(\d+) parameters, of which (\d+) train", out + err)
    check(counts and int(counts[1]) - int(counts[2]) == 3 * 16 * 9, f"the start says how many parameters train: {counts}")


CASES = {"training": training, "head": head_alone, "cost": lambda work, base: cost(work), "mistakes": lambda work, base: (training_once(work, base), mistakes(work, base))}


def training_once(work, base):
    train(1, f"{work}/gradients-1", *COMMON, *MODES["gradients"], "--weights", base, "--freeze", FREEZE, "--epochs", 1)


with work_folder() as folder:
    train(1, f"{folder}/base", *COMMON, "--epochs", 2)
    for case in sys.argv[1:]:
        CASES[case](folder, last(f"{folder}/base"))
