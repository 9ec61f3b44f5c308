# SPDX-License-Identifier: Apache-2.0
"""Messages for invalid responses of boards and for edited records."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from fuzz_boards import SEPARATOR, _Shell, smp_answers
from fuzz_readers import readers
from golden_support import PROJECTS, lock_of
from opwest.base.diagnostics import OpwestError
from opwest.runs.link import Action, LinkError
from opwest.runs.project_data import check_record
from requirements_support import need

MODEL = "@opwest service 1 1 64\n@opwest model m\n@opwest output y {} {} {}\n@opwest end\n"
AGAIN = "check the connection for lost characters; the image may be from another version of opwest"


@pytest.mark.parametrize(
    ("dtype", "size", "shape"), [("object", 8, "1"), ("int16", 4, "3"), ("int8", 0, "0"), ("float32", 4, "-1 -1")]
)
def test_invalid_tensor_description(dtype: str, size: int, shape: str) -> None:
    with pytest.raises(LinkError) as caught:
        _Shell([MODEL.format(dtype, size, shape).encode()]).describe()
    seen = f"{dtype} {[int(word) for word in shape.split()]} of {size} bytes"
    assert caught.value.message == f"the image on '/dev/board' describes an inconsistent tensor 'y': {seen}"
    assert caught.value.hint == AGAIN


@pytest.mark.parametrize("line", ["done 0 - u - - - 1 2", "done 0 -", "error -1 EPERM"])
def test_action_with_an_incomplete_response(line: str) -> None:
    [model] = _Shell([MODEL.format("int8", 1, "1").encode()]).describe()
    with pytest.raises(LinkError, match="unexpected response to 'opwest open m'"):
        _Shell([f"@opwest {line}\n".encode()]).act(model, Action.OPEN)


def test_empty_line_counts_as_lost() -> None:
    with pytest.raises(LinkError, match="lost the serial device"):  # requested again, without a response
        _Shell([b"@opwest \n@opwest end\n"]).describe()


def smp(number: int, change: dict[str, Any]) -> str:
    """Return the error of a run with modified values in one of its responses."""
    need("cbor2", "smpclient")
    import cbor2

    answers = smp_answers()
    answers[number] = {key: value for key, value in {**answers[number], **change}.items() if value is not ...}
    read = readers()["SMP answers"].reading(Path())
    return read(SEPARATOR.join(cbor2.dumps(answer) for answer in answers))


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (1, {"service": ...}, "missing or invalid in the expected the description of model"),
        (1, {"inputs": 1 << 62}, "missing or invalid in the expected the description of tensor of m"),
        (1, {"inputs": "1"}, "missing or invalid in the expected the description of model"),
        (2, {"dtype": "int99"}, "the image on describes an inconsistent tensor of bytes"),
        (2, {"shape": [True]}, "missing or invalid in the expected the description of tensor of m"),
        (2, {"shape": 4}, "missing or invalid in the expected the description of tensor of m"),
        (4, {"result": 1.5}, "missing or invalid in the expected the end of"),
        (5, {"off": 0}, "input wrote of bytes"),
        (5, {"off": 1 << 40}, "input wrote of bytes"),
        (7, {"data": "text"}, "missing or invalid in the expected tensor y at"),
        (7, {"data": b"12345"}, "output read expected"),
        (7, {"rc": "x"}, "missing or invalid in the expected tensor y at"),
        (3, {"err": "x"}, "['y']"),
        (0, {"buf_size": "x"}, "['y']"),
    ],
)
def test_invalid_smp_responses(number: int, change: dict[str, Any], message: str) -> None:
    assert smp(number, change) == message


OPERATOR = ["models", 0, "operators", 0]
ARGUMENT = {"direction": "in", "dtype": "int16", "name": "x", "offset": 64, "scalar": False, "shape": [4], "size": 8}
OUTSIDE = "argument 'x' of operator 'negate' is outside of its memory"
TOO_MANY = "operator 'negate' has more arguments than the memory for arguments"


@functools.cache
def lock_of_minimal() -> bytes:
    return lock_of("minimal")


@pytest.mark.parametrize("name", PROJECTS)
def test_records_that_opwest_writes(name: str) -> None:
    check_record(json.loads(lock_of(name))["record"], Path())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["models"], 5, "record.models is not a list"),
        (["models"], [], "record.models is empty"),
        (["models", 0], None, "record.models[0] is not an object"),
        (["runtime"], None, "record.runtime is None"),
        (["models", 0, "constants"], 1, "record.models[0].constants is 1"),
        (["models", 0, "name"], "../x", "'../x' is not a path in the project"),
        (["models", 0, "tensors", 0, "size"], True, "record.models[0].tensors[0].size is True"),
        (["models", 0, "tensors", 0, "role"], "x", "invalid role 'x'"),
        (["models", 0, "builds", 0, "sources"], ["/etc/x"], "'/etc/x' is not a path in the project"),
        (["models", 0, "builds", 0, "bits"], "64", "record.models[0].builds[0].bits is '64'"),
        (["models", 0, "arguments", "size"], -1, "the memory for arguments has -1 bytes"),
        (["models", 0, "arguments", "size"], 1 << 60, "the memory for arguments has 1152921504606846976 bytes"),
        ([*OPERATOR, "devices"], ["npu"], "unknown device 'npu' of operator 'negate'"),
        ([*OPERATOR, "args", 0, "dtype"], "int99", "unknown dtype 'int99'"),
        ([*OPERATOR, "args", 0, "shape"], [-4], "'x' has 8 bytes, int16 [-4]"),
        ([*OPERATOR, "args", 0, "offset"], -8, OUTSIDE),
        ([*OPERATOR, "args", 0, "offset"], 1 << 70, OUTSIDE),
        ([*OPERATOR, "args", 0, "direction"], "up", OUTSIDE),
        ([*OPERATOR, "args"], [ARGUMENT] * 25, OUTSIDE),
        ([*OPERATOR, "args"], [ARGUMENT] * 100, TOO_MANY),
        (["models", 0, "results"], [ARGUMENT | {"buffer": 0, "size": 7}], "'x' has 7 bytes, int16 [4]"),
    ],
)
def test_records_that_were_edited(path: list[Any], value: Any, message: str) -> None:
    edited = owner = json.loads(lock_of_minimal())["record"]
    for part in path[:-1]:
        owner = owner[part]
    owner[path[-1]] = value
    with pytest.raises(OpwestError) as caught:
        check_record(edited, Path("app"))
    assert str(caught.value) == (
        f"app/.opwest/lock.json: error: the lock is damaged: {message}\n"
        "  hint: restore it from version control, or create it with 'opwest update DIR --manifest FILE'"
    )
