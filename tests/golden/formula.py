# SPDX-License-Identifier: Apache-2.0
"""Values that both sides compute, so that no weights need to be stored. The same in C++: tests/support/formula.hpp."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(x):
    """The finaliser of SplitMix64 on an array of uint64."""
    x = x ^ (x >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_text(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return mix_bits(np.array([h], np.uint64))[0]


def bits(name, count):
    with np.errstate(over="ignore"):
        return mix_bits(hash_text(name) + np.arange(count, dtype=np.uint64) * GOLDEN)


def uniform(name, count):
    """Multiples of 2^-23 in [-1, 1): exact in fp32."""
    return ((bits(name, count) >> np.uint64(40)).astype(np.int64) - 2**23).astype(np.float32) * np.float32(2.0**-23)


def spread(name, count, scale=1.0, offset=0.0):
    """offset + scale * uniform, each step rounded to fp32."""
    return np.float32(offset) + np.float32(scale) * uniform(name, count)


def parameter(name, kind, shape):
    """kind: weight (bounded as He's uniform initialiser), bias, norm_scale, norm_shift."""
    count = int(np.prod(shape))
    if kind == "weight":
        values = spread(name, count, np.sqrt(6.0 / np.prod(shape[1:])))
    elif kind == "norm_scale":
        values = spread(name, count, 0.25, 1.0)
    else:
        values = spread(name, count, 0.1)
    return values.reshape(shape)


def images(name, n, height, width, channels):
    """Stored images, n h w c in bytes. The network sees (pixel - 128) / 64, exact in fp32."""
    return (bits(name, n * height * width * channels) >> np.uint64(56)).astype(np.uint8).reshape(n, height, width, channels)


def labels(name, count, classes):
    return (bits(name, count) % np.uint64(classes)).astype(np.int64)


def positions(count):
    """Of the samples of a batch, in the epoch."""
    return 100 + 7 * np.arange(count, dtype=np.int64)


def dropout_factors(rate, seed, step, node, sample_positions, count):
    """What dropout multiplies the `count` values of each sample by: src/backend/rules/dropout.hpp. `node`: its place in the graph."""
    with np.errstate(over="ignore"):
        start = mix_bits(np.array([seed ^ 0x64726F706F7574], np.uint64)) + GOLDEN * np.uint64(step)
        node_key = mix_bits(mix_bits(start) + GOLDEN * np.uint64(node))
        keys = mix_bits(node_key + GOLDEN * sample_positions.astype(np.uint64))
        chosen = mix_bits(keys[:, None] + GOLDEN * np.arange(count, dtype=np.uint64)[None, :]) >> np.uint64(32)
    return np.where(chosen < np.uint64(int(rate * 2**32)), 0.0, 1 / (1 - rate))


def weights(name, count):
    """Multiples of 2^-24 in [0, 1): exact in fp32."""
    return (uniform(name, count) + np.float32(1)) / np.float32(2)
