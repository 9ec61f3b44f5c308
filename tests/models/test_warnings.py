# SPDX-License-Identifier: Apache-2.0
"""Emitted operators have no warnings of conversions with other compilers: one program per operator and dtype.

`executor.py` compiles the programs of all campaigns with the same warnings, with gcc for this machine. One compiler
optimises: it also warns of variables that are not initialised on all paths.
"""

import itertools
import subprocess

import numpy as np
import pytest
from requirements_support import need, need_compiler

need("tflite", "ai_edge_litert")

from models import indexed, layers, moves, test_hybrid  # noqa: E402
from models.campaigns import graph_of  # noqa: E402
from models.elements import quantised  # noqa: E402
from models.executor import WARNINGS, joined  # noqa: E402
from models.lstms import byte_lstm, float_lstm, micro_lstm  # noqa: E402
from models.made import Model  # noqa: E402
from models.test_arithmetic import binary, shifted, sums  # noqa: E402
from models.test_comparison import NUMBERS  # noqa: E402
from models.test_conversion import CASTS, PAIRS  # noqa: E402
from models.test_pools import NORMALISATIONS, POOLS, normalisation, pool  # noqa: E402
from models.test_products import computed, product, transposed  # noqa: E402
from models.test_recurrent import small_svdf, svdf  # noqa: E402
from models.test_reductions import (  # noqa: E402
    POSITIONS,
    REDUCTIONS,
    byte_running_sum,
    greatest,
    position,
    reduction,
    running_sum,
)
from models.test_unary import DTYPES, FLOATS, unary  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.emit.emit import emit_program  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph, with_passes  # noqa: E402

QUANTISED = ("int8", "uint8", "int16")
WEIGHTED = (*QUANTISED, "float32")
ARITHMETIC = {
    "MUL": (*WEIGHTED, "int32", "int64", "uint32"),
    "DIV": (*WEIGHTED, "int32"),
    "MINIMUM": (*WEIGHTED, "int32", "int64"),
    "SQUARED_DIFFERENCE": ("float32", "int8", "int32"),
}
PLAIN = {
    "FLOOR_DIV": ("float32", "int8", "int16", "int32"),
    "FLOOR_MOD": ("float32", "int8", "int16", "int32", "int64"),
    "POW": ("float32", "int32"),
}
FAMILIES = [
    *((unary, kind, dtype) for kind, dtypes in DTYPES.items() for dtype in dtypes),
    *((unary, kind, "float32") for kind in FLOATS),
    *((binary, kind, dtype) for kind, dtypes in ARITHMETIC.items() for dtype in dtypes),
]
"""Builders (kind, random, dtype)."""
OTHERS = [
    *((sums(kind), dtype) for kind in ("ADD", "SUB") for dtype in (*WEIGHTED, "int32", "int64")),
    *((make, dtype) for make, dtypes in {**moves.KINDS, **indexed.KINDS}.values() for dtype in dtypes),
    *((make, dtype) for make in layers.KINDS.values() for dtype in WEIGHTED),
    *((computed, kind, dtype) for kind in layers.KINDS for dtype in WEIGHTED),
    *((pool, *rest) for rest in POOLS),
    *((normalisation, *rest) for rest in NORMALISATIONS),
    *((reduction, *rest) for rest in REDUCTIONS),
    *((position, *rest) for rest in POSITIONS),
    *((greatest, dtype) for dtype in ("float32", *QUANTISED)),
    *((running_sum, dtype) for dtype in ("float32", "int32", "int64")),
    *((transposed, dtype) for dtype in WEIGHTED),
    *((product, dtype, dtype) for dtype in ("float32", "int8", "int16")),
    *((test_hybrid.layer, kind) for kind in layers.KINDS),
    (test_hybrid.product, "BATCH_MATMUL"),
    (test_hybrid.transposed, "TRANSPOSE_CONV"),
    *((svdf, *rest) for rest in (("float32",), ("int8",), ("float32", True))),
    *((float_lstm, is_hybrid) for is_hybrid in (False, True, True)),
    *((micro_lstm, dtype) for dtype in ("int8", "int16")),
    *((make,) for make in (small_svdf, byte_running_sum, byte_lstm, byte_lstm, byte_lstm)),
]
"""Builders (random, ...)."""
COMPILERS = {
    "clang": ("clang",),
    "32 bits": ("gcc", "-m32", "-O1"),
    "cortex-m3": ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"),
    "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
}
KERNELS = {"cortex-m4": "dsp"}
SHAPE = (2, 3, 4)


def models():
    """Yield a model of each operator and dtype."""
    random = np.random.default_rng(3)
    for make, kind, dtype in FAMILIES:
        yield make(kind, random, dtype)
    for make, *rest in OTHERS:
        yield make(random, *rest)
    yield shifted("ADD", random, {"pot_scale_int16": True})
    for kind, dtype in [(kind, dtype) for kind, dtypes in PLAIN.items() for dtype in dtypes]:
        yield of_one(kind, [(dtype,)] * 2, (dtype,))
    for dtype in NUMBERS:
        given = (dtype, *quantised(random, dtype))
        yield of_one("LESS", [given] * 2, ("bool",))
        yield of_one("SELECT", [("bool",), given, given], given)
    for dtype in QUANTISED:
        given = (dtype, *quantised(random, dtype))
        yield of_one("DEQUANTIZE", [given], ("float32",))
        yield of_one("PRELU", [given, ("int8" if dtype == "int16" else dtype, 0.01, 3)], given)
        yield of_one("MUL", [("int16", 0.001, 0)] * 2, given)
    for source, target in PAIRS:
        yield of_one("QUANTIZE", [(source, *quantised(random, source))], (target, *quantised(random, target)))
    for source, target in itertools.permutations(CASTS, 2):
        yield of_one("CAST", [(source,)], (target,), in_data_type=source, out_data_type=target)


def of_one(kind, inputs, result, **options):
    """Return a model of one operator: inputs and the result are (dtype, scale, zero)."""
    model = Model()
    given = [model.input(dtype, SHAPE, *rest) for dtype, *rest in inputs]
    model.output(model.operator(kind, given, result, **options))
    return model


@pytest.fixture(scope="module")
def programs():
    """Return the program of each model."""
    return [with_passes(lower_graph(graph_of(model.build()), "made.tflite", Diagnostics())) for model in models()]


@pytest.mark.parametrize("name", COMPILERS)
def test_conversions(name, programs, tmp_path):
    compiler, *flags = COMPILERS[name]
    need_compiler(compiler, flags)
    kernels, source = KERNELS.get(name, "portable"), tmp_path / "all.c"
    emitted = [emit_program(one, "made by a test", kernels, f"p{number}_") for number, one in enumerate(programs)]
    text, symbols = joined(emitted)
    assert len(symbols) > 300
    source.write_text(text, encoding="utf-8")
    ends = ("-c", "-o", tmp_path / "all.o") if "-O1" in flags else ("-fsyntax-only",)
    command = [compiler, *flags, *WARNINGS, source, *ends]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
