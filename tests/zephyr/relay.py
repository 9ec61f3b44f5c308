# SPDX-License-Identifier: Apache-2.0
"""A relay between a host and the serial device of an image: it loses, repeats and delays lines; it can be unplugged."""

from __future__ import annotations

import os
import random
import re
import select
import threading
import time
import tty
from pathlib import Path

import pytest

_IDLE = 0.01
"""Seconds after which an incomplete line, such as a prompt, is passed on."""


class Relay:
    """A pseudo terminal behind a symbolic link; a context manager."""

    def __init__(self, device: str, link: Path, seed: int, lose: float, repeat: float, delay: float) -> None:
        self.device = str(link)
        self.console = b""
        """What the image has sent."""
        self.counts = {"lost": 0, "repeated": 0, "delayed": 0, "unplugged": 0}
        self.unplug_at: set[int] = set()
        """The numbers of lines of the host at which the relay is unplugged."""
        self._link = link
        self._random = random.Random(seed)
        self._rates = (lose, repeat, delay)
        self._lines = 0
        self._image = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._image)
        self._master = self._slave = -1
        self._plug()
        self._rest = {True: b"", False: b""}
        self._late = {True: b"", False: b""}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)
        for file in (self._image, self._master, self._slave):
            os.close(file)

    def _plug(self) -> None:
        """Make a new pseudo terminal, in place of the present one."""
        old = (self._master, self._slave)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        draft = self._link.with_suffix(".draft")
        draft.symlink_to(os.ttyname(self._slave))
        draft.replace(self._link)
        for file in old:
            if file >= 0:
                os.close(file)

    def _serve(self) -> None:
        while not self._stop.is_set():
            ready = select.select([self._image, self._master], [], [], _IDLE)[0]
            if not ready:
                for from_host in (True, False):
                    self._pass(from_host, self._late[from_host] + self._rest[from_host])
                    self._late[from_host] = self._rest[from_host] = b""
            for file in ready:
                from_host = file == self._master
                try:
                    data = os.read(file, 4096)
                except OSError:
                    if not from_host:
                        return  # the image has ended
                    continue
                if not from_host:
                    self.console += data
                lines = (self._rest[from_host] + data).split(b"\n")
                self._rest[from_host] = lines.pop()
                for line in lines:
                    self._line(from_host, line + b"\n")

    def _line(self, from_host: bool, line: bytes) -> None:
        lose, repeat, delay = self._rates
        late, self._late[from_host] = self._late[from_host], b""
        self._lines += from_host
        if from_host and self._lines in self.unplug_at:
            self.counts["unplugged"] += 1
            self._plug()
            return
        if self._random.random() < lose:
            self.counts["lost"] += 1
            line = b""
        elif self._random.random() < repeat:
            self.counts["repeated"] += 1
            line += line
        elif self._random.random() < delay:
            self.counts["delayed"] += 1
            self._late[from_host], line = line, b""
        self._pass(from_host, line + late)

    def _pass(self, from_host: bool, data: bytes) -> None:
        file = self._image if from_host else self._master
        while data and not self._stop.is_set():
            try:
                data = data[os.write(file, data) :]
            except BlockingIOError:
                time.sleep(_IDLE)
            except OSError:
                return

    def wait(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """Wait for the last match of a pattern in the output of the image."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = list(re.finditer(pattern, self.console.decode(errors="replace")))
            if found:
                return found[-1]
            time.sleep(0.02)
        pytest.fail(f"no {pattern!r} within {seconds} s:\n{self.console.decode(errors='replace')[-3000:]}")
