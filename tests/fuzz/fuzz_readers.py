# SPDX-License-Identifier: Apache-2.0
"""The type of readers for the fuzzer, and the list of all readers."""

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_mutators import Mutator, mutate_bytes
from opwest.base.diagnostics import Diagnostic, OpwestError

Read = Callable[[bytes], str]
"""Reads one input. Returns the result as text: inputs with new results join the corpus. May not raise."""


def messages(faults: Iterable[Diagnostic]) -> str:
    """Return messages without numbers and names; they must be short and not empty, without the working directory."""
    found = list(faults)
    for one in found:
        assert one.message.strip() and len(str(one)) < 10_000, str(one)[:300]
        assert str(Path.cwd()) not in str(one)
    return " ".join(word for one in found[:3] for word in one.message.split()[:12] if word.isalpha())


def plain(text: str) -> str:
    """Return a text without numbers and names."""
    return " ".join(word for word in text.split() if word.isalpha())


def said(fault: Any, longest: int = 2_000) -> str:
    """Return the message of an exception without numbers and names; it must be short and not empty."""
    if isinstance(fault, OpwestError):
        assert fault.diagnostics
        return messages(fault.diagnostics)
    assert fault.message.strip() and len(fault.message) < longest, fault.message[:200]
    return plain(fault.message)


@dataclass(frozen=True)
class Reader:
    """A part of opwest that reads untrusted input."""

    name: str
    seeds: Callable[[], Sequence[bytes | str]]
    """Valid inputs, built by code."""
    start: Callable[[Path], Read]
    """Prepares a directory and returns the function that reads."""
    mutate: Mutator = mutate_bytes
    runs: int = 200_000
    """The number of inputs in `make fuzz`."""
    refuses: tuple[type[Exception], ...] = ()
    """Documented exceptions: their messages are results."""
    longest: int = 2_000
    """The limit of a message."""
    needs: str | None = None
    """A package that can be absent."""

    def inputs(self) -> list[bytes]:
        """Return the seeds."""
        return [one.encode() if isinstance(one, str) else one for one in self.seeds()]

    @property
    def is_available(self) -> bool:
        """Whether the package of the reader is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None

    def reading(self, folder: Path) -> Read:
        """Prepare a directory; return the function that reads, or returns why it refuses an input."""
        start = self.start(folder)

        def read(content: bytes) -> str:
            try:
                return start(content)
            except self.refuses as fault:
                return said(fault, self.longest)

        return read


@cache
def readers() -> dict[str, Reader]:
    """Return all readers by name."""
    import fuzz_arrays
    import fuzz_boards
    import fuzz_bundles
    import fuzz_ir
    import fuzz_libraries
    import fuzz_manifests
    import fuzz_measures
    import fuzz_objects
    import fuzz_projects
    import fuzz_reports
    import fuzz_templates
    import fuzz_vela

    modules = (fuzz_manifests, fuzz_objects, fuzz_ir, fuzz_arrays, fuzz_projects, fuzz_templates, fuzz_boards)
    modules += (fuzz_reports, fuzz_libraries, fuzz_measures, fuzz_vela, fuzz_bundles)
    return {reader.name: reader for module in modules for reader in module.READERS}
