# SPDX-License-Identifier: Apache-2.0
"""Boards on pseudo terminals, and connections to them, which end with the test."""

import pytest


@pytest.fixture(params=["smp", "shell"])
def kind(request):
    return request.param


@pytest.fixture
def plug():
    from fake_board import FakeBoard

    boards = []

    def make(answer, greeting=b""):
        boards.append(FakeBoard(answer, greeting))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture
def connect():
    from opwest.runs.places import Serial
    from opwest.runs.shell import ShellLink
    from opwest.runs.smp import SmpLink

    links = []

    def make(kind, board, timeout=3.0):
        links.append(SmpLink(Serial(board.device), timeout) if kind == "smp" else ShellLink(board.device, timeout))
        return links[-1]

    yield make
    for link in links:
        link.disconnect()
