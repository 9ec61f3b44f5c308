# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: one line per stage, updated in place on a terminal."""

from __future__ import annotations

import sys
from typing import TextIO


class Progress:
    """Prints stages and the progress of transfers."""

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
        """Show how many bytes of a transfer are done; without a terminal, only the completed transfer."""
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
        """End the line that is updated in place."""
        if self._open and self._stream is not None:
            print(file=self._stream, flush=True)
            self._open = False


def make_progress(*, quiet: bool) -> Progress:
    """Return a progress on standard error; with `quiet`, one that prints nothing."""
    return Progress(None if quiet else sys.stderr)
