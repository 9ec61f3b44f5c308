# SPDX-License-Identifier: Apache-2.0
"""A board for tests: a console with files, keys and the meaning of its answers."""

import enum
import errno
from dataclasses import dataclass
from pathlib import Path

from bundle_files import Signer, Variant, signed_part
from core_support import Console


class Fault(enum.IntEnum):
    """enum opwest_bundle_fault, written from opwest/bundle_format.h a second time."""

    GOOD, NO_BUNDLE, FORMAT, HEADER, SIZE, READ_BACK, SIGNATURE, SLOT, MACHINE, FLOAT_ABI, CPU = range(11)
    LAYOUT, DESCRIPTOR, MEMORY, DEVICES, DOWNGRADE, RUN, VECTOR, UNCONFIRMED, KIND, STORAGE = range(11, 21)
    NO_VECTOR, CRASHES = 21, 22


NONE = -1
TRIAL, SESSION = 1200, 700
"""Bytes: enough for the stand-ins with outputs, without outputs."""


@dataclass(frozen=True)
class State:
    """The record."""

    active: int = NONE
    trying: int = NONE
    previous: int = NONE
    crashes: int = 0
    fault: int = Fault.GOOD


@dataclass(frozen=True)
class Verdict:
    """The result of an installation."""

    rc: int
    fault: Fault
    detail: int
    found: int
    expected: int


class Board(Console):
    """The manager with one trusted key and memory for trials."""

    def __init__(self, work: Path, slots: int = 2, write_size: int = 4, erased: int = 0xFF, **options: object) -> None:
        super().__init__(slots, write_size, erased)
        self._work = work
        self._known: dict[bytes, str] = {}
        self.signer = Signer()
        self("key", 0, self.signer.public.hex())
        for name, value in {"trial": TRIAL, **options}.items():
            self("set", name, value)

    def file(self, content: bytes) -> str:
        """Return the name of a file in the console."""
        if content not in self._known:
            name = f"f{len(self._known)}"
            path = self._work / name
            path.write_bytes(content)
            self("file", name, path)
            self._known[content] = name
        return self._known[content]

    def bundle(self, variant: Variant, **fields: int) -> str:
        """Return the name of a signed bundle."""
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
        rc, first, last, total = self("run", index, how, 7)
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
    """Return a negative errno."""
    return -int(getattr(errno, name))
