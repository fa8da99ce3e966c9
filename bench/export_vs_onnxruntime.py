#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exported networks against onnxruntime, torchvision and timm, and a line of each for results.md.

    bench/export_vs_onnxruntime.py --python PYTHON [NETWORK ...] [--images 100] [--source ARCHIVE --steps 150] [--image-size 64]

PYTHON: an interpreter with torch, torchvision, timm, onnx, onnxruntime, safetensors and h5py. Each network is trained for two steps on
generated images, or for --steps on those of --source (what `convoy-preprocess folder` reads, with train and val), so that its statistics are
no longer those of the start, and exported in all three formats. Then
- onnxruntime computes the logits of the images from the ONNX file, which `onnx.checker` has accepted;
- torchvision (or timm) loads the pth file by torch.load(weights_only=True), and the safetensors file, both with strict=True and
  of the same values, and computes them too;
- `convoy predict` gives its probabilities;
- `convoy evaluate` counts the hits of the run, and of each of the three files as `--weights`.
The largest differences are printed: of logits by the largest logit, of probabilities as they are; and how many images each counts as hits.
*Lead*: by how much the best class of an image leads at least, by the largest logit too: a lead above the difference can't be a tie. The
program ends with 1 where a difference is above 1e-4, or where a class that is told or a count differs.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compare_step import cpu_model  # noqa: E402  (the path is set above)

LIMIT = 1e-4
# Who has the network too, and what he sets that ours leaves to the user.
NETWORKS = {
    "alexnet": ("torchvision", ["--variant", "owt"]), "vgg11_bn": ("torchvision", []), "resnet18": ("torchvision", []), "resnet50": ("torchvision", []),
    "resnext50_32x4d": ("torchvision", []), "wide_resnet50_2": ("torchvision", []), "seresnet50": ("timm", []), "densenet121": ("torchvision", []),
    "googlenet": ("torchvision", []), "inception_v3": ("torchvision", []), "squeezenet1_1": ("torchvision", []), "mobilenet_v2": ("torchvision", []),
    "mobilenet_v3_large": ("torchvision", []), "mnasnet1_0": ("torchvision", []), "efficientnet_b0": ("torchvision", []), "efficientnet_v2_s": ("torchvision", []), "regnet_y_400mf": ("torchvision", []),
}
SIZES = {"inception_v3": 299}
CLASSES, BATCH = 10, 8


def peer_side(folder, data, network, owner):
    """Runs under --python: prints the differences as JSON."""
    import h5py
    import numpy as np
    import onnx
    import onnxruntime
    import torch
    from safetensors.torch import load_file

    onnx.checker.check_model(f"{folder}/a.onnx", full_check=True)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others may use the machine
    session, inside = (onnxruntime.InferenceSession(f"{folder}/{name}.onnx", options, providers=["CPUExecutionProvider"]) for name in "an")
    with h5py.File(next(pathlib.Path(data).glob("val-*.h5"))) as file:
        pixels, labels = file["images"][()].transpose(0, 3, 1, 2), file["labels"][()]
    metadata = session.get_modelmeta().custom_metadata_map
    mean, std = (255 * np.array(json.loads(metadata[key]), np.float32)[:, None, None] for key in ("mean", "std"))
    parts = [pixels[i:i + 10].astype(np.float32) for i in range(0, len(pixels), 10)]
    logits = np.concatenate([session.run(["logits"], {"images": (part - mean) / std})[0] for part in parts])
    of_pixels = np.concatenate([inside.run(["logits"], {"images": part})[0] for part in parts])
    if owner == "timm":
        import timm
        model = timm.create_model(network, num_classes=CLASSES)
    else:
        import torchvision
        extra = {"googlenet": {"aux_logits": False, "init_weights": False}, "inception_v3": {"aux_logits": False, "init_weights": False}}
        model = torchvision.models.get_model(network, num_classes=CLASSES, **extra.get(network, {}))
    states = torch.load(f"{folder}/a.pth", weights_only=True), collections.OrderedDict(load_file(f"{folder}/a.safetensors"))
    states[1]._metadata = states[0]._metadata  # MNASNet asks for its version
    if hasattr(model, "transform_input"):
        model.transform_input = False
    for state in states:
        model.load_state_dict(state, strict=True)
    if states[0].keys() != states[1].keys() or not all(torch.equal(value, states[1][name]) for name, value in states[0].items()):
        sys.exit("pth and safetensors differ")
    model.eval()
    with torch.inference_mode():
        theirs = np.concatenate([model(torch.from_numpy((part - mean) / std)).numpy() for part in parts])
    worst = float(np.abs(theirs - logits).max() / np.abs(theirs).max())
    e = np.exp(logits - logits.max(1, keepdims=True))
    told = [json.loads(line)["classes"] for line in open(f"{folder}/predictions", encoding="utf-8")]
    ours = np.array([[c["probability"] for c in sorted(row, key=lambda c: c["class"])] for row in told])
    ranked = np.sort(theirs, 1)
    print(json.dumps({"images": len(pixels), "torch": worst, "lead": float((ranked[:, -1] - ranked[:, -2]).min() / np.abs(theirs).max()),
                      "classes": len(set(theirs.argmax(1))), "hits": [int((of.argmax(1) == labels).sum()) for of in (logits, of_pixels, theirs)],
                      "inside": float(np.abs(of_pixels - logits).max() / np.abs(logits).max()),
                      "predict": float(np.abs(ours - e / e.sum(1, keepdims=True)).max()), "spread": float(np.ptp(ours)),
                      "other_classes": int((ours.argmax(1) != logits.argmax(1)).sum()),
                      "versions": f"onnxruntime {onnxruntime.__version__}, PyTorch {torch.__version__}"}))


def compare(args, network, sets, folder):
    owner, options = NETWORKS[network]
    size = args.image_size or SIZES.get(network, 224)
    data = f"{sets}/{size}"
    program = f"{args.build}/src/cli/convoy"

    def call(*words):
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def hits(*words):
        said = call(program, "evaluate", *words, "--data", data, "--output-dir", f"{folder}/evaluated")
        return json.loads([line for line in said.splitlines() if line.startswith("{")][-1])["top1_count"]

    if not os.path.exists(data):
        made = ("folder", "--source", args.source, "--encoding", "raw", "--sizes", size, "--subset", args.steps * BATCH, "--val-subset", args.images)
        if not args.source:
            made = ("synthetic", "--samples", args.steps * BATCH, "--val-samples", args.images, "--image-size", size, "--classes", CLASSES)
        call(f"{args.build}/preprocess/convoy-preprocess", *made, "--partitions", 1, "--val-partitions", 1, "--out", data)
    # Two steps make statistics, and many more of them classes: by AdamW, which also moves networks without norms.
    rule = ("--optimizer", "adamw", "--lr", 0.0003) if args.steps > 2 else ("--lr", 0.01)
    if network not in ("alexnet", "squeezenet1_1"):
        rule += "--norm-momentum", 0.1 if args.steps > 2 else 0.9
    call(program, "train", "--data", data, "--model", network, *options, "--batch-size", BATCH, "--max-steps", args.steps, *rule, "--skip-eval",
         "--no-tensorboard", "--output-dir", f"{folder}/run")
    for name in ("a.onnx", "a.pth", "a.safetensors"):
        call(program, "export", f"{folder}/run", "--output", f"{folder}/{name}")
    call(program, "export", f"{folder}/run", "--with-normalization", "--output", f"{folder}/n.onnx")
    with open(f"{folder}/predictions", "w", encoding="utf-8") as file:
        file.write(call(program, "predict", f"{folder}/run", data, "--format", "json", "--topk", CLASSES))
    found = json.loads(call(args.python, __file__, "--peer-side", folder, data, network, owner))
    found["hits"] += [hits(f"{folder}/run")] + [hits("--weights", f"{folder}/{name}") for name in ("a.onnx", "a.pth", "a.safetensors")]
    return found


def compare_all(args, sets):
    """Whether one fails. `sets`: folder for the images, a set per size."""
    failed = False
    for network in args.networks or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="convoy-bench-", dir=sets) as folder:
            r = compare(args, network, sets, folder)
        failed |= max(r["torch"], r["inside"], r["predict"]) > LIMIT or r["other_classes"] > 0 or len(set(r["hits"])) > 1
        print(f"| {datetime.date.today()} | {network} | {r['images']} | {', '.join(map(str, r['hits']))} | {r['classes']} | {r['lead']:.1e} | "
              f"{r['torch']:.1e} | {r['inside']:.1e} | {r['predict']:.1e}, they range over "
              f"{r['spread']:.2f} | {NETWORKS[network][0]}, {r['versions']} | {cpu_model()} |", flush=True)
    return failed


def main():
    if sys.argv[1:2] == ["--peer-side"]:
        return peer_side(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--python", required=True, help="interpreter with the peers")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--source", help="folder or archive of photographs with train and val; default: generated images")
    parser.add_argument("--steps", type=int, default=2, help=f"of training, {BATCH} images each")
    parser.add_argument("--image-size", type=int, help="default: the network's usual size, the only one at which torchvision's alexnet and vgg are Convoy's")
    parser.add_argument("--build", default=str(HERE.parent / "build/release"))
    args = parser.parse_args()
    print("| date | network | images | top-1: onnxruntime, normalisation inside, PyTorch; `convoy evaluate`: run, onnx, pth, safetensors | classes told | lead | "
          "logits, onnxruntime to PyTorch | normalisation inside | probabilities, onnxruntime to `convoy predict` | peer | machine |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as sets:
        return int(compare_all(args, sets))


if __name__ == "__main__":
    sys.exit(main())
