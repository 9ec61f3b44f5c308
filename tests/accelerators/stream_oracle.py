# SPDX-License-Identifier: Apache-2.0
"""The rules of submit and poll, from accelerator.h, stream.h and the emitted header: an oracle for one line of events.

It has no copy of the runtime's algorithm: it checks each event against the rules, and each result of a frame against
sequential execution. The devices (journal_device.c) check their queues and programs.
"""

import errno
import re
from dataclasses import dataclass, field

from fault_models import STREAM
from fault_oracle import ACTIVATE, CANCEL, CLOSE, DEACTIVATE, LOAD, NO_DEVICE, OPEN, OPERATOR, SYNC
from fault_subjects import ELEMENTS

HOOKS = {"A": ACTIVATE, "O": OPEN, "S": SYNC, "C": CLOSE, "D": DEACTIVATE, "L": LOAD}
MEMBERS = (1, 0, 2)
"""The index in the model of each device."""
EVENT = re.compile(
    r"(?P<mark>open|submit|poll|close)(?P<frame>\d*):(?P<value>-?\d+)"
    r"|(?P<hook>[AOSCDL])(?P<device>\d)(?::\S*)?"
    r"|op(?P<step>\d)(?:@(?P<at>\d):(?P<program>\w):\S*)?"
    r"|=(?P<code>-?\d+):(?P<queued>\d+)"
    r"|status:(?P<status>-?\d+:\d+:\d+)"
    r"|(?P<cancel>cancel)|(?P<digest>[0-9a-f]{8})"
    r"|[RHPINW]\d[+-]?"
)
"""A call, or its result with the unfinished jobs of the device; or the result of a function. The last have no rule."""


class BrokenError(Exception):
    """A rule is not kept."""


def require(condition: bool, rule: str) -> None:
    if not condition:
        raise BrokenError(rule)


def digest_of(output: list[int]) -> str:
    digest = 0
    for value in output:
        digest = ((digest ^ (value % 2**32)) * 16777619) % 2**32
    return f"{digest:08x}"


@dataclass
class Device:
    active: bool = False
    owned: bool = False


@dataclass
class Oracle:
    """Checks one line."""

    devices: list[Device] = field(default_factory=lambda: [Device() for _ in range(3)])
    flight: list[int] = field(default_factory=list)
    state: dict[str, list[int]] = field(default_factory=dict)
    failure: int | None = None
    """A failure that no function has returned yet."""
    failures: int = 0
    returned: int = 0
    opening: bool = True
    checking: bool = False
    """Open activates a device, and owns it only to load its first program."""
    cancel: str | None = None
    """The effect of a cancellation: next, loading, expected, perhaps."""
    due: str | None = None
    """The digest that follows a poll."""
    status: str = ""
    """Of the last failure: code, hook, device."""

    def check(self, line: str) -> None:
        """Raise BrokenError at the first event that breaks a rule."""
        call = None
        require("VIOLATION" not in line, line)
        for word in line.split():
            found = EVENT.fullmatch(word)
            require(found is not None, f"unknown event {word}")
            if self.due is not None:
                require(found["digest"] == self.due, f"the output is {word}, sequential execution gives {self.due}")
                self.due = None
            elif found["mark"]:
                self._mark(found["mark"], found["frame"], int(found["value"]))
                self._during(word)
            elif found["hook"] or found["step"]:
                call = found
            elif found["code"]:
                judge = self._hook if call["hook"] else self._step
                judge(call, int(found["code"]), int(found["queued"]))
                self._during(call[0])
            elif found["status"]:
                require(found["status"] == self.status, f"the status is {word}, expected {self.status}")
            elif found["cancel"]:
                self.cancel = "next"
        require(self.cancel != "expected", "the cancellation was not returned")
        require(self.failure is None, "a failure was not returned")
        require(self.returned == self.failures, f"{self.failures} failures, {self.returned} were returned")
        require(not any(device.active or device.owned for device in self.devices), "a device is active at the end")

    def _mark(self, mark: str, frame: str, value: int) -> None:
        if mark == "open":
            self._reset_state()
            self.opening = value != 0
            self.checking = False
        if value == 0 and mark == "submit":
            require(len(self.flight) < 2, "three frames are in flight")
            self.flight.append(int(frame))
        elif value == 0 and mark == "poll":
            number = self.flight.pop(0)
            outputs, self.state = STREAM.expected(self.state, [number * 7 + i for i in range(ELEMENTS)])
            self.due = digest_of(outputs["y"])
            ending = self.failure is not None or self.cancel is not None
            require(ending or self._consistent(), "devices are owned if and only if a frame is in flight")
        elif mark == "poll" and value == -errno.ENOENT:
            require(not self.flight and self.failure is None, "poll found no frame in flight")
        elif value != 0:
            if value == -errno.ECANCELED and self.cancel in ("expected", "perhaps", "loading"):
                self.cancel = None
                self._fail(value, CANCEL)
            require(self.failure is not None, f"{mark} returned {value} without a failure")
            require(value == self.failure, f"{mark} returned {value}, the first failure is {self.failure}")
            self.failure = None
            self.returned += 1
            if mark == "poll":
                self.flight.clear()
                self._reset_state()
            require(self._consistent(), "devices are owned after a failure")

    def _reset_state(self) -> None:
        self.state = {name: list(kept.first) for name, kept in STREAM.states.items()}

    def _consistent(self) -> bool:
        return all(device.owned == bool(self.flight) for device in self.devices)

    def _fail(self, code: int, hook: int, device: int = NO_DEVICE) -> None:
        if self.failure is None:
            self.failure = code if code < 0 and (hook, code) != (OPERATOR, -errno.EAGAIN) else -errno.EIO
            self.status = f"{code}:{hook}:{device}"
            self.failures += 1

    def _quiet(self, event: str) -> None:
        require(self.failure is None, f"{event} after a failure")

    def _hook(self, found: re.Match[str], rc: int, _queued: int) -> None:
        hook, index = found["hook"], int(found["device"])
        device = self.devices[index]
        event = f"{hook}{index}"
        if hook in "AOL":
            self._quiet(event)
        if hook == "A":
            require(not device.active, f"{event} twice")
            device.active = rc == 0
            self.checking = True
        elif hook == "O":
            require(device.active and not device.owned, f"{event} of an inactive or owned device")
            higher = any(other.owned for other in self.devices[index + 1 :])
            require(not higher, f"{event} while a device of a higher address is owned")
            device.owned = rc == 0
        elif hook == "D":
            require(device.active and not device.owned, f"{event} of an inactive or owned device")
            device.active = False
        else:
            require(device.owned, f"{event} without ownership")
            device.owned = hook != "C"
        require(hook != "L" or self.cancel != "expected", "a load after the cancellation")
        if rc != 0 and not (hook == "S" and rc in (-errno.EAGAIN, -errno.EINTR)):
            self._fail(rc, LOAD if self.checking and hook in "OC" else HOOKS[hook], MEMBERS[index])

    def _step(self, found: re.Match[str], code: int, queued: int) -> None:
        step = int(found["step"])
        self._quiet(f"step {step}")
        require(self.cancel != "expected", f"step {step} after the cancellation")
        _, name, _, _ = STREAM.step(step)
        if name is None:
            require(found["at"] is None, f"step {step} on the processor")
        else:
            handle = STREAM.members[STREAM.index(name)].handle
            require(found["at"] == str(handle), f"step {step} on device {found['at']}")
            require(self.devices[handle].owned, f"step {step} without ownership")
            require(found["program"] == STREAM.program(step), f"step {step} with {found['program']}")
        if code != 0 and (code != -errno.EAGAIN or queued == 0):  # nothing ends that makes room
            self._fail(code, OPERATOR)

    def _during(self, event: str) -> None:
        """Note the event during which the frames were cancelled: it has an effect if an action follows."""
        if self.cancel == "loading":  # the step whose program was loaded is the present one
            self.cancel = "expected"
        if self.cancel != "next":
            return
        if self.opening or event[0] in "ACD":
            self.cancel = None
        elif event.startswith(f"op{len(STREAM.steps) - 1}"):
            self.cancel = "perhaps"  # the end of the older frame, of one or of two in flight
        else:
            self.cancel = "loading" if event.startswith("L") else "expected"
