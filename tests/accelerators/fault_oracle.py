# SPDX-License-Identifier: Apache-2.0
"""The specified behaviour of open, run, cancel and close under faults: calls, returned errors, status.

Written from launch.h, accelerator.h, devices.h and status.h, independent of their implementation.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from fault_subjects import Member, Subject

OPERATOR, READY, ACTIVATE, OPEN, CLOSE, DEACTIVATE, SYNC, CACHE = range(8)
CHECK, LOAD, CANCEL = 12, 13, 14
NO_STEP, NO_DEVICE = 65535, 255
GOOD = (0, NO_STEP, OPERATOR, NO_DEVICE)
LETTERS = "AOCDSIKL"
BITS = {letter: 1 << number for number, letter in enumerate(LETTERS)} | {"enqueued": 1 << 8, "W": 1 << 9, "N": 1 << 10}
TIMED_OUT, AGAIN, BUSY = -errno.ETIMEDOUT, -errno.EAGAIN, -errno.EBUSY
WOKEN, CANCELED = -errno.EINTR, -errno.ECANCELED
FREE, LOADS, EXCLUSIVE = range(3)
SLICE_MS = 10
"""The longest wait that nothing can end early: for an owner, and for a driver without wake()."""
FOREVER = -1
MAX_CALLS = 1000


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
class Oracle:
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
    null: int = -1
    """The index of a member that is NULL at the first open."""
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
    owned: list[tuple[int, Callable]] = field(default_factory=list)
    """Handles with their release."""
    launched: dict[int, int] = field(default_factory=dict)
    """The first unfinished step of each device."""
    lost: bool = False
    active: list[Callable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.devices = [Device() for _ in range(3)]
        self.repeated = {}

    # ---- calls ----

    def call(self, token: str) -> int:
        self.calls.append(token)
        self.history.append(token)
        self.running.append(self.is_running)
        assert len(self.history) < MAX_CALLS, "the run does not end"
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
        return bool(self.masks[member.handle] & BITS[letter])

    def hook(self, letter: str, member: Member, detail: str = "") -> int:
        return self.call(f"{letter}{member.handle}{detail}") if self.has(letter, member) else 0

    def device(self, member: Member) -> Device:
        return self.devices[member.handle]

    @property
    def accelerators(self) -> list[tuple[int, Member]]:
        return [(i, m) for i, m in enumerate(self.subject.members) if m.kind == "accelerator"]

    def require(self, code: int, step: int, hook: int, device: int) -> None:
        if code:
            raise Failed(code, step, hook, device)

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

    # ---- open and close ----

    def open(self) -> None:
        for index, member in enumerate(self.subject.members):
            if member.kind == "foreign":
                self.require(-errno.ENODEV if index == self.null else 0, NO_STEP, READY, index)
                continue
            if index == self.null:
                self.calls.append("Rnull")
            if index == self.null or self.call(f"R{member.handle}"):
                raise Failed(-errno.ENODEV, NO_STEP, READY, index)
            if member.kind == "accelerator" and self.call(f"H{member.handle}"):
                raise Failed(-errno.ENOTSUP, NO_STEP, READY, index)
        self.active = []
        try:
            for index, member in self.accelerators:
                self.activate(index, member)
            for entry in self.subject.opening:
                operation, device = entry.split()
                code = self.call(f"{operation}:{self.subject.line}")
                self.require(code, NO_STEP, CACHE, self.subject.index(device))
        except Failed as failure:
            self.undo(self.active, failure)
        self.owned, self.launched, self.lost = [], {}, False
        self.opened = True
        self.content = "moved"  # the test replaces the first content

    def activate(self, index: int, member: Member) -> None:
        self.require(self.call(f"P{member.handle}+"), NO_STEP, ACTIVATE, index)
        if code := self.hook("A", member):
            self.call(f"P{member.handle}-")
            raise Failed(code, NO_STEP, ACTIVATE, index)
        self.active.append(lambda: self.deactivate(index, member))
        try:
            self.check(index, member)
        finally:  # the first failure is raised
            down = self.call(f"P{member.handle}-") if member.power == "run" else 0
        self.require(down, NO_STEP, ACTIVATE, index)

    def check(self, index: int, member: Member) -> None:
        """Describe the device; check the programs of its steps; load one that nothing else can load later."""
        device = self.device(member)
        self.require(self.hook("I", member), NO_STEP, CHECK, index)
        described = self.properties[member.handle] if self.has("I", member) else Properties()
        device.depth = min((d for d in (described.depth, member.depth or 0) if d), default=0)
        device.loads = described.switching != FREE
        steps = [n for n in range(len(self.subject.steps)) if self.subject.step(n)[1] == member.name]
        programs = list(dict.fromkeys(self.subject.program(n) for n in steps))
        for program in programs:
            self.require(self.hook("K", member, f":{program or '-'}"), NO_STEP, CHECK, index)
        if described.switching == EXCLUSIVE:
            own = FOREVER if member.own_timeout is None else member.own_timeout
            self.require(self.hook("O", member, f":{own}"), NO_STEP, LOAD, index)
            code = self.hook("L", member, f":{programs[0] or '-'}")
            closed = self.hook("C", member)
            self.require(code or closed, NO_STEP, LOAD, index)

    def deactivate(self, index: int, member: Member) -> None:
        up = self.call(f"P{member.handle}+") if member.power == "run" else 0
        code = self.hook("D", member)
        if self.has("D", member):
            self.device(member).jobs = 0
        down = up or self.call(f"P{member.handle}-")
        self.require(code or down, NO_STEP, DEACTIVATE, index)

    def close(self) -> None:
        self.opened = False
        self.undo(self.active)

    # ---- run ----

    def check_cancelled(self, step: int) -> None:
        self.require(CANCELED if self.cancelled else 0, step, CANCEL, NO_DEVICE)

    def run(self) -> None:
        before = self.content
        self.owned, self.launched, self.lost = [], {}, False
        self.cancelled = False
        try:
            for action in self.subject.holds.actions:
                if not action.startswith("acquire"):
                    # From here on a failure affects the states: open and the checks before it do not.
                    self.content = "first" if self.subject.resets else before
                self.act(action)
        except Failed as failure:
            self.abandon(failure)
        self.content = f"{before}+1"

    def abandon(self, failure: Failed) -> None:
        """Wait for launched steps unless cancelled; release all; deactivate all if a device may hang."""
        for index in sorted(self.launched):
            code = self.wait_for_device(index, 0)
            self.lost |= code == TIMED_OUT
            self.lost |= code == CANCELED and not self.has("C", self.subject.members[index])
        owned, self.owned, self.launched = self.owned, [], {}
        try:
            self.undo([give_back for _, give_back in sorted(owned, key=lambda pair: pair[0])], failure)
        finally:
            if self.lost:
                self.opened = False
                self.undo(self.active, failure)

    def act(self, action: str) -> None:
        words = action.split()
        if words[0] == "acquire":
            self.take(*self.leader(int(words[1])), int(words[2]))
        elif words[0] == "release":
            self.release(int(words[1]))
        elif words[0] == "wait":
            self.wait(self.subject.index(words[1]), int(words[2]) if len(words) > 2 else 0)
        elif words[0].isdigit():
            self.step(int(words[0]))
        else:
            code = self.call(f"{words[0]}:{self.subject.line}")
            self.require(code, int(words[1]), CACHE, self.subject.index(words[2]))

    def leader(self, handle: int) -> tuple[int, Member]:
        return next((i, m) for i, m in self.accelerators if m.handle == handle)

    def take(self, index: int, member: Member, step: int) -> None:
        """Acquire the handle of its first member; a failure names the device at `index`."""
        handle = member.handle
        left = FOREVER if member.own_timeout is None else member.own_timeout
        while True:
            self.check_cancelled(step)
            limit = min(SLICE_MS, left) if left >= 0 else SLICE_MS
            code = self.hook("O", member, f":{limit}")
            left -= limit if left > 0 else 0
            if code != BUSY or left == 0:
                break
        self.require(code, step, OPEN, index)
        if member.power == "run" and (code := self.call(f"P{handle}+")):
            if self.hook("C", member) or self.has("C", member):
                self.devices[handle].jobs = 0
            raise Failed(code, step, OPEN, index)
        device = self.devices[handle]
        device.unfinished, device.uncounted, device.is_loaded = 0, False, False
        self.owned.append((handle, lambda: self.give_back(index, member)))

    def release(self, handle: int) -> None:
        give_back = next(pair for pair in self.owned if pair[0] == handle)
        self.owned.remove(give_back)
        give_back[1]()

    def give_back(self, index: int, member: Member) -> None:
        code = self.hook("C", member)
        if self.has("C", member):
            self.device(member).jobs = 0
        down = self.call(f"P{member.handle}-") if member.power == "run" else 0
        self.require(code or down, NO_STEP, CLOSE, index)

    def sync(self, member: Member, leave: int, limit: int) -> int:
        if not self.has("S", member):
            return 0
        device = self.device(member)
        code = self.call(f"S{member.handle}:{leave}:{limit}")
        if code == 0 and device.woken and device.jobs > leave:
            device.woken = False
            code = WOKEN
        if code == TIMED_OUT and limit > 0:
            self.now += limit
        if code not in (TIMED_OUT, WOKEN, AGAIN):
            device.jobs = min(device.jobs, leave)
        return code

    def wait_for_device(self, index: int, leave: int) -> int:
        """Wait again after each wake(), for the rest of the time."""
        member = self.subject.members[index]
        timeout = FOREVER if member.timeout is None else member.timeout
        end = self.now + timeout
        while not self.cancelled:
            limit = max(end - self.now, 0) if timeout > 0 else timeout
            in_slices = not self.has("W", member) and not 0 <= limit <= SLICE_MS
            code = self.sync(member, leave, SLICE_MS if in_slices else limit)
            if in_slices and code == TIMED_OUT:
                continue
            if code != WOKEN:
                return TIMED_OUT if code == AGAIN else code
        return CANCELED

    def wait(self, index: int, leave: int) -> None:
        """Wait for launches of one member: other members with its handle have launches between them."""
        handle = self.subject.members[index].handle
        shared = sum(m.handle == handle for m in self.subject.members) > 1
        self.room(index, 0 if shared else leave)

    # ---- steps ----

    def step(self, number: int) -> None:
        operator, name, _, _ = self.subject.step(number)
        member = self.subject.members[self.subject.index(name)] if name else None
        if member is None or member.kind != "accelerator":
            self.check_cancelled(number)
            place = f"@{member.handle}" if member and member.kind == "plain" else ""
            if (code := self.call(f"op{number}{place}")) and operator != "cpu_void":
                raise Failed(code, number, OPERATOR, NO_DEVICE)
            return
        self.start(number, operator, self.subject.index(member.name), self.subject.program(number))

    def start(self, number: int, operator: str, index: int, program: str | None) -> None:
        """Call an operator on a device, again while the queue is full."""
        member = self.subject.members[index]
        self.prepare(number, index, program)
        while code := self.operate(number, operator, member, program):
            self.check_cancelled(number)
            unfinished = self.device(member).unfinished
            if code != AGAIN or unfinished == 0:
                raise Failed(code, number, OPERATOR, NO_DEVICE)
            self.room(index, unfinished - 1)
        device = self.device(member)
        if operator == "launch":
            device.uncounted |= not self.has("enqueued", member)
            device.unfinished += 1
            self.launched.setdefault(index, number)

    def room(self, index: int, leave: int) -> None:
        """Wait for all but `leave` launches of the handle, also of other members of the context."""
        member = self.subject.members[index]
        device = self.device(member)
        others = [s for i, s in self.launched.items() if self.subject.members[i].handle == member.handle]
        step = self.launched.get(index, min(others, default=NO_STEP))
        leave = 0 if device.uncounted else leave
        code = self.wait_for_device(index, leave)
        if code == CANCELED:
            self.check_cancelled(step)
        if code == TIMED_OUT:
            self.lost = True
            self.launched.pop(index, None)
        else:
            device.unfinished = min(device.unfinished, leave)
            if leave == 0:
                self.launched.pop(index, None)
                device.uncounted = False
        self.require(code, step, SYNC, index)

    def prepare(self, number: int, index: int, program: str | None) -> None:
        """Load the program, with an empty queue if the device needs one; wait for room in the queue."""
        self.check_cancelled(number)
        member = self.subject.members[index]
        device = self.device(member)
        # A step without a program uses the loaded one.
        if program and (not device.is_loaded or device.current != program):
            if device.loads and device.unfinished:
                self.room(index, 0)
            device.is_loaded = False
            self.require(self.hook("L", member, f":{program or '-'}"), number, LOAD, index)
            device.is_loaded, device.current = True, program
        if device.depth and device.unfinished >= device.depth:
            self.room(index, device.depth - 1)

    def operate(self, number: int, operator: str, member: Member, program: str | None) -> int:
        """Return the status of the operator; a full queue is one of a driver that does not describe it."""
        device = self.device(member)
        if operator != "launch":
            code = self.call(f"op{number}@{member.handle}")
            device.jobs = device.jobs if code else 0
            return code
        timeout = FOREVER if member.timeout is None else member.timeout
        code = self.call(f"op{number}@{member.handle}:{program or '-'}:{timeout}")
        hidden = self.properties[member.handle].hidden
        if code == 0 and hidden and device.jobs >= hidden:
            code = AGAIN
        if code == 0 and self.has("S", member):
            device.jobs += 1
        return code

    # ---- the output of the program ----

    def say(self, what: str, rc: int) -> None:
        status = " ".join(map(str, self.status))
        calls = "".join(f" {token}" for token in self.calls)
        # States cannot be read while the workspace owns a device.
        content = ("unknown " if self.owned else f"{self.content} ") if self.opened and self.subject.states else ""
        self.lines.append(f"{what} {rc} ({status}) {content}{'opened' if self.opened else 'closed'}:{calls}")
        self.calls = []

    def say_run(self) -> bool:
        if not self.opened:
            self.status = GOOD
            rc = -errno.EPERM
        else:
            self.is_running = True
            rc = self.do(self.run)
            self.is_running = False
        self.say("run" if rc else "run, right", rc)
        return rc == 0

    def say_close(self) -> None:
        self.say("close", self.do(self.close) if self.opened else -errno.EALREADY)

    def say_uses(self) -> None:
        """Make the calls before the first run."""

    def play(self) -> None:
        """Write the expected output of the program to `lines`."""
        rc = self.do(self.open)
        self.say("open", rc)
        if rc == 0:
            self.say_uses()
            good = self.say_run()
            if not good and not self.opened:
                self.say_run()
            elif not good and self.ending != "c":
                self.faulty = self.ending == "s"
                self.say_run()
            self.say_close()
        self.faulty, self.null = False, -1
        self.say("open", self.do(self.open))
        self.say_run()
        self.say_close()
