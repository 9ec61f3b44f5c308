# SPDX-License-Identifier: Apache-2.0
"""What goes on, on standard error: a line per stage, and on a terminal a line that changes within it."""

from __future__ import annotations

import sys
from typing import TextIO


class Progress:
    """Shows stages and how far transfers are."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._live = stream is not None and stream.isatty()
        self._open = False

    def show(self, text: str) -> None:
        """Start a stage."""
        if self._stream is None:
            return
        self.end()
        print(f"== {text}", file=self._stream, flush=True)

    def part(self, what: str, done: int, total: int) -> None:
        """Tell how much of a transfer is done; without a terminal only that it ended."""
        if self._stream is None:
            return
        text = f"== {what}: {done} of {total} bytes"
        if self._live:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
            self._open = True
            if done == total:
                self.end()
        elif done == total:
            print(text, file=self._stream, flush=True)

    def end(self) -> None:
        """End a line that changes."""
        if self._open and self._stream is not None:
            print(file=self._stream, flush=True)
            self._open = False


def make_progress(*, quiet: bool) -> Progress:
    """Return a progress on standard error, or one that shows nothing."""
    return Progress(None if quiet else sys.stderr)
