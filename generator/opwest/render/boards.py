# SPDX-License-Identifier: Apache-2.0
"""How Zephyr spells a board in Kconfig and in file names."""

from __future__ import annotations


def board_kconfig(board: str) -> str:
    """Return the Kconfig symbol that Zephyr sets for a board with its qualifiers."""
    board, _, qualifiers = board.partition("/")
    name = board.split("@", 1)[0] + (f"/{qualifiers}" if qualifiers else "")  # a revision is no part of the symbol
    return "CONFIG_BOARD_" + "".join(c if c.isalnum() else "_" for c in name).upper()


def board_file(board: str) -> str:
    """Return a board as Zephyr spells it in file names: board, qualifiers, revision, with _ for / and ."""
    board, _, qualifiers = board.partition("/")
    name, _, revision = board.partition("@")
    parts = [name, *qualifiers.split("/"), revision.replace(".", "_")]  # an SoC that is left out leaves no trace
    return "_".join(part for part in parts if part)
