# SPDX-License-Identifier: Apache-2.0
"""A board for tests: a console with files, keys and the meaning of its answers."""

import enum
import errno
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bundle_files import Signer, Variant, signed_part
from core_support import FLAGS, built


class Fault(enum.IntEnum):
    """enum opwest_bundle_fault, written from opwest/bundle_format.h a second time."""

    GOOD, NO_BUNDLE, FORMAT, HEADER, SIZE, READ_BACK, SIGNATURE, SLOT, MACHINE, FLOAT_ABI, CPU = range(11)
    LAYOUT, DESCRIPTOR, MEMORY, DEVICES, DOWNGRADE, RUN, VECTOR, UNCONFIRMED, KIND, STORAGE = range(11, 21)
    NO_VECTOR, CRASHES = 21, 22


NONE = -1
ONE = Variant(mark=1000)
TWO = Variant(mark=2000, slot=1)
TRIAL, SESSION = 1200, 700
"""Bytes: enough for the stand-ins with outputs, without outputs."""


@dataclass(frozen=True)
class State:
    active: int = NONE
    trying: int = NONE
    previous: int = NONE
    crashes: int = 0
    fault: int = Fault.GOOD


@dataclass(frozen=True)
class Verdict:
    rc: int
    fault: Fault
    detail: int
    found: int
    expected: int


class Board:
    """The manager with one trusted key and memory for trials, in a process of its own: programs/console.c."""

    def __init__(self, work: Path, slots=2, write_size=4, erased=0xFF, flags=FLAGS, **options: object) -> None:
        program = built("console", ["console", "simulated", "threads"], flags)
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([str(program)], env=environment, **pipes)
        self._work = work
        self._known: dict[bytes, str] = {}
        self.signer = Signer()
        self("open", slots, write_size, hex(erased))
        self("key", 0, self.signer.public.hex())
        for name, value in {"trial": TRIAL, **options}.items():
            self("set", name, value)

    def __call__(self, *words: object) -> list[str]:
        """Execute a command and return the words of its answer, which begins with the return code."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer, f"{words}: the program ended with {self._process.wait()}"
        return answer

    def all(self, script: str) -> list[list[str]]:
        """Execute commands, separated by semicolons; return their answers."""
        commands = script.split("; ")
        self._process.stdin.write("\n".join([*commands, ""]))
        self._process.stdin.flush()
        return [self._process.stdout.readline().split() for _ in commands]

    def rc(self, *words: object) -> int:
        return int(self(*words)[0])

    def close(self) -> None:
        """End the program, which must have found no fault."""
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=20) == 0

    def file(self, content: bytes, name: str = "") -> str:
        """Return the name of a file in the console."""
        if content not in self._known:
            name = name or f"f{len(self._known)}"
            path = self._work / name
            path.write_bytes(content)
            self("file", name, path)
            self._known[content] = name
        return self._known[content]

    def bundle(self, variant: Variant, **fields: int) -> str:
        return self.file(self.signer.bundle(signed_part(variant, **fields)))

    def start(self) -> int:
        """Start, as after a reset: slots and records are as before."""
        return self.rc("start")

    def send(self, name: str, slot: int = NONE) -> int:
        return self.rc("send", slot, name)

    def install(self, name: str | None = None, slot: int = NONE) -> Verdict:
        """Send a file and install it; without a name, install what was sent."""
        if name is not None:
            rc = self.send(name, slot)
            if rc != 0:
                return Verdict(rc, Fault.GOOD, 0, 0, 0)
        return self._verdict("install")

    def with_one(self) -> "Board":
        """Start, install the first model, version 1, and add a session."""
        assert self.start() == code("ENOENT")
        assert self.install(self.bundle(ONE)).rc == 0 and self.session() == 0 and self.mark() == 1000
        return self

    def restarted(self) -> int:
        """Reset, and run; return the mark or the error of start."""
        rc = self.start()
        if rc != 0:
            return rc
        assert self.session() == 0
        return self.mark()

    def roll_back(self) -> Verdict:
        return self._verdict("roll_back")

    def _verdict(self, command: str) -> Verdict:
        rc, fault, detail, found, expected = self(command)
        return Verdict(int(rc), Fault(int(fault)), int(detail), int(found, 16), int(expected, 16))

    def state(self) -> State:
        return State(*map(int, self("state")[1:]))

    def session(self, index: int = 0, size: int = SESSION) -> int:
        return self.rc("session", index, size)

    def mark(self, index: int = 0, how: str = "typed") -> int:
        """Run once; return the mark of the model, or the error."""
        return self.mark_of(self("run", index, how, 7))

    @staticmethod
    def mark_of(answer: list[str]) -> int:
        """Return the mark in the answer of a run, or the error."""
        rc, first, last, total = answer
        if int(rc) != 0:
            return int(rc)
        mark = int(first) - 21
        assert int(last) == 9 + mark and float(total) == 13
        return mark

    def listed(self, slot: int) -> tuple[Fault, str, str]:
        """Return the verdict, the name and the letters of a slot."""
        words = self("list", slot)
        assert words[0] == "0"
        return Fault(int(words[1])), words[2], words[6]


def code(name: str) -> int:
    return -int(getattr(errno, name))
