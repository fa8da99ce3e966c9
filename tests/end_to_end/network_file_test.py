# SPDX-License-Identifier: Apache-2.0
"""--model-file: the example of the documents trains on 1 and 3 ranks, and everything that comes after needs no file; what 'convoy
models --show' prints is the same network, weights included."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from onnx_model import Model  # noqa: E402  (the path is set above)
from runner import CONVOY, SOURCE, check, everything, last, records, run, same_bits, train, work_folder  # noqa: E402

COMMON = ("--synthetic", "--synthetic-samples", 60, "--synthetic-size", 16, "--synthetic-classes", 5, "--batch-size", 5, "--replicas", 3, "--lr", 0.05,
          "--reproducible", "--sync", "gradients")


def example():
    with open(f"{SOURCE}/docs/networks.md", encoding="utf-8") as file:
        return re.search(r"```ini\n(name = .*?)```", file.read(), re.S)[1]


def digest(*words):
    out, _ = run(1, "inspect", "plan", "--device", "cpu", "--threads", 1, "--batch-size", 1, *words)
    return re.search(r"digest ([0-9a-f]{16})", out)[1]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


with work_folder() as work:
    path = write(f"{work}/net.cfg", example())
    for ranks in (1, 3):
        train(ranks, f"{work}/run-{ranks}", *COMMON, "--model-file", path, "--epochs", 2)
    check(same_bits(everything(last(f"{work}/run-1")), everything(last(f"{work}/run-3"))), "1 and 3 ranks, the same bits")
    train(3, f"{work}/stopped", *COMMON, "--model-file", path, "--epochs", 2, "--run-epochs", 1)
    os.remove(path)
    train(1, f"{work}/stopped", "--resume", "auto", "--replicas", 3)
    check(same_bits(everything(last(f"{work}/run-1")), everything(last(f"{work}/stopped"))), "resumed without the file")
    found = records(f"{work}/run-1", "val")[-1]
    for ranks in (1, 3):
        out, _ = run(ranks, "evaluate", last(f"{work}/run-1"), "--threads", 1)
        result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
        check(result["top1_count"] == found["top1_count"], f"evaluated on {ranks} ranks without the file: {result['top1_count']}")
    run(1, "export", last(f"{work}/run-1"), "--output", f"{work}/net.onnx")
    check(Model(f"{work}/net.onnx").metadata["network"] == "small", "exported without the file")
    weights = f"{work}/net.safetensors"
    run(1, "export", last(f"{work}/run-1"), "--output", weights)
    path = write(f"{work}/net.cfg", example())
    out, _ = run(1, "evaluate", "--weights", weights, "--model-file", path, *COMMON[:7], "--threads", 1)
    result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    check(result["top1_count"] == found["top1_count"], "weights alone, with the file")

    for network in ("resnet50", "lenet", "squeezenet1_1", "mobilenet_v3_small"):
        shown = write(f"{work}/{network}.cfg", subprocess.run([CONVOY, "models", "--show", network], capture_output=True, text=True, check=True).stdout)
        input_of = {"lenet": (10, 1, 28)}.get(network, (1000, 3, 224))
        words = ("--classes", input_of[0], "--channels", input_of[1], "--image-size", input_of[2])
        check(digest("--model", network, *words) == digest("--model-file", shown, *words), f"{network}: the shown file is the same network")
    for name, words in (("resnet50", ("--resnet-version", "v2")), ("alexnet", ("--variant", "owt")), ("resnet34", ("--stem", "small"))):
        words = (*words, "--activation", "gelu")
        shown = write(f"{work}/form.cfg", subprocess.run([CONVOY, "models", "--show", name, *words], capture_output=True, text=True, check=True).stdout)
        size = ("--classes", 10, "--channels", 3, "--image-size", 224)
        check(digest("--model", name, *words, *size) == digest("--model-file", shown, *size), f"{name} {words[1]}: so is the file of a form that options choose")
    by_mxnet, plain = (subprocess.run([CONVOY, "models", "--show", *words], capture_output=True, text=True, check=True).stdout
                       for words in (("resnet-v2", "--num-layers", "50"), ("resnet50", "--resnet-version", "v2")))
    check(by_mxnet == plain, "by MXNet's name and depth, too")
    shown = write(f"{work}/resnet8.cfg", subprocess.run([CONVOY, "models", "--show", "resnet8"], capture_output=True, text=True, check=True).stdout)
    train(1, f"{work}/named", *COMMON, "--model", "resnet8", "--epochs", 1)
    train(3, f"{work}/shown", *COMMON, "--model-file", shown, "--epochs", 1)
    check(same_bits(everything(last(f"{work}/named")), everything(last(f"{work}/shown"))), "resnet8 by name and by file: the same bits")
    out, err = train(1, f"{work}/shown-again", *COMMON, "--model-file", shown, "--max-steps", 1)
    check("differs from Convoy's" not in out + err, "it has its name by right")
    with open(shown, encoding="utf-8") as file:
        changed = write(f"{work}/changed.cfg", file.read().replace("act = activation", "act = activation kind=silu", 1))
    out, err = train(3, f"{work}/changed", *COMMON, "--model-file", changed, "--max-steps", 1)
    name = re.search(r"name = (.*)", open(changed, encoding="utf-8").read())[1]
    check((out + err).count(f"warning: the network of --model-file is called '{name}' and differs from Convoy's") == 1, "a changed one is warned of")
    said, _ = run(1, "export", last(f"{work}/changed"), "--output", f"{work}/changed.onnx")
    about = Model(f"{work}/changed.onnx").metadata
    check((about["network"], about["variant"]) == (f"{name} (changed)",) * 2 and f"changed.onnx: {name} (changed) of " in said, "and marked in an export")
    run(1, "export", last(f"{work}/shown"), "--output", f"{work}/shown.onnx")
    check("changed" not in Model(f"{work}/shown.onnx").metadata["network"], "as the shown one isn't")
    # As shipped networks are listed, files are: a file of layers with the usual input of small images, a graph with its own.
    table = subprocess.run([CONVOY, "models", "--format", "csv", "resnet8", shown, f"{work}/shown.onnx"], capture_output=True, text=True, check=True).stdout.splitlines()
    named, by_file, by_graph = (line.split(",")[1:] for line in table[1:])
    check(len(table) == 4 and named[:4] == by_file[:4] and by_graph[0] < named[0] and by_graph[2:4] == ["16 x 16 x 3", "5"], f"models lists files: {table}")
    large = subprocess.run([CONVOY, "models", "--format", "csv", shown, "--image-size", "64", "--classes", "7"], capture_output=True, text=True, check=True).stdout
    check(",64 x 64 x 3,7," in large, f"with another input: {large}")
    wrong = subprocess.run([CONVOY, "models", shown, "--resnet-version", "v2"], capture_output=True, text=True, check=False)
    check(wrong.returncode == 2 and "describes its network; leave the options of networks out" in wrong.stderr, "not with the options of networks")
    gone = subprocess.run([CONVOY, "models", f"{work}/none.cfg"], capture_output=True, text=True, check=False)
    check(gone.returncode == 2 and "none.cfg" in gone.stderr and "No such file" in gone.stderr, f"a file that is not there: {gone.stderr}")
    # What a network can take is judged by the size of this run's images, not by a usual one; and a file's name is free.
    write(f"{work}/large.net", "name = vgg16\n[network]\nc = convolution out=8 stride=8\np = pool mode=average kernel=32 stride=32\n"
          "flatten = flatten\nfc = linear out=classes\n")
    job = ["--model-file", f"{work}/large.net", "--synthetic", "--synthetic-size", 256, "--synthetic-samples", 8, "--batch-size", 4, "--skip-eval"]
    train(1, f"{work}/large", *job, "--max-steps", 1)
    _, err = train(1, f"{work}/too-small", *job, "--image-size", 64, expect=2)
    check("large.net:4: " in err and "too small" in err, "an image that is too small is told with file and line")
    out, _ = run(1, "inspect", "plan", "--model-file", f"{work}/large.net", "--image-size", 256)
    check("10 classes" in out, "a name of another network brings no other classes")

    # Sizes that are no data set's don't appear.
    body = "name = bad\n[network]\nc = convolution out=8\n"
    for name, lines, said in (
            ("maps", "flatten = flatten\n", "maps.cfg:4: layer 'flatten' ends the network with a number of values that follows from the size of the images, but a network needs one per class of the data set; "
             "give the last linear layer out=classes"),
            ("seven", "p = global_average_pool\nflatten = flatten\nfc = linear out=7\n", "seven.cfg:6: layer 'fc' ends the network with 7 values for each image, but a network needs one per class"),
            ("pooled", "p = global_average_pool\nflatten = flatten\n", "pooled.cfg:5: layer 'flatten' ends the network with 8 values for each image"),
            ("sum", "d = convolution out=8 stride=2\nadd = add from=c,d\np = global_average_pool\nflatten = flatten\nfc = linear out=classes\n",
             "sum.cfg:5: node 'add' adds 8 x h x w and 8 x h/2 x w/2 (c h w); give them the same shape"),
            ("zero", "flatten = flatten\nfc = linear out=0\n", "zero.cfg:5: layer 'fc' is impossible (linear, out=0)")):
        path = write(f"{work}/{name}.cfg", body + lines)
        _, err = run(1, "train", *COMMON, "--model-file", path, "--output-dir", f"{work}/no", expect=2)
        check(said in err and "4096" not in err and "1000" not in err, f"without invented sizes: {err.strip().splitlines()[0]}")
    wrong = write(f"{work}/wrong.cfg", example().replace("batch_norm", "batch_nrom", 1))
    line = 1 + [("batch_nrom" in text) for text in open(wrong, encoding="utf-8").read().splitlines()].index(True)
    for ranks in (1, 3):
        _, err = run(ranks, "train", *COMMON, "--model-file", wrong, "--output-dir", f"{work}/no", expect=2)
        check(f"{wrong}:{line}: " in err and "did you mean 'batch_norm'?" in err and err.count("error:") == 1, f"{ranks} ranks: file and line, once")
        _, err = run(ranks, "train", *COMMON, "--model-file", f"{work}/none.cfg", "--output-dir", f"{work}/no", expect=2)
        check("No such file" in err and err.count("error:") == 1, f"{ranks} ranks: a file that is missing")
