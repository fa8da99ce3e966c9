# SPDX-License-Identifier: Apache-2.0
"""--wire 2bit, topk and powersgd: the same bits on any number of ranks and after a stop, the bytes that ranks send against the formula,
that the network learns, what is refused, and that it goes with other options. Usage: compression_test.py ranks|resume|bytes|choices|together"""
import glob
import json
import math
import os
import sys

import h5py

from runner import check, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 192, "--model", "resnet8", "--batch-size", 4, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--shuffle", "global", "--skip-eval", "--lr-schedule", "constant",
       "--replicas", 4, "--sync", "gradients"]
KINDS = {
    "2bit": ["--wire", "2bit", "--wire-threshold", 0.1],
    "topk": ["--wire", "topk", "--wire-fraction", 0.02],
    "powersgd": ["--wire", "powersgd", "--wire-rank", 2],
}


def all_state(folder):
    """With what each replica has not sent."""
    state = everything(last(folder))
    shards = sorted(glob.glob(os.path.join(folder, "checkpoints", "last.shard-*")))
    check(len(shards) == 4, "a shard of each replica")
    for replica, path in enumerate(shards):
        state.update({f"residual/{replica}/{name}": value for name, value in tensors(path, "residual").items()})
    return state


def ranks(work):
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible", "--max-steps", 8]
        for count in (1, 2, 3, 4):
            train(count, f"{work}/{name}-{count}", *job, "--check-weights", 3, *(["--check-arithmetic", 4] if count > 1 else []))
            check(same_bits(all_state(f"{work}/{name}-{count}"), all_state(f"{work}/{name}-1")), f"{name}: 4 replicas on {count} ranks, the same bits")
    # Ranks without a replica, and replicas that can't be dealt evenly.
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible", "--max-steps", 4, "--replicas", 3]
        for count in (1, 2, 4):
            train(count, f"{work}/{name}-three-{count}", *job)
            check(same_bits(everything(last(f"{work}/{name}-three-{count}")), everything(last(f"{work}/{name}-three-1"))),
                  f"{name}: 3 replicas on {count} ranks, the same bits")


def resume(work):
    """Stopped and resumed on other numbers of ranks; died in the middle of a step."""
    for name, words in KINDS.items():
        job = [*JOB, *words, "--reproducible"]
        straight = f"{work}/{name}"
        train(2, straight, *job, "--max-steps", 9)
        for stop, count in ((4, 1), (5, 3)):
            folder = f"{work}/{name}-{stop}-{count}"
            train(2, folder, *job, "--max-steps", stop)
            said, _ = train(count, folder, *job, "--resume", "auto", "--max-steps", 9 - stop)
            check("not bit for bit" not in said and same_bits(all_state(folder), all_state(straight)),
                  f"{name}: stopped after step {stop}, resumed on {count} ranks, the same bits")
        # Whichever of its checkpoints is whole when it dies.
        job = [*job, "--epochs", 1]
        train(2, f"{work}/{name}-whole", *job)
        folder = f"{work}/{name}-died"
        train(2, folder, *job, "--save-every-steps", 4, "--inject-fault", "throw@1@9", expect=1)
        said, _ = train(3, folder, *job, "--resume", "auto", "--take-over", "--wait-for-other", 0)
        check("resumed from" in said and same_bits(all_state(folder), all_state(f"{work}/{name}-whole")), f"{name}: died, resumed on 3 ranks, the same bits")


def padded(count):
    return (count + 15) // 16 * 16


def bytes_of_step(name, count, path, replicas=4):
    """Sums: 2 (R - 1) times 4 bytes a float. Messages: R - 1 times those of all replicas."""
    shapes = {key: value.shape for key, value in tensors(path).items()}
    is_matrix = {key: len(shape) > 1 for key, shape in shapes.items()}
    if name == "powersgd":
        for key, shape in shapes.items():
            if is_matrix[key]:
                columns = math.prod(shape[1:])
                is_matrix[key] = 2 * (shape[0] + columns) < shape[0] * columns
    plain = sum(padded(math.prod(shape)) for key, shape in shapes.items() if not is_matrix[key])
    tail = sum(padded(value.size) for value in tensors(path, "statistics").values()) + replicas
    sums, message = padded(plain + tail), 0
    for key, shape in shapes.items():
        rows, values = shape[0], math.prod(shape)
        if not is_matrix[key]:
            continue
        if name == "2bit":
            message += (math.ceil(values / 4) + 3) // 4 * 4
        elif name == "topk":
            message += 8 * math.ceil(0.02 * values)
        else:
            sums += padded(2 * rows) + padded(2 * values // rows)
    return (count - 1) * (2 * 4 * sums + replicas * message)


def bytes_sent(work):
    whole = None
    for count in (2, 4):
        for name, words in KINDS.items():
            folder = f"{work}/{name}-{count}"
            _, err = train(count, folder, *JOB, *words, "--epochs", 2)
            check("sends more than fp32" not in err, f"{name} on {count} ranks: no warning")
            wanted = 12 * bytes_of_step(name, count, last(folder))
            found = [record["sent_bytes"] for record in records(folder, "epoch")]
            check(found == [wanted, wanted], f"{name} on {count} ranks: {found} = 2 x {wanted} bytes")
            if whole is None:
                train(2, f"{work}/whole", *JOB, "--epochs", 1)
                whole = records(f"{work}/whole", "epoch")[0]["sent_bytes"]
            if count == 2:
                check(wanted < whole / 4, f"{name}: {whole / wanted:.1f} times fewer than fp32")
    _, err = train(2, f"{work}/dear", *JOB, "--wire", "topk", "--wire-fraction", 0.9, "--epochs", 1)
    found = records(f"{work}/dear", "epoch")[0]["sent_bytes"]
    text = f"--wire topk sends more than fp32 would: {found / 12e6:.3g} MB per step instead of {whole / 12e6:.3g}: each of 4 replicas"
    check(found > whole and text in err and "a lower --wire-fraction" in err, f"warned with the bytes that were sent: {text}")


def losses(folder):
    """Means over the steps of each epoch."""
    return [record["loss"] for record in records(folder, "epoch")]


def residuals(state):
    return {name: value for name, value in state.items() if name.startswith("residual/")}


def together(work):
    """With what else changes a step."""
    # A spike: the replicas go back to what they had not sent then.
    job = [*JOB, *KINDS["topk"], "--reproducible", "--model", "lenet", "--synthetic-samples", 2400, "--epochs", 1, "--lr", 0.02, "--momentum", 0,
           "--save-every-steps", 6, "--keep-checkpoints", 99, "--print-freq", 3, "--on-spike", "rollback", "--inject-fault", "spike@0@31"]
    train(2, f"{work}/spike", *job, "--max-steps", 57)
    spikes = [record for record in records(f"{work}/spike", "run") if record.get("event") == "spike"]
    check(len(spikes) >= 1 and spikes[0]["action"] == "rollback", f"a spike is seen: {spikes}")
    seen, back = int(spikes[0]["step"]), int(spikes[0]["checkpoint_step"])
    train(2, f"{work}/back", *job, "--max-steps", seen)
    saved = glob.glob(f"{work}/back/checkpoints/step-{back:08d}.shard-*")
    check(len(saved) == 4, f"a shard of each replica at step {back}")
    then = {f"residual/{replica}/{name}": value for replica, path in enumerate(sorted(saved)) for name, value in tensors(path, "residual").items()}
    check(same_bits(residuals(all_state(f"{work}/back")), then) and any(value.any() for value in then.values()),
          f"back at step {back}: what the replicas have not sent is that of the checkpoint")

    # One replica a rank, as --sync-bn wants it.
    for name, words in KINDS.items():
        job = [*JOB, *words, "--replicas", 2, "--max-steps", 6, "--sync-bn", "--ema-decay", 0.9]
        train(2, f"{work}/{name}-both", *job, "--check-weights", 1)
        train(2, f"{work}/{name}-stopped", *job, "--max-steps", 4)
        train(2, f"{work}/{name}-stopped", *job, "--max-steps", 2, "--resume", "auto")
        state = everything(last(f"{work}/{name}-both"))
        check(same_bits(state, everything(last(f"{work}/{name}-stopped"))), f"{name} with --sync-bn and --ema-decay: stopped and resumed, the same bits")
        plain = everything(last(f"{work}/{name}-both"))
        check(all(math.isfinite(float(abs(value).max())) for value in plain.values()), f"{name}: all values are finite")

    # Phases of other batches: a replica sends +-t over the images of the step, so the largest gradient is a whole number of these.
    config = f"{work}/phases.cfg"
    with open(config, "w", encoding="utf-8") as file:
        file.write("epochs = 2\nbatch-size = 4\n[phase.1]\nepochs = 0:1\n[phase.2]\nepochs = 1:2\nbatch-size = 12\n")
    job = JOB[: JOB.index("--batch-size")] + JOB[JOB.index("--lr") : JOB.index("--epochs")] + JOB[JOB.index("--save-every") :]
    train(2, f"{work}/phases", "--config", config, *job, "--wire", "2bit", "--wire-threshold", 0.1, "--monitor", 1)
    names = [key for key, value in tensors(last(f"{work}/phases")).items() if value.ndim > 1]
    with open(f"{work}/phases/monitor.jsonl", encoding="utf-8") as file:
        shown = [record for record in map(json.loads, file) if record["group"] == "gradients"]
    check([record["step"] for record in shown] == list(range(1, 12 + 4 + 1)), "12 steps of 16 images, then 4 of 48")
    for images, steps in ((16, shown[:12]), (48, shown[12:])):
        counts = [record["tensors"][name]["max"] * images / 0.1 for record in steps for name in names]
        check(all(abs(count - round(count)) < 1e-4 and round(count) <= 4 for count in counts) and any(round(count) % 3 != 0 for count in counts),
              f"{images} images a step: t is the threshold over these")




def choices(work):
    # It learns: what is held back comes later.
    long = [*JOB, "--epochs", 8, "--lr", 0.1]
    train(2, f"{work}/whole", *long)
    begin, end = losses(f"{work}/whole")[0], losses(f"{work}/whole")[-1]
    check(end < begin, "the network learns without compression")
    for name, words in KINDS.items():
        said, _ = train(2, f"{work}/{name}", *long, *words)
        now = losses(f"{work}/{name}")[-1]
        check(now < begin - 0.25 * (begin - end), f"{name}: the loss falls from {begin:.3f} to {now:.3f}, with fp32 to {end:.3f}")
        text = {"2bit": "gradients in 2 bits", "topk": "gradients, the largest 2 % of each tensor", "powersgd": "gradients of rank 2 (PowerSGD)"}
        check(text[name] in said, f"the log says {text[name]}")

    low = f"{work}/powersgd"
    with h5py.File(last(low), "r") as file:
        check(file.attrs["version"] == 5 and "basis" in file, "older programs refuse its checkpoint")
    text, _ = run(1, "inspect", "checkpoint", last(low))
    check("powersgd: the shards hold what each replica has not sent" in text, "inspect checkpoint says it")
    text, _ = run(1, "inspect", "checkpoint", glob.glob(os.path.join(low, "checkpoints", "last.shard-0001*"))[0])
    check("powersgd: holds what this replica has not sent" in text, "of a shard, too")
    run(1, "evaluate", "--checkpoint", last(low), "--threads", 1, "--output-dir", f"{work}/evaluated")
    run(1, "average", last(low), last(f"{work}/whole"), "--output", f"{work}/mean.h5")
    with h5py.File(f"{work}/mean.h5", "r") as file:
        check("basis" not in file and file.attrs["version"] == 1, "a mean of models has no bases")

    short = [*JOB, "--epochs", 9, "--max-steps", 1]
    for words, sentence in (
        (["--wire", "fp32"], "this job has a different --wire"),
        (KINDS["topk"], "this job has a different --wire"),
        (["--wire", "powersgd", "--wire-rank", 1], "this job has a different --wire-rank"),
        ([*KINDS["powersgd"], "--replicas", 2], "this job has a different number of replicas"),
    ):
        said, _ = train(2, f"{work}/changed", *short, *words, "--resume", last(low))
        dropped = f"'{last(low)}': the residuals of --wire powersgd are not used: {sentence}"
        check(dropped in said.replace("\n", " "), f"{' '.join(map(str, words))}: {sentence}")
    said, _ = train(1, f"{work}/alone", *short, *KINDS["powersgd"], "--replicas", 1, "--resume", last(low))
    check("this job has a different number of replicas" in said, "one replica is another number")
    # best.h5 has no shards.
    val = [word for word in short if word != "--skip-eval"]
    train(2, f"{work}/judged", *val, *KINDS["topk"], "--max-steps", 48)
    best = os.path.join(f"{work}/judged", "checkpoints", "best.h5")
    said, _ = train(2, f"{work}/from-best", *short, *KINDS["topk"], "--resume", best)
    check(f"'{best}': the residuals of --wire topk are not used: the checkpoint has no residuals (no shards)" in said.replace("\n", " "),
          "residuals are not dropped in silence")
    text, _ = run(1, "inspect", "checkpoint", best)
    check("topk: no residuals in this file" in text, "inspect checkpoint says that best.h5 has none")
    _, warned = train(2, f"{work}/begun", *short, *KINDS["2bit"], "--resume", last(f"{work}/whole"))
    check("wire fp32 then, 2bit now" in warned.replace("\n", " "), "a checkpoint without residuals goes on, and it warns")

    text, _ = run(1, "diff", f"{work}/topk", f"{work}/topk")
    check("have the same bits" in text, "a run is as itself")
    train(2, f"{work}/other", *long, *KINDS["topk"], "--wire-fraction", 0.03)
    text, _ = run(1, "diff", f"{work}/topk", f"{work}/other")
    shown = json.loads(run(1, "diff", "--json", f"{work}/topk", f"{work}/other")[0])
    check(all(f"/residual/conv1.weight of replica {replica}" in json.dumps(shown) for replica in range(4)), "diff compares what each replica has not sent")

    many = [*JOB, "--synthetic-samples", 8192, "--batch-size", 1, "--replicas", 8192, "--wire", "topk", "--wire-fraction", 1]
    _, err = run(2, "train", *many, "--dry-run", "--dry-run-seconds", 0, expect=2)
    check(err.count("every rank would hold more than 2 GB") == 1, "messages that are too large are refused once, before a run")

    said, _ = run(2, "train", *JOB, "--gc-type", "none", "--dry-run", "--dry-run-seconds", 0)
    check("sync gradients;" in said and "  residuals " not in said, "MXNet's none is fp32")
    said, _ = run(2, "train", *JOB, "--gc-type", "2bit", "--gc-threshold", 0.25, "--dry-run", "--dry-run-seconds", 0)
    check("gradients in 2 bits" in said and "  residuals " in said, "MXNet's names are taken, and the memory is counted")
    for words, sentence in (
        (["--wire", "2bit"], "--wire 2bit needs --sync gradients"),
        (["--sync", "gradients", "--wire", "topk", "--device", "cuda"], "--wire topk is not possible on a GPU"),
        (["--sync", "gradients", "--replicas", 1, "--wire", "2bit", "--device", "cuda"], "--wire 2bit is not possible on a GPU"),
        (["--replicas", 1, "--wire", "powersgd"], "--wire powersgd needs --sync gradients"),
        (["--sync", "gradients", "--wire", "2bit", "--wire-rank", 3], "--wire-rank 3 has no effect: it needs --wire powersgd"),
        (["--sync", "weights", "--local-steps", 2, "--overlap-average", "--wire", "powersgd"], "--wire powersgd"),
    ):
        folder = f"{work}/refused"
        _, err = run(2, "train", "--synthetic", "--model", "resnet8", *words, "--output-dir", folder, expect=2)
        check(sentence in err and not os.path.exists(folder), f"{' '.join(map(str, words))}: {sentence}, before there is a run directory")


with work_folder() as scratch:
    {"ranks": ranks, "resume": resume, "bytes": bytes_sent, "choices": choices, "together": together}[sys.argv[1]](scratch)
