# SPDX-License-Identifier: Apache-2.0
"""Emitted operators have no warnings of conversions with other compilers: one program per operator and dtype.

`executor.py` compiles the programs of all campaigns with the same warnings, with gcc for this machine. One compiler
optimises as for firmware: it also warns of variables that are not initialised on all paths.
"""

import itertools
import subprocess

import numpy as np
import pytest
from models import layers, moves, test_arithmetic
from models.campaigns import graph_of, quantised
from models.executor import WARNINGS, joined, program_of
from models.layers import byte_lstm
from models.made import of_one
from models.test_conversion import CASTS, PAIRS
from models.test_pools import POOLS
from models.test_products import HYBRID, PRODUCTS
from models.test_recurrent import STATES
from models.test_reductions import POSITIONS, REDUCTIONS, greatest, position, reduction, running_sum
from models.test_unary import DTYPES, FLOATS, unary
from opwest.compiler.output.emit import emit_program
from requirements_support import need_compiler

QUANTISED = ("int8", "uint8", "int16")
ELEMENTS = [
    *((unary, kind, dtype) for kind, dtypes in DTYPES.items() for dtype in dtypes),
    *((unary, kind, "float32") for kind in FLOATS),
    *((make, kind, dtype) for kind, (make, dtypes, _) in test_arithmetic.FAMILIES.items() for dtype in dtypes),
]
"""Builders (kind, random, dtype)."""
OTHERS = [
    *((make, dtype) for make, dtypes in moves.KINDS.values() for dtype in dtypes),
    *((make, dtype) for make in layers.KINDS.values() for dtype in (*QUANTISED, "float32")),
    *((reduction, *words) for words in REDUCTIONS),
    *((position, *words) for words in POSITIONS),
    *((greatest, dtype) for dtype in ("float32", *QUANTISED)),
    *((running_sum, dtype) for dtype in ("float32", "int32", "int64", "int8")),
    *POOLS,
    *PRODUCTS,
    *HYBRID,
    *(row[1:] for row in STATES.values()),
    *[(byte_lstm,)] * 2,
]
"""Builders (random, ...)."""
COMPILERS = {
    "clang": ("clang",),
    "32 bits": ("gcc", "-m32"),
    "cortex-m3": ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"),
    "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-O2"),
}
KERNELS = {"cortex-m4": "dsp"}
SHAPE = (2, 3, 4)


def models():
    random = np.random.default_rng(3)
    for make, kind, dtype in ELEMENTS:
        yield make(kind, random, dtype)
    for make, *words in OTHERS:
        yield make(random, *words)
    yield test_arithmetic.shifted("ADD", random, {"pot_scale_int16": True})
    for dtype in QUANTISED:
        given = (dtype, *quantised(random, dtype))
        yield of_one("DEQUANTIZE", [(dtype, SHAPE, *given[1:])], ("float32",))
        yield of_one("MUL", [("int16", SHAPE, 0.001, 0)] * 2, given)
    for source, target in PAIRS:
        given = (source, SHAPE, *quantised(random, source))
        yield of_one("QUANTIZE", [given], (target, *quantised(random, target)))
    for source, target in itertools.permutations(CASTS, 2):
        yield of_one("CAST", [(source, SHAPE)], (target,), in_data_type=source, out_data_type=target)


@pytest.fixture(scope="module")
def programs():
    return [program_of(graph_of(model.build())) for model in models()]


@pytest.mark.parametrize("name", COMPILERS)
def test_conversions(name, programs, tmp_path):
    compiler, *flags = COMPILERS[name]
    need_compiler(compiler, flags)
    kernels, source = KERNELS.get(name, "portable"), tmp_path / "all.c"
    emitted = [emit_program(one, "made by a test", kernels, f"p{number}_") for number, one in enumerate(programs)]
    text, symbols = joined(emitted)
    assert len(symbols) > 300
    source.write_text(text, encoding="utf-8")
    ends = ("-c", "-o", tmp_path / "all.o") if "-O2" in flags else ("-fsyntax-only",)
    command = [compiler, *flags, *WARNINGS, source, *ends]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
