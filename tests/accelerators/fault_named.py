# SPDX-License-Identifier: Apache-2.0
"""The specified behaviour of calls by name under faults, and of run, open and close while they own a device.

Written from device_calls.h and registry.h, independent of their implementation. The operator is `launch`.
"""

import contextlib
import errno
import re
from collections.abc import Callable

from fault_oracle import CANCELED, GOOD, NO_STEP, OPERATOR, Failed, Oracle
from fault_subjects import Member, Subject

USE = re.compile(r"[a-z]\d|[A-Z]")
WORKSPACE = dict.fromkeys("ORX", -errno.EBUSY)
"""Calls that are refused while a device is owned."""


def uses(subject: Subject) -> list[str]:
    """Return calls by name in many orders; each one releases what it owns."""
    listed = [i for i, member in enumerate(subject.members) if member.kind == "accelerator"]
    a = listed[0]
    # After a run the workspace is opened again: the content of states is known after one run.
    found = [
        f"o{a}l{a}o{a}RXOl{a}w{a}r{a}l{a}w{a}r{a}",
        f"o{a}l{a}l{a}r{a}w{a}",
        f"c{a}o{a}c{a}l{a}c{a}Xr{a}Xl{a}Oc{a}",
        f"RXo{a}ORXO",
    ]
    for b in listed[1:]:
        found += [f"o{a}o{b}l{a}l{b}RXOw{b}r{b}Xr{a}", f"o{b}l{b}o{a}w{a}r{a}c{a}RXOr{b}", f"o{a}l{a}c{b}l{b}Xr{a}"]
    return found


class Named(Oracle):
    """The calls of `uses`, then those of every case."""

    def say_uses(self) -> None:
        self.cancelled = False
        for token in USE.findall(self.uses):
            self.is_running = token[0] not in "OX"
            self.say(f"named {token}", self._use(token))
            self.is_running = False

    def _use(self, token: str) -> int:
        if token in WORKSPACE:
            return WORKSPACE[token] if self.owned and self.opened else self._use_workspace(token)
        if not self.opened:
            return -errno.EPERM
        index = int(token[1])
        if token[0] == "c":
            return self._call(index)
        if token[0] == "o":
            return -errno.EALREADY if self._is_owned(index) else self._own(index)
        calls = {"l": self._launch, "w": self._wait, "r": self._release}
        return calls[token[0]](index) if self._is_owned(index) else -errno.EPERM

    def _use_workspace(self, token: str) -> int:
        """Open, run or close a workspace that owns no device."""
        if token == "O":
            return -errno.EALREADY if self.opened else self.do(self.open)
        if token == "X":
            return self.do(self.close) if self.opened else -errno.EALREADY
        if self.opened:
            return self.do(self.run)
        self.status = GOOD
        return -errno.EPERM

    def _is_owned(self, index: int) -> bool:
        return self.subject.members[index].handle in [handle for handle, _ in self.owned]

    def _leader(self, index: int) -> Member:
        return self.leader(self.subject.members[index].handle)[1]

    def _attempt(self, make: Callable, *args: object) -> int:
        """Make calls and return their code. The status is not that of an operator; a time-out ends all ownership."""
        try:
            make(*args)
        except Failed as failure:
            self.status = GOOD if failure.status[2] == OPERATOR else failure.status
            if self.lost:
                self._abandon()
            return failure.code
        return 0

    def _abandon(self) -> None:
        with contextlib.suppress(Failed):  # the first failure is recorded already
            self.abandon(Failed(-errno.EIO, NO_STEP, OPERATOR, 0))

    def _own(self, index: int) -> int:
        self.status = GOOD
        if not self.owned:
            self.cancelled = False
        return self._attempt(self.take, index, self._leader(index), NO_STEP)

    def _launch(self, index: int) -> int:
        self.status = GOOD
        return self._attempt(self.start, NO_STEP, "launch", index, self.subject.members[index].program)

    def _wait(self, index: int) -> int:
        if self.device(self.subject.members[index]).unfinished == 0:
            return 0
        return self._attempt(self.room, index, 0)

    def _release(self, index: int) -> int:
        code = self._wait(index)
        if not self.opened:
            return code
        if code == CANCELED and self.cancelled:
            self._abandon()
            return code
        leader = self._leader(index)
        self.owned = [pair for pair in self.owned if pair[0] != leader.handle]
        for other in [i for i in self.launched if self.subject.members[i].handle == leader.handle]:
            del self.launched[other]
        first = self.status
        released = self._attempt(self.give_back, index, leader)
        self.status = first if code else self.status
        return code or released

    def _call(self, index: int) -> int:
        was_owned = self._is_owned(index)
        code = 0 if was_owned else self._own(index)
        if code:
            return code
        code = self._launch(index) or self._wait(index)
        if not was_owned and self.opened:
            first = self.status
            released = self._release(index)
            self.status = first if code else self.status
            code = code or released
        return code
