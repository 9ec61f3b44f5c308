# SPDX-License-Identifier: Apache-2.0
"""Damaged TFLite files: every result is a program, or errors; nothing else is raised, and nothing is written."""

import random
import time

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

need("tflite")

from models.made import Model  # noqa: E402
from models.test_convolutions import convolution, dense  # noqa: E402
from opwest.diagnostics import Diagnostics, OpwestError  # noqa: E402
from opwest.importers.models.convert import import_model  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.read import read_model  # noqa: E402
from opwest.importers.models.request import Options  # noqa: E402

READ = sized(400, 10_000)
IMPORTED = sized(60, 1_000)
MOST_SECONDS = 5.0
"""Of one file."""


def chain():
    """Return a model of several operators with constants that determine shapes."""
    model = Model()
    data = model.input("int8", (1, 6, 6, 4), 0.1, 3)
    border = model.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    data = model.operator("PAD", [data, border], ("int8", 0.1, 3))
    data = model.operator(
        "MAX_POOL_2D", [data], ("int8", 0.1, 3), filter_height=2, filter_width=2, stride_h=2, stride_w=2
    )
    shape = model.constant(np.array([1, -1], np.int32))
    data = model.operator("RESHAPE", [data, shape], ("int8", 0.1, 3))
    model.output(model.operator("SOFTMAX", [data], ("int8", 1 / 256, -128), beta=1.0))
    return model


def contents():
    generator = np.random.default_rng(5)
    return [convolution(generator, "int8").build(), dense(generator, "float32").build(), chain().build()]


def damaged(content, source):
    """Return a file with changed bytes, limits of ranges, exchanged or missing parts."""
    data = bytearray(content)
    kind = source.randrange(4)
    if kind == 0:
        for _ in range(source.randint(1, 8)):
            data[source.randrange(len(data))] = source.randrange(256)
    elif kind == 1:
        for _ in range(source.randint(1, 4)):
            at = source.randrange(len(data) // 4) * 4
            value = source.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFF, 1 << 24])
            data[at : at + 4] = value.to_bytes(4, "little")
    elif kind == 2:
        data = data[: source.randrange(8, len(data))]
    else:
        size = source.randrange(4, 64)
        at, to = source.randrange(len(data) - size), source.randrange(len(data) - size)
        data[to : to + size] = data[at : at + size]
    data[4:8] = b"TFL3"
    return bytes(data)


def test_readers():
    source, accepted, originals = random.Random(1), 0, contents()
    for number in range(READ):
        content, start = damaged(originals[number % len(originals)], source), time.process_time()
        try:
            for graph in read_model(content, "m.tflite"):
                check_graph(graph, "m.tflite", Diagnostics())
            accepted += 1
        except OpwestError as error:
            assert all(one.severity == "error" and one.message for one in error.diagnostics)
        assert time.process_time() - start < MOST_SECONDS, f"file {number}"
    assert 0 < accepted < READ


@pytest.mark.parametrize("part", range(3))
def test_imports(part, tmp_path):
    source, accepted = random.Random(10 + part), 0
    original = contents()[part]
    file = tmp_path / "m.tflite"
    for number in range(IMPORTED // 3):
        file.write_bytes(damaged(original, source))
        folder, start = tmp_path / str(number), time.process_time()
        try:
            import_model(file, folder, Options(vectors=0))
            accepted += 1
        except OpwestError:
            assert not folder.exists()
        assert time.process_time() - start < MOST_SECONDS, f"file {number}"
    assert accepted > 0
