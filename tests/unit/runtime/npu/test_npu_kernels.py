# SPDX-License-Identifier: Apache-2.0
"""The kernels of the emulated accelerator against numpy, and the script that makes its programs."""

import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from campaign import sized
from npu_support import DRIVER, build_image, build_npu, finish, make_program

KINDS = ("dense", "conv2d", "add", "relu")
CASES = 25


@pytest.fixture(scope="module")
def maker():
    return make_program()


@pytest.fixture(scope="module", params=["driver", "image"])
def program(request, tmp_path_factory):
    """The program that calls the driver, and the one that calls it as the image of a bundle does."""
    work = tmp_path_factory.mktemp("npu")
    return build_image(work, "npu_kernels") if request.param == "image" else build_npu(work, "npu_kernels", "address")


def test_images_refuse_other_functions(tmp_path):
    finish(build_image(tmp_path, "npu_functions"))


def scaled(settings: dict, total: np.ndarray) -> np.ndarray:
    """Scale as specified in npu_emul.h, in numpy."""
    total = total.astype(np.int64) * settings["multiplier"]
    if settings["shift"]:
        total = (total + (1 << (settings["shift"] - 1))) >> settings["shift"]
    return np.clip(total + settings["output_zero"], settings["least"], settings["most"]).astype(np.int8)


def convolved(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Sum over windows of an image of integers; by matrix products, not by the loops of the driver."""
    x = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:3], axis=(0, 1))[::stride, ::stride]
    return np.einsum("abckl,oklc->abo", windows, w)


def settings_for(generator: random.Random, kind: str) -> dict:
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


def case_for(generator: random.Random, numbers: np.random.Generator, kind: str, s: dict) -> tuple[bytes, bytes]:
    """Return a case for the C program and its expected output."""

    def int8(*shape: int) -> np.ndarray:
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


def run_script(*arguments: object) -> subprocess.CompletedProcess:
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
