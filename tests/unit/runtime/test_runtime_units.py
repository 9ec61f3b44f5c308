# SPDX-License-Identifier: Apache-2.0
"""Files of the runtime in C programs: comparison, profile, service, list of models, port to Zephyr."""

import itertools
import math
import random
import re

import numpy as np
import pytest
from c_support import RUNTIME, SANITIZED, build, compile_all, execute, golden_app, run
from requirements_support import need_compiler
from runtime_support import PROGRAMS, build_with_runtime

BITS = pytest.mark.parametrize("bits", [(), ("-m32",)])


def succeeds(program):
    done = execute(program)
    assert done.returncode == 0, done.stdout + done.stderr


@BITS
def test_profile_counts_and_events(bits, tmp_path):
    flags = [*SANITIZED, *bits, "-DCONFIG_OPWEST_PROFILE"]
    succeeds(build_with_runtime(tmp_path, PROGRAMS / "profile.c", ["profile.c"], flags))


@BITS
def test_service_answers_requests(bits, tmp_path):
    succeeds(build_with_runtime(tmp_path, PROGRAMS / "service.c", ["errors.c", "service.c"], [*SANITIZED, *bits]))


@BITS
def test_service_calls_operators(bits, tmp_path):
    flags = [*SANITIZED, *bits, "-DCONFIG_OPWEST_SERVICE_CALL=1", "-Wno-unused-function"]
    need_compiler("gcc", flags, link=True)
    names = ["errors.c", "service.c", "service_call.c", "metadata.c"]
    # The program defines opwest_find() for operators without a registry.
    (tmp_path / "main.c").write_text(
        f'#include "{PROGRAMS / "service.c"}"\n#define opwest_find unused_find\n'
        f'#include "{RUNTIME / "src" / "registry.c"}"\n'
    )
    succeeds(build_with_runtime(tmp_path, tmp_path / "main.c", names, flags))


def test_every_error_of_the_runtime_has_a_name():
    text = (RUNTIME / "src" / "errors.c").read_text()
    named = dict(re.findall(r"\{-(E[A-Z]+), \"(\w+)\"\}", text))
    assert all(error == name for error, name in named.items())
    files = [path for path in RUNTIME.rglob("*.[ch]") if path.name != "errors.c"]
    used = {error for path in files for error in re.findall(r"(?<![\w\"])-(E[A-Z]{3,})\b", path.read_text())}
    assert {"EXDEV", "ENOEXEC"} <= used
    assert used - named.keys() == set()


def test_models_are_found_by_name(tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    app = golden_app("several", tmp_path)
    assert execute(build(app, tmp_path / "build", PROGRAMS / "list.c")).stdout == "1 1 1 1\n"


# Comparison: every element type, exactly and within tolerances, at the limits of the types, against numpy.
DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split()
TOLERANCES = [(0, 0), (1, 0), (0.5, 0), (0, 0.25), (2, 0.125), (0, 1e-5), (1e300, 0)]


def limits(dtype):
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


def fits(got, expected, dtype, absolute, relative):
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


def cases():
    generator = random.Random(3)
    found = []
    for dtype, (absolute, relative) in itertools.product(DTYPES, TOLERANCES):
        pairs = [np.array(pair, dtype) for pair in itertools.product(limits(dtype), repeat=2)]
        found += [(dtype, absolute, relative, pair[:1], pair[1:]) for pair in pairs]
        several = np.array([generator.choices(limits(dtype), k=9) for _ in range(2)], dtype)
        found.append((dtype, absolute, relative, several[0], several[1]))
    return found


@pytest.mark.parametrize(("compiler", "bits"), [("gcc", ()), ("gcc", ("-m32",)), ("clang", ())])
def test_comparison_of_elements_and_halves(compiler, bits, tmp_path):
    names = ["compare.c", "metadata.c"]
    program = build_with_runtime(tmp_path, PROGRAMS / "compare.c", names, [*SANITIZED, *bits], compiler)
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


# The port: cache lines of unknown size, and operations that a cache lacks.
CACHE = """
#include <stddef.h>
static inline size_t sys_cache_data_line_size_get(void) { return LINE; }
static inline int sys_cache_data_flush_range(void *data, size_t size) { (void)data; (void)size; return RESULT; }
static inline int sys_cache_data_flush_and_invd_range(void *data, size_t size)
{ (void)data; (void)size; return RESULT; }
static inline int sys_cache_data_invd_range(void *data, size_t size) { (void)data; (void)size; return RESULT; }
"""
DEVICE = """
#pragma once
#include <stdbool.h>
#include <stddef.h>
struct device { const void *api; };
static inline bool device_is_ready(const struct device *dev) { return dev != NULL; }
"""
POWER = """
#include <zephyr/device.h>
static inline int pm_device_runtime_get(const struct device *dev) { (void)dev; return 0; }
static inline int pm_device_runtime_put(const struct device *dev) { (void)dev; return 0; }
"""
KERNEL = """
#include <stdint.h>
static inline int64_t k_uptime_get(void) { return 0; }
static inline void *k_current_get(void) { return (void *)1; }
"""
PROGRAM = """
#include <stdio.h>
#include <opwest/port.h>
int main(void)
{
	static uint8_t data[64];

	printf("%u %d %d %d", (unsigned int)opwest_port_cache_line(), opwest_port_cache_flush(data, 64),
	       opwest_port_cache_flush_and_invalidate(data, 64), opwest_port_cache_invalidate(data, 64));
	return 0;
}
"""
HEADERS = {"cache.h": CACHE, "device.h": DEVICE, "kernel.h": KERNEL, "pm/device_runtime.h": POWER, "toolchain.h": ""}
CACHED = ["-DCONFIG_DCACHE=1", "-DCONFIG_CACHE_MANAGEMENT=1"]


@pytest.mark.parametrize(
    ("options", "result", "expected"),
    [
        ([*CACHED, "-DLINE=32"], 0, "32 0 0 0"),
        ([*CACHED, "-DLINE=0"], 0, "128 0 0 0"),
        ([*CACHED, "-DLINE=32"], -5, "32 -5 -5 -5"),
        ([*CACHED, "-DLINE=32"], -95, "32 -95 -95 -95"),  # -ENOTSUP: the cache lacks the operation
        (["-DCONFIG_DCACHE=1", "-DLINE=32"], -95, "0 0 0 0"),
        (["-DLINE=32"], -95, "0 0 0 0"),
    ],
)
def test_data_cache(options, result, expected, tmp_path):
    for name, content in HEADERS.items():
        (tmp_path / "zephyr" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "zephyr" / name).write_text(content)
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-D__ZEPHYR__", f"-DRESULT={result}", *options]
    need_compiler("gcc", flags, link=True)
    sources = [tmp_path / "main.c", RUNTIME / "src" / "port_devices_zephyr.c"]
    compile_all(tmp_path, sources, "gcc", flags, [f"-I{tmp_path}", f"-I{RUNTIME / 'include'}"])
    run(["gcc", "main.o", "port_devices_zephyr.o", "-o", "program"], tmp_path)
    assert execute(tmp_path / "program").stdout == expected
