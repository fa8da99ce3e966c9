# SPDX-License-Identifier: Apache-2.0
"""A second reader of ONNX files: the protobuf wire format by its definition, and the operators in numpy, slow and plain."""
import math
import struct

import numpy as np


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """number -> values of a message, in order: integers, or bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
            value -= (value >> 63) << 64
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "a message ends early"
        else:
            width = {1: 8, 5: 4}[kind]
            value, at = data[at:at + width], at + width
        found.setdefault(key >> 3, []).append(value)
    return found


def text(message, number):
    return message.get(number, [b""])[0].decode()


class Model:
    def __init__(self, path):
        with open(path, "rb") as file:
            model = fields(file.read())
        self.ir_version = model[1][0]
        self.producer = text(model, 2)
        self.opset = fields(model[8][0])[2][0]
        self.metadata = {text(p, 1): text(p, 2) for p in map(fields, model.get(14, []))}
        graph = fields(model[7][0])
        self.nodes = [self.node(fields(n)) for n in graph[1]]
        self.tensors = dict(self.tensor(fields(t)) for t in graph[5])
        self.inputs, self.outputs = ([self.value(fields(v)) for v in graph[number]] for number in (11, 12))

    @staticmethod
    def tensor(message):
        assert message[2] == [1], "tensors are float"
        return text(message, 8), np.frombuffer(message[9][0], "<f4").reshape([int(d) for d in message.get(1, [])])

    @staticmethod
    def value(message):
        tensor = fields(fields(message[2][0])[1][0])
        assert tensor[1] == [1], "values are float"
        sides = [fields(d) for d in fields(tensor[2][0])[1]]
        return text(message, 1), [side[1][0] if 1 in side else text(side, 2) for side in sides]

    @staticmethod
    def node(message):
        attributes = {}
        for a in map(fields, message.get(5, [])):
            kind = a[20][0]
            attributes[text(a, 1)] = struct.unpack("<f", a.get(2, [bytes(4)])[0])[0] if kind == 1 else a.get(3, [0])[0] if kind == 2 else a[8]
        return text(message, 4), [i.decode() for i in message[1]], message[2][0].decode(), attributes

    def run(self, images):
        values = dict(self.tensors, **{self.inputs[0][0]: images.astype(np.float32)})
        for kind, reads, made, attributes in self.nodes:
            assert made not in values, f"{made} is made twice"
            values[made] = OPERATORS[kind](*(values[name] for name in reads), **attributes)
        return values[self.outputs[0][0]]


def windows(x, kernel_shape, strides, pads, fill, ceil_mode=0):
    """n c p q r s."""
    (r, s), (down, across), (top, left, bottom, right) = kernel_shape, strides, pads
    sides = []
    for side, kernel, stride, before, after in ((x.shape[2], r, down, top, bottom), (x.shape[3], s, across, left, right)):
        room = side + before + after - kernel
        sides.append((-(-room // stride) if ceil_mode else room // stride) + 1)
    p, q = sides
    padded = np.full((*x.shape[:2], (p - 1) * down + r, (q - 1) * across + s), fill, np.float32)
    h, w = min(x.shape[2], padded.shape[2] - top), min(x.shape[3], padded.shape[3] - left)
    padded[:, :, top:top + h, left:left + w] = x[:, :, :h, :w]
    return np.lib.stride_tricks.sliding_window_view(padded, (r, s), axis=(2, 3))[:, :, ::down, ::across]


def conv(x, weight, bias=None, *, kernel_shape, strides, pads, group):
    taps = windows(x, kernel_shape, strides, pads, 0)
    n, c, p, q = taps.shape[:4]
    taps = taps.reshape(n, group, c // group, p, q, *kernel_shape)
    y = np.einsum("ngcpqrs,gkcrs->ngkpq", taps, weight.reshape(group, -1, *weight.shape[1:]), optimize=True).reshape(n, -1, p, q)
    return y if bias is None else y + bias[:, None, None]


def max_pool(x, *, kernel_shape, strides, pads, ceil_mode=0):
    return windows(x, kernel_shape, strides, pads, -np.inf, ceil_mode).max((4, 5))


def average_pool(x, *, kernel_shape, strides, pads, count_include_pad):
    sums = windows(x, kernel_shape, strides, pads, 0).sum((4, 5))
    ones = windows(np.ones_like(x), kernel_shape, strides, pads, 1 if count_include_pad else 0).sum((4, 5))
    return sums / ones


def normalise(x, scale, bias, mean, var, *, epsilon, momentum):  # momentum: of training
    return ((x - mean[:, None, None]) / np.sqrt(var[:, None, None] + epsilon)) * scale[:, None, None] + bias[:, None, None]


def lrn(x, *, size, alpha, beta, bias):
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        first, last = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + -(-(size - 1) // 2))
        y[:, c] = x[:, c] / (bias + alpha / size * (x[:, first:last + 1] ** 2).sum(1)) ** beta
    return y


OPERATORS = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Tanh": np.tanh,
    "AveragePool": average_pool, "BatchNormalization": normalise, "Conv": conv, "LRN": lrn, "MaxPool": max_pool,
    "Clip": np.clip,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Erf": np.vectorize(math.erf, otypes=[np.float32]),
    "Flatten": lambda x: x.reshape(len(x), -1),
    "Gemm": lambda x, weight, bias=0.0, *, transB: x @ (weight.T if transB else weight) + bias,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "HardSigmoid": lambda x, *, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "LeakyRelu": lambda x, *, alpha: np.where(x > 0, x, alpha * x),
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
}
