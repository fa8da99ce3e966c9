#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""State dicts of torchvision's (and timm's) networks as `convoy predict` reads them, against the networks themselves.

    bench/weights_vs_torchvision.py --python /path/to/python-with-torchvision [--convoy build/release/src/cli/convoy] [NETWORK ...]

Random weights (seeded; batch norms and the head are fitted to the images, so that classes differ), saved as .pth, as safetensors, and as
ONNX by torch.onnx.export, which folds batch norms into convolutions (expected there: what onnxruntime computes from the file);
100 random images (or --images) of the network's usual size as PNG files, which nothing resizes. Prints, for each network and file, how many
top-1 classes agree, how many classes are among them, and the largest difference of a log probability; how far the peer's fp32 and Convoy's are
from the same network in fp64, and the largest factor by which the head was multiplied, and so every difference; with lines for results.md.
"""
import argparse
import copy
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compare_step import cpu_model  # noqa: E402  (the path is set above)

CLASSES = 10
NETWORKS = {  # Convoy's model, its options; torchvision's name where it differs
    "resnet18": (), "resnet50": (), "wide_resnet50_2": (), "resnext50_32x4d": (), "vgg11_bn": (), "vgg11": (), "densenet121": (),
    "googlenet": (), "inception_v3": (), "mobilenet_v2": (), "mobilenet_v3_large": (), "mnasnet1_0": (), "efficientnet_b0": (), "efficientnet_v2_s": (), "efficientnet_v2_l": (), "regnet_y_400mf": (), "regnet_x_400mf": (), "squeezenet1_1": (),
    "alexnet": ("--variant", "owt"), "timm:mobilenetv2_100": ("--model", "mobilenet_v2"),
    "timm:mobilenetv3_large_100": ("--model", "mobilenet_v3_large"), "timm:efficientnet_b0": ("--model", "efficientnet_b0"),
    "timm:efficientnetv2_s": ("--model", "efficientnet_v2_s"), "timm:mnasnet_100": ("--model", "mnasnet1_0"), "timm:regnety_004": ("--model", "regnet_y_400mf"), "timm:vgg11_bn": ("--model", "vgg11_bn"), "timm:seresnet50": ("--model", "seresnet50"),
    "timm:densenet121": ("--model", "densenet121"), "timm:inception_v3": ("--model", "inception_v3"), "timm:inception_v4": ("--model", "inception_v4"), "timm:inception_resnet_v2": ("--model", "inception_resnet_v2")}
SIZES = {"inception_v3": 299, "timm:inception_v3": 299, "timm:inception_v4": 299, "timm:inception_resnet_v2": 299}
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def make(name, folder, images):
    """Runs in the Python that has torchvision: images, files, and the network's own log probabilities."""
    import numpy as np
    import onnxruntime
    import torch
    import torchvision
    from PIL import Image
    from safetensors.torch import save_file

    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    size = SIZES.get(name, 224)
    os.makedirs(f"{folder}/images")
    pictures = []
    for i in range(int(images)):
        coarse = rng.integers(0, 256, (5, 5, 3), dtype=np.uint8)
        picture = np.asarray(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)).astype(int)
        picture = np.clip(picture + rng.integers(-40, 41, picture.shape), 0, 255).astype(np.uint8)
        Image.fromarray(picture).save(f"{folder}/images/{i:03}.png")
        pictures.append(picture)
    x = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float()
    x = (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    if name.startswith("timm:"):
        import timm
        net = timm.create_model(name[5:], num_classes=CLASSES)
    else:
        more = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
        net = getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **more)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.2)
            module.momentum = None  # a cumulative average
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():
        net.train()
        for part in x.split(20):
            net(part)
        net.eval()
        logits = torch.cat([net(part) for part in x.split(20)])
        *_, head = (m for m in net.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d)))
        # Logits of a convolution are means of what ReLU leaves: their means become equal, since nothing can be subtracted.
        scale = 2 / logits.std(0, keepdim=True).clamp_min(1e-9) if isinstance(head, torch.nn.Linear) else 20 / logits.mean(0, keepdim=True).clamp_min(1e-3)
        head.weight.mul_(scale.view(-1, *[1] * (head.weight.dim() - 1)))
        head.bias.mul_(scale.view(-1))
        if isinstance(head, torch.nn.Linear):
            head.bias.sub_((logits * scale).mean(0))
        logits = torch.cat([net(part) for part in x.split(20)])
        exact = torch.cat([copy.deepcopy(net).double()(part.double()) for part in x.split(20)])
    torch.save(net.state_dict(), f"{folder}/weights.pth")
    save_file({k: v.contiguous() for k, v in net.state_dict().items()}, f"{folder}/weights.safetensors")
    torch.onnx.export(net, (x[:1],), f"{folder}/weights.onnx", dynamo=False, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    session = onnxruntime.InferenceSession(f"{folder}/weights.onnx", providers=["CPUExecutionProvider"])
    graph = torch.from_numpy(np.concatenate([session.run(None, {"x": part.numpy()})[0] for part in x.split(20)]))
    print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__, "onnxruntime": onnxruntime.__version__,
                      "scale": float(scale.max()), "exact": torch.log_softmax(exact, 1).tolist(),
                      "expected": torch.log_softmax(logits.double(), 1).tolist(), "onnx": torch.log_softmax(graph.double(), 1).tolist()}))


def compare(name, options, arguments):
    with tempfile.TemporaryDirectory(prefix="convoy-weights-") as folder:
        made = subprocess.run([arguments.python, __file__, "--make", name, folder, str(arguments.images)], check=True, capture_output=True, text=True)
        made = json.loads(made.stdout.splitlines()[-1])
        rows = []
        for kind in ("pth", "safetensors", "onnx"):
            size = SIZES.get(name, 224)
            expected = made["onnx" if kind == "onnx" else "expected"]
            model = () if kind == "onnx" else options if "--model" in options else ("--model", name, *options)
            command = [arguments.convoy, "predict", "--weights", f"{folder}/weights.{kind}", f"{folder}/images", *model, "--image-size", size,
                       "--resize", size, "--rgb-mean", ",".join(map(str, MEAN)), "--rgb-std", ",".join(map(str, STD)), "--format", "json", "--topk", CLASSES,
                       "--batch-size", 25]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{name}: {' '.join(map(str, command))}\n{done.stderr}")
            found = [json.loads(line)["classes"] for line in done.stdout.splitlines()]
            top = [max(range(CLASSES), key=row.__getitem__) for row in expected]
            agree = sum(row[0]["class"] == best for row, best in zip(found, top))
            told = [{c["class"]: math.log(c["probability"]) for c in classes if c["probability"] > 0.01} for classes in found]  # printed to a millionth

            def distance(of_class, to):
                return max(abs(of_class(i, c) - to[i][c]) for i, classes in enumerate(told) for c in classes)
            worst = distance(lambda i, c: told[i][c], expected)
            theirs, ours = distance(lambda i, c: expected[i][c], made["exact"]), distance(lambda i, c: told[i][c], made["exact"])
            rows.append((kind, agree, len(set(top)), worst, theirs, ours))
        return made, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--convoy", default="build/release/src/cli/convoy")
    arguments = parser.parse_args()
    wrong = 0
    print("| network | file | equal top-1 | largest difference | peer to fp64 | Convoy to fp64 | head times |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.networks or NETWORKS:
        made, rows = compare(name, NETWORKS[name], arguments)
        for kind, agree, different, worst, theirs, ours in rows:
            print(f"| {name} | {kind} | {agree} of {arguments.images} ({different} classes) | {worst:.1e} | {theirs:.1e} | {ours:.1e} | {made['scale']:.3g} |", flush=True)
            wrong += agree != arguments.images
    print(f"\n{datetime.date.today()}, {cpu_model()}; PyTorch {made['torch']}, torchvision {made['torchvision']}, onnxruntime {made['onnxruntime']}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(*sys.argv[2:])
    else:
        main()
