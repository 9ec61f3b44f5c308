# SPDX-License-Identifier: Apache-2.0
"""Names of a board in Zephyr's Kconfig and file names, and its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.model import Model
from opwest.render.templates.renderer import Renderer
from opwest.zephyr.floats import board_options


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


def board_configurations(render: Renderer, models: Sequence[Model]) -> dict[str, bytes]:
    """Return boards/<board>.conf for each board of the manifests whose FPU the operators need, or must not have."""
    found = {}
    for board in dict.fromkeys(board for model in models for board in model.boards):
        options = board_options(models, board)
        if options:
            lines = [f"{symbol}={value}" for symbol, value in options.items()]
            found[f"boards/{board_file(board)}.conf"] = render(
                "boards/board.conf", board=board, options=lines, used=options["CONFIG_FPU"] == "y"
            )
    return found
