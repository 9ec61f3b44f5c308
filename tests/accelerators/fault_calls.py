# SPDX-License-Identifier: Apache-2.0
"""The calls of a case of the fault injection: which of them fail, or cancel the run."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from fault_holds import Holds
from fault_subjects import Member, Subject

OPERATOR, READY, ACTIVATE, OPEN, CLOSE, DEACTIVATE, SYNC, CACHE = range(8)
CHECK, LOAD, CANCEL = 12, 13, 14
NO_STEP, NO_DEVICE = 65535, 255
GOOD = (0, NO_STEP, OPERATOR, NO_DEVICE)
LETTERS = "AOCDSIKL"
BITS = {letter: 1 << number for number, letter in enumerate(LETTERS)} | {"enqueued": 1 << 8, "W": 1 << 9}
TIMED_OUT, AGAIN, BUSY = -errno.ETIMEDOUT, -errno.EAGAIN, -errno.EBUSY
WOKEN, CANCELED = -errno.EINTR, -errno.ECANCELED
FREE, LOADS, EXCLUSIVE = range(3)
SLICE_MS = 10
"""The longest wait that nothing can end early: for an owner, and for a driver without wake()."""
FOREVER = -1
MOST_CALLS = 1000
HOLDS: dict[str, Holds] = {}
"""Of every subject, by its name."""


@dataclass(frozen=True)
class Properties:
    """A device's own limits: those of info(), and a number of jobs after which launches return -EAGAIN."""

    depth: int = 0
    switching: int = LOADS
    hidden: int = 0


class Failed(Exception):  # noqa: N818
    """The record of a failed call."""

    def __init__(self, code: int, step: int, hook: int, device: int) -> None:
        self.status = (code, step, hook, device)
        self.code = -errno.EIO if code > 0 else code


@dataclass
class Device:
    """A handle: what its driver has, and what a run has counted."""

    jobs: int = 0
    woken: bool = False
    unfinished: int = 0
    depth: int = 0
    loads: bool = True
    current: str | None = None
    is_loaded: bool = False
    uncounted: bool = False


@dataclass
class Calls:
    """The calls of a case, with their faults."""

    subject: Subject
    masks: tuple[int, int, int]
    faults: dict[int, tuple[int, int]]
    """By position: the code, and the number of further calls of the same kind that fail; -1 for all."""
    ending: str = "c"
    properties: tuple[Properties, ...] = (Properties(), Properties(), Properties())
    cancel_at: int = -1
    uses: str = ""
    """The calls before the first run: see journal.c."""
    opened: bool = False
    position: int = 0
    faulty: bool = True
    status: tuple[int, int, int, int] = GOOD
    calls: list[str] = field(default_factory=list)
    """Of the phase."""
    history: list[str] = field(default_factory=list)
    """Of the case: one per position."""
    running: list[bool] = field(default_factory=list)
    """By position: whether the call is part of a run, or of a call by name."""
    lines: list[str] = field(default_factory=list)
    content: str = ""
    """Of the states."""
    is_running: bool = False
    cancelled: bool = False
    now: int = 0

    def __post_init__(self) -> None:
        self.devices = [Device() for _ in range(3)]
        self.repeated: dict[str, tuple[int, int]] = {}
        if self.subject.name not in HOLDS:
            HOLDS[self.subject.name] = Holds(self.subject)
        self.holds = HOLDS[self.subject.name]
        self.active: list[Callable[[], None]] = []

    # ---- calls ----

    def call(self, token: str) -> int:
        self.calls.append(token)
        self.history.append(token)
        self.running.append(self.is_running)
        assert len(self.history) < MOST_CALLS, "the run does not end"
        code = self._injected(token.partition(":")[0]) if self.faulty else 0
        if self.position == self.cancel_at:
            self._cancel()
        self.position += 1
        return code

    def _injected(self, kind: str) -> int:
        if self.position in self.faults:
            code, repeats = self.faults[self.position]
            self.repeated[kind] = (code, repeats)
            return code
        code, left = self.repeated.get(kind, (0, 0))
        if left == 0:
            return 0
        self.repeated[kind] = (code, left - (left > 0))
        return code

    def _cancel(self) -> None:
        self.cancelled = True
        for _, member in self.accelerators:
            if self.has("W", member):
                self.calls.append(f"W{member.handle}")
                self.device(member).woken = True

    def has(self, letter: str, member: Member) -> bool:
        assert member.handle is not None
        return bool(self.masks[member.handle] & BITS[letter])

    def hook(self, letter: str, member: Member, detail: str = "") -> int:
        return self.call(f"{letter}{member.handle}{detail}") if self.has(letter, member) else 0

    def device(self, member: Member) -> Device:
        assert member.handle is not None
        return self.devices[member.handle]

    @property
    def accelerators(self) -> list[tuple[int, Member]]:
        return [(i, m) for i, m in enumerate(self.subject.members) if m.kind == "accelerator"]

    def do(self, what: Callable[[], None]) -> int:
        """Make the calls; record the first failure."""
        self.status = GOOD
        try:
            what()
        except Failed as failure:
            self.status = failure.status
            return failure.code
        return 0

    def undo(self, stack: list[Callable[[], None]], first: Failed | None = None) -> None:
        """Undo all successful calls, also after failures; raise the first failure."""
        while stack:
            try:
                stack.pop()()
            except Failed as failure:
                first = first or failure
        if first:
            raise first
