# SPDX-License-Identifier: Apache-2.0
"""State dicts of numpy arrays as files: safetensors, and the zip archives of torch.save, made without PyTorch. The pickler writes
what PyTorch's does: stand-ins have the names of PyTorch's functions and classes."""
import collections
import json
import pickle
import struct
import sys
import types
import zipfile

import numpy as np

STORAGES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<f8": "DoubleStorage", "<i8": "LongStorage", "<i4": "IntStorage",
            "|u1": "ByteStorage", "|b1": "BoolStorage"}
TYPES = {"<f4": "F32", "<f2": "F16", "<f8": "F64", "<i8": "I64", "<i4": "I32"}


def write_safetensors(path, state, metadata=None):
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, array in state.items():
        header[name] = {"dtype": TYPES[array.dtype.str], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in state.values():
            file.write(array.tobytes())


def _module(name, **members):
    module = types.ModuleType(name)
    for key, member in members.items():
        member.__module__, member.__qualname__ = name, key
        setattr(module, key, member)
    return module


def _rebuild_tensor_v2(*_):
    """Only its name is pickled."""


_torch = _module("torch", **{name: type(name, (), {}) for name in (*STORAGES.values(), "device", "Size", "float16")})
_utils = _module("torch._utils", _rebuild_tensor_v2=_rebuild_tensor_v2)


class Device:
    """Pickled as torch.device is, a call of it."""

    kind = _torch.device

    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return self.kind, self.arguments


class Size(Device):
    """Pickled as torch.Size is: of a tuple."""

    kind = _torch.Size


FLOAT16 = _torch.float16  # pickled by its name, as torch's types are


class _Storage:
    def __init__(self, key, array):
        self.key, self.kind, self.count = key, getattr(_torch, STORAGES[array.dtype.str]), array.size


class Negated:
    """Written as PyTorch writes a view with the negative bit: the array, and that its values have the other sign."""

    def __init__(self, array):
        self.array = array


class _Tensor:
    """Pickled as a call of _rebuild_tensor_v2, with the array's own strides."""

    def __init__(self, key, array, negated):
        self.key, self.array, self.negated = key, array, negated

    def __reduce__(self):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        arguments = (_Storage(self.key, self.array), 0, self.array.shape, strides, False, collections.OrderedDict())
        if self.negated:
            arguments += ({"neg": True},)
        return _utils._rebuild_tensor_v2, arguments


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", obj.kind, obj.key, "cpu", obj.count) if isinstance(obj, _Storage) else None


def write_pth(path, value, protocol=2, compression=zipfile.ZIP_STORED):
    """`value`: arrays in dicts, and anything else that pickles."""
    arrays = []

    def wrapped(item):
        if isinstance(item, (np.ndarray, Negated)):
            arrays.append(item.array if isinstance(item, Negated) else item)
            return _Tensor(str(len(arrays) - 1), arrays[-1], isinstance(item, Negated))
        return collections.OrderedDict((k, wrapped(v)) for k, v in item.items()) if type(item) in (dict, collections.OrderedDict) else item

    ours = {"torch": _torch, "torch._utils": _utils}
    before = {name: sys.modules.get(name) for name in ours}
    sys.modules.update(ours)
    try:
        with zipfile.ZipFile(path, "w", compression) as archive:
            with archive.open("weights/data.pkl", "w") as file:
                _Pickler(file, protocol).dump(wrapped(value))
            archive.writestr("weights/byteorder", "little")
            for key, array in enumerate(arrays):
                archive.writestr(f"weights/data/{key}", array.tobytes("A"))
            archive.writestr("weights/version", "3\n")
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _varint(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def onnx_field(tag, value):
    """Of a message: a number, or bytes (text) of a known length."""
    if isinstance(value, int):
        return _varint(tag * 8) + _varint(value % 2**64)
    value = value.encode() if isinstance(value, str) else value
    return _varint(tag * 8 + 2) + _varint(len(value)) + value


def write_onnx(path, nodes, tensors, sides=(1, 4, 4)):
    """nodes: (type, inputs, output, {attribute: whole numbers}); the input is `image`, the output that of the last node."""
    graph = b""
    for kind, inputs, output, attributes in nodes:
        node = b"".join(onnx_field(1, name) for name in inputs) + onnx_field(2, output) + onnx_field(3, output) + onnx_field(4, kind)
        for name, values in attributes.items():
            number = onnx_field(3, values) + onnx_field(20, 2) if isinstance(values, int) else \
                b"".join(onnx_field(8, v) for v in values) + onnx_field(20, 7)
            node += onnx_field(5, onnx_field(1, name) + number)
        graph += onnx_field(1, node)
    for name, array in tensors.items():
        kind = {"<f4": 1, "<i8": 7, "<f2": 10, "<f8": 11}[array.dtype.str]
        graph += onnx_field(5, b"".join(onnx_field(1, side) for side in array.shape) + onnx_field(2, kind) + onnx_field(8, name) +
                            onnx_field(9, array.tobytes()))
    shape = onnx_field(1, onnx_field(2, "n")) + b"".join(onnx_field(1, onnx_field(1, side)) for side in sides)
    for tag, name in ((11, "image"), (12, nodes[-1][2])):
        graph += onnx_field(tag, onnx_field(1, name) + onnx_field(2, onnx_field(1, onnx_field(1, 1) + onnx_field(2, shape))))
    with open(path, "wb") as file:
        file.write(onnx_field(1, 8) + onnx_field(2, "pytorch") + onnx_field(7, graph) + onnx_field(8, onnx_field(2, 13)))
