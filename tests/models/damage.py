# SPDX-License-Identifier: Apache-2.0
"""Damage to model files."""

import struct

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
