# SPDX-License-Identifier: Apache-2.0
"""What a function takes at once by TVMBackendAllocWorkspace, itself and through the functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Mapping

from opwest.importers.faults import fault
from opwest.importers.mlf.c_text import Function
from opwest.importers.mlf.limits import ELEMENTS

ALIGN = 16
"""What each allocation is rounded up to: the runtime's default for operators of microTVM's."""

_EVENT = re.compile(
    r"(?:\b(?P<variable>\w+)\s*=\s*(?:\([^()]*\)\s*)?)?\bTVMBackendAllocWorkspace\s*\(\s*[\w()]+,\s*[\w()]+,\s*"
    r"(?:\((?:\(uint64_t\)|uint64_t)\)?\s*)?\(*(?P<size>[^,]{1,80}?)\)*,|"
    r"\bTVMBackendFreeWorkspace\s*\(\s*[\w()]+,\s*[\w()]+,\s*(?P<freed>\w+)\s*\)|"
    r"\b(?P<called>\w+)\s*\("
)


class Workspaces:
    """The peaks of a model's functions. Bodies are read once each."""

    def __init__(self, functions: Mapping[str, Function], places: Mapping[str, str]) -> None:
        self.functions = functions
        self.places = places
        self._peaks: dict[str, int] = {}
        self._pending: list[str] = []

    def peak(self, name: str) -> int:
        """Return the most bytes that are held at once while the function runs. Raises OpwestError."""
        if name in self._peaks:
            return self._peaks[name]
        place = self.places.get(name, "")
        if name in self._pending or len(self._pending) > 50:
            raise fault(f"{name} calls itself", place, "functions as TVM writes them")
        self._pending.append(name)
        held: dict[str, int] = {}
        peak = now = 0
        for event in _EVENT.finditer(self.functions[name].body):
            if event["size"] is not None:
                size = self._size(event["size"], name, place)
                now += size
                held[event["variable"] or ""] = size
                peak = max(peak, now)
            elif event["freed"] is not None:
                now -= held.pop(event["freed"], 0)
            elif event["called"] in self.functions:
                peak = max(peak, now + self.peak(event["called"]))
        self._pending.pop()
        self._peaks[name] = peak
        return peak

    def _size(self, text: str, name: str, place: str) -> int:
        digits = text.strip().strip("()").strip()
        if not digits.isdigit() or len(digits) > 12 or int(digits) > ELEMENTS:
            raise fault(f"{name} asks for a workspace of {digits[:40]!r} bytes", place, "a number")
        return int(digits) + -int(digits) % ALIGN
