# SPDX-License-Identifier: Apache-2.0
"""--weights of files that other programs wrote: safetensors and PyTorch's, as evaluate, predict and train take them, on 1 and 3 ranks;
against the checkpoint that has the same values."""
import argparse
import collections
import datetime
import json
import math
import os
import pathlib
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
import numpy as np  # noqa: E402
from runner import PREPROCESS, check, difference, last, run, tensors, train, work_folder  # noqa: E402
from state_files import FLOAT16, Device, Negated, Size, write_pth, write_safetensors  # noqa: E402

CLASSES = 5
DATA = ("--synthetic", "--synthetic-samples", 200, "--synthetic-size", 16, "--rgb-mean", "110,120,130", "--rgb-std", "60,55,50")


def synthetic(classes=CLASSES):
    return (*DATA, "--synthetic-classes", classes)


def state_of(checkpoint):
    """As torchvision's state_dict() has it, with counters."""
    state = dict(tensors(checkpoint))
    for name, values in tensors(checkpoint, "statistics").items():
        state[name] = values
        state[name.rsplit(".", 1)[0] + ".num_batches_tracked"] = np.array(7)
    return state


def evaluated(ranks, path, *words, expect=0, classes=CLASSES):
    out, err = run(ranks, "evaluate", "--weights", path, *synthetic(classes), "--threads", 1, "--batch-size", 16, *words, expect=expect)
    if expect:
        return err
    result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    return {key: result[key] for key in ("images", "top1_count", "loss")}, out


def files_of(folder, state):
    """The same values in many files."""
    wrapped = {f"module.{name}": value for name, value in state.items()}
    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in state.items()}
    turned = {name: np.asfortranarray(value) for name, value in state.items()}
    write_safetensors(f"{folder}/plain.safetensors", state, {"format": "pt"})
    write_safetensors(f"{folder}/wrapped.safetensors", wrapped)
    write_pth(f"{folder}/plain.pth", state)
    write_pth(f"{folder}/wide.pth", wide)
    write_pth(f"{folder}/turned.pth", turned)
    write_pth(f"{folder}/nested.pth", {"epoch": 3, "state_dict": wrapped, "best": 71.5, "optimizer": {"lr": [0.1, None]}})
    ema = {"n_averaged": np.array(9), **wrapped}
    write_pth(f"{folder}/averaged.pth", {"model": {name: 0 * value for name, value in state.items()}, "model_ema": ema})
    # Lightning's checkpoints, and the keys and settings of common training scripts.
    lightning = {f"model._orig_mod.{name}": value for name, value in state.items()}
    write_pth(f"{folder}/lightning.ckpt", {"epoch": 1, "pytorch-lightning_version": "2.5.0", "state_dict": lightning, "hyper_parameters": {"lr": 0.1}, "loops": {}})
    write_pth(f"{folder}/net.pth", {"net": wrapped, "acc": 91.5, "args": argparse.Namespace(device=Device("cuda", 0), lr=0.1)})
    write_pth(f"{folder}/loop.pt", {"epoch": 7, "model_state_dict": {f"net.{name}": value for name, value in state.items()}, "device": Device("cpu")})
    write_pth(f"{folder}/state.pt", {"model_state": state})
    write_pth(f"{folder}/best.pth", {"epoch": 5, "best_acc1": np.array(76.5, np.float32), "state_dict": wrapped, "arch": "resnet8"})
    # What else training scripts save: nobody needs it, so nobody must know it.
    rest = {"args": argparse.Namespace(out=pathlib.PurePosixPath("/runs/a"), dtype=FLOAT16, device=Device("cuda:0")), "counts": collections.Counter("aab"),
            "history": collections.defaultdict(list, loss=[0.5]), "size": Size((1, 2)), "seen": {1, 2}, "classes": frozenset("ab"), "queue": collections.deque([1]),
            "saved": datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc), "took": datetime.timedelta(1), "rng": np.arange(5, dtype=np.uint8),
            "steps": np.arange(3, dtype=np.int32), "flags": np.array([True]), "half": np.ones(2, np.float16), "seed": 2**70, "huge": -2**2100,
            "bytes": b"abc", "buffer": bytearray(b"abc"), "complex": 1j, "best": [np.float64(76.5)], "curves": [np.arange(4.0)]}
    for protocol in (2, 5):
        write_pth(f"{folder}/script-{protocol}.pth", {**rest, "model": state, "last": rest["rng"]}, protocol)
    write_pth(f"{folder}/within.pth", {"model": {name: 0 * value for name, value in state.items()}, "model_ema": {"decay": 0.9, "module": wrapped}})
    write_pth(f"{folder}/other-key.pth", {"epoch": 1, "weights": {**state, "_extra_state": None}})
    write_safetensors(f"{folder}/small-counters.safetensors", {n: v.astype(np.int32) if n.endswith("tracked") else v for n, v in state.items()})
    os.rename(f"{folder}/wide.pth", f"{folder}/wide.anything")  # the content tells what it is
    return ["plain.safetensors", "wrapped.safetensors", "plain.pth", "wide.anything", "turned.pth", "nested.pth", "averaged.pth", "lightning.ckpt", "net.pth", "loop.pt", "state.pt", "best.pth",
            *(f"script-{protocol}.pth" for protocol in (2, 5)), "within.pth", "other-key.pth", "small-counters.safetensors"]


def evaluation(folder, state, checkpoint):
    names = files_of(folder, state)
    for ranks in (1, 3):
        expected, _ = evaluated(ranks, checkpoint)
        for name in names if ranks == 1 else names[:3]:
            found, _ = evaluated(ranks, f"{folder}/{name}", "--model", "resnet8")
            check(found == expected, f"{name} on {ranks} ranks: {found}, as the checkpoint")
    filled = len(tensors(checkpoint)) + len(tensors(checkpoint, "statistics"))
    said = evaluated(1, f"{folder}/averaged.pth", "--model", "resnet8")[1]
    counters = len(tensors(checkpoint, "statistics")) // 2
    check(f"(PyTorch, under 'model_ema'): {filled} tensors, {counters + 1} left out ({counters} of them counters" in said, "the log tells kind, place and numbers")
    said = evaluated(1, f"{folder}/within.pth", "--model", "resnet8")[1]
    check("(PyTorch, under 'model_ema.module')" in said and f"; not read: those under 'model' ('{folder}/within.pth:model' takes them)" in said, "and what else the file has")
    found, said = evaluated(3, f"{folder}/within.pth:model", "--model", "resnet8")
    check("under 'model')" in said and abs(found["loss"] - math.log(CLASSES)) < 1e-5, f"which FILE:KEY takes: weights of 0, a loss of {found['loss']}")
    digests = {evaluated(1, f"{folder}/{name}", "--model", "resnet8")[1].split("digest ")[1].split()[0] for name in ("plain.pth", "wrapped.safetensors")}
    check(len(digests) == 1, "one digest for the same values")
    half = {name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in state.items()}
    write_safetensors(f"{folder}/half.safetensors", half)
    found, _ = evaluated(1, f"{folder}/half.safetensors", "--model", "resnet8")
    check(0 < abs(found["loss"] - expected["loss"]) < 0.01, f"rounded to 16 bits: loss {found['loss']}, {expected['loss']}")
    sets.write_folder(sets.make_set(3, side=16), f"{folder}/pictures")
    words = ("--model", "resnet8", "--rgb-mean", "110,120,130", "--rgb-std", "60,55,50", "--image-size", 16, "--resize", 16)
    rows = []
    for path, more in ((checkpoint, words[2:]), (f"{folder}/plain.pth", words)):
        out, err = run(2, "predict", path, f"{folder}/pictures", "--threads", 1, "--format", "json", "--topk", CLASSES, *more)
        assumed = err.count("plain.pth' doesn't tell how images become its input; assumed: files, short side resized to 16, centre crop of 16x16; mean 110.00 120.00 130.00, deviation 60.00 55.00 50.00")
        check(assumed == (0 if path == checkpoint else 1), f"predict says once what it assumes of the input: {err}")
        rows.append([[(c["class"], c["probability"]) for c in json.loads(line)["classes"]] for line in out.splitlines()])
    check(len(rows[0]) == 12 and rows[0] == rows[1], "predict: the same classes and probabilities as the checkpoint's")


def training(folder, state, checkpoint):
    still = ("--model", "resnet8", "--batch-size", 8, "--max-steps", 1, "--lr", 1e-9, "--lr-schedule", "constant", "--weight-decay", 0)
    for ranks in (1, 3):
        out, err = train(ranks, f"{folder}/same-{ranks}", *synthetic(), "--weights", f"{folder}/plain.pth", *still)
        check(difference(tensors(last(f"{folder}/same-{ranks}")), tensors(checkpoint)) < 1e-6, f"{ranks} ranks begin with the file's weights")
        check("start anew" not in out, "and with its head")
        check((out + err).count("is kept: it has as many classes as this run (5), but the file does not name them") == 1, "which may be of other classes: said once")
        out, err = train(ranks, f"{folder}/new-{ranks}", *synthetic(), "--weights", f"{folder}/plain.pth", *still, "--new-head")
        moved = [n for n, v in tensors(last(f"{folder}/new-{ranks}")).items() if difference({n: v}, {n: tensors(checkpoint)[n]}) > 1e-6]
        check(sorted(moved)[-1] == "fc.weight" and all(n.startswith("fc.") for n in moved), f"--new-head: only the last layer starts anew: {moved}")
        check("parameters/fc.weight" in out and "is kept: it has" not in out + err, "and is said to")
        out, _ = train(ranks, f"{folder}/other-{ranks}", *synthetic(7), "--weights", f"{folder}/wrapped.safetensors", *still)
        found, before = tensors(last(f"{folder}/other-{ranks}")), tensors(checkpoint)
        check("a new head for the classes of this run: /parameters/fc.weight, /parameters/fc.bias start anew" in out, "7 classes: a new head, said")
        check(found["fc.weight"].shape[0] == 7, "of 7 classes")
        body = {name: value for name, value in found.items() if not name.startswith("fc.")}
        check(difference(body, {name: before[name] for name in body}) < 1e-6, f"on the file's body, {ranks} ranks")
    # Another program's file tells no mean and deviation: what the run takes, and what published weights learned with.
    usual = ("--rgb-mean", "123.675,116.28,103.53", "--rgb-std", "58.395,57.12,57.375")
    fact = f"'{folder}/plain.pth' does not say how its input was normalised: this run normalises with mean 110.00 120.00 130.00, deviation 60.00 55.00 50.00"
    advice = "learned with mean 123.67 116.28 103.53, deviation 58.40 57.12 57.38; --rgb-mean 123.675,116.28,103.53 --rgb-std 58.395,57.12,57.375 keeps that"
    out, err = train(3, f"{folder}/input", *synthetic(), "--weights", f"{folder}/plain.pth", *still)
    check((out + err).count(fact) == 1 and advice in out + err and f"warning: {fact}" not in out + err, "the input is told, once")
    out, err = train(1, f"{folder}/frozen", *synthetic(), "--weights", f"{folder}/plain.pth", *still, "--freeze", "backbone")
    check(f"{advice} (layers that --freeze keeps can't adapt to another input)" in out + err and f"warning: {fact}" in out + err, "and warned of where layers stay as they are")
    out, err = train(1, f"{folder}/usual", *DATA[:5], *usual, "--synthetic-classes", CLASSES, "--weights", f"{folder}/plain.pth", *still, "--freeze", "backbone")
    check("as torchvision's and timm's published weights learned with" in out + err and "can't adapt" not in out + err, "the published ones are told as such")
    # evaluate takes those of the published weights of the network that the file is of.
    small = ("--model", "googlenet", "--synthetic", "--synthetic-samples", 16, "--synthetic-size", 32, "--synthetic-classes", CLASSES, "--batch-size", 16)
    train(1, f"{folder}/centred", *small, "--max-steps", 1, "--skip-eval")
    write_pth(f"{folder}/centred.pth", state_of(last(f"{folder}/centred")))
    out, err = run(1, "evaluate", "--weights", f"{folder}/centred.pth", *small)
    check("mean 127.5,127.5,127.5 and deviation 127.5,127.5,127.5" in out + err, "googlenet's published weights learned with values from -1 to 1")
    # A body alone, and the head of a single class.
    before = tensors(checkpoint)
    write_pth(f"{folder}/body.pth", {name: value for name, value in state.items() if not name.startswith("fc.")})
    write_pth(f"{folder}/one.pth", {**state, "fc.weight": state["fc.weight"][:1], "fc.bias": state["fc.bias"][:1]})
    for name in ("body", "one"):
        out, _ = train(1, f"{folder}/{name}", *synthetic(), "--weights", f"{folder}/{name}.pth", *still)
        check("a new head for the classes of this run: /parameters/fc.weight, /parameters/fc.bias start anew" in out, f"{name}: a new head, said")
        found = tensors(last(f"{folder}/{name}"))
        check(found["fc.weight"].shape == before["fc.weight"].shape and difference(found, {**before, "fc.weight": found["fc.weight"], "fc.bias": found["fc.bias"]}) < 1e-6,
              f"{name}: on the file's body")
    out = run(1, "train", *synthetic(), "--weights", f"{folder}/plain.pth", *still, "--dry-run", "--dry-run-seconds", 0)[0]
    check("resnet8" in out, "a dry run looks at the file")


def refusals(folder, state, checkpoint):
    err = evaluated(1, f"{folder}/plain.pth", "--model", "resnet14", expect=3)
    check("doesn't fit resnet14" in err and "missing" in err and "and " in err, "another network: what is missing")
    write_pth(f"{folder}/short.pth", {**{n: v for n, v in state.items() if n != "bn1.weight"}, "bn1.gamma": state["bn1.weight"]})
    for ranks in (1, 3):
        err = evaluated(ranks, f"{folder}/short.pth", "--model", "resnet8", expect=3)
        check("1 tensor missing: 'bn1.weight' 16; 1 tensor unknown to the network: 'bn1.gamma' 16" in err and err.count("doesn't fit") == 1, f"a renamed tensor, {ranks} ranks")
    check("'fc.weight' is 5x64 in the file and 6x64 in the network" in evaluated(1, f"{folder}/plain.pth", "--model", "resnet8", expect=3, classes=6),
          "a set of other classes is refused by evaluate")
    err = evaluated(1, f"{folder}/body.pth", "--model", "resnet8", expect=3)
    check("holds resnet8 v1 without its last layer (2 tensors missing in the last layer: 'fc.weight' 10x64, 'fc.bias' 10); 'convoy train --weights' starts a new one" in err,
          "evaluate refuses a body alone")
    check("has a last layer of one value" in evaluated(1, f"{folder}/one.pth", "--model", "resnet8", expect=3), "and a head of one value")
    write_pth(f"{folder}/two.pth", {"student": state, "teacher": {"net": state}})
    check(f"it has 'student', 'teacher.net': choose one with '{folder}/two.pth:student'" in evaluated(1, f"{folder}/two.pth", "--model", "resnet8", expect=3), "unknown keys, with the choice")
    for path, said in (("within.pth:none", "no dict of tensors 'none'; it has 'model', 'model_ema.module'"), ("plain.safetensors:model", "has no dictionaries to choose from; leave ':model' out")):
        check(said in evaluated(1, f"{folder}/{path}", "--model", "resnet8", expect=3), f"refused: {said}")
    write_pth(f"{folder}/none.pth", {"epoch": 3})
    check("holds no tensors, neither at its top nor in a dict of it" in evaluated(1, f"{folder}/none.pth", "--model", "resnet8", expect=3), "a file without tensors")
    for name, value, said, change in (("int32", state["fc.weight"].astype(np.int32), "holds values of a torch.IntStorage, which are no weights", ".float()"),
                                      ("expanded", np.broadcast_to(state["fc.weight"][:1], (CLASSES, 64)), "is a view that repeats its values (expand)", ".contiguous()")):
        path = f"{folder}/{name}.pth"
        write_pth(path, {"model": {**state, "fc.weight": value}})
        err = evaluated(1, path, "--model", "resnet8", expect=3)
        line = f"torch.save({{k: v{change} for k, v in torch.load('{path}', weights_only=False)['model'].items()}}, 'new.pth')"
        check(f"tensor 'fc.weight' of '{path}' {said}; convert the file in Python: {line}" in err, f"a weight that is {name}: {err[-400:]}")
    write_safetensors(f"{folder}/int32.safetensors", {**state, "fc.weight": state["fc.weight"].astype(np.int32)})
    check("'fc.weight' of '" in (err := evaluated(1, f"{folder}/int32.safetensors", "--model", "resnet8", expect=3)) and "is of type I32" in err and "save_file(" in err, "of safetensors, too")
    with zipfile.ZipFile(f"{folder}/script.pt", "w") as archive:  # as torch.jit.save writes it: the code is compressed
        for name in ("data.pkl", "code/net.py", "constants.pkl"):
            archive.writestr(f"script/{name}", b"x" * 99, zipfile.ZIP_DEFLATED if name.startswith("code") else zipfile.ZIP_STORED)
    check("is a TorchScript program, not a state dict; save one: torch.save(torch.jit.load('" in evaluated(1, f"{folder}/script.pt", "--model", "resnet8", expect=3), "TorchScript")
    check("leave --model out" in evaluated(1, checkpoint, "--model", "resnet20", expect=2), "a checkpoint knows its network")
    check("leave the options of the network out" in evaluated(1, checkpoint, "--norm-epsilon", 0.001, expect=2), "and its batch norms")
    write_pth(f"{folder}/evil.pth", {"state_dict": state, "run": os.system})
    check("it names 'posix.system', which is none of a state dict's" in evaluated(1, f"{folder}/evil.pth", "--model", "resnet8", expect=3), "no code is run")
    write_pth(f"{folder}/negated.pth", {**state, "fc.bias": Negated(-state["fc.bias"])})
    check("'fc.bias' of '" in (err := evaluated(1, f"{folder}/negated.pth", "--model", "resnet8", expect=3)) and "resolve_neg()" in err, "a view with the negative bit")
    write_pth(f"{folder}/root.pth", {**state, "bn1.running_var": -1 - state["bn1.running_var"]})
    for ranks in (1, 3):
        err = evaluated(ranks, f"{folder}/root.pth", "--model", "resnet8", expect=1)
        check(err.count("gives values that are not finite for images of") == 1, f"a result that is not finite, {ranks} ranks")
    out = run(1, "predict", f"{folder}/root.pth", f"{folder}/pictures", "--model", "resnet8", "--resize", 16, "--image-size", 16, "--format", "json", expect=3)[0]
    check(all("not finite" in json.loads(line)["error"] for line in out.splitlines()) and out, "and images without a prediction")
    write_pth(f"{folder}/first.pth", {"epoch": 1}, protocol=1)
    check("it is older than protocol 2" in evaluated(1, f"{folder}/first.pth", "--model", "resnet8", expect=3), "another protocol")
    write_pth(f"{folder}/packed.pth", state, compression=zipfile.ZIP_DEFLATED)
    check("compressed or encrypted entry" in evaluated(1, f"{folder}/packed.pth", "--model", "resnet8", expect=3), "a compressed archive")
    with open(f"{folder}/old.pth", "wb") as file:
        file.write(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")
    check("before version 1.6" in evaluated(1, f"{folder}/old.pth", "--model", "resnet8", expect=3), "PyTorch's old format, with what to do")
    with open(f"{folder}/plain.pth", "rb") as file:
        whole = bytearray(file.read())
    whole[len(whole) // 2] ^= 4
    with open(f"{folder}/flipped.pth", "wb") as file:
        file.write(whole)
    check("checksum is wrong" in evaluated(3, f"{folder}/flipped.pth", "--model", "resnet8", expect=3), "a flipped bit")


def network(folder):
    """A file tells its network where only one fits."""
    train(1, f"{folder}/deep", *synthetic(), "--model", "resnet20", "--batch-size", 8, "--max-steps", 1)
    write_safetensors(f"{folder}/deep.safetensors", state_of(last(f"{folder}/deep")))
    expected, _ = evaluated(1, last(f"{folder}/deep"))
    found, said = evaluated(3, f"{folder}/deep.safetensors")
    check("has the tensors of resnet20 for 5 classes" in said and found["top1_count"] == expected["top1_count"], "resnet20 is recognised")
    coarse, _ = evaluated(1, f"{folder}/deep.safetensors", "--norm-epsilon", 0.5)
    check(coarse["loss"] != found["loss"], "and has the epsilon that was given")
    grey = ("--synthetic-channels", 1, "--rgb-mean", 110, "--rgb-std", 60)
    train(1, f"{folder}/grey", *synthetic(), *grey, "--model", "resnet20", "--batch-size", 8, "--max-steps", 1)
    write_safetensors(f"{folder}/grey.safetensors", state_of(last(f"{folder}/grey")))
    expected, _ = evaluated(1, last(f"{folder}/grey"), *grey)
    found, _ = evaluated(1, f"{folder}/grey.safetensors", *grey, "--model", "resnet20")
    check(found["top1_count"] == expected["top1_count"], "of grey images, too")
    # Files whose network takes colours, on a grey set, and the other way round.
    job = ("--model", "resnet20", "--batch-size", 8, "--max-steps", 1)
    for name, set_words, theirs, own in (("deep", grey, "3 channels", "1 channel"), ("grey", (), "1 channel", "3 channels")):
        path = f"{folder}/{name}.safetensors"
        _, err = train(3, f"{folder}/no", *synthetic(), *set_words, "--weights", path, *job, expect=3)
        check(f"'{path}' (safetensors) takes images of {theirs}, and this resnet20 v1 takes images of {own}; if a data set has the latter, prepare it again with --color" in err, f"train: a file of {theirs}")
        err = evaluated(3, path, *set_words, "--model", "resnet20", expect=3)
        check(f"'{path}' takes images of {theirs}, and " in err and f"holds images of {own}; prepare the set with --color" in err and "would be normalised" not in err, f"evaluate: a file of {theirs}")
    data = f"{folder}/grey-set"
    run(1, "synthetic", "--samples", 10, "--val-samples", 6, "--image-size", 16, "--classes", CLASSES, "--channels", 1, "--partitions", 1, "--out", data, program=PREPROCESS)
    err = run(1, "predict", f"{folder}/deep.safetensors", data, "--model", "resnet20", expect=3)[1]
    check("takes images of 3 channels, and " in err and "holds images of 1 channel" in err, "predict: a grey set")
    check("it fits --model resnet20" in evaluated(1, f"{folder}/deep.safetensors", "--model", "resnet32", expect=3), "and named where another is given")


with work_folder() as work:
    train(1, f"{work}/run", *synthetic(), "--model", "resnet8", "--batch-size", 20, "--epochs", 2, "--lr", 0.05, "--lr-schedule", "constant")
    model = last(f"{work}/run")
    values = state_of(model)
    evaluation(work, values, model)
    training(work, values, model)
    refusals(work, values, model)
    network(work)
