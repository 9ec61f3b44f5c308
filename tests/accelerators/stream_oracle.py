# SPDX-License-Identifier: Apache-2.0
"""The rules of submit and poll, from accelerator.h, stream.h and the emitted header: an oracle for one line of events.

It has no copy of the runtime's algorithm: it checks each event against the rules, and each result of a frame against
sequential execution.
"""

import errno
import re
from dataclasses import dataclass, field

from fault_calls import ACTIVATE, CANCEL, CLOSE, DEACTIVATE, LOAD, NO_DEVICE, OPEN, OPERATOR, SYNC

STEPS = {0: (1, "p"), 1: (0, "q"), 3: (2, "p"), 4: (2, "q")}
"""The device and the program of each launched step."""
ELEMENTS = 16
FREE = 0
HOOKS = {"A": ACTIVATE, "O": OPEN, "S": SYNC, "C": CLOSE, "D": DEACTIVATE, "L": LOAD}
MEMBERS = (1, 0, 2)
"""The index in the model of each device."""
EVENT = re.compile(
    r"(?P<mark>open|submit|poll|close|positions|owned|active)(?P<frame>\d*):(?P<value>-?\d+)"
    r"|(?P<hook>[AOSCD])(?P<device>\d)=(?P<rc>-?\d+)"
    r"|L(?P<loaded>\d)(?P<program>.):(?P<during>\d+)=(?P<load_rc>-?\d+)"
    r"|x(?P<step>\d)@(?P<at>\d|c)(?:(?P<used>.):(?P<queued>\d+))?=(?P<code>-?\d+)"
    r"|status:(?P<status>-?\d+:\d+:\d+)"
    r"|(?P<cancel>cancel)|(?P<digest>[0-9a-f]{8})"
)


class BrokenError(Exception):
    """A rule is not kept."""


def require(condition: bool, rule: str) -> None:
    """Raise BrokenError if a rule is not kept."""
    if not condition:
        raise BrokenError(rule)


def signed(value: int) -> int:
    """Return a value as int8."""
    return (value + 128) % 256 - 128


def frame_of(number: int, state: list[int]) -> tuple[list[int], list[int]]:
    """Return the output and the next state of a frame: the steps of the manifest, one after the other."""

    def job(a: list[int], b: list[int], program: str) -> list[int]:
        return [signed(a[i] * 3 + b[(i + 1) % ELEMENTS] + ord(program)) for i in range(ELEMENTS)]

    def difference(a: list[int], b: list[int]) -> list[int]:
        return [signed(one - other) for one, other in zip(a, b, strict=True)]

    x = [signed(number * 7 + i) for i in range(ELEMENTS)]
    a = job(x, x, "p")
    b = job(a, x, "q")
    c = difference(b, x)
    d = job(c, state, "p")
    e = job(d, c, "q")
    kept = difference(e, c)
    return difference(kept, x), kept


def digest_of(output: list[int]) -> str:
    """Return the digest of an output."""
    digest = 0
    for value in output:
        digest = ((digest ^ (value & 0xFF)) * 16777619) & 0xFFFFFFFF
    return f"{digest:08x}"


@dataclass
class Device:
    """A device according to its events."""

    active: bool = False
    owned: bool = False
    program: str | None = None


@dataclass
class Oracle:
    """Checks one line; `kind` and `code` are those of the injected fault."""

    kind: str
    code: int
    depth: int
    switching: int
    devices: list[Device] = field(default_factory=lambda: [Device() for _ in range(3)])
    flight: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=lambda: [0] * ELEMENTS)
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
        for word in line.split():
            found = EVENT.fullmatch(word)
            require(found is not None, f"unknown event {word}")
            assert found is not None
            if self.due is not None:
                require(found["digest"] == self.due, f"the output is {word}, sequential execution gives {self.due}")
                self.due = None
            elif found["mark"]:
                self._mark(found["mark"], found["frame"], int(found["value"]))
            elif found["hook"]:
                self._hook(found["hook"], int(found["device"]), int(found["rc"]))
            elif found["loaded"]:
                self._load(int(found["loaded"]), found["program"], int(found["during"]), int(found["load_rc"]))
            elif found["status"]:
                require(found["status"] == self.status, f"the status is {word}, expected {self.status}")
                continue
            elif found["cancel"]:
                self._cancel()
                continue
            else:
                self._call(found)
            self._during(word)
        require(self.cancel != "expected", "the cancellation was not returned")
        require(self.failure is None, "a failure was not returned")
        require(self.returned == self.failures, f"{self.failures} failures, {self.returned} were returned")

    def _mark(self, mark: str, frame: str, value: int) -> None:
        if mark in ("owned", "active"):
            require(value == 0, f"{value} devices are {mark} at the end")
            return
        if mark == "positions":
            return
        if mark == "open":
            self.state = [0] * ELEMENTS
            self.opening = value != 0
            self.checking = False
        if value == 0 and mark == "submit":
            require(len(self.flight) < 2, "three frames are in flight")
            self.flight.append(int(frame))
        elif value == 0 and mark == "poll":
            output, self.state = frame_of(self.flight.pop(0), self.state)
            self.due = digest_of(output)
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
                self.state = [0] * ELEMENTS
            require(self._consistent(), "devices are owned after a failure")

    def _consistent(self) -> bool:
        return all(device.owned == bool(self.flight) for device in self.devices)

    def _fail(self, code: int, hook: int, device: int = NO_DEVICE) -> None:
        if self.failure is None:
            self.failure = code if code < 0 and (hook, code) != (OPERATOR, -errno.EAGAIN) else -errno.EIO
            self.status = f"{code}:{hook}:{device}"
            self.failures += 1

    def _quiet(self, event: str) -> None:
        require(self.failure is None, f"{event} after a failure")

    def _hook(self, hook: str, index: int, rc: int) -> None:
        device = self.devices[index]
        event = f"{hook}{index}"
        if hook == "A":
            self._quiet(event)
            require(not device.active, f"{event} twice")
            device.active = rc == 0
            self.checking = True
        elif hook == "O":
            self._quiet(event)
            require(device.active and not device.owned, f"{event} of an inactive or owned device")
            higher = any(other.owned for other in self.devices[index + 1 :])
            require(not higher, f"{event} while a device of a higher address is owned")
            device.owned = rc == 0
        elif hook == "S":
            require(device.owned, f"{event} without ownership")
        elif hook == "C":
            require(device.owned, f"{event} without ownership")
            device.owned = False
        else:
            require(device.active and not device.owned, f"{event} of an inactive or owned device")
            device.active = False
            device.program = None
        if rc != 0 and not (hook == "S" and rc in (-errno.EAGAIN, -errno.EINTR)):
            self._fail(rc, LOAD if self.checking and hook in "OC" else HOOKS[hook], MEMBERS[index])

    def _load(self, index: int, program: str, during: int, rc: int) -> None:
        self._quiet("a load")
        require(self.cancel != "expected", "a load after the cancellation")
        require(self.devices[index].owned, "a load without ownership")
        require(during == 0 or self.switching == FREE, "a load during work")
        self.devices[index].program = program if rc == 0 else None
        if rc != 0:
            self._fail(rc, LOAD, MEMBERS[index])

    def _call(self, found: re.Match[str]) -> None:
        step, code = int(found["step"]), int(found["code"])
        self._quiet(f"step {step}")
        require(self.cancel != "expected", f"step {step} after the cancellation")
        if found["at"] == "c":
            require(step not in STEPS, f"step {step} on the processor")
            queued = 0
        else:
            index, program = STEPS[step]
            queued = int(found["queued"])
            require(int(found["at"]) == index, f"step {step} on device {found['at']}")
            require(self.devices[index].owned, f"step {step} without ownership")
            require(found["used"] == program == self.devices[index].program, f"step {step} with {found['used']}")
            require(self.depth == 0 or queued < self.depth, f"step {step} in a full queue")
        if code == -errno.EAGAIN:
            if queued == 0:  # nothing ends that makes room
                self._fail(code, OPERATOR)
        elif code != 0:
            self._fail(code, OPERATOR)

    def _cancel(self) -> None:
        """Note a cancellation during the next event."""
        self.cancel = "next"

    def _during(self, word: str) -> None:
        """Note the event during which the frames were cancelled: it has an effect if an action follows."""
        if self.cancel == "loading":  # the step whose program was loaded is the present one
            self.cancel = "expected"
        if self.cancel != "next":
            return
        if self.opening or word[0] in "ACD":
            self.cancel = None
        elif word.startswith("x5"):
            self.cancel = "perhaps"  # the end of the older frame, of one or of two in flight
        else:
            self.cancel = "loading" if word.startswith("L") else "expected"
