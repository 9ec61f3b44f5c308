# SPDX-License-Identifier: Apache-2.0
"""Names of a board in Zephyr's Kconfig and file names, and its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.types.model import Model
from opwest.plan.problem import round_up
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
    files = {}
    for board in dict.fromkeys(board for model in models for board in model.boards):
        options = board_options(models, board)
        if options:
            lines = [f"{symbol}={value}" for symbol, value in options.items()]
            files[f"boards/{board_file(board)}.conf"] = render(
                "boards/board.conf", board=board, options=lines, used=options["CONFIG_FPU"] == "y"
            )
    return files


DEFAULT = 4096
"""Bytes if the need of a model is unknown, unless the known part exceeds it."""
MARGIN = 2048
"""Bytes in addition to run: the thread's own functions, printing, logging, and the frame of an exception."""
_STEP = 256


def stack_size(models: Sequence[Model]) -> int:
    """Return the stack in bytes of a thread that runs any of the models on any target."""
    needs = [need for model in models for need in model.stack]
    most = max((need.bytes for need in needs), default=0)
    size = round_up(most + MARGIN, _STEP)
    return size if stack_is_known(models) else max(size, DEFAULT)


def stack_is_known(models: Sequence[Model]) -> bool:
    """Whether the stack use of every model's run is known on every target."""
    return all(model.stack and all(need.known for need in model.stack) for model in models)


def stack_reason(models: Sequence[Model]) -> str:
    """Return the reason for a stack size, as a comment in a configuration."""
    if not stack_is_known(models):
        return "Their stack use is not known for all targets: this size is an estimate; the tests print the actual use"
    most = max((need for model in models for need in model.stack), key=lambda need: need.bytes)
    return f"They use at most {most.bytes} bytes ({most.target}); the rest, {MARGIN} or more, is a margin"
