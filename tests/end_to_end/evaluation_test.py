# SPDX-License-Identifier: Apache-2.0
"""Evaluation is exact over ranks: the same integers for 1, 2, 3, 5 and 8 ranks and any batch, one more rank than images too. Other
sets than the model's: seen with its normalisation, labels by name, or refused."""
import csv
import functools
import json
import os

import h5py
import numpy as np
from PIL import Image
from runner import PREPROCESS, check, everything, last, peak_of, records, run, same_bits, train, work_folder

COLOURS = {"cat": (200, 60, 60), "dog": (60, 200, 60), "emu": (60, 60, 200), "ant": (30, 30, 30)}


def evaluate(ranks, checkpoint, data, batch, out, *words):
    run(ranks, "evaluate", "--checkpoint", checkpoint, "--data", data, "--batch-size", batch, "--threads", 1, "--output-dir", out,
        *words)
    with open(f"{out}/result.json", encoding="utf-8") as file:
        result = json.load(file)
    with open(f"{out}/confusion.csv", encoding="utf-8") as file:
        matrix = [[int(v) for v in row[1:]] for row in list(csv.reader(file))[1:]]
    return result, matrix


def prepare(work, name, classes, light=1.0, size=16):
    """8 pictures a class as a set with both splits alike: noise of the picture's number on the class's colour."""
    for label, animal in classes.items():
        os.makedirs(f"{work}/{name}.in/{label}")
        for i in range(8):
            noise = np.random.default_rng(i).normal(0, 20, (16, 16, 3))
            picture = Image.fromarray((light * np.clip(COLOURS[animal] + noise, 0, 255)).astype(np.uint8))
            picture.resize((size, size), Image.Resampling.NEAREST).save(f"{work}/{name}.in/{label}/{i}.png")
    run(1, "folder", "--train", f"{work}/{name}.in", "--val", f"{work}/{name}.in", "--out", f"{work}/{name}", "--encoding", "raw", "--sizes", size,
        program=PREPROCESS)
    return f"{work}/{name}"


def normalisation(folder):
    with h5py.File(f"{folder}/train-00000-of-00001.h5") as file:
        return [word for name in ("mean", "std") for word in (f"--rgb-{name}", ",".join(str(v) for v in file.attrs[name]))]


def other_sets(work):
    """A network that knows three animals by their colours."""
    same = {name: name for name in ("cat", "dog", "emu")}
    model, data = f"{work}/animals-run", prepare(work, "animals", same)
    train(1, model, "--data", data, "--model", "resnet8", "--batch-size", 8, "--epochs", 10, "--lr", 0.05, "--lr-schedule", "constant")
    check(max(r["top1"] for r in records(model, "val")) == 100, "it learns them")

    def evaluated(ranks, name, *words, model=model):
        said = run(ranks, "evaluate", "--checkpoint", model, "--data", f"{work}/{name}", "--threads", 1, *words)
        return json.loads([line for line in said[0].splitlines() if line.startswith("{")][-1]), said[0] + said[1]

    for ranks, images in ((1, 5), (3, 15)):
        result, said = evaluated(ranks, "animals", "--batch-size", 5, "--limit-val-batches", 1)
        check((result["partial"], result["images"], result["split_images"]) == (True, images, 24) and
              f"; of a part of the split: {images} of its 24 images (--limit-val-batches)" in said, f"{ranks} ranks: a part of the split is marked: {result}")
    result, said = evaluated(3, "animals", "--batch-size", 5, "--limit-val-batches", 2)
    check("partial" not in result and "a part of the split" not in said, "a limit that takes the whole split marks nothing")
    out, _ = train(1, f"{work}/part", "--data", data, "--model", "resnet8", "--batch-size", 8, "--epochs", 1, "--eval-batch-size", 5, "--limit-val-batches", 1)
    record = records(f"{work}/part", "val")[-1]
    check((record["partial"], record["images"], record["split_images"]) == (True, 5, 24) and "; of a part of the split: 5 of its 24 images" in out, f"by train, too: {record}")
    with open(f"{work}/part/summary.csv", encoding="utf-8") as file:
        check([row["val_partial"] for row in csv.DictReader(file)] == ["1"], "and in summary.csv")

    prepare(work, "fewer", {"dog": "dog", "emu": "emu"})
    prepare(work, "more", {"ant": "ant", **same})
    for ranks in (1, 3):
        for name, images, told in (("fewer", 16, "matched by name"), ("more", 24, "doesn't know are left out: 'ant'")):
            result, said = evaluated(ranks, name, "--batch-size", 5)
            check((result["images"], result["top1_count"]) == (images, images) and told in said, f"{name} classes, {ranks} ranks: {images} of {images} right")
    err = run(3, "predict", model, f"{work}/more", "--output", f"{work}/more.txt")[0]
    check("32 images, 0 unreadable; top-1 100.00 % (24 of 24 with labels)" in err, "predicted, images of the unknown class have no label")
    prepare(work, "other", {"dog": "dog", "emu": "emu", "zcat": "cat"})
    for ranks, command in ((3, ("evaluate", model, "--data", f"{work}/other")), (1, ("predict", model, f"{work}/other"))):
        err = run(ranks, *command, expect=3)[1]
        check("only the model has 'cat', only the set has 'zcat'" in err and err.count("learned other classes") == 1, f"{command[0]}: other names are refused")
    train(3, f"{work}/crossed", "--data", data, "--val-data", f"{work}/other", "--model", "resnet8", expect=3)
    said, _ = train(1, f"{work}/head", "--data", f"{work}/other", "--weights", model, "--model", "resnet8", "--batch-size", 8, "--max-steps", 1)
    check("only the model has 'cat', only the set has 'zcat'): a new head starts" in said and "fc.weight, /parameters/fc.bias start anew" in said,
          "--weights on other names begins a new head")

    # Four times as many pixels are the same picture.
    prepare(work, "large", same, size=32)
    small, large = evaluated(1, "animals")[0], evaluated(3, "large")[0]
    check(large["top1_count"] == 24 and abs(large["loss"] - small["loss"]) < 0.05, f"larger pixels come as large as the model's (loss {large['loss']:.3f}, {small['loss']:.3f})")

    # A third of the light is another picture to the network, whatever the set's own mean is.
    prepare(work, "dark", same, 1 / 3)
    learned, own = normalisation(data), normalisation(f"{work}/dark")
    expected, _ = evaluated(1, "dark", *learned)
    for ranks in (1, 3):
        result, _ = evaluated(ranks, "dark")
        check(abs(result["loss"] - expected["loss"]) < 1e-5 and result["top1_count"] == expected["top1_count"],
              f"{ranks} ranks: the model's mean and deviation, loss {expected['loss']:.3f}")
    for ranks in (1, 3):
        err = run(ranks, "evaluate", model, "--data", f"{work}/dark", "--rgb-mean", "1,2", expect=2)[1]
        check("normalised with 2 means and 3 standard deviations, but the images of " in err and "holds images of 2" not in err, f"--rgb-mean of other channels, {ranks} ranks")
    err = train(3, f"{work}/no", "--data", data, "--model", "resnet8", "--rgb-mean", "1,2", expect=2)[1]
    check("normalised with 2 means and 3 standard deviations, but the images of " in err and "holds images of" not in err, "train says the same")
    check(abs(evaluated(1, "dark", *own)[0]["loss"] - expected["loss"]) > 0.1, "which is not the loss with the set's")
    tables = []
    for source in ("dark", "dark.in"):
        out = run(1, "predict", model, f"{work}/{source}", "--format", "csv", "--topk", 3)[0]
        tables.append(sorted((row["class1"], round(float(row["probability1"]), 4)) for row in csv.DictReader(out.splitlines())))
    check(tables[0] == tables[1] and len(tables[0]) == 24, "files and prepared samples get the same answer")
    train(3, f"{work}/validated", "--data", data, "--val-data", f"{work}/dark", "--model", "resnet8", "--batch-size", 4, "--epochs", 2, "--lr", 0.05)
    validated = records(f"{work}/validated", "val")[-1]["loss"]
    expected, _ = evaluated(1, "dark", *learned, model=last(f"{work}/validated"))
    check(abs(validated - expected["loss"]) < 1e-4, f"--val-data is validated with the train split's ({validated:.4f})")


def many_classes(work):
    """A matrix of the pairs of 3360 classes, which nobody could read, would take 90 MB on each rank; of ImageNet-21k's, 3.8 GB."""
    used = {}
    for classes in (1000, 3360):
        out = f"{work}/of-{classes}"
        words = ("--synthetic", "--synthetic-classes", classes, "--synthetic-size", 4, "--synthetic-samples", 40)
        train(1, out, *words, "--model", "mlp", "--batch-size", 20, "--lr", 0.01, "--epochs", 1, "--skip-eval")
        used[classes] = peak_of(functools.partial(run, 2, "evaluate", out, "--threads", 1, "--output-dir", f"{out}/result"))[0]
    check(used[3360] - used[1000] < 45, f"evaluated without a matrix of pairs: {used} MB resident")
    folder = f"{work}/of-3360/result"
    with open(f"{folder}/per_class.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(f"{folder}/result.json", encoding="utf-8") as file:
        result = json.load(file)
    samples, correct = (sum(int(row[column]) for row in rows) for column in ("samples", "correct"))
    check(len(rows) == 3360 and samples == result["images"] and correct == result["top1_count"], f"a line per class: {samples} images")
    check(not os.path.exists(f"{folder}/confusion.csv") and os.path.exists(f"{work}/of-1000/result/confusion.csv"), "no matrix is written")


def file_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def patience(work):
    """A network without batch norm that never changes has its best top-1 after the first epoch; each later validation halves the
    learning rate, and the second one ends the run, also one that was stopped between them."""
    words = ("--data", f"{work}/animals", "--model", "mlp", "--batch-size", 8, "--lr", 2.0**-100, "--epochs", 9, "--patience", 2,
             "--lr-schedule", "plateau", "--lr-patience", 0, "--lr-factor", 0.5)
    said, _ = train(2, f"{work}/patient", *words)
    train(2, f"{work}/stopped", *words, "--run-epochs", 2)
    train(1, f"{work}/stopped", "--resume", "auto", "--replicas", 2)
    for name in ("patient", "stopped"):
        epochs = [r["epoch"] for r in records(f"{work}/{name}", "val")]
        rates = [r["lr"] * 2.0**100 for r in records(f"{work}/{name}", "train")]
        check(epochs == [1, 2, 3] and rates[0] == 1 and rates[-1] == 0.5, f"{name}: {epochs[-1]} epochs, learning rates {rates}")
    check("no new best in 2 validations (--patience 2): the run ends" in said and os.path.exists(f"{work}/patient/checkpoints/best.h5"), "it says so")
    complete(work, "patient", "no new best in 2 validations (--patience 2) at epoch 3, step ", "--patience", 3)
    target = records(f"{work}/patient", "val")[0]["top1"]
    said, _ = train(2, f"{work}/target", *words[:-6], "--epochs", 3, "--target-accuracy", target)
    check("(--target-accuracy): the run ends" in said and len(records(f"{work}/target", "val")) == 1, f"the target of {target} % ends the run")
    complete(work, "target", "(--target-accuracy) at epoch 1, step ", "--target-accuracy", 100)


def complete(work, name, why, option, more):
    """A run that ended before its last epoch is complete: its job may start again, and finds nothing to do."""
    folder = f"{work}/{name}"
    epochs, before = len(records(folder, "val")), file_bytes(last(folder))
    for ranks in (2, 1):
        said, _ = train(ranks, folder, "--resume", "auto", "--replicas", 2)
        told = "nothing is left to do" in said and why in said and "raise that option to continue" in said
        check(told, f"{name}: complete on {ranks} ranks" + ("" if told else "\n" + said))
        check(len(records(folder, "val")) == epochs and file_bytes(last(folder)) == before, f"{name}: nothing was trained or saved")
    train(2, folder, "--resume", "auto", option, more, "--run-epochs", 1)
    check(len(records(folder, "val")) == epochs + 1, f"{name}: goes on with {option} {more}")


def stopped_between(work):
    """A job that ends between two validations makes one more, which counts for nothing: the run goes on as one that was left alone.
    The network never improves, so each validation that counts halves the learning rate, or ends the run."""
    base = ("--data", f"{work}/animals", "--model", "mlp", "--batch-size", 8, "--lr", 2.0**-100, "--epochs", 4, "--print-freq", 1)
    plateau = ("--lr-schedule", "plateau", "--lr-patience", 0, "--lr-factor", 0.5)
    for name, more in (("plateau", plateau), ("halves", (*plateau, "--val-interval", 0.5, "--patience", 3)), ("patience", ("--patience", 2))):
        straight, stopped = f"{work}/{name}-straight", f"{work}/{name}-stopped"
        train(1, straight, *base, *more)
        said, _ = train(1, stopped, *base, *more, "--max-steps", 1)
        check("not due by --val-interval, so best.h5, --patience and plateau leave it out" in said, f"{name}: it says so")
        check(not os.path.exists(f"{stopped}/checkpoints/best.h5"), f"{name}: no best.h5 of it")
        for limit in (("--run-epochs", 0.4), ("--max-steps", 2), ()):
            train(1, stopped, "--resume", "auto", *limit)
        rates = [[(r["step"], r["lr"] * 2.0**100) for r in records(folder, "train")] for folder in (straight, stopped)]
        check(rates[0] == rates[1] and len(rates[0]) > 4, f"{name}: the same steps and learning rates: {rates}")
        check(same_bits(everything(last(straight)), everything(last(stopped))), f"{name}: the same bits")


def main():
    with work_folder() as work:
        other_sets(work)
        patience(work)
        many_classes(work)
        stopped_between(work)
        data, small, out = f"{work}/data", f"{work}/small", f"{work}/run"
        run(1, "synthetic", "--out", data, "--samples", 300, "--val-samples", 203, "--image-size", 16, "--partitions", 3,
            program=PREPROCESS)
        run(1, "synthetic", "--out", small, "--samples", 20, "--val-samples", 4, "--image-size", 16, "--partitions", 1,
            program=PREPROCESS)
        train(2, out, "--data", data, "--model", "resnet20", "--batch-size", 16, "--epochs", 2, "--lr", 0.1)
        results = {}
        for ranks, batch in ((1, 64), (2, 7), (3, 64), (5, 1), (8, 64)):
            results[ranks] = evaluate(ranks, out, data, batch, f"{work}/eval-{ranks}")
        one, matrix = results[1]
        check(one["images"] == 203, "all 203 images were counted")
        check(sum(map(sum, matrix)) == 203, "the confusion matrix counts every image")
        check(sum(matrix[i][i] for i in range(len(matrix))) == one["top1_count"], "its diagonal is the number of hits")
        for ranks, (result, other) in results.items():
            keys = ("images", "top1_count", "top5_count")
            check([result[k] for k in keys] == [one[k] for k in keys], f"{ranks} ranks: the same counts {[one[k] for k in keys]}")
            check(other == matrix, f"{ranks} ranks: the same confusion matrix")
            check(abs(result["loss"] - one["loss"]) <= 1e-6 * abs(one["loss"]), f"{ranks} ranks: loss to 1e-6")
        result, _ = evaluate(5, out, small, 64, f"{work}/eval-small")
        check(result["images"] == 4, "5 ranks evaluate 4 images")


if __name__ == "__main__":
    main()
