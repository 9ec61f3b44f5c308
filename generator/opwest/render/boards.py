# SPDX-License-Identifier: Apache-2.0
"""Names of a board in Zephyr's Kconfig and file names."""

from __future__ import annotations


def board_kconfig(board: str) -> str:
    """Return the Kconfig symbol that Zephyr sets for a board with its qualifiers."""
    board, _, qualifiers = board.partition("/")
    name = board.split("@", 1)[0] + (f"/{qualifiers}" if qualifiers else "")  # the symbol excludes the revision
    return "CONFIG_BOARD_" + "".join(c if c.isalnum() else "_" for c in name).upper()


def board_file(board: str) -> str:
    """Return a board as in Zephyr's file names: board, qualifiers, revision, with _ for / and ."""
    board, _, qualifiers = board.partition("/")
    name, _, revision = board.partition("@")
    parts = [name, *qualifiers.split("/"), revision.replace(".", "_")]  # an omitted SoC adds nothing
    return "_".join(part for part in parts if part)
