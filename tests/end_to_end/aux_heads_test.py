# SPDX-License-Identifier: Apache-2.0
"""--aux-heads: what a run with auxiliary classifiers computes doesn't depend on ranks or on a stop, evaluation does without them, and
state dicts come and go with and without them."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from runner import check, difference, everything, last, run, same_bits, tensors, train, work_folder  # noqa: E402
from state_files import write_safetensors  # noqa: E402
from weight_files import read_safetensors  # noqa: E402

SET = ("--synthetic", "--synthetic-samples", 24, "--synthetic-size", 32, "--synthetic-classes", 5, "--rgb-mean", "110,120,130", "--rgb-std", "60,55,50")
COMMON = (*SET, "--model", "googlenet", "--lr", 0.01, "--lr-schedule", "constant", "--skip-eval")
HEADS = ("--aux-heads",)


def is_of_head(name):
    return name.startswith(("aux1.", "aux2."))


def ranks(folder):
    """Two replicas on one and on two ranks, at once and with a stop in between."""
    words = (*COMMON, *HEADS, "--sync", "gradients", "--replicas", 2, "--batch-size", 4, "--reproducible", "--epochs", 1)
    found = {}
    for count in (1, 2):
        train(count, f"{folder}/ranks-{count}", *words, "--save-every", 0)
        found[count] = everything(last(f"{folder}/ranks-{count}"))
    check(any("aux2.fc2.weight" in name for name in found[1]), "a checkpoint has the heads")
    check(same_bits(found[1], found[2]), "two replicas: the same bits on 1 and 2 ranks")
    train(2, f"{folder}/stopped", *words, "--max-steps", 1)
    train(2, f"{folder}/stopped", *words, "--resume", "auto")
    check(same_bits(found[1], everything(last(f"{folder}/stopped"))), "the same bits after a stop")


def evaluation(folder):
    """The same weights with and without heads, from a checkpoint and from what it is exported to."""
    train(1, f"{folder}/run", *COMMON, *HEADS, "--batch-size", 8, "--max-steps", 2)
    checkpoint = last(f"{folder}/run")
    run(1, "export", checkpoint, "--output", f"{folder}/heads.safetensors")
    state, _ = read_safetensors(f"{folder}/heads.safetensors")
    body = {name: value for name, value in state.items() if not is_of_head(name)}
    check(len(state) - len(body) == 2 * 10, "a state dict has the 10 entries of each head")
    write_safetensors(f"{folder}/body.safetensors", body)
    results = []
    for words in ((checkpoint,), (f"{folder}/body.safetensors", "--model", "googlenet"), (f"{folder}/heads.safetensors",)):
        out, _ = run(1, "evaluate", "--weights", *words, *SET, "--batch-size", 8, "--threads", 1)
        result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
        results.append((result["loss"], result["top1_count"]))
    check(len(set(results)) == 1, f"evaluation is that of the network without heads: {results}")
    run(1, "export", checkpoint, "--output", f"{folder}/run.onnx")
    with open(f"{folder}/run.onnx", "rb") as file:
        check(b"aux1" not in file.read(), "an ONNX graph has no heads")


def weights(folder):
    still = ("--batch-size", 8, "--max-steps", 1, "--lr", 1e-9, "--weight-decay", 0)
    train(1, f"{folder}/run", *COMMON, *HEADS, *still)
    before = tensors(last(f"{folder}/run"))
    state = {**before, **tensors(last(f"{folder}/run"), "statistics")}
    write_safetensors(f"{folder}/heads.safetensors", state)
    write_safetensors(f"{folder}/body.safetensors", {name: value for name, value in state.items() if not is_of_head(name)})

    def start(name, file, *words):
        out, err = train(1, f"{folder}/{name}", *COMMON, *still, "--seed", 7, "--weights", f"{folder}/{file}.safetensors", *words)
        return tensors(last(f"{folder}/{name}")), out + err

    found, said = start("all", "heads", *HEADS)
    check(difference(found, before) < 1e-6 and "start anew" not in said, "heads of a file are taken")
    found, said = start("new", "body", *HEADS)
    check("has no auxiliary classifiers, so they start anew" in said, "a file without heads, told")
    check(found["aux1.fc1.weight"].tobytes() != before["aux1.fc1.weight"].tobytes(), "its heads are new")
    check(difference({n: v for n, v in found.items() if not is_of_head(n)}, {n: v for n, v in before.items() if not is_of_head(n)}) < 1e-6, "its body is the file's")
    found, said = start("none", "heads")
    check("18 left out (18 of them counters and auxiliary classifiers)" in said and not any(map(is_of_head, found)), "a network without heads leaves those of a file out")
    found, said = start("classes", "heads", *HEADS, "--synthetic-classes", 7)
    new = ("fc", "aux1.fc2", "aux2.fc2")
    check(all(f"/parameters/{name}.weight" in said for name in new) and found["aux2.fc2.weight"].shape[0] == 7, "7 classes: three new last layers, said")
    check(difference({"w": found["aux1.fc1.weight"]}, {"w": before["aux1.fc1.weight"]}) < 1e-6, "and the rest of a head is the file's")
    for words, message in ((("--aux-weight", 0.5), "--aux-weight has no effect without --aux-heads"), (("--aux-heads", "--model", "resnet8"), "resnet8 has no auxiliary classifiers")):
        check(message in run(1, "train", *COMMON, *words, "--output-dir", f"{folder}/none", expect=2)[1], message)


if __name__ == "__main__":
    cases = {f.__name__: f for f in (ranks, evaluation, weights)}
    with work_folder() as work:
        for case in sys.argv[1:] or cases:
            cases[case](work)
