# SPDX-License-Identifier: Apache-2.0
"""Power cuts and failures at every operation of the storage."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_files import Signer, Variant, signed_part, version_of
from c_support import run
from campaign import sized
from core_board import Board, Fault, State, code
from core_support import FLAGS, built

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
OLD = Variant(mark=1000)
NEW = Variant(mark=2000, slot=1)
OTHER = Variant(name="other", mark=3000, slot=1)
FAST = (*(flag for flag in FLAGS if "sanitize" not in flag and flag != "-O1"), "-O2")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["single", "double"])
def test_power_cut_at_every_operation(how: str, tmp_path: Path) -> None:
    """Every operation, before, after, and inside at three fractions; then again at every operation of the recovery."""
    signer = Signer()
    paths = []
    for name, variant, version in (("old", OLD, 1), ("new", NEW, 2), ("other", OTHER, 1)):
        paths.append(tmp_path / f"{name}.bundle")
        paths[-1].write_bytes(signer.bundle(signed_part(variant, version=version_of(version))))
    stride = 1 if how == "single" else sized(250, 1)
    flags = sized(FAST, FLAGS) if how == "double" else FLAGS
    program = built("cuts", ["cuts", "simulated"], flags)
    text = run([program, *paths, how, signer.public.hex(), str(stride)], tmp_path)
    print(text)
    found = re.findall(r"(.+): (\d+) operations, (\d+) cuts", text)
    rows = {name: (int(count), int(cuts)) for name, count, cuts in found}
    assert len(rows) == 11
    for name, (count, cuts) in rows.items():
        assert count > 0 and cuts >= 5 * (count if stride == 1 else min(count, 4)), name
    parts = -(-paths[1].stat().st_size // 256)
    # erase, writes, trying, floor, active; over a previous model one record more
    assert rows["installation"][0] == 1 + parts + 3 + (paths[1].stat().st_size % 4 != 0)
    assert rows["installation over the previous model"][0] == rows["installation"][0] + 1
    assert rows["roll-back"][0] == 2 and rows["end of a trial"][0] == 1 and rows["confirmation"][0] == 2


@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_failure_of_every_operation(when: str, make_board: Callable[..., Board]) -> None:
    """The storage reports an error, before, in the middle of, or after an operation that it has done nevertheless."""
    board = make_board()
    old, new = board.bundle(OLD), board.bundle(NEW, version=version_of(2))
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


def test_record_that_could_not_be_stored_is_stored_before_the_next_erase(make_board: Callable[..., Board]) -> None:
    """The record names the trial, or even the new model: an upload must not replace its slot behind the record."""
    board = make_board()
    board.start()
    assert board.install(board.bundle(OLD)).rc == 0 and board.session() == 0
    new = board.bundle(NEW, version=version_of(2))
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


def test_failures_of_other_operations(make_board: Callable[..., Board]) -> None:
    board = make_board(waits=1, crash_limit=2)
    board.start()
    assert board.install(board.bundle(OLD)).rc == 0 and board.session() == 0
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
