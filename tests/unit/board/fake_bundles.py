# SPDX-License-Identifier: Apache-2.0
"""The bundle service of an image: its jobs and slots, with faults of messages, behind a pseudo terminal or without one.

The rules of jobs and parts are those of zephyr_module/bundle/zephyr/service.c.
"""

import base64
import hashlib
import random
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from board_support import QUIET
from opwest.bundles.client import BundleClient
from opwest.bundles.link import Fields, Info, Job, Request, checksum, read_info
from opwest.runs.link import LinkError, LostError

ADDRESSES = (0x8000, 0x18000)
SIZE = 1 << 16
ERRORS = {"EPERM": -1, "ENOENT": -2, "EBUSY": -16, "EINVAL": -22, "EFBIG": -27, "EILSEQ": -84, "EBADMSG": -74}
ERRORS |= {"EALREADY": -114, "ENOTSUP": -95, "EIO": -5}
EMPTY = (1, "no bundle", 0, 0, 0)
GOOD = (0, "good", 0, 0, 0)


def header(name: str, version: int) -> dict[str, Any]:
    found = {"name": name, "version": version, "length": 1000, "kind": 0, "interface": 2**64 - 2}
    return {**found, "model": hashlib.sha256(name.encode()).digest()}


@dataclass
class Bundles:
    """The state of a board; `answers` replace the results of jobs, by job."""

    memory: list[bytes] = field(default_factory=lambda: [b"first", b""])
    active: int = 0
    trying: int = 255
    previous: int = 255
    verdicts: list[tuple[int, str, int, int, int]] = field(default_factory=lambda: [GOOD, EMPTY])
    serves: bool = True
    slow: int = 0
    """How many responses report that a job runs."""
    waits_for_confirmation: bool = False
    answers: dict[Job, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    done: list[Job] = field(default_factory=list)
    """The jobs that were begun."""
    parts: int = 0
    """The parts that were received, also those without an effect."""
    info: dict[str, Any] = field(default_factory=lambda: {"service": 1, "format": 1, "slots": 2, "part": 512})
    crashes: int = 0
    fault: tuple[int, str] = (0, "good")

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what is in RAM."""
        self._latest: tuple[int, int, int] | None = None
        self._answer: dict[str, Any] = {}
        self._running = 0
        self.upload: tuple[int, int, bytes] | None = None
        self.received = b""

    def job(self, request: dict[str, Any]) -> dict[str, Any]:
        identity = (request["session"], request["number"], request["do"])
        head = {"session": request["session"], "number": request["number"]}
        if identity != self._latest:
            refusal = self._refusal(request)
            if refusal:
                return {**head, "state": 2, "result": ERRORS[refusal], "error": refusal}
            self._latest = identity
            self._running = self.slow
            error, fields = self._do(Job(request["do"]), request)
            self._answer = {"result": ERRORS.get(error, 0), "error": error, **fields}
        if self._running:
            self._running -= 1
            return {**head, "state": 0, "result": 0, "error": ""}
        return {**head, "state": 1, **self._answer}

    def _refusal(self, request: dict[str, Any]) -> str:
        if request.get("poll"):
            return "ENOENT"
        if self._running:
            return "EBUSY"
        if self._latest is not None and self._latest[0] == request["session"] and request["number"] <= self._latest[1]:
            return "EALREADY"
        return ""

    def _do(self, job: Job, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self.done.append(job)
        if job in self.answers:
            return self.answers[job]
        match job:
            case Job.STATE:
                keys = ("active", "trying", "previous", "crashes")
                state = {key: getattr(self, key) for key in keys}
                return "", {**state, "fault": self.fault[0], "fault_name": self.fault[1]}
            case Job.LIST:
                return "", self._slot(request["slot"])
            case Job.BEGIN:
                return self._begin(request)
            case Job.INSTALL:
                return self._install()
            case Job.CONFIRM:
                if self.trying == 255:
                    return "EPERM", {}
                self.previous, self.active, self.trying = self.active, self.trying, 255
                return "", {}
            case Job.ROLL_BACK:
                return self._roll_back(request.get("slot", 255)), verdict(GOOD)
        return "ENOTSUP", {}

    def _roll_back(self, slot: int) -> str:
        current = self.active if self.trying == 255 else self.trying
        if slot not in (255, current):
            return "EALREADY"
        if self.trying != 255:
            self.trying = 255
            return "ENOENT" if self.active == 255 else ""
        if self.previous == 255:
            return "ENOENT"
        self.active, self.previous = self.previous, self.active
        return ""

    @property
    def target(self) -> int:
        return 1 - self.active

    def _slot(self, index: int) -> dict[str, Any]:
        slots = (self.active, self.trying, self.previous, self.target)
        roles = sum(1 << bit for bit, slot in enumerate(slots) if slot == index)
        place = {"address": ADDRESSES[index], "size": SIZE, "is": roles, **verdict(self.verdicts[index])}
        known = self.verdicts[index][1] not in ("no bundle", "header")
        return {**place, **(header(f"model{index}", 0x01020003) if known else {})}

    def _begin(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        slot = request.get("slot", self.target)
        nothing = {"off": 0, "slot": 255}
        if slot == self.active or self.trying != 255:
            return "EBUSY", nothing
        if request["size"] > SIZE:
            return "EFBIG", nothing
        if self.upload != (slot, request["size"], request["sha"]):
            self.upload = (slot, request["size"], request["sha"])
            self.received = b""
        return "", {"off": len(self.received), "slot": slot}

    def part(self, offset: int, data: bytes, check: int) -> dict[str, Any]:
        self.parts += 1
        error = ""
        if self._running:
            error = "EBUSY"
        elif self.upload is None:
            error = "EPERM"
        elif checksum(self.upload[2], offset, data) != check:
            error = "EILSEQ"
        elif offset == len(self.received):
            assert offset + len(data) <= self.upload[1]
            self.received += data
        return {"at": offset, "off": 0 if error else len(self.received), "result": ERRORS.get(error, 0), "error": error}

    def _install(self) -> tuple[str, dict[str, Any]]:
        if self.upload is None or len(self.received) < self.upload[1]:
            return "EPERM", verdict(GOOD)
        slot, _, digest = self.upload
        self.upload = None
        if hashlib.sha512(self.received).digest() != digest:
            return "EBADMSG", verdict((5, "read-back", 0, 0, 0))
        self.memory[slot] = self.received
        self.verdicts[slot] = GOOD
        if self.waits_for_confirmation:
            self.trying = slot
        else:
            self.previous, self.active = self.active, slot
        return "", verdict(GOOD)


def verdict(found: tuple[int, str, int, int, int]) -> dict[str, Any]:
    return dict(zip(("fault", "fault_name", "detail", "found", "expected"), found, strict=True))


@dataclass
class Faults:
    """Probabilities of faults of a message in either direction."""

    lose: float = 0.0
    repeat: float = 0.0
    late: float = 0.0
    damage: float = 0.0

    def passed(self, line, chance, letters, first=0):
        """Return what arrives of a line: `letters` replace one of its bytes, from `first` on."""
        if chance.random() < self.lose:
            return []
        if chance.random() < self.damage and len(line) > first:
            at = chance.randrange(first, len(line))
            line = line[:at] + bytes([chance.choice(letters)]) + line[at + 1 :]
        return [line] * (2 if chance.random() < self.repeat else 1)


class FakeLink:
    """A connection without a device: requests and responses are lost, repeated, late and damaged. A BundleLink."""

    device = "/dev/board"

    def __init__(self, bundles, faults, seed, space=300):
        self.bundles = bundles
        self.faults = faults
        self.random = random.Random(seed)
        self.space = space
        self.waiting = []
        self.lost_at: set[int] = set()
        """The numbers of the requests at which the device disappears."""
        self.restart_at: set[int] = set()
        self.before = lambda: None
        self.after = lambda answer: answer
        """Called with the response of each request; returns the one that arrives."""
        self.requests = 0
        self.is_open = True

    def _send(self, act):
        """Deliver a request; return its response unless a fault prevents it."""
        assert self.is_open
        self.requests += 1
        self.before()
        if self.requests in self.restart_at:
            self.bundles.restart()
        if self.requests in self.lost_at:
            raise LostError(f"lost the serial device '{self.device}'")
        return self.after(self._delivered(act))

    def _delivered(self, act):
        happens = self.random.random
        if happens() < self.faults.lose:
            return None
        if happens() < self.faults.late:  # after the next request, and without a response
            self.waiting.append(act)
            return None
        answer = act()
        if happens() < self.faults.repeat:
            answer = act()
        while self.waiting:
            self.waiting.pop()()
        if happens() < self.faults.lose or happens() < self.faults.damage:  # the checksum of the response
            return None
        return answer

    def info(self, seconds: float) -> Info | None:
        found = self._send(lambda: self.bundles.info) if self.bundles.serves else None
        return None if found is None else read_info(Fields(found, self.device), self.device)

    def job(self, request: Request, seconds: float) -> Fields | None:
        content = {"do": int(request.job), "session": request.session, "number": request.number}
        content |= {"poll": request.polls, "size": request.size, "sha": request.digest}
        content |= {"point": request.point, "buffer": request.buffer, "off": request.offset, "data": request.data}
        if request.slot is not None:
            content["slot"] = request.slot
        found = self._send(lambda: self.bundles.job(content))
        return None if found is None else Fields(found, self.device)

    def part(self, offset: int, data: bytes, check: int, seconds: float) -> Fields | None:
        if self.random.random() < self.faults.damage:
            which = self.random.randrange(len(data))
            data = data[:which] + bytes([data[which] ^ 1 << self.random.randrange(8)]) + data[which + 1 :]
        if self.random.random() < self.faults.damage:
            offset ^= 1 << self.random.randrange(16)
        found = self._send(lambda: self.bundles.part(offset, data, check))
        return None if found is None else Fields(found, self.device)

    def failure(self, awaited: str, seconds: float) -> LinkError:
        return LinkError(f"{self.device}: timeout waiting for {awaited}")

    def disconnect(self) -> None:
        assert self.is_open
        self.is_open = False


def client_of(*links: FakeLink, timeout: float = 10.0, session: int = 7, reconnects: bool = True) -> BundleClient:
    """Return a client of the first connection, which finds the others after a loss."""
    left = list(links)

    def connect() -> FakeLink:
        if not left:
            raise LinkError("serial device '/dev/board' not found")
        return left.pop(0)

    return BundleClient(connect, session=session, timeout=timeout, progress=QUIET, reconnects=reconnects)


class ShellBundles:
    """The shell of an image, which damages, loses and repeats whole lines in both directions."""

    def __init__(self, bundles, faults, seed, *, has_service=True):
        self.bundles = bundles
        self.faults = faults
        self.random = random.Random(seed)
        self.has_service = has_service
        self.typed = b""
        self.late = b""
        """Responses that are sent with those of the next command."""

    def __call__(self, data: bytes) -> bytes:
        self.typed += data
        back = b""
        while b"\n" in self.typed:
            line, self.typed = self.typed.split(b"\n", 1)
            if line:
                for copy in self._passed(line):
                    answer = self._answer(copy.decode(errors="replace")).encode()
                    out = b"".join(b"\x1b[1;32muart:~$ \x1b[m" + one + b"\r\n" for one in self._passed(answer))
                    held, self.late = self.late, b""
                    if self.random.random() < self.faults.late:
                        self.late, out = out, b""
                    back += held + out
        return back

    def _passed(self, line: bytes) -> list[bytes]:
        return self.faults.passed(line, self.random, b"0123456789abcdef=+.@ ")

    def _answer(self, line: str) -> str:
        words = line.split()
        if words[:1] != ["opwest"]:
            return f"{words[0] if words else ''}: command not found"
        if words[:2] != ["opwest", "bundle"] or not self.has_service:
            return "Please specify a subcommand"
        fields = self._command(words[2:])
        if fields is None:
            return "wrong parameter count"
        text = "@opwest bundle" + "".join(f" {key}={_shown(value)}" for key, value in fields.items())
        return f"{text} *{zlib.crc32(text.encode()):08x}"

    def _command(self, words: list[str]) -> dict[str, Any] | None:
        if not words:
            return None
        verb, *rest = words
        if not self.bundles.serves:
            return {"refused": -13, "error": "EACCES"}
        if verb == "info":
            return {**self.bundles.info, "chunk": 96}
        if verb == "write" and len(rest) == 3:
            try:
                return self.bundles.part(int(rest[0]), base64.b64decode(rest[1], validate=True), int(rest[2], 16))
            except (ValueError, struct.error):
                return {"refused": -84, "error": "EILSEQ"}
        names = "state list begin install confirm rollback steps part".split()
        if verb not in names or not rest:
            return None
        mark = rest[-1]
        checked = "".join(f"{word} " for word in words[:-1]) + mark[:-8]
        if not mark.startswith("@") or f"{zlib.crc32(checked.encode()):08x}" != mark[-8:]:
            return {"refused": -84, "error": "EILSEQ"}
        session, number, poll, _ = mark[1:].split(".")
        request: dict[str, Any] = {"session": int(session, 16), "number": int(number, 16), "poll": int(poll)}
        request["do"] = names.index(verb)
        if verb in ("list", "rollback") and len(rest) == 2:
            request["slot"] = int(rest[0])
        if verb == "begin":
            request |= {"size": int(rest[0]), "sha": bytes.fromhex(rest[1])}
            request |= {"slot": int(rest[2])} if len(rest) == 4 else {}
        return self.bundles.job(request)


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else quote(str(value), safe="/-:.")
