# SPDX-License-Identifier: Apache-2.0
"""Power cuts and failures at every operation of the storage."""

from dataclasses import dataclass

import pytest
from bundle_files import Variant, signed_part, version_of
from campaign import sized
from core_board import NONE, ONE, SESSION, TWO, Fault, State, code
from core_support import FLAGS

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
OTHER = Variant(name="other", mark=3000, slot=1)
FAST = (*(flag for flag in FLAGS if "sanitize" not in flag and flag != "-O1"), "-O2")
CUTS = ((0, 0), (2, 0), (1, 0), (1, 100), (1, 255))
"""Before and after an operation, and inside of it at three fractions of 256."""
START = f"start; session 0 {SESSION}"


def put(name, slot=NONE):
    """Return the commands that send and install a model."""
    return f"send {slot} {name} 256; install"


@dataclass(frozen=True)
class Scenario:
    """Commands that prepare the slots, and those whose operations are cut."""

    prepared: str
    mark: int
    """Of the model after the preparation."""
    acts: str
    allowed: frozenset[int]
    """The marks of the models that may run after a cut."""
    waits: int = 0
    crash_limit: int = 0


EMPTY, OLD, NEW, ANOTHER = code("ENOENT"), 1000, 2000, 3000
WITH_OLD = f"{START}; {put('old', 0)}; confirm"
WITH_OTHER = f"{WITH_OLD}; {put('other', 1)}"
TRIAL = f"{WITH_OLD}; {put('new', 1)}"
SCENARIOS = {
    "first installation": Scenario(START, EMPTY, put("old", 0), frozenset({OLD, EMPTY})),
    "installation": Scenario(WITH_OLD, OLD, put("new"), frozenset({OLD, NEW})),
    "installation over the previous model": Scenario(
        f"{WITH_OTHER}; {put('old', 0)}", OLD, put("new"), frozenset({OLD, NEW})
    ),
    "installation and confirmation": Scenario(WITH_OLD, OLD, f"{put('new')}; confirm", frozenset({OLD, NEW}), waits=1),
    "roll-back": Scenario(WITH_OTHER, ANOTHER, "roll_back", frozenset({ANOTHER, OLD})),
    "end of a trial": Scenario(TRIAL, NEW, "roll_back", frozenset({OLD}), waits=1),
    "confirmation": Scenario(TRIAL, NEW, "confirm", frozenset({OLD, NEW}), waits=1),
    "start of a trial": Scenario(TRIAL, NEW, START, frozenset({OLD}), waits=1),
    "start of a counted model": Scenario(WITH_OTHER, ANOTHER, f"{START}; healthy", frozenset({ANOTHER}), crash_limit=3),
    "start after crashes": Scenario(
        f"{WITH_OTHER}; {START}; {START}", ANOTHER, START, frozenset({ANOTHER, OLD}), crash_limit=2
    ),
    "start of a damaged model": Scenario(WITH_OTHER, ANOTHER, f"flip 1 300 1; {START}", frozenset({OLD})),
}


def set_up(board, scenario):
    board.all(f"open 2 4 0xff; set waits {scenario.waits}; set crash_limit {scenario.crash_limit}")
    board.all(scenario.prepared)
    assert board.mark() == scenario.mark


def is_cut(board, script):
    return ["cut"] in board.all(script)


def check(board, allowed, where):
    """After a cut, a start finds an allowed model whose golden vectors agree, and the next installation succeeds."""
    rc, session, run, state = board.all(f"{START}; run 0 typed 7; state")
    mark = board.mark_of(run)
    assert int(rc[0]) == (0 if mark > 0 else mark) and session == ["0"], where
    assert mark in allowed, where
    assert mark == EMPTY or board.rc("agrees") == 0, where
    assert int(state[2]) == NONE, where
    name, slot, installed = ("old", 0, OLD) if mark in (NEW, ANOTHER) else ("new", 1, NEW)
    run = "run 0 typed 7"
    answers = board.all(f"set waits 0; set downgrade 1; {put(name, slot)}; {run}; set downgrade 0; {START}; {run}")
    assert answers[2] == ["0"] and answers[3][0] == "0" and answers[6] == ["0"], where
    assert board.mark_of(answers[4]) == board.mark_of(answers[8]) == installed, where


def check_again(board, allowed, where):
    """Cut the power a second time at every operation of the recovery, which installs a model."""
    board("save")
    second = 0
    while True:
        second += 1
        for when, fraction in CUTS:
            board.all(f"restore; set crash_limit 0; set waits 0; disturb {second} {when} {fraction} 0")
            if not is_cut(board, f"{START}; {put('new', 1)}"):
                return
            check(board, allowed | {NEW}, (*where, second, when, fraction))


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True], ids=["single", "double"])
def test_power_cut_at_every_operation(twice, make_board):
    """Every operation, before, after, and inside at three fractions; then again at every operation of the recovery."""
    board = make_board(flags=sized(FAST, FLAGS) if twice else FLAGS)
    versions = {"old": (ONE, 1), "new": (TWO, 2), "other": (OTHER, 1)}
    sizes = {}
    for name, (variant, version) in versions.items():
        content = board.signer.bundle(signed_part(variant, version=version_of(version)))
        assert board.file(content, name) == name
        sizes[name] = len(content)
    stride = sized(250, 1) if twice else 1
    counts = {}
    for name, scenario in SCENARIOS.items():
        set_up(board, scenario)
        before = int(board("operations")[1])
        assert not is_cut(board, scenario.acts)
        counts[name] = count = int(board("operations")[1]) - before
        assert count > 0, name
        for number in range(1, count + 1):
            if number % stride and number + 4 <= count:
                continue
            for when, fraction in CUTS:
                set_up(board, scenario)
                board("disturb", number, when, fraction, 0)
                where = (name, number, when, fraction)
                assert is_cut(board, scenario.acts), where
                (check_again if twice else check)(board, scenario.allowed, where)
    # erase, writes, trying, floor, active; over a previous model one record more
    writes = -(-sizes["new"] // 256) + (sizes["new"] % 4 != 0)
    assert counts["installation"] == 1 + writes + 3
    assert counts["installation over the previous model"] == counts["installation"] + 1
    assert counts["roll-back"] == 2 and counts["end of a trial"] == 1 and counts["confirmation"] == 2


@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_failure_of_every_operation(when, make_board):
    """The storage reports an error, before, in the middle of, or after an operation that it has done nevertheless."""
    board = make_board()
    old, new = board.bundle(ONE), board.bundle(TWO, version=version_of(2))
    board("open", 2, 4, "0xff")
    board.start()
    assert board.install(old).rc == 0 and board.session() == 0
    before = int(board("operations")[1])
    assert board.install(new).rc == 0
    count = int(board("operations")[1]) - before
    assert count > 20
    for number in [1, 2, 3, count // 2, *range(count - 4, count + 1)]:
        board("open", 2, 4, "0xff")
        board.start()
        assert board.install(old).rc == 0 and board.session() == 0 and board.mark() == 1000
        board("disturb", number, ("before", "inside", "after").index(when), 100, -5)
        assert board.install(new).rc == -5, number
        # the old model continues, without and with a reset
        assert board.mark() == 1000
        assert board.state().active == 0 and board.state().trying == -1
        assert board.start() == 0 and board.session() == 0 and board.mark() == 1000
        assert board.install(new).rc == 0 and board.mark() == 2000
        assert board.start() == 0 and board.session() == 0 and board.mark() == 2000


def test_record_that_could_not_be_stored_is_stored_before_the_next_erase(make_board):
    """The record names the trial, or even the new model: an upload must not replace its slot behind the record."""
    board = make_board()
    board.start()
    assert board.install(board.bundle(ONE)).rc == 0 and board.session() == 0
    new = board.bundle(TWO, version=version_of(2))
    wrong = board.bundle(Variant(mark=9, slot=1, wrong=1), version=version_of(2))
    for name, number, when in ((wrong, 2, 0), (new, 3, 2)):
        assert board.send(name) == 0
        # for the new model: stored with an error, and the record of the abandoned trial fails
        board("disturb", number, when, 0, -5, *([-5] if name == new else []))
        verdict = board.install()
        assert verdict.fault == (Fault.STORAGE if name == new else Fault.VECTOR)
        assert board.state() == State(active=0, fault=verdict.fault) and board.mark() == 1000
        stores = int(board("operations")[4])
        assert board("begin", 1, wrong) == ["0", "0"]
        assert int(board("operations")[4]) == stores + 1
        assert board.start() == 0 and board.state() == State(active=0, fault=verdict.fault)
        assert board.session() == 0 and board.mark() == 1000
    # without an upload, a reset finds the stored record: the model that passed its trial
    assert board.send(new) == 0
    board("disturb", 2, 2, 0, -5, -5)  # its floor is stored already
    assert board.install().fault == Fault.STORAGE and board.mark() == 1000
    assert board.start() == 0 and board.session() == 0 and board.mark() == 2000


def test_failures_of_other_operations(make_board):
    board = make_board(waits=1, crash_limit=2)
    board.start()
    assert board.install(board.bundle(ONE)).rc == 0 and board.session() == 0
    for number in (1, 2):  # the floor, the record
        board("disturb", number, 0, 0, -5)
        assert board.rc("confirm") == -5
        assert board.state() == State(trying=0) and board.mark() == 1000
    assert board.rc("confirm") == 0
    # the end of a trial
    assert board.install(board.bundle(OTHER)).rc == 0 and board.mark() == 3000
    board("disturb", 1, 0, 0, -5)
    assert board.roll_back().rc == -5 and board.mark() == 3000
    assert board.roll_back().rc == 0 and board.mark() == 1000
    # healthy
    assert board.start() == 0 and board.state().crashes == 1
    board("disturb", 1, 0, 0, -5)
    assert board.rc("healthy") == -5 and board.state().crashes == 1
    # the start itself: nothing is current, and nothing can be installed
    board("disturb", 1, 0, 0, -5)
    assert board.start() == -5
    assert board.session() == code("EPERM") and board.send(board.bundle(OTHER)) == code("EPERM")
    assert board.start() == 0 and board.session() == 0 and board.mark() == 1000
