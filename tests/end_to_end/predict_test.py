# SPDX-License-Identifier: Apache-2.0
"""convoy predict: files, folders, data sets and partitions, three formats, the same text on 1, 2 and 3 ranks, and files that are no
images."""
import csv
import io
import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import prepare  # noqa: E402
from runner import check, last, records, run, train, work_folder  # noqa: E402


def predict(ranks, *words, expect=0):
    return run(ranks, "predict", "--threads", 1, *words, expect=expect)


with work_folder() as folder:
    sets.write_folder(sets.make_set(20, side=48), f"{folder}/in/train")
    val = sets.make_set(5, first=200, side=48)
    sets.write_folder(val, f"{folder}/in/val")
    prepare(folder, "jpeg", "folder", "--source", f"{folder}/in", "--encoding", "jpeg", "--sizes", "full", "--val-partitions", 2)
    train(2, f"{folder}/run", "--data", f"{folder}/jpeg", "--model", "resnet8", "--image-size", 32, "--resize", 36, "--epochs", 4, "--lr",
          0.05, "--sync", "gradients", "--batch-size", 10)
    model = last(f"{folder}/run")
    right = records(f"{folder}/run", "val")[-1]["top1_count"]

    # A prepared data set.
    out, err = predict(1, model, f"{folder}/jpeg", "--format", "json", "--topk", 3, "--batch-size", 3)
    lines = [json.loads(line) for line in out.splitlines()]
    check(len(lines) == 20 and [p["name"] for p in lines] == [f"val/{i}" for i in range(20)], "every sample once, in order")
    check(sum(p["classes"][0]["class"] == p["label"] for p in lines) == right, f"{right} of 20 are right, as in validation")
    check(f"({right} of 20 with labels)" in err and "20 images, 0 unreadable" in err, "and told")
    top = lines[0]["classes"]
    check(len(top) == 3 and top[0]["name"] == sets.CLASSES[top[0]["class"]], "three classes with names")
    check(all(a["probability"] >= b["probability"] for p in lines for a, b in zip(p["classes"], p["classes"][1:])), "likeliest first")
    for ranks in (2, 3):
        check(predict(ranks, model, f"{folder}/jpeg", "--format", "json", "--topk", 3, "--batch-size", 3)[0] == out, f"{ranks} ranks: the same")
    part = predict(2, model, f"{folder}/jpeg/val-00001-of-00002.h5", "--format", "json", "--topk", 3)[0]
    check([json.loads(line)["name"] for line in part.splitlines()] == [f"val/{i}" for i in range(10, 20)], "one partition")

    # The same images as files: the same classes.
    out = predict(2, model, f"{folder}/in/val", "--format", "csv", "--topk", 4, "--workers", 2)[0]
    table = list(csv.DictReader(io.StringIO(out)))
    order = sorted(val, key=sets.order_key)
    by_name = {row["name"]: row for row in table}
    check([row["name"] for row in table] == sorted(f"{folder}/in/val/{name}" for name in val), "a folder in order of names")
    same = all(int(by_name[f"{folder}/in/val/{name}"]["class1"]) == line["classes"][0]["class"] and
               abs(float(by_name[f"{folder}/in/val/{name}"]["probability1"]) - line["classes"][0]["probability"]) < 2e-6
               for name, line in zip(order, lines))
    check(same, "files and samples get the same classes")
    run(1, "export", model, "--output", f"{folder}/run.onnx")
    found = predict(1, "--weights", f"{folder}/run.onnx", f"{folder}/in/val", "--format", "csv", "--topk", 4)[0]
    check(found == out, "an exported ONNX file: resized to 36 and cropped to 32, too, with the same text")
    check(all(abs(sum(float(row[f"probability{i}"]) for i in range(1, 5)) - 1) < 1e-5 for row in table), "probabilities add up to 1")

    # Networks that learned from stored pixels: as they are, and resized.
    prepare(folder, "raw", "folder", "--source", f"{folder}/in", "--sizes", 48, "--resize", "crop")
    # The photographs would be resized once and stored pixels twice, so for the smaller input the stored pixels are made files.
    for number, pixels in enumerate(sets.Split(f"{folder}/raw", "val").images):
        sets.write(f"{folder}/squares/{number}.png", sets.png(pixels))
    for size, told, files in ((48, "48x48 raw; 20", "in/val"), (24, "48x48 raw, resized to 27x27, random crop of 24x24; 20", "squares")):
        out, err = train(1, f"{folder}/run-{size}", "--data", f"{folder}/raw", "--model", "resnet8", "--max-steps", 2, "--batch-size", 10,
                         "--image-size", size)
        start = f"train '{folder}/raw': 80 images of 48x48x3 in 4 classes; {told} validation images; run directory '{folder}/run-{size}'"
        check(start in out + err, f"{size} px: data and what happens to an image are told")
        classes = {}
        for source in (f"{folder}/raw", f"{folder}/{files}"):
            out = predict(1, f"{folder}/run-{size}", source, "--format", "csv", "--topk", 4)[0]
            classes[source] = sorted((row["class1"], float(row["probability1"])) for row in csv.DictReader(io.StringIO(out)))
        same = all(a[0] == b[0] and abs(a[1] - b[1]) < 1e-5 for a, b in zip(classes[f"{folder}/raw"], classes[f"{folder}/{files}"]))
        check(len(classes[f"{folder}/{files}"]) == 20 and same,
              f"{size} px: the same classes for stored pixels and for the files that they were made from")

    # What is no image.
    bad = f"{folder}/bad"
    data = next(iter(val.values()))[0]
    files = {"a.JPEG": data, "b.jpg": data[: len(data) // 2], "c.txt": b"not an image", "d.png": b"", "e f,\"g\".jpg": data, ".hidden": b""}
    for name, content in files.items():
        sets.write(f"{bad}/{name}", content)
    texts = [predict(ranks, "--checkpoint", f"{folder}/run", bad, "--topk", 2, "--batch-size", 2) for ranks in (1, 2, 3)]
    check(len({out for out, _ in texts}) == 1, "1, 2 and 3 ranks: the same text")
    out, err = texts[2]
    check("5 images, 3 unreadable" in err and all(f"'{bad}/{name}'" in err for name in ("b.jpg", "c.txt", "d.png")), "named and counted")
    check(out.count(" %  n0") == 4, "the others have their classes")
    out = predict(2, model, bad, "--format", "csv", "--output", f"{folder}/table.csv")[0]
    with open(f"{folder}/table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    check([os.path.basename(row["name"]) for row in rows] == sorted(n for n in files if n[0] != "."), "CSV with names of any kind")
    check([bool(row["error"]) for row in rows] == [False, True, True, True, False] and "3 unreadable" in out, "and errors")

    # Links that lead nowhere, and a pipe: named and counted, the others are predicted.
    os.symlink("loop.jpg", f"{bad}/loop.jpg")
    os.symlink("nowhere", f"{bad}/lost.jpg")
    os.mkfifo(f"{bad}/pipe.jpg")
    err = predict(2, model, bad)[1]
    check("8 images, 6 unreadable" in err and all(f"'{bad}/{name}'" in err for name in ("loop.jpg", "lost.jpg", "pipe.jpg")), "links and pipes")

    # --output: what isn't a regular file is written in place, a link's target is replaced, an input never.
    plain = predict(1, model, f"{bad}/a.JPEG")[0]
    os.symlink("target.txt", f"{folder}/link.txt")
    os.symlink("/dev/null", f"{folder}/null")
    predict(1, model, f"{bad}/a.JPEG", "--output", f"{folder}/link.txt")
    with open(f"{folder}/target.txt", encoding="utf-8") as file:
        check(os.path.islink(f"{folder}/link.txt") and file.read() == plain, "a link stays, its target is new")
    predict(1, model, f"{bad}/a.JPEG", "--output", f"{folder}/null")
    check(os.path.islink(f"{folder}/null") and stat.S_ISCHR(os.stat("/dev/null").st_mode), "a device stays one")
    reader = subprocess.Popen(["cat", f"{bad}/pipe.jpg"], stdout=subprocess.PIPE, text=True)
    predict(1, model, f"{bad}/a.JPEG", "--output", f"{bad}/pipe.jpg")
    check(reader.communicate(timeout=20)[0] == plain, "a pipe gets the text")
    os.symlink(f"{bad}/a.JPEG", f"{folder}/to-input")
    for words in ((f"{bad}/a.JPEG", "--output", f"{bad}/a.JPEG"), (bad, "-o", f"{folder}/to-input"), (f"{bad}/a.JPEG", "-o", model),
                  (f"{folder}/jpeg", "-o", f"{folder}/jpeg/val-00000-of-00002.h5")):
        check("is one of the files that are read" in predict(1, model, *words, expect=2)[1], f"refused: {os.path.basename(words[-1])}")
    with open(f"{bad}/a.JPEG", "rb") as file:
        check(file.read() == data, "the input is as it was")
    check(not [name for name in os.listdir(folder) if name.endswith(".tmp")], "nothing is left behind")

    for words, code, said in (((model, f"{bad}/c.txt", f"{bad}/d.png"), 3, "2 images, 2 unreadable"),
                              ((model, f"{folder}/none.jpg"), 3, "doesn't exist"),
                              ((model,), 2, "needs a checkpoint and images"),
                              ((f"{bad}/a.JPEG", f"{bad}/a.JPEG"), 3, "a.JPEG"),
                              ((model, bad, "--output", f"{folder}/no/where.csv"), 3, "cannot write"),
                              ((model, bad, "--output", "/dev/full"), 3, "cannot write '/dev/full' (No space left on device)"),
                              ((model, bad, "--output", f"{bad}/pipe.jpg"), 3, "cannot write")):
        out, err = predict(2, *words, expect=code)
        check(said in err, f"exit {code}: {said}")
