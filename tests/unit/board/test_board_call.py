# SPDX-License-Identifier: Apache-2.0
"""Calls of one operator: checked arguments, and both transports against boards emulated on pseudo terminals."""

import argparse
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from requirements_support import need

need("smpclient", "serial")

from fake_board import FakeBoard, Model, ShellBoard, SmpBoard  # noqa: E402
from opwest.board.call import call_operator  # noqa: E402
from opwest.board.call_arguments import Call, prepare_call  # noqa: E402
from opwest.board.link import LinkError  # noqa: E402
from opwest.board.progress import Progress  # noqa: E402
from opwest.board.session import find_model  # noqa: E402
from opwest.board.shell_link import ShellLink  # noqa: E402
from opwest.board.smp_link import SmpLink  # noqa: E402
from opwest.diagnostics import Diagnostics, OpwestError  # noqa: E402

Prepare = Callable[..., Call]
X = np.arange(500, dtype=np.int16)


def argument(name: str, dtype: str, shape: list[int], direction: str, offset: int, **more: Any) -> dict[str, Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return {
        "name": name,
        "dtype": dtype,
        "shape": shape,
        "size": size,
        "direction": direction,
        "scalar": False,
        "offset": offset,
        **more,
    }


RECORD: dict[str, Any] = {
    "name": "twice",
    "devices": ["npu0", "npu1", "dsp"],
    "arguments": {"size": 3000, "align": 64, "count": 4, "devices": True},
    "operators": [
        {
            "name": "add",
            "takes_device": False,
            "devices": [],
            "args": [
                argument("x", "int16", [500], "in", 64),
                argument("k", "int16", [], "in", 0, scalar=True),
                argument("y", "int16", [500], "out", 1088),
            ],
        },
        {"name": "multiply", "takes_device": True, "devices": ["npu0", "npu1"], "args": []},
        {
            "name": "scale",
            "takes_device": True,
            "devices": ["dsp"],
            "args": [
                argument(name, dtype, [], "in", 0, scalar=True)
                for name, dtype in (("f", "float32"), ("u", "uint64"), ("b", "bool"), ("h", "float16"))
            ],
        },
    ],
}


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    """Prepare a call of the record with x.npy."""
    np.save(tmp_path / "x.npy", X)

    def call(operator: str, *args: str, device: str | None = None) -> Call:
        words = [word.replace("@", f"{tmp_path}/") for word in args]
        options = argparse.Namespace(operator=operator, arg=words, device=device)
        return prepare_call(options, RECORD, tmp_path, Diagnostics())

    return call


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_call_over_both_transports(prepare: Prepare, kind: str) -> None:
    model = Model(calls=[])
    board = FakeBoard(SmpBoard(model) if kind == "smp" else ShellBoard(model))
    link = SmpLink(board.device, 115200, 3.0) if kind == "smp" else ShellLink(board.device, 3.0)
    try:
        served = find_model(link.describe(), "twice", link.device)
        call = prepare("add", "x=@x.npy", "k=-3")
        results, times = call_operator(link, served, call, repeat=2, progress=Progress(None))
        np.testing.assert_array_equal(results["y"], X - 3)
        assert results.keys() == {"y"} and times == (2000, 2000) and model.calls == [(0, 65535)] * 2
        assert not model.opened
        with pytest.raises(LinkError) as caught:
            call_operator(link, served, prepare("multiply", device="npu1"), repeat=1, progress=Progress(None))
        message = "the call of operator 'multiply' returned ETIMEDOUT: sync of device npu0 returned -116"
        assert caught.value.message == message and model.calls[-1] == (1, 1) and not model.opened
        other = Call("add", 0, 65535, bytes(64), ())
        with pytest.raises(LinkError, match="was built from another version of model 'twice'"):
            call_operator(link, served, other, repeat=1, progress=Progress(None))
    finally:
        link.disconnect()
        board.close()


def test_scalars_are_entries_of_the_table(prepare: Prepare) -> None:
    call = prepare("scale", "f=0.5", "u=0xffffffffffffffff", "b=1", "h=0x3c00")
    assert call.content[:32] == struct.pack("<dQQQ", 0.5, 2**64 - 1, 1, 0x3C00)
    assert (call.index, call.device) == (2, 2), "the only device that fits"


@pytest.mark.parametrize(
    ("operator", "args", "device", "expected"),
    [
        ("ad", (), None, "model 'twice' has no operator 'ad'"),
        ("add", (), None, "missing argument 'x': int16 [500]"),
        ("add", (), None, "expected=--arg x=FILE.npy"),
        ("add", ("x=@x.npy",), None, "missing argument 'k': int16"),
        ("add", ("x=@x.npy", "k=40000"), None, "argument 'k' is '40000'"),
        ("add", ("x=@x.npy", "k=40000"), None, "an integer from -32768 to 32767: int16"),
        ("add", ("x=@x.npy", "k=x"), None, "argument 'k' is 'x'"),
        ("add", ("x=@absent.npy", "k=1"), None, "argument 'x': cannot read"),
        ("add", ("x=@other.npy", "k=1"), None, "contains float32 [2], 8 bytes"),
        ("add", ("x=@other.npy", "k=1"), None, "int16 [500], 1000 bytes"),
        ("add", ("x=@many.npz", "k=1"), None, "argument 'x': "),
        ("add", ("x=@x.npy", "k=1", "y=@x.npy"), None, "operator 'add' reads no argument 'y'"),
        ("add", ("x=@x.npy", "x=@x.npy", "k=1"), None, "duplicate argument 'x'"),
        ("add", ("x", "k=1"), None, "invalid --arg 'x'"),
        ("add", ("x=@x.npy", "k=1"), "npu0", "operator 'add' takes no device"),
        ("multiply", (), None, "operator 'multiply' takes a device"),
        ("multiply", (), None, "--device, one of: npu0, npu1"),
        ("multiply", (), "dsp", "device 'dsp' does not fit operator 'multiply'"),
        ("scale", ("f=1e39", "u=1", "b=1", "h=1"), None, "a number of type float32"),
        ("scale", ("f=1e400", "u=1", "b=1", "h=1"), None, "argument 'f' is '1e400'"),
        ("scale", ("f=1", "u=-1", "b=2", "h=65536"), None, "argument 'b' is '2'"),
    ],
)
def test_faults_are_reported_before_the_build(
    prepare: Prepare, tmp_path: Path, operator: str, args: tuple[str, ...], device: str | None, expected: str
) -> None:
    np.save(tmp_path / "other.npy", np.zeros(2, np.float32))
    np.savez(tmp_path / "many.npz", x=X)
    with pytest.raises(OpwestError) as caught:
        prepare(operator, *args, device=device)
    text = str(caught.value)
    assert expected.removeprefix("expected=") in text, text


def test_infinity_and_nan_are_scalars(prepare: Prepare) -> None:
    for text in ("-inf", "Infinity", "nan"):
        found = struct.unpack_from("<d", prepare("scale", f"f={text}", "u=1", "b=1", "h=1").content)[0]
        np.testing.assert_equal(found, float(text))


def test_record_of_an_earlier_version(tmp_path: Path) -> None:
    options = argparse.Namespace(operator="add", arg=[], device=None)
    with pytest.raises(OpwestError, match="the lock has no signatures of operators"):
        prepare_call(options, {"name": "twice", "devices": []}, tmp_path, Diagnostics())
