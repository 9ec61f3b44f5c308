# SPDX-License-Identifier: Apache-2.0
"""The emulated accelerator: its kernels against numpy, the script that makes its programs, and the device."""

import functools
import random
import re
import runpy
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_support import RUNTIME, SANITIZED, STRICT, compile_all, run, runtime_objects
from campaign import SANITIZED_LEVEL, sized
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"
DRIVER = RUNTIME / "drivers" / "npu_emul"
THREAD_SANITIZED = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
FLAGS = {"address": SANITIZED, "thread": THREAD_SANITIZED}
INCLUDE = [f"-I{RUNTIME / 'include'}"]
SHARED = ("accelerator.c", "accelerator_context.c", "port_sync_host.c")
# The functions in the image of a bundle, which call the driver through the device.
IMAGE = RUNTIME / "bundle" / "image" / "drivers" / "npu_emul.c"


def driver_sources():
    """Return the sources of a host program."""
    driver = [path for path in sorted(DRIVER.glob("*.c")) if path.name != "npu_emul_zephyr.c"]
    return [*(RUNTIME / "src" / name for name in SHARED), *driver]


def driver_objects(flags):
    """Return the driver's objects, which all programs with these flags share."""
    return runtime_objects(driver_sources(), "gcc", flags)


def build_npu(work, name, sanitizer):
    flags = FLAGS[sanitizer]
    need_compiler("gcc", flags, link=True)
    compile_all(work, [PROGRAMS / f"{name}.c"], "gcc", flags, INCLUDE)
    run(["gcc", *flags, f"{name}.o", *driver_objects(flags), "-pthread", "-o", name], work)
    return work / name


def build_image(work, name):
    """Build one of programs/ with the functions of images between it and the driver."""
    need_compiler("gcc", SANITIZED, link=True)
    functions = ("dense", "conv2d", "add", "relu", "finish")
    renamed = [f"-Dopwest_npu_emul_{one}=image_npu_emul_{one}" for one in functions]
    flags = [*SANITIZED, "-DCONFIG_OPWEST_BUNDLE_DEVICES=1"]
    compile_all(work, [PROGRAMS / f"{name}.c", IMAGE], "gcc", flags, [*renamed, *INCLUDE])
    run(["gcc", *flags, f"{name}.o", "npu_emul.o", *driver_objects(flags), "-pthread", "-o", name], work)
    return work / name


def finish(program, *arguments):
    """Run a test program with leak checks; return its output."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]!r}\n{done.stderr.decode()[-6000:]}"
    return done.stdout


KINDS = ("dense", "conv2d", "add", "relu")
CASES = 25


@pytest.fixture(scope="module")
def maker():
    """The definitions of make_program.py, without byte code in the runtime's directory."""
    return runpy.run_path(str(DRIVER / "make_program.py"))


@pytest.fixture(scope="module", params=["driver", "image"])
def program(request, tmp_path_factory):
    """The program that calls the driver, and the one that calls it as the image of a bundle does."""
    work = tmp_path_factory.mktemp("npu")
    return build_image(work, "npu_kernels") if request.param == "image" else build_npu(work, "npu_kernels", "address")


def test_images_refuse_other_functions(tmp_path):
    finish(build_image(tmp_path, "npu_functions"))


def scaled(settings, total):
    """Scale as specified in npu_emul.h, in numpy."""
    total = total.astype(np.int64) * settings["multiplier"]
    if settings["shift"]:
        total = (total + (1 << (settings["shift"] - 1))) >> settings["shift"]
    return np.clip(total + settings["output_zero"], settings["least"], settings["most"]).astype(np.int8)


def convolved(x, w, stride, padding):
    """Sum over windows of an image of integers; by matrix products, not by the loops of the driver."""
    x = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:3], axis=(0, 1))[::stride, ::stride]
    return np.einsum("abckl,oklc->abo", windows, w)


def settings_for(generator, kind):
    shift = generator.choice([0, 0, 1, 7, 31, generator.randrange(48)])
    least, most = sorted(generator.choices(range(-128, 128), k=2)) if generator.random() < 0.4 else (-128, 127)
    multiplier = int(generator.uniform(0.2, 3) * 2 ** max(0, shift - generator.randrange(9)))
    return {
        "id": KINDS.index(kind) + 100,
        "multiplier": max(1, min(2**31 - 1, multiplier)),
        "shift": shift,
        "input_zero": generator.choice([0, 0, -128, 127, generator.randint(-128, 127)]),
        "output_zero": generator.choice([0, 0, -128, 127, generator.randint(-128, 127)]),
        "least": least,
        "most": most,
    }


def case_for(generator, numbers, kind, s):
    """Return a case for the C program and its expected output."""

    def int8(*shape):
        if generator.random() < 0.1:  # the extremes, where sums are largest
            return np.full(shape, generator.choice([-128, 127]), np.int8)
        return numbers.integers(-128, 128, shape, np.int8)

    n = generator.randint
    height, width, channels, out, kh, kw, stride, padding = 1, 1, 1, 1, 1, 1, 1, 0
    bias = None
    if kind in ("dense", "conv2d"):
        height, channels, out = n(1, 9), n(1, 40), n(1, 12)
        if kind == "conv2d":
            height, width, channels, kh, kw = n(1, 9), n(1, 9), n(1, 5), n(1, 4), n(1, 4)
            stride, padding = n(1, 3), n(0, 3)
            height, width = max(height, kh - 2 * padding), max(width, kw - 2 * padding)
        x, w = int8(height, width, channels), int8(out, kh, kw, channels)
        if generator.random() < 0.7:
            limit = 2 ** n(0, 31)
            bias = numbers.integers(-limit, limit, out, np.int64).astype(np.int32)
        total = convolved(x.astype(np.int64) - s["input_zero"], w.astype(np.int64), stride, padding)
        total = total + (0 if bias is None else bias.astype(np.int64))
    else:
        x, w = int8(n(1, 300)), int8(0)
        total = np.maximum(x.astype(np.int64) - s["input_zero"], 0)
        if kind == "add":
            w = int8(x.size)
            total = x.astype(np.int64) + w - 2 * s["input_zero"]
    y = scaled(s, total)
    code = KINDS.index(kind) + 1
    shapes = (height, width, channels, out, kh, kw, stride, padding, bias is not None, x.size, w.size, y.size)
    content = x.tobytes() + w.tobytes() + (b"" if bias is None else bias.tobytes())
    return struct.pack("<14i", code, s["id"], *shapes) + content, y.tobytes()


@pytest.mark.parametrize("seed", range(sized(6, 16)))
def test_kernels_compute_what_numpy_computes(maker, program, tmp_path, seed):
    generator, numbers = random.Random(seed), np.random.default_rng(seed)
    settings = {kind: settings_for(generator, kind) for kind in KINDS}
    (tmp_path / "p.onpu").write_bytes(maker["make_program"](list(settings.items())))
    cases = [case_for(generator, numbers, kind, settings[kind]) for kind in KINDS for _ in range(CASES)]
    (tmp_path / "cases").write_bytes(b"".join(case for case, _ in cases))
    printed = finish(program, tmp_path / "p.onpu", tmp_path / "cases")
    for index, (_, expected) in enumerate(cases):
        assert printed[: len(expected)] == expected, f"case {index} of {KINDS[index // CASES]} {settings}"
        printed = printed[len(expected) :]
    assert printed == b""


def test_largest_sums(maker, program, tmp_path):
    """65,535 products of the largest numbers, the largest bias and multiplier: nothing overflows."""
    settings = {"id": 0, "multiplier": 2**31 - 1, "shift": 47, "input_zero": 127, "output_zero": 0}
    settings |= {"least": -128, "most": 127}
    (tmp_path / "p.onpu").write_bytes(maker["make_program"]([("dense", settings)]))
    cases, expected = b"", b""
    for value, bias in [(-128, 2**31 - 1), (-128, -(2**31)), (127, -(2**31))]:
        x, w = np.full(65535, -128, np.int8), np.full(65535, value, np.int8)
        cases += struct.pack("<14i", 1, 0, 1, 1, 65535, 1, 1, 1, 1, 0, 1, 65535, 65535, 1)
        cases += x.tobytes() + w.tobytes() + struct.pack("<i", bias)
        total = (-128 - 127) * value * 65535 + bias  # exact integers
        expected += struct.pack("b", max(-128, min(127, (total * (2**31 - 1) + (1 << 46)) >> 47)))
    (tmp_path / "cases").write_bytes(cases)
    assert finish(program, tmp_path / "p.onpu", tmp_path / "cases") == expected


def run_script(*arguments):
    return subprocess.run(
        [sys.executable, DRIVER / "make_program.py", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_script_writes_the_documented_bytes(tmp_path):
    done = run_script(tmp_path / "p", "dense,id=258,multiplier=77,shift=12,least=0", "relu,id=2,input_zero=-1,most=6")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p").read_bytes() == bytes.fromhex(
        "4f4e5055 0100 0200 30000000 00000000"
        "0201 01 0c 4d000000 00 00 00 7f 00000000"
        "0200 04 00 01000000 ff 00 80 06 00000000"
    )


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (["pool"], "unknown kind 'pool'"),
        (["dense,scale=1"], "unknown key 'scale'"),
        (["dense,shift=48"], "shift=48 of dense is not in 0..47"),
        (["dense,multiplier=0"], "multiplier=0 of dense is not in 1..2147483647"),
        (["dense,least=3,most=2"], "least=3 of dense is above most=2"),
        (["dense,id=1", "relu,id=1"], "id=1 is defined twice"),
        (["dense,id"], "'id' in 'dense,id'"),
        (["dense,id=1,id=1"], "each key once"),
        (["dense,id=x"], "invalid literal"),
        ([f"dense,id={i}" for i in range(257)], "257 kernels, expected 1 to 256"),
    ],
)
def test_script_rejects(tmp_path, kernels, message):
    done = run_script(tmp_path / "p", *kernels)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "p").exists()


# --- The emulated accelerator as a device: queue, hooks, faults, threads; with every sanitizer

NAMES = ("npu_contract", "npu_faults", "npu_threads")
COMPILERS = {"gcc": ["gcc"], "gcc-m32": ["gcc", "-m32"], "clang": ["clang"]}


def cases(name):
    return re.findall(r'^\t\t\{"(\w+)", \w+\},$', (PROGRAMS / f"{name}.c").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return functools.cache(lambda name, kind: build_npu(tmp_path_factory.mktemp(f"npu_{kind}"), name, kind))


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", FLAGS)
@pytest.mark.parametrize(("name", "case"), [(name, case) for name in NAMES for case in cases(name)])
def test_device(built, name, case, sanitizer):
    assert finish(built(name, sanitizer), case).endswith(b"ok\n")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_driver_compiles_without_warnings(compiler, tmp_path):
    command, *flags = COMPILERS[compiler]
    need_compiler(command, flags)
    compile_all(tmp_path, driver_sources(), command, [*flags, *STRICT], INCLUDE)


@pytest.mark.parametrize(("suffix", "compiler"), [("c", "gcc"), ("cpp", "g++")])
def test_headers_are_self_contained(suffix, compiler, tmp_path):
    need_compiler(compiler)
    for header in ("accelerator_context", "npu_emul", "npu_emul_state", "port_sync"):
        source = tmp_path / f"{header}.{suffix}"
        source.write_text(f"#include <opwest/{header}.h>\n")
        compile_all(tmp_path, [source], compiler, ["-Wall", "-Wextra", "-Werror"], INCLUDE)
