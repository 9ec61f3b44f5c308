# SPDX-License-Identifier: Apache-2.0
"""Damage to model files."""

import contextlib
import io
import json
import struct
import zipfile

_EXTREME = [0, 1, -1, 2**31 - 1, -(2**31), 0x7F, 0xFFFF, 1 << 24]
_KINDS = ["Add", "MatMul", "Reshape", "Concat", "Transpose", "Gather", "Softmax", "LSTM"]


def flip(data, source):
    for _ in range(source.randint(1, 8)):
        data[source.randrange(len(data))] = source.randrange(256)
    return data


def cut(data, source):
    return data[: source.randrange(len(data))]


def extreme(data, source):
    """Write limits of ranges to offsets and sizes of flatbuffers."""
    for _ in range(source.randint(1, 4)):
        at = source.randrange(max(len(data) // 4 - 1, 1)) * 4
        struct.pack_into("<i", data, at, source.choice(_EXTREME))
    return data


def head(data, source):
    """Change bytes of tables, not of weights."""
    for _ in range(source.randint(1, 4)):
        data[source.randrange(min(len(data), 1500))] ^= 1 << source.randrange(8)
    return data


def tail(data, source):
    """Change bytes at the end: TFLite's writer puts operators there, ONNX's the interface."""
    for _ in range(source.randint(1, 4)):
        data[-1 - source.randrange(min(len(data), 1500))] ^= 1 << source.randrange(8)
    return data


def move(data, source):
    """Copy one part over another."""
    size = source.randint(1, min(64, len(data)))
    begin, end = source.randrange(len(data) - size + 1), source.randrange(len(data) - size + 1)
    data[end : end + size] = data[begin : begin + size]
    return data


MUTATIONS = [flip, cut, extreme, head, tail, move]


def damaged(content, source):
    return bytes(source.choice(MUTATIONS)(bytearray(content), source))


def damaged_onnx(content, source):
    """Return an ONNX file with other attributes, sizes, dtypes or connections: most damaged bytes end the parse."""
    import onnx

    model = onnx.load_from_string(content)
    graph = model.graph
    for _ in range(source.randint(1, 3)):
        node, kind = source.choice(graph.node), source.randrange(6)
        if kind == 0 and node.attribute:
            attribute = source.choice(node.attribute)
            numbers = attribute.ints or [0]
            attribute.i = source.choice(_EXTREME)
            attribute.f = source.choice([0.0, -1.0, 1e38, float("nan")])
            if attribute.ints:
                numbers[source.randrange(len(numbers))] = source.choice([0, 1, 2, 3, -1, 7, 1 << 20, 1 << 40])
        elif kind == 1 and node.attribute:
            del node.attribute[source.randrange(len(node.attribute))]
        elif kind == 2 and node.input:
            names = [name for one in graph.node for name in (*one.input, *one.output)]
            node.input[source.randrange(len(node.input))] = source.choice(["", *names])
        elif kind == 3 and node.input:
            del node.input[source.randrange(len(node.input))]
        elif kind == 4:
            node.op_type = source.choice(_KINDS)
        elif graph.initializer:
            tensor = source.choice(graph.initializer)
            if tensor.dims and source.random() < 0.5:
                tensor.dims[source.randrange(len(tensor.dims))] = source.choice([0, 1, 2, 5, -1, 1 << 31])
            else:
                tensor.data_type = source.randrange(24)
    return bytes(model.SerializeToString())


_NAMES = ["", "x", "add", "torch.ops.aten.relu.default", "torch.ops.aten.linear.default", "../x", "model"]
_VALUES = [None, True, {}, [], 0, 1, -1, 3, 7, 1 << 20, 1 << 40, 1 << 70, 0.5, -1e300, float("nan"), *_NAMES]


def damaged_torch(content, source):
    """Return an archive of PyTorch with other members, texts or bytes: damaged bytes alone end at the checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(source.randint(1, 3)):
        texts = [name for name in members if name.endswith(".json")]
        kind = source.randrange(8)
        if kind < 5 and texts:
            name = max(texts, key=lambda one: len(members[one])) if kind < 3 else source.choice(texts)
            with contextlib.suppress(ValueError):  # a text that is damaged already
                tree = json.loads(members[name])
                _change(tree, source)
                members[name] = json.dumps(tree).encode()
            continue
        name = source.choice(list(members))
        if kind == 5:
            members[name] = bytes(source.choice(MUTATIONS)(bytearray(members[name].ljust(8, b"0")), source))
        elif kind == 6:
            del members[name]
        else:
            members[source.choice([*members, "m/data/aotinductor/a.so", "m/../x"])] = members[name]
        if not members:
            break
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", source.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


def _change(tree, source):
    """Change, move or remove one value anywhere in a JSON tree."""
    places, queue = [], [tree] if isinstance(tree, (dict, list)) else []
    while queue:
        one = queue.pop()
        for key, value in one.items() if isinstance(one, dict) else enumerate(one):
            places.append((one, key))
            if isinstance(value, (dict, list)):
                queue.append(value)
    if not places:
        return
    owner, key = source.choice(places)
    kind = source.randrange(4)
    if kind == 0:
        del owner[key]
    elif kind == 1:
        other, at = source.choice(places)
        owner[key] = json.loads(json.dumps(other[at]))
    elif kind == 2 and isinstance(owner[key], (int, float)):
        owner[key] = source.choice([0, 1, -1, 2, 1 << 31, 1 << 62, owner[key] + 1])
    else:
        owner[key] = source.choice(_VALUES)
