# SPDX-License-Identifier: Apache-2.0
"""The specified behaviour of open, run and close under faults: calls, returned errors, status.

Written from accelerator.h and status.h, independent of devices.c. A stack contains the hooks to undo.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from fault_subjects import Member, Subject

OPERATOR, READY, ACTIVATE, OPEN, CLOSE, DEACTIVATE, SYNC, CACHE = range(8)
NO_STEP, NO_DEVICE = 65535, 255
GOOD = (0, NO_STEP, OPERATOR, NO_DEVICE)
BITS = {"A": 1, "O": 2, "C": 4, "D": 8, "S": 16}
TIMED_OUT = -errno.ETIMEDOUT


class Failed(Exception):  # noqa: N818
    """The record of a failed call."""

    def __init__(self, code: int, step: int, hook: int, device: int) -> None:
        self.status = (code, step, hook, device)
        self.code = -errno.EIO if code > 0 else code


@dataclass
class Oracle:
    subject: Subject
    masks: tuple[int, int, int]
    faults: dict[int, int]
    ending: str = "c"
    opened: bool = False
    position: int = 0
    faulty: bool = True
    status: tuple[int, int, int, int] = GOOD
    calls: list[str] = field(default_factory=list)
    """Of the phase."""
    history: list[str] = field(default_factory=list)
    """Of the case: one per position."""
    lines: list[str] = field(default_factory=list)
    content: str = ""
    """Of the states."""

    def call(self, token: str) -> int:
        self.calls.append(token)
        self.history.append(token)
        code = self.faults.get(self.position, 0) if self.faulty else 0
        self.position += 1
        return code

    def hook(self, letter: str, member: Member, detail: str = "") -> int:
        assert member.handle is not None
        if not self.masks[member.handle] & BITS[letter]:
            return 0
        return self.call(f"{letter}{member.handle}{detail}")

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

    def deactivate(self, index: int, member: Member) -> None:
        code = self.hook("D", member)
        power = self.call(f"P{member.handle}-")
        if code or power:
            raise Failed(code or power, NO_STEP, DEACTIVATE, index)

    def undo(self, stack: list[Callable[[], None]], first: Failed | None = None) -> None:
        """Undo all successful calls, also after failures; raise the first failure."""
        while stack:
            try:
                stack.pop()()
            except Failed as failure:
                first = first or failure
        if first:
            raise first

    def open(self) -> None:
        for index, member in enumerate(self.subject.members):
            if member.kind == "foreign":
                continue
            if self.call(f"R{member.handle}"):
                raise Failed(-errno.ENODEV, NO_STEP, READY, index)
            if member.kind == "accelerator" and self.call(f"H{member.handle}"):
                raise Failed(-errno.ENOTSUP, NO_STEP, READY, index)
        self.active: list[Callable[[], None]] = []
        try:
            for index, member in self.accelerators:
                if code := self.call(f"P{member.handle}+"):
                    raise Failed(code, NO_STEP, ACTIVATE, index)
                if code := self.hook("A", member, f":{member.program or '-'}"):
                    self.call(f"P{member.handle}-")
                    raise Failed(code, NO_STEP, ACTIVATE, index)
                self.active.append(lambda i=index, m=member: self.deactivate(i, m))
            for entry in self.subject.opening:
                operation, device = entry.split()
                if code := self.call(f"{operation}:{self.subject.line}"):
                    raise Failed(code, NO_STEP, CACHE, self.subject.index(device))
        except Failed as failure:
            self.undo(self.active, failure)
        self.opened = True
        self.content = "moved"  # the test replaces the first content

    def close(self) -> None:
        self.opened = False
        self.undo(self.active)

    def run(self) -> None:
        owned: list[Callable[[], None]] = []
        try:
            for handle in sorted({m.handle for _, m in self.accelerators if m.handle is not None}):
                index, member = next((i, m) for i, m in self.accelerators if m.handle == handle)
                timeout = -1 if member.timeout is None else member.timeout
                if code := self.hook("O", member, f":{timeout}"):
                    raise Failed(code, NO_STEP, OPEN, index)
                owned.append(lambda i=index, m=member: self.give_back(i, m))
        except Failed as failure:
            self.undo(owned, failure)
        # From here on a failure affects the states: open and the checks before it do not.
        before, self.content = self.content, "first" if self.subject.resets else self.content
        launched: dict[int, int] = {}
        lost: list[int] = []
        try:
            for action in self.subject.actions:
                self.act(action, launched, lost)
        except Failed as failure:
            for index in sorted(launched):
                if self.sync(index) == TIMED_OUT:
                    lost.append(index)
            try:
                self.undo(owned, failure)
            finally:
                if lost:
                    self.opened = False
                    self.undo(self.active, failure)
        self.undo(owned)
        self.content = f"{before}+1"

    def give_back(self, index: int, member: Member) -> None:
        if code := self.hook("C", member):
            raise Failed(code, NO_STEP, CLOSE, index)

    def sync(self, index: int) -> int:
        member = self.subject.members[index]
        return self.hook("S", member, f":{-1 if member.timeout is None else member.timeout}")

    def act(self, action: str, launched: dict[int, int], lost: list[int]) -> None:
        words = action.split()
        if words[0] == "wait":
            index = self.subject.index(words[1])
            step = launched.pop(index)
            if code := self.sync(index):
                if code == TIMED_OUT:
                    lost.append(index)
                raise Failed(code, step, SYNC, index)
        elif words[0].isdigit():
            number = int(words[0])
            operator, device, _, _ = self.subject.step(number)
            member = self.subject.members[self.subject.index(device)] if device else None
            place = f"@{member.handle}" if member and member.kind != "foreign" else ""
            code = self.call(f"op{number}{place}")
            if code and operator != "cpu_void":
                raise Failed(code, number, OPERATOR, NO_DEVICE)
            if operator == "launch" and device:
                launched.setdefault(self.subject.index(device), number)
        elif code := self.call(f"{words[0]}:{self.subject.line}"):
            raise Failed(code, int(words[1]), CACHE, self.subject.index(words[2]))

    def say(self, what: str, rc: int) -> None:
        status = " ".join(map(str, self.status))
        calls = "".join(f" {token}" for token in self.calls)
        content = f"{self.content} " if self.opened and self.subject.states else ""
        self.lines.append(f"{what} {rc} ({status}) {content}{'opened' if self.opened else 'closed'}:{calls}")
        self.calls = []

    def say_run(self) -> bool:
        if not self.opened:
            self.status = GOOD
            rc = -errno.EPERM
        else:
            rc = self.do(self.run)
        self.say("run" if rc else "run, right", rc)
        return rc == 0

    def say_close(self) -> None:
        self.say("close", self.do(self.close) if self.opened else -errno.EALREADY)

    def play(self) -> list[str]:
        """Return the expected output of the program."""
        rc = self.do(self.open)
        self.say("open", rc)
        if rc == 0:
            good = self.say_run()
            if not good and not self.opened:
                self.say_run()
            elif not good and self.ending != "c":
                self.faulty = self.ending == "s"
                self.say_run()
            self.say_close()
        self.faulty = False
        self.say("open", self.do(self.open))
        self.say_run()
        self.say_close()
        return self.lines
