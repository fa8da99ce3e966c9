# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/preparation.md, run as they stand there: places are made here under the names they have there."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["CONVOY_SOURCE"]
sys.path.insert(0, f"{SOURCE}/tests/support")
import image_sets as sets  # noqa: E402  (the path is set above)
import servers  # noqa: E402
from preparation import check  # noqa: E402

# What can't be had here: other people's hosts and folders, and as many shards as ImageNet has.
REPLACED = {"/data/": "WORK/data/", "https://host/": "WEB/", "001281": "000002"}


def commands(document):
    with open(f"{SOURCE}/docs/{document}", encoding="utf-8") as file:
        blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]


def make_places(work):
    train, val = sets.make_set(4), sets.make_set(2, first=50)
    outer = sets.tar_of([(f"{name}.tar", data) for name, data in sets.class_tars(train).items()])
    sets.write(f"{work}/data/ilsvrc/ILSVRC2012_img_train.tar", outer)
    sets.write(f"{work}/data/ilsvrc/ILSVRC2012_img_val.tar",
               sets.tar_of([(f"ILSVRC2012_val_{i + 1:08}.JPEG", d) for i, (d, _) in enumerate(val.values())]))
    sets.write(f"{work}/data/ilsvrc/val_labels.txt",
               "".join(f"ILSVRC2012_val_{i + 1:08}.JPEG {sets.CLASSES[c]}\n" for i, (_, c) in enumerate(val.values())))
    for s in range(3):
        members = [m for i, (d, c) in list(enumerate(train.values()))[s::3]
                   for m in ((f"{i:06}.jpg", d), (f"{i:06}.cls", str(c).encode()))]
        sets.write(f"{work}/web/imagenet-train-{s:06}.tar", sets.tar_of(members))
    for name, data in sets.class_tars(train).items():
        sets.write(f"{work}/bucket/train/{name}.tar", data)
    sets.write(f"{work}/bucket/train.txt", "".join(f"{n} {c}\n" for n, (_, c) in train.items()))
    for split, files in (("train", train), ("val", val)):
        sets.write(f"{work}/{split}.rec", b"".join(sets.record(float(c), i, d) for i, (d, c) in enumerate(files.values())))


def main():
    with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
        make_places(work)
        os.makedirs(f"{work}/bin")
        with open(f"{work}/bin/mpirun", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shutil.which("mpirun")} --oversubscribe --bind-to none "$@"\n')
        os.chmod(f"{work}/bin/mpirun", 0o755)
        os.symlink(os.environ["CONVOY_PREPROCESS"], f"{work}/bin/convoy-preprocess")
        with servers.nginx(f"{work}/web", f"{work}/nginx") as web, servers.moto(servers.Bucket.SET_UP_ACTIONS) as endpoint:
            bucket = servers.Bucket(endpoint, "bucket")
            bucket.put_folder(f"{work}/bucket/train", "train")
            with open(f"{work}/bucket/train.txt", "rb") as file:
                bucket.put("train.txt", file.read())
            env = {**os.environ, **bucket.environment(), "AWS_ENDPOINT_URL": endpoint, "PATH": f"{work}/bin:{os.environ['PATH']}",
                   "OMP_NUM_THREADS": "1"}
            lines = commands("preparation.md")
            for number, line in enumerate(lines):
                for there, here in REPLACED.items():
                    line = line.replace(there, here)
                words = [w.replace("WORK", work).replace("WEB", web) for w in shlex.split(line)]
                folder = f"{work}/run{number}"
                os.makedirs(folder)
                for split in ("train", "val"):
                    os.link(f"{work}/{split}.rec", f"{folder}/{split}.rec")
                done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
                check(done.returncode == 0, f"{lines[number]}\n{'' if done.returncode == 0 else done.stdout + done.stderr}")
            check(len(lines) >= 4, f"{len(lines)} commands")


main()
