# SPDX-License-Identifier: Apache-2.0
"""The errors of the model: what it refuses, and where in the payload."""

from __future__ import annotations


class NpuError(Exception):
    """A payload that cannot be executed. `position` is the byte in the payload of the command at fault, or None."""

    def __init__(self, text: str, position: int | None = None, command: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.position = position
        self.command = command

    def at(self, position: int, command: str) -> NpuError:
        """Complete the error with the command that was executed, unless it has one."""
        if self.position is None:
            self.position, self.command = position, command
        return self

    def __str__(self) -> str:
        where = "" if self.position is None else f"byte {self.position} of the payload: "
        return f"{where}{self.command + ': ' if self.command else ''}{self.text}"


class Invalid(NpuError):  # noqa: N818 - the payload is invalid, not the program
    """No Ethos-U55 may be given this payload: damaged, truncated, out of a region."""


class Unsupported(NpuError):  # noqa: N818
    """The payload can be valid, but the model does not compute what it asks for."""
