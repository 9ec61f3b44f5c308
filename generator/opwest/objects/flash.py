# SPDX-License-Identifier: Apache-2.0
"""The flash memory that code and constants are read from: its wait states and its caches, and those of SoCs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass

_LARGE = 8192
"""The bytes of a cache for code that holds every operator of a layer."""
_MAX = {"wait_states": 1000, "line": 64, "cache": 1 << 20, "data_cache": 1 << 20}
FORM = "wait_states=N,line=BYTES,cache=BYTES[,data_cache=BYTES][,prefetch=no], or none"
"""How users write a flash on the command line."""

IN_SOURCE = ", flash "
"""The text before a flash in the source of measurements, such as `qemu-system-arm 7.2.22, flash wait_states=...`."""


@dataclass(frozen=True)
class Flash:
    """A flash memory. tuning/qemu/flash.h is the model of its stalls."""

    wait_states: int
    """Further processor cycles of each read of a line."""
    line: int
    """The bytes that are read at once."""
    cache: int
    """The bytes of the cache for code; 0: none."""
    data_cache: int = 0
    """The bytes of the cache for data; 0: none."""
    prefetch: bool = True
    """Whether the line after that of the code is read in advance."""

    @property
    def loop_bytes(self) -> int | None:
        """Return the bytes of code that a function with an inner loop may have; None: more bytes cost nothing.

        The code that calls the function for each tile is about a sixteenth of a small cache. Without wait states or a
        cache, or with a large cache, the size of a loop has no effect.
        """
        return None if self.wait_states == 0 or not 0 < self.cache < _LARGE else self.cache * 15 // 16

    def stalls_beside(self, other: Flash) -> float:
        """Return the stalls as a multiple of those with another flash: of reads of lines, one after the other."""
        return self.wait_states / other.wait_states * other.line / self.line

    @property
    def text(self) -> str:
        """Return the flash in the form of `--flash`."""
        if self == NONE:
            return "none"
        numbers = [f"{name}={getattr(self, name)}" for name in _MAX]
        return ",".join([*numbers, f"prefetch={'yes' if self.prefetch else 'no'}"])


NONE = Flash(0, 16, 0, 0, False)
"""A memory without wait states: code in RAM or in a tightly coupled memory."""
UNKNOWN = Flash(5, 16, 1024, 256, True)
"""The flash of an unknown board: 5 wait states, 128-bit reads, and ST's cache of 1 KB, the smallest that is common."""


def fault_of(flash: Flash) -> tuple[str, str] | None:
    """Return the key with an invalid value, and what is expected; None without a fault."""
    for name, most in _MAX.items():
        if not 0 <= getattr(flash, name) <= most:
            return name, f"a number from 0 to {most}"
    if flash.line < 4 or flash.line & (flash.line - 1):
        return "line", "4, 8, 16, 32 or 64: the bytes of a read"
    for name in ("cache", "data_cache"):
        if getattr(flash, name) % flash.line:
            return name, f"a multiple of the line: {flash.line} bytes"
    return None


def flash_of_text(text: str) -> Flash:
    """Return the flash of an option's value. Raises ValueError with the invalid part and what is expected."""
    if text == "none":
        return NONE
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name in values or name not in (*_MAX, "prefetch"):
            raise ValueError(f"{'repeated' if name in values else 'unknown'} key {name!r}; expected {FORM}")
        if name == "prefetch" and value in ("yes", "no"):
            values[name] = value == "yes"
        elif name != "prefetch" and value.isascii() and value.isdigit() and len(value) < 10:
            values[name] = int(value)
        else:
            expected = "yes or no" if name == "prefetch" else "a number"
            raise ValueError(f"invalid {part!r}; expected {name}={expected}".replace("=a number", "=NUMBER"))
    missing = [name for name in ("wait_states", "line", "cache") if name not in values]
    if missing:
        raise ValueError(f"missing {missing[0]}=NUMBER; expected {FORM}")
    flash = Flash(**values)
    fault = fault_of(flash)
    if fault is not None:
        raise ValueError(f"invalid {fault[0]}={getattr(flash, fault[0])}; expected {fault[1]}")
    return flash


@cache
def flash_of_source(source: str) -> Flash | None:
    """Return the flash in the source of measurements; None without one. Raises ValueError."""
    text = source.partition(IN_SOURCE)[2]
    if not text:
        return None
    flash = flash_of_text(text)
    if not flash.wait_states:
        raise ValueError("a flash without wait states has no stalls")
    return flash


@cache
def known_flash() -> Mapping[str, Flash]:
    """Return the flash of SoCs by symbol of Kconfig, without CONFIG_. The first symbol of a board applies."""
    import yaml  # the command line is parsed without it
    import yamlcore

    text = Path(__file__).with_name("flash.yaml").read_text(encoding="utf-8")
    rows = yaml.load(text, Loader=getattr(yamlcore, "CCoreLoader", yamlcore.CoreLoader))
    return {symbol: Flash(**row) for symbol, row in rows.items()}


def flash_of_symbols(symbols: Collection[str]) -> Flash | None:
    """Return the flash of a board with these symbols; None if it is unknown."""
    return next((flash for symbol, flash in known_flash().items() if symbol in symbols), None)


def keys_of(flash: Flash) -> dict[str, int | bool]:
    """Return the keys of `flash` in a manifest."""
    return dataclasses.asdict(flash)
