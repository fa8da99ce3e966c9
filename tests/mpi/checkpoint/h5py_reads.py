# SPDX-License-Identifier: Apache-2.0
"""h5py reads a checkpoint: names, shapes, meta, and values that this script computes by itself."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

MASK = 2**64 - 1


def mix_bits(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def hash_text(text, seed):
    h = 0xCBF29CE484222325 ^ mix_bits(seed)
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return mix_bits(h)


def formula(name, seed, shape):
    start = hash_text(name, seed)
    count = int(np.prod(shape))
    bits = [mix_bits((start + i) & MASK) >> 40 for i in range(count)]
    return np.array([b * 2.0**-23 - 1.0 for b in bits], dtype=np.float32).reshape(shape)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder, "1"], check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert sorted(os.listdir(folder)) == ["attempts", "last.h5"] + [f"last.shard-{r:04}.a0002" for r in range(3)], os.listdir(folder)

    with h5py.File(f"{folder}/last.h5", "r") as file:
        assert sorted(file) == ["optimiser", "parameters", "state", "statistics"], sorted(file)
        assert file.attrs["format"] in ("convoy-checkpoint", b"convoy-checkpoint")
        assert file.attrs["version"] == 1
        meta = json.loads(file.attrs["meta"])
        assert meta["position"] == {"epoch": 0, "step_in_epoch": 1, "step": 1, "images": 64}, meta
        assert meta["model"] == "small" and meta["replicas"] == 3
        assert [s["file"] for s in meta["shards"]] == [f"last.shard-{r:04}.a0002" for r in range(3)]
        assert [s["samples_since_average"] for s in meta["shards"]] == [1, 1, 1]
        for name, shape in [("conv1.weight", (5, 3, 3, 3)), ("bn1.weight", (5,)), ("fc.weight", (1000, 5))]:
            stored = file["parameters"][name]
            assert stored.dtype == np.float32 and stored.shape == shape, (name, stored)
            assert np.array_equal(stored[...], formula("value " + name, 100, shape)), name
            assert np.array_equal(file["optimiser/0"][name][...], formula("slot 0" + name, 100, shape)), name
        assert np.array_equal(file["statistics/bn1.running_mean"][...], formula("mean bn1", 100, (5,)))
        assert np.array_equal(file["statistics/bn1.running_var"][...], formula("var bn1", 100, (5,)))
        assert np.array_equal(file["state"][...], formula("state", 100, (16,)))

    with h5py.File(f"{folder}/last.shard-0002.a0002", "r") as file:
        assert json.loads(file.attrs["meta"])["replica"] == 2
        assert np.array_equal(file["parameters/fc.bias"][...], formula("value fc.bias", 103, (1000,)))
