# SPDX-License-Identifier: Apache-2.0
"""Sessions, and the comparison of steps."""

import dataclasses
import struct
from collections.abc import Callable

import pytest
from bundle_files import Variant, version_of
from core_board import TRIAL, Board, code

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
ONE = Variant(mark=1000)


def with_model(board: Board, variant: Variant, **fields: int) -> Board:
    assert board.start() == code("ENOENT")
    assert board.install(board.bundle(variant, **fields)).rc == 0
    assert board.session(size=TRIAL) == 0
    return board


def test_arguments_of_runs(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), ONE)
    assert board("status", 0)[0] == str(code("EPERM")), "no run yet"
    assert board.mark(how="other") == code("EPROTOTYPE")
    assert board.mark() == 1000 and board("status", 0) == ["0", "0", "65535"]
    assert board.mark(how="null") == code("EINVAL") and board.mark(how="nout") == code("EINVAL")
    assert board.mark(how="unaligned") == code("EINVAL")
    assert board("status", 0) == ["0", str(code("EINVAL")), "65535"]


def test_session_that_is_not_added(make_board: Callable[..., Board]) -> None:
    board = make_board()
    assert board.start() == code("ENOENT") and board.install(board.bundle(ONE)).rc == 0
    assert board.session(size=16) == code("ENOMEM")
    assert board.mark() == code("EPERM")
    assert board.rc("hold", 0) == code("EPERM") and board.rc("reset", 0) == code("EPERM")
    assert board.session() == 0 and board.mark() == 1000


def test_failed_run(make_board: Callable[..., Board]) -> None:
    """x[0] = -128 fails in the stand-in."""
    board = with_model(make_board(), dataclasses.replace(ONE, state=True))
    assert [board.mark(), board.mark()] == [1000, 1001]
    assert board.rc("run", 0, "typed", -128) == code("EIO")
    assert board("status", 0) == ["0", str(code("EIO")), "1"] and board("operations")[8] == "1"
    assert board.mark() == 1002, "the workspace is still open"
    board = with_model(make_board(), dataclasses.replace(ONE, state=True, closes=True))
    assert [board.mark(), board.mark()] == [1000, 1001]
    assert board.rc("run", 0, "typed", -128) == code("EIO")
    assert board.mark() == 1000, "a lost device closes the workspace: the next run opens it again"


def test_status_survives_the_model(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), ONE)
    assert board.rc("run", 0, "typed", -128) == code("EIO")
    assert board.install(board.bundle(Variant(mark=2000, slot=1))).rc == 0
    assert board("status", 0) == ["0", str(code("EIO")), "1"]
    assert board.mark() == 2000 and board("status", 0)[1] == "0"


def test_held_model(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), ONE)
    assert board.mark(how="held") == code("EPERM")
    assert board.rc("release", 0) == 0
    assert board("hold", 0) == ["0", "one", "one"]
    assert board("hold", 0)[0] == str(code("EBUSY")) and board.mark() == code("EBUSY")
    assert [board.mark(how="held"), board.mark(how="held")] == [1000, 1000]
    assert board.rc("reset", 0) == 0
    assert board.rc("release", 0) == 0 and board.mark(how="held") == code("EPERM")
    assert board("hold", 0, "x") == ["0", "one", "-"], "without the header"
    assert board.rc("release", 0) == 0 and board.mark() == 1000
    assert board.install(board.bundle(Variant(mark=2000, slot=1))).rc == 0, "nothing is held"


def test_sessions_without_a_model(make_board: Callable[..., Board]) -> None:
    board = make_board()
    board.start()
    assert board.session(size=100) == 0
    assert board("hold", 0)[0] == str(code("ENOENT")) and board.rc("reset", 0) == code("ENOENT")
    assert board.mark() == code("ENOENT")
    assert board.rc("steps") == code("ENOENT") and board.rc("part", 0, 0, 0, "00") == code("ENOENT")
    # it was added when there was nothing to compare its memory with
    assert board.install(board.bundle(ONE)).rc == code("EBADMSG")


def test_session_too_small_for_the_model_of_before_a_trial(make_board: Callable[..., Board]) -> None:
    board = make_board(waits=1)
    board.start()
    large = dataclasses.replace(ONE, pool_size=600)
    assert board.install(board.bundle(large)).rc == 0 and board.rc("confirm") == 0
    assert board.install(board.bundle(Variant(mark=2000, slot=1))).rc == 0
    assert board.session(0, 700) == 0 and board.mark() == 2000
    assert board.roll_back().rc == 0
    assert board.mark() == code("ENOMEM") and board("hold", 0)[0] == str(code("ENOMEM"))
    assert board.rc("reset", 0) == code("ENOMEM")


def test_reset_of_a_model_without_state(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), ONE)
    assert board.rc("reset", 0) == 0 and board.mark() == 1000


def test_outputs_in_the_workspace(make_board: Callable[..., Board]) -> None:
    """A run copies to other pointers; golden vectors use the places themselves."""
    board = with_model(make_board(), dataclasses.replace(ONE, places=True))
    assert board.mark() == 1000


STEPS = Variant(mark=1000, steps=True)


@pytest.mark.parametrize("trial", [0, TRIAL])
def test_steps_are_compared(make_board: Callable[..., Board], trial: int) -> None:
    board = make_board(trial=trial)
    board.start()
    assert board.session(size=TRIAL) == 0
    assert board.install(board.bundle(ONE)).rc == 0
    assert board.rc("steps") == code("ENOTSUP") and board.rc("part", 1, 0, 0, "00") == code("ENOTSUP")
    assert board.install(board.bundle(dataclasses.replace(STEPS, slot=1))).rc == 0 and board.mark() == 1000
    assert board("steps") == ["0", "-", "-", "0", "0", "0"], "the float is within the tolerance of an output"
    # outputs agree, a step does not: the first one is reported
    wrong = dataclasses.replace(STEPS, wrong_step=1)
    assert board.install(board.bundle(wrong, version=version_of(2))).rc == 0
    assert board("steps") == [str(code("EILSEQ")), "triple", "t", "0", "3", "1"]
    assert board.mark() == 1000


def test_parts_are_compared(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), STEPS)
    triples = struct.pack("<4i", 3, -6, 9, 120)
    good = ["0", "-", "-", "0", "0", "0"]
    for offset, size in ((0, 16), (0, 4), (4, 8), (12, 4), (16, 0), (0, 0)):
        hexadecimal = triples[offset : offset + size].hex() or "0"
        assert board("part", 1, 0, offset, hexadecimal) == good, (offset, size)
    wrong = struct.pack("<2i", -6, 8).hex()
    assert board("part", 1, 0, 4, wrong) == [str(code("EILSEQ")), "triple", "t", "0", "2", "1"]
    assert board("part", 2, 1, 0, struct.pack("<f", 42.005).hex()) == good
    assert board("part", 2, 1, 0, struct.pack("<f", 43.0).hex()) == [
        *(str(code("EILSEQ")), "add_mark", "r", "1", "0", "1")
    ]
    # no such point, buffer, or part
    for point, buffer, offset, size in (
        *((3, 0, 0, 4), (65535, 0, 0, 4), (1, 2, 0, 4), (1, 0, 16, 4), (1, 0, 12, 8), (1, 0, 1, 4)),
        *((1, 0, 0, 3), (1, 0, 2**32 - 4, 4), (1, 0, 0, 20)),
    ):
        assert board("part", point, buffer, offset, "00" * size)[0] == str(code("ENOENT")), (point, offset, size)


def test_state_of_sessions_during_a_comparison(make_board: Callable[..., Board]) -> None:
    board = with_model(make_board(), dataclasses.replace(STEPS, state=True))
    assert [board.mark(), board.mark()] == [1000, 1001]
    assert board.rc("steps") == 0 and board.mark() == 1002
    # without memory for trials, that of the first session is used
    board("set", "trial", 0)
    assert board.rc("steps") == 0 and board.mark() == 1000
