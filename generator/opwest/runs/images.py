# SPDX-License-Identifier: Apache-2.0
"""An image that runs on this machine with `west build -t run`, and its pseudo terminal."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from opwest.base import timing
from opwest.base.processes import end_group, group
from opwest.runs.link import LinkError

_DEVICE = re.compile(r"(?:connected to pseudotty: |redirected to )(/dev/\S+)")
"""The line with which native_sim and QEMU report the pseudo terminal of a UART."""
_LINES = 12


class RunningImage:
    """The process group of an emulator or simulator; a context manager that ends the group on exit."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._last: deque[str] = deque(maxlen=_LINES)
        self._device: str | None = None
        timing.started(command)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            **group(),
        )
        # Read until the end of the output: an emulator blocks when the pipe is full.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> RunningImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = _DEVICE.search(line)
            if found and self._device is None:
                self._device = found[1]
            if line.strip():
                self._last.append(line.rstrip())

    def device(self, seconds: float) -> str:
        """Wait for the path of the image's pseudo terminal. Raises LinkError on exit of the image or on a timeout."""
        end = time.monotonic() + seconds
        while self._device is None:
            if self._process.poll() is not None:
                self._reader.join(1)
                if self._device is None:
                    raise LinkError(
                        f"the image exited during start-up with code {self._process.returncode}:\n{self.output()}"
                    )
                break
            if time.monotonic() > end:
                raise LinkError(
                    f"the image reported no serial device within {seconds:g} s; its output:\n{self.output()}"
                )
            time.sleep(0.02)
        return self._device

    def ended(self, seconds: float) -> bool:
        """Return whether the image exits within `seconds`; its device disappears shortly before."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(seconds)
        return True

    def output(self) -> str:
        """Return the last lines of the image's output."""
        return "\n".join(f"  {line}" for line in list(self._last)) or "  (none)"

    def stop(self) -> None:
        """End all processes of the group."""
        end_group(self._process)
        self._reader.join(3)
        if self._process.stdout is not None:
            self._process.stdout.close()
