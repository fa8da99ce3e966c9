# SPDX-License-Identifier: Apache-2.0
"""convoy export and convoy average: what other programs read is what the checkpoint holds, and computes what predict says.
Usage: export_test.py CASE ..."""
import json
import os
import re
import struct
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from onnx_model import Model  # noqa: E402  (the path is set above)
from runner import CONVOY, PREPROCESS, check, last, run, tensors, train, work_folder  # noqa: E402
from state_files import write_onnx  # noqa: E402
from weight_files import read_pth, read_safetensors  # noqa: E402


def make_set(work, size, samples=40):
    """Folder, and images of the val split as n c h w."""
    folder = f"{work}/set-{size}-{samples}"
    if not os.path.exists(folder):
        run(1, "synthetic", "--samples", samples, "--val-samples", 6, "--image-size", size, "--classes", 5, "--partitions", 2, "--out", folder,
            program=PREPROCESS)
    images = []
    for name in sorted(os.listdir(folder)):
        if name.startswith("val-"):
            with h5py.File(f"{folder}/{name}") as file:
                images.append(file["images"][()].transpose(0, 3, 1, 2))
    return folder, np.concatenate(images)


def alone(*words, expect=0):
    """Without mpirun. What it says."""
    done = subprocess.run([CONVOY, *map(str, words)], capture_output=True, text=True, check=False)
    text = (done.stdout + done.stderr).strip()
    if done.returncode != expect:
        check(False, f"{words} ends with {done.returncode}, expected {expect}: {text}")
    return text


def export(work, run_folder, name, *words, expect=0):
    path = f"{work}/{name}"
    return path, alone("export", run_folder, "--output", path, *words, expect=expect)


def probabilities(run_folder, data):
    """n x classes, as predict says."""
    out, _ = run(1, "predict", run_folder, data, "--threads", 1, "--format", "json", "--topk", 5)
    rows = [json.loads(line)["classes"] for line in out.splitlines()]
    return np.array([[c["probability"] for c in sorted(row, key=lambda c: c["class"])] for row in rows])


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# Network, its options and image size; together they have every operation and every activation.
NETWORKS = [("lenet", 28, ["--pooling", "average"]), ("resnet8", 32, []), ("resnet20", 32, ["--activation", "leaky_relu", "--resnet-version", "v2"]),
            ("alexnet", 67, []), ("vgg11", 32, ["--activation", "gelu"]), ("squeezenet1_1", 65, []), ("mobilenet_v2", 32, []),
            ("mobilenet_v3_small", 32, []), ("efficientnet_b0", 32, []), ("densenet121", 32, []), ("googlenet", 33, []),
            ("inception_v3", 75, []), ("mlp", 16, ["--activation", "tanh"])]
WITHOUT_NORMS = ("lenet", "alexnet", "vgg11", "squeezenet1_1", "mlp")


def graphs(work):
    """The graph, computed by another program's rules, says what predict says."""
    seen = set()
    for network, size, options in NETWORKS:
        data, images = make_set(work, size)
        folder = f"{work}/{network}"
        train(1, folder, "--data", data, "--model", network, "--batch-size", 20, "--lr", 0.0001, "--max-steps", 2, "--skip-eval",
              *(() if network in WITHOUT_NORMS else ("--norm-momentum", 1)), *options)
        path, _ = export(work, folder, f"{network}.onnx", "--with-normalization")
        model = Model(path)
        seen |= {node[0] for node in model.nodes}
        wanted, got = probabilities(folder, data), softmax(model.run(images))
        error = np.abs(wanted - got).max()
        check(error < 1e-4 and wanted.max(1).min() < 0.99 and np.ptp(wanted, axis=0).max() > 1e-4,
              f"{network}: {len(model.nodes)} nodes give the probabilities of predict, {wanted.min():.3f} to {wanted.max():.3f} ({error:.1e} off)")
    check({"Add", "Concat", "Conv", "BatchNormalization", "LRN", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool", "Flatten", "Relu", "LeakyRelu",
           "Tanh", "Erf", "Sigmoid", "HardSigmoid", "Clip", "Mul", "Sub", "Div"} == seen, f"the networks have every operation: {sorted(seen)}")


def contents(work):
    """Names, shapes, values and metadata of a network that two ranks trained."""
    data, images = make_set(work, 32)
    for ranks in (1, 2):
        folder = f"{work}/run-{ranks}"
        train(ranks, folder, "--data", data, "--model", "resnet20", "--batch-size", 10, "--epochs", 1, "--ema-decay", 0.5, "--name", "x")
        checkpoint = f"{folder}/checkpoints/best.h5"
        for words, group, said in (([], "ema/", "moving average"), (["--ema"], "ema/", "moving average"), (["--no-ema"], "", "trained")):
            path, _ = export(work, folder, "a.onnx", *words, "--overwrite")
            model = Model(path)
            wanted = {**tensors(checkpoint, f"{group}parameters"), **tensors(checkpoint, f"{group}statistics")}
            same = model.tensors.keys() == wanted.keys() and all(
                model.tensors[n].shape == v.shape and model.tensors[n].tobytes() == v.tobytes() for n, v in wanted.items())
            check(same and model.metadata["weights"] == said, f"{ranks} ranks, {words}: {len(wanted)} tensors, the same bits, {said}")
            steps = json.loads(h5py.File(checkpoint).attrs["meta"])["position"]["step"]
            state = wanted | {n.replace("running_mean", "num_batches_tracked"): np.array(steps) for n in wanted if n.endswith("running_mean")}
            stored, about = read_safetensors(export(work, folder, "a.safetensors", *words, "--overwrite")[0])
            pickled = read_pth(export(work, folder, "a.pth", *words, "--overwrite")[0])
            for name, got in (("safetensors", stored), ("pth", pickled)):
                same = got.keys() == state.keys() and all(got[n].shape == v.shape and got[n].dtype == v.dtype and np.array_equal(got[n], v) for n, v in state.items())
                check(same, f"{ranks} ranks, {words}: {len(got)} tensors in {name}, the same bits")
            known = {key: value for key, value in model.metadata.items() if key != "input"}
            check(about.items() >= known.items() and list(pickled)[:2] == ["conv1.weight", "bn1.weight"], "the same metadata; the order of the network")
            check(pickled._metadata == {"": {"version": 2}}, "torchvision's MNASNet takes no state dict without a version")
    meta = json.loads(h5py.File(checkpoint).attrs["meta"])
    got = model.metadata
    check((model.ir_version, model.opset, model.producer) == (8, 13, "convoy"), "versions and producer")
    check(model.inputs == [("images", ["n", 3, 32, 32])] and model.outputs == [("logits", ["n", 5])], "input and output, any number of images")
    check(got["network"] == "resnet20" and got["classes"] == "5" and json.loads(got["class_names"]) == meta["data"]["class_names"], "network and classes")
    near = all(abs(a * 255 - b) < 1e-9 * 255 for key in ("mean", "std") for a, b in zip(json.loads(got[key]), meta["data"][key], strict=True))
    check(near and json.loads(got["crop_size"]) == [32, 32] and got["resize_size"] == "32" and got["input"] == "normalized", "what the input is")
    check(got["run"] == meta["run"] and got["network_digest"] == meta["plan_digest"] and got["step"] == str(meta["position"]["step"]), "where it is from")

    results = [json.loads(run(2, "evaluate", path, "--data", data, "--threads", 1, "--output-dir", f"{work}/out")[0] and
                          open(f"{work}/out/result.json", encoding="utf-8").read()) for path in (checkpoint, *(
                              export(work, folder, name)[0] for name in ("b.safetensors", "b.pth")))]
    figures = [{key: result[key] for key in ("images", "top1_count", "top5_count", "loss")} for result in results]
    check(figures[0] == figures[1] == figures[2], f"evaluate says of both files what it says of the checkpoint: {figures[0]}")

    one = Model(export(work, folder, "one.onnx")[0])
    mean, std = (np.array(meta["data"][key], np.float32)[:, None, None] for key in ("mean", "std"))
    pixels = Model(export(work, folder, "pixels.onnx", "--with-normalization")[0])
    error = np.abs(one.run((images - mean) / std) - pixels.run(images)).max()
    check(error < 1e-4 and pixels.metadata["input"] == "pixels from 0 to 255", f"normalisation inside and outside the graph agree ({error:.1e})")
    wide = Model(export(work, folder, "wide.onnx", "--image-size", 48)[0])
    check(wide.inputs[0][1][2:] == [48, 48] and json.loads(wide.metadata["crop_size"]) == [48, 48], "another image size")


def damage(work):
    """One flipped bit in each tensor of an exported file, and one in what it tells about the network, are noticed."""
    data, _ = make_set(work, 32)
    folder = f"{work}/run"
    train(1, folder, "--data", data, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1)
    path, _ = export(work, folder, "whole.safetensors")
    with open(path, "rb") as file:
        whole = file.read()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8:8 + length])
    about = header.pop("__metadata__")
    flips = {name: 8 + length + sum(entry["data_offsets"]) // 2 for name, entry in header.items()}
    check(len(flips) > 40 and "conv1.weight" in flips and "bn1.num_batches_tracked" in flips and about["digest"], f"{len(flips)} tensors and a digest")
    flips["the mean of the input"] = re.search(rb'\\"mean\\": \[\D*\d+\.(\d)', whole).start(1)
    bad, unseen = f"{work}/bad.safetensors", {}
    for number, (name, at) in enumerate(flips.items()):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with open(bad, "wb") as file:
            file.write(damaged)
        words = (["evaluate", bad, "--data", data, "--threads", "1"], ["train", "--weights", bad, "--data", data, "--model", "resnet8", "--max-steps", "1",
                 "--threads", "1", "-o", f"{work}/none"], ["predict", bad, data, "--threads", "1"])[number % 3]
        err = alone(*words, expect=3)
        if "is damaged (digest" not in err or "again" not in err:
            unseen[name] = err
    check(not unseen, f"{len(flips)} flipped bits: each is told with file and remedy {unseen or ''}")
    err = run(3, "evaluate", bad, "--data", data, "--threads", 1, expect=3)[1]
    check(err.count("is damaged (digest") == 1, "once on 3 ranks")


def averages(work):
    """The mean of checkpoints is one that every command takes."""
    data, _ = make_set(work, 32)
    folder = f"{work}/run"
    train(2, folder, "--data", data, "--model", "resnet8", "--batch-size", 10, "--epochs", 3, "--lr", 0.05, "--keep-checkpoints", 3)
    paths = [f"{folder}/checkpoints/epoch-{epoch:04}.h5" for epoch in (1, 2, 3)]
    mean = f"{work}/mean.h5"
    out = alone("average", *paths, "--output", mean)
    check("mean of 3 checkpoints of resnet8" in out, "average says what it made")
    for group in ("parameters", "statistics"):
        each, got = [tensors(path, group) for path in paths], tensors(mean, group)
        wanted = {n: np.mean([e[n].astype(np.float64) for e in each], axis=0).astype(np.float32) for n in each[0]}
        check(got.keys() == wanted.keys() and all(np.array_equal(got[n], wanted[n]) for n in wanted) and not np.array_equal(
            got["fc.weight" if group == "parameters" else "bn1.running_mean"], each[2]["fc.weight" if group == "parameters" else "bn1.running_mean"]),
              f"{len(got)} {group} are the means")
    check(tensors(mean, "optimiser") == {}, "without optimiser state")
    text = alone("inspect", "checkpoint", mean)
    check("epoch-0001.h5" in text and "average_of" in text, "inspect tells of what it is the mean")
    check("sync          none: a mean of 3 models" in text and "gradients" not in text, "and of no way to keep replicas alike")
    run(2, "evaluate", mean, "--data", data, "--threads", 1)
    path, _ = export(work, mean, "mean.onnx")
    check(Model(path).tensors["fc.weight"].tobytes() == tensors(mean)["fc.weight"].tobytes(), "export takes it")
    tuned, other = f"{work}/tuned", f"{work}/other"
    train(1, tuned, "--data", data, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1, "--weights", mean)
    for words in (["--output-dir", f"{work}/resumed"], ["--dry-run", "--dry-run-seconds", 0]):
        _, err = run(1, "train", "--data", data, "--model", "resnet8", "--resume", mean, *words, expect=3)
        check("is an average of checkpoints" in err and f"--weights {mean} in place of --resume" in err, "no run resumes from it, and that is said")

    train(1, other, "--data", data, "--model", "resnet14", "--batch-size", 10, "--max-steps", 1)
    more, _ = make_set(work, 32, samples=60)
    train(1, f"{work}/more", "--data", more, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1)
    for words, code, said in (([paths[0], last(other)], 3, "networks"), ([paths[0], last(f"{work}/more")], 3, "other training samples"),
                              ([paths[0]], 2, "two checkpoints or more"), ([paths[0], f"{work}/none.h5"], 3, "none.h5")):
        err = alone("average", *words, "--output", f"{work}/no.h5", expect=code)
        check(said in err and not os.path.exists(f"{work}/no.h5"), f"refused: {said}")
    for output, said in ((mean, "is in the way"), (paths[0], "one of the files that are read")):
        err = alone("average", *paths, "--output", output, expect=2)
        check(said in err, f"refused: {said}")
    train(1, f"{work}/wide", "--data", data, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1, "--image-size", 48)
    text = alone("average", paths[0], last(f"{work}/wide"), paths[0], "--output", f"{work}/odd.h5")
    check("is evaluated on 32x32 pixels" in text and "on 48x48" in text and text.count("pixels and") == 2, "other sizes are warned of")
    check(text.count(f"'{paths[0]}' is given twice, so it counts twice") == 1, "and a file that is given twice")
    run(1, "synthetic", "--samples", 40, "--val-samples", 6, "--image-size", 32, "--classes", 7, "--partitions", 2, "--out", f"{work}/seven", program=PREPROCESS)
    train(1, f"{work}/seven-run", "--data", f"{work}/seven", "--model", "resnet8", "--batch-size", 10, "--max-steps", 1)
    err = alone("average", paths[0], last(f"{work}/seven-run"), "--output", f"{work}/no.h5", expect=3)
    check("can't be averaged (5 classes and 7 classes)" in err, "other numbers of classes are told")
    job = ("--data", data, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1)
    train(1, f"{work}/own", *job, "--normalise", "per-image")
    err = alone("average", paths[0], last(f"{work}/own"), "--output", f"{work}/no.h5", expect=3)
    check("can't be averaged (input is normalised with mean " in err and "and with each image's own mean and deviation)" in err and not os.path.exists(f"{work}/no.h5"),
          "another kind of normalisation is refused")
    text = alone("average", last(f"{work}/own"), last(f"{work}/own"), "--output", f"{work}/own.h5")
    check("mean of 2 checkpoints" in text, "two of each image's own are averaged")
    for path in (f"{work}/own", f"{work}/own.h5"):
        check("\nnormalisation each image's own mean and deviation\n" in alone("inspect", "checkpoint", path), "inspect tells the kind, of a mean too")
    out, err = train(1, f"{work}/from-own", *job, "--weights", f"{work}/own")
    check(f"in '{last(f'{work}/own')}' it was each image's own mean and deviation; --normalise per-image keeps what it learned with" in out + err, "train --weights tells another kind")
    out, err = train(1, f"{work}/own-again", *job, "--weights", f"{work}/own", "--normalise", "per-image")
    check("input is normalised" not in out + err, "and is silent of the same")
    before = open(mean, "rb").read()
    alone("average", *paths[:2], "--output", mean, "--overwrite")
    check(open(mean, "rb").read() != before, "--overwrite replaces it")


def imports(work):
    """A graph that Convoy wrote, read again: evaluated, predicted, trained on; and one of another program."""
    data, _ = make_set(work, 32)

    def figures(path, *words):
        run(2, "evaluate", path, "--data", data, "--threads", 1, "--output-dir", f"{work}/out", *words)
        result = json.load(open(f"{work}/out/result.json", encoding="utf-8"))
        return {key: result[key] for key in ("images", "top1_count", "top5_count", "loss")}

    for network, *words in (("resnet8", "--normalise", "per-image"), ("mobilenet_v3_small",), ("vgg11_bn",)):
        folder = f"{work}/{network}"
        train(1, folder, "--data", data, "--model", network, "--batch-size", 10, "--max-steps", 2, "--lr", 0.001, *words)
        path, _ = export(work, folder, f"{network}.onnx")
        check(figures(folder) == figures(path), f"{network}: evaluate says of the graph what it says of the run: {figures(path)}")
        check(np.array_equal(probabilities(folder, data), probabilities(path, data)), f"{network}: so does predict, bit for bit")
    path = f"{work}/resnet8.onnx"
    out, err = run(1, "evaluate", path, "--data", data, "--threads", 1)
    check("doesn't tell" not in out + err, "an export of Convoy tells its data")
    shown = [alone("inspect", "plan", *words, "--classes", 5, "--image-size", 32) for words in (("--model", "resnet8"), ("--model-file", path))]
    digests = [re.search(r"digest ([0-9a-f]{16})", text).group(1) for text in shown]
    check(digests[0] == digests[1], f"the plan of the file has the digest of resnet8: {digests}")

    out, err = run(1, "train", "--data", data, "--model-file", path, "--weights", path, "--batch-size", 10, "--max-steps", 1, "--lr", 1e-30, "--weight-decay", 0, "--norm-momentum", 0,
                   "--output-dir", f"{work}/more", "--normalise", "per-image")
    check("(ONNX)" in out + err and figures(f"{work}/more") == figures(path), "training starts from the graph's weights")
    first, again = Model(path), Model(export(work, f"{work}/more", "again.onnx")[0])
    for node in first.nodes + again.nodes:
        if "momentum" in node[3]:
            node[3]["momentum"] = 0  # of training; the second run keeps its statistics by another
    check(first.nodes == again.nodes and first.inputs == again.inputs and first.tensors.keys() == again.tensors.keys(), "exported again it is the same graph")
    x = np.random.default_rng(1).normal(size=(4, 3, 32, 32))
    check(np.array_equal(first.run(x), again.run(x)), "of the same logits")
    fewer = f"{work}/three"
    run(1, "synthetic", "--samples", 20, "--val-samples", 3, "--image-size", 32, "--classes", 3, "--partitions", 1, "--out", fewer, program=PREPROCESS)
    out, err = run(1, "train", "--data", fewer, "--model-file", path, "--weights", path, "--batch-size", 10, "--max-steps", 1, "--output-dir", f"{work}/fewer")
    check("a new head for the classes of this run" in out + err, "another number of classes starts a new head")

    def refused(*words):
        return "".join(run(1, *words, "--data", data, "--batch-size", 10, expect=3))
    text = refused("train", "--model", "resnet20", "--weights", path, "--output-dir", f"{work}/no")
    check(f"it fits --model-file {path}" in text, "a network that isn't the file's: the error tells how to take that")
    head = {"fc.weight": np.eye(5, 3072, dtype=np.float32)}
    foreign = f"{work}/foreign.onnx"
    write_onnx(foreign, [("Flatten", ["image"], "flat", {}), ("Gemm", ["flat", "fc.weight"], "y", {"transB": 1})], head, (3, 32, 32))
    check(figures(foreign)["images"] == 6, "a graph of another program")
    write_onnx(foreign, [("GlobalAveragePool", ["image"], "mean", {}), ("Flatten", ["mean"], "flat", {}), ("Gemm", ["flat", "fc.weight"], "y", {"transB": 1})],
               {"fc.weight": np.eye(5, 3, dtype=np.float32)}, (3, 32, 48))
    text = refused("evaluate", foreign)
    check(f"'{foreign}' takes input of 32 x 48 pixels, and '{data}' holds" in text, f"its input is no square, and the images are: {text[-200:]}")
    check(figures(foreign, "--image-size", 32)["images"] == 6, "--image-size says which square")
    write_onnx(foreign, [("Flatten", ["image"], "flat", {}), ("Gemm", ["flat", "fc.weight"], "fc", {"transB": 1}), ("Einsum", ["fc"], "y", {})], head, (3, 32, 32))
    check("node 'y' is an operator Einsum" in refused("evaluate", foreign), "what Convoy has not is named")


def errors(work):
    """What can't be done is said, and nothing is written."""
    data, _ = make_set(work, 32)
    folder = f"{work}/run"
    train(1, folder, "--data", data, "--model", "resnet8", "--batch-size", 10, "--max-steps", 1, "--normalise", "per-image")
    out = f"{work}/out.onnx"
    for words, code, said in (
            ([f"{work}/absent", "-o", out], 3, f"{work}/absent"), ([folder], 2, "no --output is given"), (["-o", out], 2, "no checkpoint is given"),
            ([folder, "-o", f"{work}/out.bin"], 2, "tells no format"), ([folder, "-o", out, "--format", "keras"], 2, "keras"),
            ([folder, "-o", out, "--ema"], 3, "has no moving average"), ([folder, "-o", out, "--with-normalization"], 2, "per-image"),
            ([folder, "-o", f"{work}/out.pth", "--with-normalization"], 2, "only --format onnx has --with-normalization"), ([folder, "-o", f"{work}/no/out.onnx"], 3, "no/out.onnx"),
            ([folder, "-o", folder, "--format", "onnx"], 2, "is not a regular file"), ([f"{data}/val-00000-of-00001.h5", "-o", out], 3, "not a checkpoint")):
        text = alone("export", *words, expect=code)
        check(said in text and "; " in text, f"{code}: {text}")
    train(1, f"{work}/lenet", "--data", data, "--model", "lenet", "--batch-size", 10, "--max-steps", 1)
    text = alone("export", f"{work}/lenet", "-o", out, "--image-size", 64, expect=2)
    check("--image-size 64 doesn't go with the weights of lenet, whose linear layers were trained with 32 x 32 pixels; leave it out" in text, "weights of one image size")
    check(not [n for n in os.listdir(work) if n.startswith("out")], "nothing is written")
    check("[default: the average if the checkpoint has one, as in validation]" in " ".join(alone("export", "--help").split()), "help tells the default of --ema")
    _, text = export(work, folder, "out.onnx")
    check("out.onnx: resnet8" in text and "parameters" in text, f"told: {text.strip()}")
    before = os.stat(out).st_mtime_ns
    check("is in the way" in export(work, folder, "out.onnx", expect=2)[1] and os.stat(out).st_mtime_ns == before, "a file that is there stays")
    export(work, folder, "out.onnx", "--overwrite")
    check(os.stat(out).st_mtime_ns != before, "--overwrite replaces it")
    check(export(work, folder, "other.onnx")[0] and open(out, "rb").read() == open(f"{work}/other.onnx", "rb").read(), "the same bytes every time")
    out, _ = run(2, "export", folder, "--output", f"{work}/two.onnx")
    check(out.count("two.onnx") == 1, "under mpirun one rank writes")


if __name__ == "__main__":
    with work_folder() as work_:
        cases = {case.__name__: case for case in (graphs, contents, damage, averages, imports, errors)}
        for name_ in sys.argv[1:] or cases:
            cases[name_](work_)
