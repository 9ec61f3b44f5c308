# SPDX-License-Identifier: Apache-2.0
"""The states of the slots; test_core_random.py has confirmations, roll-backs, crashes, and a reset in each state."""

import pytest
from bundle_files import Variant, version_of
from core_board import NONE, ONE, SESSION, TRIAL, TWO, Fault, State, code

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
DIGITS_B = Variant(name="digits", mark=3000, slot=1)
DIGITS_A = Variant(name="digits", mark=4000, slot=0)
BAD_B = Variant(mark=9000, wrong=1, slot=1)


def test_first_installation_and_the_second(make_board):
    board = make_board()
    assert board.start() == code("ENOENT")
    assert board.session() == 0 and board.mark() == code("ENOENT")
    assert board.state() == State()
    assert board.listed(0) == (Fault.NO_BUNDLE, "-", "---N") and board.listed(1) == (Fault.NO_BUNDLE, "-", "----")
    assert board.rc("list", 2) == code("ENOENT")
    assert board.install(board.bundle(ONE)).rc == 0
    assert board.mark() == 1000
    assert board.state() == State(active=0)
    assert board.listed(0) == (Fault.GOOD, "one", "A---") and board.listed(1)[2] == "---N"
    assert board.restarted() == 1000
    assert board.install(board.bundle(TWO, version=version_of(2))).rc == 0
    assert board.mark() == 2000
    assert board.state() == State(active=1, previous=0)
    assert board.listed(0) == (Fault.DOWNGRADE, "one", "--PN") and board.listed(1) == (Fault.GOOD, "one", "A---")
    assert board.restarted() == 2000
    assert board.state() == State(active=1, previous=0)


def test_trial_is_listed(make_board):
    board = make_board(waits=1)
    board.start()
    assert board.install(board.bundle(ONE)).rc == 0
    assert board.listed(0) == (Fault.GOOD, "one", "-T--") and board.listed(1)[2] == "---N"


def test_downgrades_are_refused_by_name_unless_allowed(make_board):
    board = make_board().with_one()
    assert board.install(board.bundle(TWO, version=version_of(3))).rc == 0
    older = board.bundle(ONE, version=version_of(2, 255, 65535))
    assert board.install(older).fault == Fault.DOWNGRADE
    assert board.mark() == 2000
    # another name has a floor of its own
    assert board.install(board.bundle(DIGITS_A, version=version_of(0, 1))).rc == 0
    assert board.install(board.bundle(TWO, version=version_of(2))).fault == Fault.DOWNGRADE
    board("set", "downgrade", 1)
    assert board.install(board.bundle(TWO, version=version_of(2))).rc == 0 and board.mark() == 2000
    # the floor is still the newest confirmed version
    board("set", "downgrade", 0)
    assert board.install(board.bundle(ONE, version=version_of(2, 5))).fault == Fault.DOWNGRADE
    assert board.restarted() == 2000


def test_floors_of_eight_names(make_board):
    board = make_board()
    board.start()
    for number in range(8):
        variant = Variant(name=f"model{number}", mark=number, slot=number % 2)
        assert board.install(board.bundle(variant)).rc == 0
    ninth = Variant(name="model8", mark=8)
    verdict = board.install(board.bundle(ninth))
    assert (verdict.rc, verdict.fault, verdict.detail) == (code("ENOSPC"), Fault.STORAGE, code("ENOSPC"))
    assert board.install(board.bundle(Variant(name="model7", mark=70, slot=0))).rc == 0
    assert board.install(board.bundle(Variant(name="model0", mark=80, slot=1), version=0)).fault == Fault.DOWNGRADE
    board("set", "downgrade", 1)
    assert board.install(board.bundle(Variant(name="model8", mark=8, slot=1))).rc == 0
    # a damaged floor is free
    board("set", "downgrade", 0)
    board("record", 3, (b"x" * 52).hex())
    assert board.install(board.bundle(Variant(name="model9", mark=9, slot=0))).rc == 0


@pytest.mark.parametrize(
    ("variant", "fault", "detail"),
    [
        (BAD_B, Fault.VECTOR, 0),
        (Variant(slot=1, nearly=0.02), Fault.VECTOR, 0),
        (Variant(slot=1, run_code=-5), Fault.RUN, -5),
        (Variant(slot=1, run_code=-5, closes=True), Fault.RUN, -5),
        (Variant(slot=1, open_code=-19), Fault.RUN, -19),
    ],
)
def test_model_that_fails_its_trial_is_dropped(make_board, variant, fault, detail):
    with_trial, waiting, without = make_board().with_one(), make_board(waits=1).with_one(), make_board(trial=0)
    assert waiting.rc("confirm") == 0
    without.start()
    assert without.session(size=TRIAL) == 0
    assert without.install(without.bundle(ONE)).rc == 0 and without.mark() == 1000
    for board in (with_trial, waiting, without):
        verdict = board.install(board.bundle(variant, version=version_of(2)))
        assert (verdict.rc, verdict.fault, verdict.detail) == (code("EBADMSG"), fault, detail)
        assert board.mark() == 1000
        assert board.state() == State(active=0, fault=fault)
        assert board.restarted() == 1000
        # the version of a model that was never confirmed is no floor
        assert board.install(board.bundle(TWO, version=version_of(1, 1))).rc == 0


def test_tolerance_of_golden_vectors(make_board):
    board = make_board().with_one()
    assert board.install(board.bundle(Variant(slot=1, mark=2000, nearly=0.005))).rc == 0


def test_state_in_golden_vectors(make_board):
    """Vector 1 continues vector 0, vector 2 resets."""
    board = make_board()
    board.start()
    assert board.install(board.bundle(Variant(mark=1, state=True))).rc == 0
    assert board.session() == 0
    assert [board.mark() for _ in range(3)] == [1, 2, 3]
    assert board.rc("reset", 0) == 0 and board.mark() == 1
    # a refused model leaves the state of sessions
    assert board.install(board.bundle(Variant(mark=2, slot=1, wrong=1))).fault == Fault.VECTOR
    assert board.mark() == 2
    # a new one begins at its initial state
    assert board.install(board.bundle(Variant(mark=10, slot=1, state=True))).rc == 0
    assert [board.mark() for _ in range(2)] == [10, 11]


def test_first_session_loses_its_state_without_memory_for_trials(make_board):
    board = make_board(trial=0)
    board.start()
    assert board.session(0, TRIAL) == 0 and board.session(1) == 0
    assert board.install(board.bundle(Variant(mark=1, state=True))).rc == 0
    assert [board.mark(0), board.mark(0), board.mark(1), board.mark(1)] == [1, 2, 1, 2]
    assert board.install(board.bundle(Variant(mark=2, slot=1, wrong=1))).fault == Fault.VECTOR
    assert [board.mark(0), board.mark(1)] == [1, 3]


def test_damaged_active_model(make_board):
    board = make_board().with_one()
    assert board.install(board.bundle(DIGITS_B)).rc == 0
    board("flip", 1, 400, 0x10)
    assert board.restarted() == 1000
    assert board.state() == State(active=0, fault=Fault.SIGNATURE)
    assert board.listed(1) == (Fault.SIGNATURE, "digits", "---N")
    assert board.install(board.bundle(DIGITS_B)).rc == 0
    assert board.install(board.bundle(ONE)).rc == 0
    # both are damaged: the record remains, and a model can be installed
    board("flip", 0, 400, 0x10)
    board("flip", 1, 400, 0x10)
    assert board.start() == code("ENOENT")
    assert board.state() == State(active=0, previous=1)
    board("flip", 0, 400, 0x10)
    assert board.restarted() == 1000, "the keys of an older firmware accept it again"
    board("flip", 0, 400, 0x10)
    assert board.start() == code("ENOENT")
    assert board.send(board.bundle(ONE), slot=0) == code("EBUSY"), "the record refers to it"
    assert board.install(board.bundle(TWO, version=version_of(2))).rc == 0
    assert board.state() == State(active=1), "a model that could not be used is no previous one"
    assert board.session() == 0 and board.mark() == 2000


def test_healthy_ends_the_count(make_board):
    board = make_board(crash_limit=2).with_one()
    assert board.install(board.bundle(DIGITS_B)).rc == 0
    for _ in range(5):
        assert board.restarted() == 3000 and board.rc("healthy") == 0
    stores = board("operations")[4]
    assert board.rc("healthy") == 0 and board("operations")[4] == stores, "no write without a change"


def test_starts_without_a_limit_write_nothing(make_board):
    board = make_board().with_one()
    stores = board("operations")[4]
    assert board.restarted() == 1000 and board.restarted() == 1000
    assert board("operations")[4] == stores


@pytest.mark.parametrize(
    "record",
    [
        "",
        "02000000 00 ff ff 00 00 000000",
        "01000000 02 ff ff 00 00 000000",
        "01000000 00 02 ff 00 00 000000",
        "01000000 00 ff 02 00 00 000000",
        "01000000 00 00 ff 00 00 000000",
        "01000000 00 ff 00 00 00 000000",
        "ffffffff ff ff ff ff ff ffffff",
        "00000000 00 00 00 00 00 000000",
    ],
)
def test_damaged_record_is_like_none(make_board, record: str):
    """Nothing in the slots is known to be confirmed."""
    board = make_board().with_one()
    board("record", 0, record.replace(" ", ""))
    assert board.start() == code("ENOENT")
    assert board.state() == State()
    assert board.listed(0) == (Fault.GOOD, "one", "---N")
    stores = int(board("operations")[4])
    assert board.rc("begin", NONE, board.bundle(ONE)) == 0
    assert int(board("operations")[4]) == stores + (record != ""), "another firmware may read it"
    assert board.install(board.bundle(ONE)).rc == 0
    assert board.session() == 0 and board.mark() == 1000 and board.restarted() == 1000


def test_names_of_incomplete_uploads(make_board):
    board = make_board().with_one()
    name = board.bundle(TWO, version=version_of(2))
    assert board("begin", NONE, name) == ["0", "0"]
    assert board("write", name, 0, 100) == ["0", "100"]
    assert board.listed(1) == (Fault.HEADER, "-", "---N"), "a name without an end is not shown"
    assert board.restarted() == 1000
    assert board.rc("write", name, 100, 100) == code("EPERM") and board.rc("install") == code("EPERM")


@pytest.mark.parametrize(
    "values",
    [
        *({"key_count": 0}, {"slot_count": 1}, {"slot_count": 0}, {"slot_shift": 32}, {"write_size": 3}),
        *({"write_size": 0}, {"write_size": 128}, {"host_version": 0}, {"slot_size": 0x4001}),
        {"device_table": 0, "device_count": 1},
        *({part: 0} for part in "storage api slots keys host erase write synchronise load store".split()),
    ],
)
def test_configurations_that_cannot_work(make_board, values):
    board = make_board()
    for name, value in values.items():
        board("set", name, value)
    assert board.start() == code("EINVAL")
    assert board.session() == code("EPERM")
    assert board.send(board.bundle(ONE)) == code("EPERM") and board.rc("install") == code("EPERM")
    assert board.rc("confirm") == code("EPERM") and board.rc("list", 0) == code("ENOENT")


def test_storage_that_cannot_be_read(make_board):
    board = make_board().with_one()
    board("set", "load_code", -5)
    assert board.start() == -5
    assert board.send(board.bundle(TWO)) == code("EPERM")
    board("set", "load_code", 0)
    assert board.restarted() == 1000
    assert board.send(board.bundle(TWO, version=version_of(2))) == 0
    board("set", "load_code", -5)
    verdict = board.install()
    assert (verdict.rc, verdict.fault, verdict.detail) == (-5, Fault.STORAGE, -5)
    assert board.rc("begin", NONE, board.bundle(TWO)) == -5
    board("set", "load_code", 0)
    assert board.send(board.bundle(TWO, version=version_of(2))) == 0
    board("set", "synchronise_code", -6)
    verdict = board.install()
    assert (verdict.rc, verdict.fault) == (-6, Fault.STORAGE)
    assert board.mark() == 1000


def test_sessions_of_different_sizes(make_board):
    board = make_board().with_one()
    assert board.session(1, 100) == code("ENOMEM")
    needs = int(board("needs", board.bundle(ONE))[1])
    assert board.session(1, needs) == 0 and board.mark(1) == 1000
    assert needs < SESSION < TRIAL
