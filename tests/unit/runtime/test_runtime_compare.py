# SPDX-License-Identifier: Apache-2.0
"""opwest_compare against numpy: every element type, exactly and within tolerances, at the limits of the types."""

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest
from c_support import ROOT, SANITIZED, execute, run
from requirements_support import need_compiler

PROGRAM = Path(__file__).parent / "programs" / "compare.c"
SOURCES = [ROOT / "zephyr_module" / "src" / name for name in ("compare.c", "metadata.c")]
DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split()
TOLERANCES = [(0, 0), (1, 0), (0.5, 0), (0, 0.25), (2, 0.125), (0, 1e-5), (1e300, 0)]


def limits(dtype: str) -> list:
    if dtype == "bool":
        return [False, True]
    if dtype.startswith("float"):
        info = np.finfo(dtype)
        return [0.0, -0.0, 1.0, -1.0, 1.25, math.inf, -math.inf, math.nan, info.max, info.min, info.tiny, info.eps]
    info = np.iinfo(dtype)
    near = (0, 1, 2, 3, -1, -2, -3, 100)
    return [
        int(v) for v in {*near, *(info.max - n for n in (0, 1, 2)), info.min, info.min + 1} if info.min <= v <= info.max
    ]


def fits(got, expected, dtype: str, absolute: float, relative: float) -> bool:
    """Compute the same in Python with unlimited integers."""
    if got.tobytes() == expected.tobytes():
        return True
    if not absolute and not relative:
        return False
    if dtype.startswith("float"):
        got, expected = float(got), float(expected)
        if math.isnan(got) or math.isnan(expected):
            return math.isnan(got) and math.isnan(expected)
        if math.isinf(got) or math.isinf(expected):
            return got == expected
    else:
        got, expected = int(got), int(expected)
    return abs(got - expected) <= absolute + relative * abs(expected)


def cases() -> list[tuple[str, float, float, np.ndarray, np.ndarray]]:
    generator = random.Random(3)
    found = []
    for dtype, (absolute, relative) in itertools.product(DTYPES, TOLERANCES):
        pairs = [np.array(pair, dtype) for pair in itertools.product(limits(dtype), repeat=2)]
        found += [(dtype, absolute, relative, pair[:1], pair[1:]) for pair in pairs]
        several = np.array([generator.choices(limits(dtype), k=9) for _ in range(2)], dtype)
        found.append((dtype, absolute, relative, several[0], several[1]))
    return found


@pytest.fixture(scope="module", params=["gcc", "gcc-m32", "clang"])
def program(request, tmp_path_factory):
    compiler, *flags = {"gcc-m32": ["gcc", "-m32"]}.get(request.param, [request.param])
    flags += SANITIZED
    need_compiler(compiler, flags, link=True)
    work = tmp_path_factory.mktemp(request.param)
    run([compiler, *flags, f"-I{ROOT / 'zephyr_module' / 'include'}", PROGRAM, *SOURCES, "-o", work / "program"], work)
    return work / "program"


def test_elements_and_halves(program):
    given = cases()
    lines = [
        f"{DTYPES.index(dtype)} {absolute} {relative} {got.tobytes().hex()} {expected.tobytes().hex()}\n"
        for dtype, absolute, relative, got, expected in given
    ]
    done = execute(program, text="".join(lines))
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    for (dtype, absolute, relative, got, expected), answer in zip(given, answers, strict=False):
        differ = [i for i in range(len(got)) if not fits(got[i], expected[i], dtype, absolute, relative)]
        assert answer == f"{len(differ)} {differ[0] if differ else -1}", (dtype, absolute, relative, got, expected)
    halves = [float.fromhex(text) for text in answers[len(given) :]]
    expected = np.arange(65536, dtype=np.uint16).view(np.float16).astype(float)
    np.testing.assert_array_equal(np.array(halves), expected)
