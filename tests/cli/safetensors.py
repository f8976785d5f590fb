"""Safetensors files, written and read by struct alone."""

import json
import struct

WIDTH_OF_TYPE = {"BF16": 2, "F32": 4, "I64": 8, "I32": 4, "U8": 1, "F8_E4M3": 1, "F8_E8M0": 1}


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype = dtype
        self.shape = list(shape)
        self.data = bytes(data)


def int64s(shape, values):
    return Tensor("I64", shape, struct.pack(f"<{len(values)}q", *values))


def int32s(shape, values):
    return Tensor("I32", shape, struct.pack(f"<{len(values)}i", *values))


def floats(shape, values):
    return Tensor("F32", shape, struct.pack(f"<{len(values)}f", *values))


def to_bytes(tensors, header_changes=None):
    """The file's bytes; `header_changes` may make the header lie."""
    header = {}
    data = b""
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [len(data), len(data) + len(tensor.data)],
        }
        data += tensor.data
    for name, changes in (header_changes or {}).items():
        header[name].update(changes)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write(path, tensors, header_changes=None):
    with open(path, "wb") as file:
        file.write(to_bytes(tensors, header_changes))


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    data = content[8 + size :]
    return {
        name: Tensor(entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
