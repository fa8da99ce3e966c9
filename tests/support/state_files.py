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

STORAGES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<f8": "DoubleStorage", "<i8": "LongStorage"}
TYPES = {"<f4": "F32", "<f2": "F16", "<f8": "F64", "<i8": "I64"}


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


_torch = _module("torch", **{name: type(name, (), {}) for name in ("FloatStorage", "HalfStorage", "DoubleStorage", "LongStorage", "BFloat16Storage")})
_utils = _module("torch._utils", _rebuild_tensor_v2=_rebuild_tensor_v2)


class _Storage:
    def __init__(self, key, array):
        self.key, self.kind, self.count = key, getattr(_torch, STORAGES[array.dtype.str]), array.size


class _Tensor:
    """Pickled as a call of _rebuild_tensor_v2, with the array's own strides."""

    def __init__(self, key, array):
        self.key, self.array = key, array

    def __reduce__(self):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        arguments = (_Storage(self.key, self.array), 0, self.array.shape, strides, False, collections.OrderedDict())
        return _utils._rebuild_tensor_v2, arguments


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", obj.kind, obj.key, "cpu", obj.count) if isinstance(obj, _Storage) else None


def write_pth(path, value, protocol=2, compression=zipfile.ZIP_STORED):
    """`value`: arrays in dicts, and anything else that pickles."""
    arrays = []

    def wrapped(item):
        if isinstance(item, np.ndarray):
            arrays.append(item)
            return _Tensor(str(len(arrays) - 1), item)
        return collections.OrderedDict((k, wrapped(v)) for k, v in item.items()) if isinstance(item, dict) else item

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
