# SPDX-License-Identifier: Apache-2.0
"""seeds.py TARGET FOLDER makes whole inputs for a fuzz target; seeds.py TARGET --run PROGRAM ROUNDS replays damaged ones."""
import argparse
import collections
import io
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
import state_files  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402


def partition(folder):
    program = os.environ["CONVOY_PREPROCESS"]
    files = sets.make_set(2, side=16)
    with tempfile.TemporaryDirectory() as work:
        sets.write_folder(files, f"{work}/in")
        base = [program, "folder", "--train", f"{work}/in", "--threads", "1", "--keep-names", "--out"]
        subprocess.run([*base, f"{work}/raw", "--sizes", "8", "--mean-image"], check=True, capture_output=True)
        subprocess.run([*base, f"{work}/jpeg", "--encoding", "jpeg"], check=True, capture_output=True)
        for kind in ("raw", "jpeg"):
            os.replace(f"{work}/{kind}/train-00000-of-00001.h5", f"{folder}/{kind}")


def image(folder):
    base = Image.fromarray(sets.photo(3, 40, 56))
    exif = Image.Exif()
    exif[0x0112] = 6
    kinds = {"plain": sets.jpeg(base), "444": sets.jpeg(base, subsampling=0), "progressive": sets.jpeg(base, progressive=True),
             "grey": sets.jpeg(base.convert("L")), "ink": sets.jpeg(base.convert("CMYK")), "turned": sets.jpeg(base, exif=exif),
             "restart": sets.jpeg(base, restart_marker_blocks=2), "png": sets.png(base), "palette": sets.png(base.convert("P")),
             "alpha": sets.png(base.convert("RGBA")), "bits": sets.png(base.convert("1")), "turned-png": sets.png(base, exif=exif),
             "webp": sets.encoded(base, "WEBP", exif=exif), "moving": sets.encoded(base, "WEBP", save_all=True, append_images=[base.rotate(9)])}
    for name, data in kinds.items():
        for i, choice in enumerate((b"\0\0\0\0", b"\2\x20\x30\x90", b"\x06\x20\x30\x90", b"\3\x80\x10\x40")):
            sets.write(f"{folder}/{name}-{i}", data + choice)


def containers(folder):
    files = list(sets.make_set(1, side=12).items())
    magic = b"\x0a\x23\xd7\xce"
    records = b"".join(sets.record(float(c), i, b"\0" * 4 + magic + d if i % 2 else d, labels=(1.0, 2.0) if i == 2 else ())
                       for i, (_, (d, c)) in enumerate(files))
    sets.write(f"{folder}/records", b"R" + records)
    for name, form in (("gnu", 1), ("pax", 2), ("ustar", 0)):
        members = [("x" * (120 if form else 20) + n, d) for n, (d, _) in files] + [("empty", b""), ("a.cls", b"12")]
        sets.write(f"{folder}/tar-{name}", b"T" + sets.tar_of(members, format=form))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind in (("../a/./b.jpg", tarfile.REGTYPE), ("/c/../d.jpg", tarfile.REGTYPE), ("a/h.jpg", tarfile.LNKTYPE),
                           ("a/s.jpg", tarfile.SYMTYPE), ("a/..", tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "a/b.jpg"
            tar.addfile(info)
    sets.write(f"{folder}/tar-paths", b"T" + buffer.getvalue())
    for i, text in enumerate(("a/b.jpg 7\nc d.jpg 8\n", "1\t3.0\t4\ta.jpg\n", "ImageId,PredictionString\nx,n01 1 2 3 4\n",
                              "mv a.JPEG n01/\nmkdir -p n01\n", "n01440764\nn01443537\n", "490\n", "a.jpg 3\n\v\f\n",
                              "\ufeffa.jpg 3\na.png 4\n", "\ufeffn01440764\n")):
        sets.write(f"{folder}/labels-{i}", b"L" + text.encode())


def tensors(folder):
    state = {"conv1.weight": np.arange(6, dtype=np.float32).reshape(1, 2, 3), "bn1.running_var": np.ones(2, np.float64),
             "bn1.num_batches_tracked": np.array(7), "fc.bias": np.zeros(3, np.float16)}
    state_files.write_safetensors(f"{folder}/safetensors", state, {"format": "pt"})
    state_files.write_pth(f"{folder}/pth", state)
    state_files.write_pth(f"{folder}/nested", {"epoch": 3, "best": 0.5, "state_dict": state, "optimizer": {"lr": [0.1, None, True]}})
    rest = {"args": argparse.Namespace(device=state_files.Device("cpu")), "n": collections.Counter("aab"), "d": collections.defaultdict(list, a=[1]),
            "set": {1, 2}, "f": frozenset("a"), "long": 2**70, "bytes": b"abc", "buffer": bytearray(b"abc"), "array": [np.arange(3)], "int": np.arange(3, dtype=np.int32)}
    for protocol in (2, 5):
        state_files.write_pth(f"{folder}/script-{protocol}", {**rest, "ema": {"module": state}, "model": {**state, "view": np.broadcast_to(np.ones((1, 2), np.float32), (3, 2))}}, protocol)
    weights = {"conv.weight": np.ones((2, 1, 3, 3), np.float32), "scale": np.ones(2, np.float16), "rows": np.ones((2, 2), np.float64),
               "to": np.array([-1, 2]), "root": np.array(2**0.5, np.float32)}
    state_files.write_onnx(f"{folder}/onnx", [
        ("Conv", ["image", "conv.weight"], "conv", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 1}),
        ("BatchNormalization", ["conv", *["scale"] * 4], "bn", {}), ("Sigmoid", ["bn"], "s", {}), ("Mul", ["bn", "s"], "silu", {}),
        ("MaxPool", ["silu"], "pool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}), ("Identity", ["pool"], "same", {}),
        ("Concat", ["same", "pool", "same"], "wide", {"axis": 1}), ("GlobalAveragePool", ["same"], "mean", {}), ("Div", ["mean", "root"], "erf", {}),
        ("Reshape", ["mean", "to"], "flat", {}), ("MatMul", ["flat", "rows"], "fc", {}), ("Softmax", ["fc"], "y", {})], weights)
    state_files.write_pth(f"{folder}/turned", {"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T})


target = sys.argv[1]
makers = {"partition": partition, "image": image, "containers": containers, "tensors": tensors}
if sys.argv[2] != "--run":
    os.makedirs(sys.argv[2], exist_ok=True)
    makers[target](sys.argv[2])
    sys.exit(0)
with tempfile.TemporaryDirectory(prefix="convoy-test-") as work_folder:
    makers[target](work_folder)
    seeds = sorted(os.path.join(work_folder, n) for n in os.listdir(work_folder))
    # Few processes a second can be forked; and partitions are larger.
    done = subprocess.run([sys.argv[3], sys.argv[4], *seeds], timeout=100, check=False, stderr=subprocess.DEVNULL)
    sys.exit(done.returncode)
