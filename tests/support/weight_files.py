# SPDX-License-Identifier: Apache-2.0
"""Second readers of safetensors and of PyTorch's zip archives, with the standard library and numpy alone."""
import collections
import io
import json
import pickle
import struct
import zipfile

import numpy as np

TYPES = {"F32": "<f4", "I64": "<i8", "FloatStorage": "<f4", "LongStorage": "<i8"}


def read_safetensors(path):
    """Tensors by name, and metadata."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    metadata, tensors, end = header.pop("__metadata__", {}), {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin = entry["data_offsets"][0]
        assert begin == end, f"{name} begins at {begin}, the one before it ended at {end}"
        end = entry["data_offsets"][1]
        tensors[name] = np.frombuffer(body[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    assert end == len(body), "bytes that belong to no tensor"
    return tensors, metadata


def read_pth(path):
    """The OrderedDict of tensors by name, with its attributes. Refuses what torch.load(weights_only=True) refuses."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, "a record is damaged"
        root = archive.namelist()[0].split("/")[0]

        def rebuild(storage, offset, shape, stride, requires_grad, hooks):
            assert not requires_grad and not hooks
            values = np.frombuffer(archive.read(f"{root}/data/{storage[2]}"), TYPES[storage[1]])
            assert len(values) == storage[4], "a storage has another length than it says"
            return np.lib.stride_tricks.as_strided(values[offset:], shape, [s * values.itemsize for s in stride])

        class Reader(pickle.Unpickler):
            def find_class(self, module, name):
                known = {("collections", "OrderedDict"): collections.OrderedDict, ("torch._utils", "_rebuild_tensor_v2"): rebuild,
                         ("torch", "FloatStorage"): "FloatStorage", ("torch", "LongStorage"): "LongStorage"}
                return known[module, name]

            def persistent_load(self, pid):
                return pid

        return Reader(io.BytesIO(archive.read(f"{root}/data.pkl"))).load()
