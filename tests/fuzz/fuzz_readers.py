# SPDX-License-Identifier: Apache-2.0
"""What a reader is to the fuzzer, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz_mutators import Mutator, mutate_bytes

Read = Callable[[bytes], str]
"""Reads one input. Returns what came of it in words: inputs with new words join the corpus. Raises where it may not."""


@dataclass(frozen=True)
class Reader:
    """A part of opwest that reads what others wrote."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    """Inputs that are right, built by code."""
    start: Callable[[Path], Read]
    """Prepares a folder of its own and returns the function that reads."""
    mutate: Mutator = mutate_bytes
    runs: int = 200_000
    """What `make fuzz` gives it."""


@cache
def readers() -> dict[str, Reader]:
    """Return all readers by name."""
    import fuzz_arrays
    import fuzz_boards
    import fuzz_ir
    import fuzz_libraries
    import fuzz_manifests
    import fuzz_measures
    import fuzz_objects
    import fuzz_projects
    import fuzz_reports
    import fuzz_templates

    modules = (fuzz_manifests, fuzz_objects, fuzz_ir, fuzz_arrays, fuzz_projects, fuzz_templates, fuzz_boards)
    modules += (fuzz_reports, fuzz_libraries, fuzz_measures)
    return {reader.name: reader for module in modules for reader in module.READERS}
