# SPDX-License-Identifier: Apache-2.0
"""Stages, and commands of other programs, with their times, for `--verbose`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from os import PathLike, fspath

from opwest.base.commands import joined
from opwest.base.diagnostics import printable

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def reported(listener: Listener) -> Iterator[None]:
    """Pass one line for each stage and command to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Report a stage and its time at its end."""
    listener = _listener.get()
    begin = time.monotonic()
    try:
        yield
    finally:
        if listener is not None:
            listener(f"{name}: {time.monotonic() - begin:.3f} s")


@contextlib.contextmanager
def command(words: Sequence[str | PathLike[str]]) -> Iterator[None]:
    """Report the command of another program, and its time at its end."""
    started(words)
    with stage(f"  {printable(fspath(words[0]))}"):
        yield


def started(words: Sequence[str | PathLike[str]]) -> None:
    """Report the command of another program that runs beside opwest."""
    listener = _listener.get()
    if listener is not None:
        listener(f"+ {printable(joined(fspath(word) for word in words))}")


def output(text: str) -> None:
    """Report the output of another program, which has failed."""
    listener = _listener.get()
    if listener is not None and text.strip():
        listener(printable(text.rstrip("\n"), "\n\t"))
