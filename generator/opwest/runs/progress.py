# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: one line per stage, updated in place on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Final, TextIO

from opwest.base.diagnostics import printable


class StageProgress:
    """Prints stages and the progress of transfers."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._live = stream is not None and stream.isatty()
        self._open = False

    def __call__(self, text: str) -> None:
        """Start a stage."""
        self.show(text)

    def show(self, text: str) -> None:
        """Start a stage."""
        if self._stream is None:
            return
        self.end()
        print(f"== {text}", file=self._stream, flush=True)

    def part(self, what: str, done: int, total: int) -> None:
        """Show how many bytes of a transfer are done; without a terminal, only the completed transfer."""
        text = f"== {what}: {done} of {total} bytes"
        if self._live:
            self._update(text)
            if done == total:
                self.end()
        elif done == total and self._stream is not None:
            print(text, file=self._stream, flush=True)

    def status(self, text: str) -> None:
        """Show the status of another program, such as ninja's count of steps; nothing without a terminal."""
        if self._live:
            self._update(text)

    def _update(self, text: str) -> None:
        """Replace the line that is updated in place; one line of the terminal."""
        if self._stream is not None:
            columns = shutil.get_terminal_size().columns
            self._stream.write(f"\r{printable(text)[: columns - 1]}\x1b[K")
            self._stream.flush()
            self._open = True

    def end(self) -> None:
        """End the line that is updated in place."""
        if self._open and self._stream is not None:
            print(file=self._stream, flush=True)
            self._open = False


class CallbackProgress(StageProgress):
    """Passes each stage, and each completed transfer, to a function."""

    def __init__(self, callback: Callable[[str], None]) -> None:
        super().__init__(None)
        self._callback = callback

    def show(self, text: str) -> None:
        """Pass on the start of a stage."""
        self._callback(text)

    def part(self, what: str, done: int, total: int) -> None:
        """Pass on a completed transfer."""
        if done == total:
            self._callback(f"{what}: {total} bytes")


SILENT: Final = StageProgress(None)
"""Prints nothing."""


def progress_to(callback: Callable[[str], None] | None) -> StageProgress:
    """Return a progress that passes lines to a function; a StageProgress prints them itself."""
    if callback is None:
        return SILENT
    return callback if isinstance(callback, StageProgress) else CallbackProgress(callback)


def make_progress(*, quiet: bool) -> StageProgress:
    """Return a progress on standard error; with `quiet`, one that prints nothing."""
    return StageProgress(None if quiet else sys.stderr)
