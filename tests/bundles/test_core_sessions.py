# SPDX-License-Identifier: Apache-2.0
"""Sessions, the comparison of steps, and threads that run models while others are installed."""

import dataclasses
import struct

import pytest
from bundle_files import Variant, version_of
from campaign import sized
from core_board import ONE, TRIAL, TWO, code
from core_support import FLAGS

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]


def with_model(board, variant):
    assert board.start() == code("ENOENT")
    assert board.install(board.bundle(variant)).rc == 0
    assert board.session(size=TRIAL) == 0
    return board


def test_arguments_of_runs(make_board):
    board = with_model(make_board(), ONE)
    assert board("status", 0)[0] == str(code("EPERM")), "no run yet"
    assert board.mark(how="other") == code("EPROTOTYPE")
    assert board.mark() == 1000 and board("status", 0) == ["0", "0", "65535"]
    assert board.mark(how="null") == code("EINVAL") and board.mark(how="nout") == code("EINVAL")
    assert board.mark(how="unaligned") == code("EINVAL")
    assert board("status", 0) == ["0", str(code("EINVAL")), "65535"]


def test_session_that_is_not_added(make_board):
    board = make_board()
    assert board.start() == code("ENOENT") and board.install(board.bundle(ONE)).rc == 0
    assert board.session(size=16) == code("ENOMEM")
    assert board.mark() == code("EPERM")
    assert board.rc("hold", 0) == code("EPERM") and board.rc("reset", 0) == code("EPERM")
    assert board.session() == 0 and board.mark() == 1000


def test_failed_run(make_board):
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


def test_status_survives_the_model(make_board):
    board = with_model(make_board(), ONE)
    assert board.rc("run", 0, "typed", -128) == code("EIO")
    assert board.install(board.bundle(TWO)).rc == 0
    assert board("status", 0) == ["0", str(code("EIO")), "1"]
    assert board.mark() == 2000 and board("status", 0)[1] == "0"


def test_held_model(make_board):
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
    assert board.install(board.bundle(TWO)).rc == 0, "nothing is held"


def test_sessions_without_a_model(make_board):
    board = make_board()
    board.start()
    assert board.session(size=100) == 0
    assert board("hold", 0)[0] == str(code("ENOENT")) and board.rc("reset", 0) == code("ENOENT")
    assert board.mark() == code("ENOENT")
    assert board.rc("steps") == code("ENOENT") and board.rc("part", 0, 0, 0, "00") == code("ENOENT")
    # it was added when there was nothing to compare its memory with
    assert board.install(board.bundle(ONE)).rc == code("EBADMSG")


def test_session_too_small_for_the_model_of_before_a_trial(make_board):
    board = make_board(waits=1)
    board.start()
    large = dataclasses.replace(ONE, pool_size=600)
    assert board.install(board.bundle(large)).rc == 0 and board.rc("confirm") == 0
    assert board.install(board.bundle(TWO)).rc == 0
    assert board.session(0, 700) == 0 and board.mark() == 2000
    assert board.roll_back().rc == 0
    assert board.mark() == code("ENOMEM") and board("hold", 0)[0] == str(code("ENOMEM"))
    assert board.rc("reset", 0) == code("ENOMEM")


def test_reset_of_a_model_without_state(make_board):
    board = with_model(make_board(), ONE)
    assert board.rc("reset", 0) == 0 and board.mark() == 1000


def test_outputs_in_the_workspace(make_board):
    """A run copies to other pointers; golden vectors use the places themselves."""
    board = with_model(make_board(), dataclasses.replace(ONE, places=True))
    assert board.mark() == 1000


STEPS = Variant(mark=1000, steps=True)


@pytest.mark.parametrize("trial", [0, TRIAL])
def test_steps_are_compared(make_board, trial):
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


def test_parts_are_compared(make_board):
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


def test_state_of_sessions_during_a_comparison(make_board):
    board = with_model(make_board(), dataclasses.replace(STEPS, state=True))
    assert [board.mark(), board.mark()] == [1000, 1001]
    assert board.rc("steps") == 0 and board.mark() == 1002
    # without memory for trials, that of the first session is used
    board("set", "trial", 0)
    assert board.rc("steps") == 0 and board.mark() == 1000


THREADED = tuple("-fsanitize=thread" if flag.startswith("-fsanitize=") else flag for flag in FLAGS)


@pytest.mark.slow
@pytest.mark.parametrize("trial", [0, 1])
def test_no_run_fails_or_mixes_models(trial, make_board):
    """ThreadSanitizer finds no race. The outputs identify the model; one that finds another's workspace traps."""
    board = make_board(flags=THREADED, trial=trial * TRIAL)
    one, two, bad = map(board.bundle, (ONE, TWO, Variant(mark=3000, slot=1, wrong=1)))
    assert board.start() == code("ENOENT")
    assert board.session(0, 800) == board.session(1, 800) == 0
    assert board.install(one).rc == 0
    assert board.rc("share") == 0 and board.rc("runners") == 0
    rounds = sized(60, 1000)
    for number in range(rounds):
        board("await", 0)
        assert board.install(bad).rc == code("EBADMSG")
        board("await", 0)
        assert board.install(two).rc == 0
        board("await", 1)
        assert board.state().active == 1 and board.rc("list", 1) == 0
        assert board.rc("healthy") == 0
        assert (board.roll_back() if number % 2 == 0 else board.install(one)).rc == 0
    board("await", 0)
    _, runs, switches, held = map(int, board("end"))
    # each of the two threads sees both models in each round
    assert switches == 4 * rounds and runs > 8 * rounds and held > 0
