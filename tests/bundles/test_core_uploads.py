# SPDX-License-Identifier: Apache-2.0
"""Uploads: parts of any size, lost, repeated and reordered ones, and sizes of writes."""

import random

import pytest
from bundle_files import Signer, signed_part, version_of
from core_board import NONE, ONE, TWO, Fault, State, code

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]


def size_of(variant):
    return len(Signer().bundle(signed_part(variant)))


def test_parts_at_other_offsets_change_nothing(make_board):
    board = make_board()
    board.start()
    name, size = board.bundle(ONE), size_of(ONE)
    assert board("write", name, 0, 10) == [str(code("EPERM")), "0"]
    assert board("begin", NONE, name) == ["0", "0"]
    assert board.rc("install") == code("EPERM")
    assert board("write", name, 0, 101) == ["0", "101"]
    for offset, length in ((0, 101), (100, 10), (102, 50), (202, 1), (101, 0), (size, 0)):
        assert board("write", name, offset, length) == ["0", "101"]
    for offset, length in ((101, size - 100), (size, 1), (size + 1, 0), (2**32 - 1, 1)):
        assert board("write", name, offset, length) == [str(code("EFBIG")), "101"]
    assert board.rc("install") == code("EPERM")
    assert board("write", name, 101, size - 101) == ["0", str(size)]
    assert board("write", name, 101, 7) == ["0", str(size)], "a repeated part"
    assert board.install().rc == 0
    assert board("write", name, size, 0) == [str(code("EPERM")), "0"]


def test_upload_is_continued(make_board):
    board = make_board()
    board.start()
    one, two = board.bundle(ONE), board.bundle(TWO)
    assert board("begin", 0, one) == ["0", "0"] and board("write", one, 0, 300) == ["0", "300"]
    erases = board("operations")[2]
    assert board("begin", 0, one) == ["0", "300"] and board("begin", NONE, one) == ["0", "300"]
    assert board("operations")[2] == erases
    # another file, and the same one for another slot, begin again
    assert board("begin", 0, two) == ["0", "0"]
    assert board("begin", 0, one) == ["0", "0"] and board("write", one, 0, 300) == ["0", "300"]
    assert board("begin", 1, one) == ["0", "0"]
    assert board("begin", 0, one) == ["0", "0"]
    assert board.send(one) == 0
    assert board("begin", NONE, one) == ["0", str(size_of(ONE))], "complete, not installed"
    assert board.install().rc == 0


def test_file_that_is_larger_than_its_slot(make_board):
    board = make_board()
    board.start()
    large = board.file(bytes(0x4001))
    assert board("begin", NONE, large) == [str(code("EFBIG")), "0"]
    board("set", "slot_size", 1 << 16 | (size_of(TWO) - 1) // 4 * 4)
    assert board.rc("begin", 1, board.bundle(TWO)) == code("EFBIG")
    whole = board.file(b"OPWB" + bytes(0x3FFC))
    assert board.send(whole, 0) == 0
    assert board.install().fault == Fault.FORMAT


def test_refused_begin_keeps_the_upload(make_board):
    board = make_board()
    board.start()
    one = board.bundle(ONE)
    assert board("begin", 0, one) == ["0", "0"] and board("write", one, 0, 100) == ["0", "100"]
    assert board("begin", 5, one) == [str(code("ENOENT")), "0"]
    assert board("begin", NONE, board.file(bytes(0x4001))) == [str(code("EFBIG")), "0"]
    assert board("begin", 0, one) == ["0", "100"]


@pytest.mark.parametrize("write_size", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("erased", [0xFF, 0x00])
def test_sizes_of_writes(make_board, write_size, erased):
    """The storage of the test accepts whole units at aligned offsets of erased flash only."""
    choice = random.Random(write_size)
    board = make_board(write_size=write_size, erased=erased)
    board.start()
    size = size_of(ONE)
    for turn in range(6):
        name = board.bundle((ONE, TWO)[turn % 2], version=version_of(turn))
        assert board("begin", NONE, name) == ["0", "0"]
        offset = 0
        while offset < size:
            length = min(choice.choice((1, 2, 3, 7, 8, 63, 64, 65, 127, 500)), size - offset)
            if choice.random() < 0.2:
                offset_of_other = choice.randrange(size)
                length_of_other = min(length, size - offset_of_other)
                if offset_of_other != offset:
                    assert board("write", name, offset_of_other, length_of_other) == ["0", str(offset)]
            offset += length
            assert board("write", name, offset - length, length) == ["0", str(offset)]
        assert board.install().rc == 0
    for _ in range(2):  # files of one byte to a few units
        for length in (1, write_size - 1, write_size, write_size + 1):
            if length:
                name = board.file(bytes(range(1, length + 1)))
                assert board.send(name) == 0 and board.install().fault == Fault.NO_BUNDLE


def test_errors_of_the_flash_end_an_upload(make_board):
    board = make_board()
    board.start()
    name = board.bundle(ONE)
    board("disturb", 1, 1, 128, -5)  # the erase
    assert board("begin", NONE, name) == ["-5", "0"]
    assert board.rc("write", name, 0, 10) == code("EPERM")
    for number in (2, 3):
        board("disturb", number, 1, 128, -5)
        assert board("begin", NONE, name) == ["0", "0"]
        answers = [board("write", name, offset, 103) for offset in (0, 103)]
        assert ["-5", "0"] in answers
        assert board.rc("write", name, 206, 10) == code("EPERM") and board.rc("install") == code("EPERM")
        board("disturb", 0, 0, 0, 0)
    assert board.state() == State()
    assert board.install(name).rc == 0
