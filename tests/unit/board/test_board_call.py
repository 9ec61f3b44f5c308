# SPDX-License-Identifier: Apache-2.0
"""Calls of one operator: checked arguments, and both transports against boards emulated on pseudo terminals."""

import struct

import numpy as np
import pytest
from board_support import QUIET, failure
from requirements_support import need

need("smpclient", "serial")

from fake_board import Model, server  # noqa: E402
from opwest.base.diagnostics import Diagnostics, OpwestError  # noqa: E402
from opwest.runs.call import Call, call_operator, prepare_call  # noqa: E402
from opwest.runs.options import CallOptions  # noqa: E402
from opwest.runs.session import find_model  # noqa: E402

X = np.arange(500, dtype=np.int16)


def argument(name, dtype, shape, direction, offset, **more):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    described = {"name": name, "dtype": dtype, "shape": shape, "size": size, "direction": direction}
    return {**described, "scalar": False, "offset": offset, **more}


def operator(name, devices, *args):
    return {"name": name, "takes_device": bool(devices), "devices": devices, "args": list(args)}


SCALARS = (("f", "float32"), ("u", "uint64"), ("b", "bool"), ("h", "float16"))
RECORD = {
    "name": "twice",
    "devices": ["npu0", "npu1", "dsp"],
    "arguments": {"size": 3000, "align": 64, "count": 4, "devices": True},
    "operators": [
        operator(
            *("add", []),
            argument("x", "int16", [500], "in", 64),
            argument("k", "int16", [], "in", 0, scalar=True),
            argument("y", "int16", [500], "out", 1088),
        ),
        operator("multiply", ["npu0", "npu1"]),
        operator("scale", ["dsp"], *(argument(name, dtype, [], "in", 0, scalar=True) for name, dtype in SCALARS)),
    ],
}


@pytest.fixture
def prepare(tmp_path):
    """Prepare a call of the record with x.npy."""
    np.save(tmp_path / "x.npy", X)

    def call(operator, *args, device=None):
        words = [word.replace("@", f"{tmp_path}/") for word in args]
        options = CallOptions(tmp_path, operator=operator, arg=words, device=device)
        return prepare_call(options, RECORD, tmp_path, Diagnostics())

    return call


def test_call_over_both_transports(prepare, plug, connect, kind):
    model = Model(calls=[])
    link = connect(kind, plug(server(kind, model)))
    served = find_model(link.describe(), "twice", link.device)
    call = prepare("add", "x=@x.npy", "k=-3")
    results, times = call_operator(link, served, call, repeat=2, progress=QUIET)
    np.testing.assert_array_equal(results["y"], X - 3)
    assert results.keys() == {"y"} and times == (2000, 2000) and model.calls == [(0, 65535)] * 2
    assert not model.opened
    found = failure(call_operator, link, served, prepare("multiply", device="npu1"), repeat=1, progress=QUIET)
    assert found.message == "the call of operator 'multiply' returned ETIMEDOUT: sync of device npu0 returned -116"
    assert model.calls[-1] == (1, 1) and not model.opened
    other = Call("add", 0, 65535, bytes(64), ())
    found = failure(call_operator, link, served, other, repeat=1, progress=QUIET)
    assert "was built from another version of model 'twice'" in found.message


def test_scalars_are_entries_of_the_table(prepare):
    call = prepare("scale", "f=0.5", "u=0xffffffffffffffff", "b=1", "h=0x3c00")
    assert call.content[:32] == struct.pack("<dQQQ", 0.5, 2**64 - 1, 1, 0x3C00)
    assert (call.index, call.device) == (2, 2), "the only device that fits"


@pytest.mark.parametrize(
    ("call", "device", "expected"),
    [
        ("ad", None, ["model 'twice' has no operator 'ad'"]),
        ("add", None, ["missing argument 'x': int16 [500]", "--arg x=FILE.npy"]),
        ("add x=@x.npy", None, ["missing argument 'k': int16"]),
        (
            "add x=@x.npy k=40000",
            None,
            ["invalid value '40000' of argument 'k'", "an integer from -32768 to 32767: int16"],
        ),
        ("add x=@x.npy k=x", None, ["invalid value 'x' of argument 'k'"]),
        ("add x=@absent.npy k=1", None, ["argument 'x': cannot read"]),
        ("add x=@other.npy k=1", None, ["contains float32 [2], 8 bytes", "int16 [500], 1000 bytes"]),
        ("add x=@many.npz k=1", None, ["argument 'x': "]),
        ("add x=@x.npy k=1 y=@x.npy", None, ["operator 'add' reads no argument 'y'"]),
        ("add x=@x.npy x=@x.npy k=1", None, ["duplicate argument 'x'"]),
        ("add x k=1", None, ["invalid --arg 'x'"]),
        ("add x=@x.npy k=1", "npu0", ["operator 'add' takes no device"]),
        ("multiply", None, ["operator 'multiply' takes a device", "--device, one of: npu0, npu1"]),
        ("multiply", "dsp", ["device 'dsp' does not fit operator 'multiply'"]),
        ("scale f=1e39 u=1 b=1 h=1", None, ["a number of type float32"]),
        ("scale f=1e400 u=1 b=1 h=1", None, ["invalid value '1e400' of argument 'f'"]),
        ("scale f=1 u=-1 b=2 h=65536", None, ["invalid value '2' of argument 'b'"]),
    ],
)
def test_faults_are_reported_before_the_build(prepare, tmp_path, call, device, expected):
    np.save(tmp_path / "other.npy", np.zeros(2, np.float32))
    np.savez(tmp_path / "many.npz", x=X)
    with pytest.raises(OpwestError) as caught:
        prepare(*call.split(), device=device)
    text = str(caught.value)
    assert all(part in text for part in expected), text


def test_infinity_and_nan_are_scalars(prepare):
    for text in ("-inf", "Infinity", "nan"):
        found = struct.unpack_from("<d", prepare("scale", f"f={text}", "u=1", "b=1", "h=1").content)[0]
        np.testing.assert_equal(found, float(text))


def test_record_of_an_earlier_version(tmp_path):
    options = CallOptions(tmp_path, operator="add")
    with pytest.raises(OpwestError, match="the lock has no signatures of operators"):
        prepare_call(options, {"name": "twice", "devices": []}, tmp_path, Diagnostics())
