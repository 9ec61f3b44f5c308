# SPDX-License-Identifier: Apache-2.0
"""The instruction set of a RISC-V board from its devicetree, which declares it since Zephyr 4.4.

Before, the Kconfig files of SoCs select it (source: Zephyr's migration guide to 4.4 and arch/riscv/Kconfig.isa).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from opwest.zephyr.hardware import read_text

_KCONFIG = "arch/riscv/Kconfig.isa"
_BASE, _EXTENSIONS = "riscv,isa-base", "riscv,isa-extensions"
_PLACES = ("dts/riscv", "dts/common", "dts/vendor", "dts")
"""The directories of `#include <...>` in devicetree sources, in Zephyr's order (cmake/modules/pre_dt.cmake)."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"\n]+)[>"]', re.MULTILINE)


def isa_symbols(target: str, boards: Iterable[Path], base: Path) -> frozenset[str]:
    """Return the symbols of Kconfig (without CONFIG_) that Zephyr derives from the devicetree of a board.

    They are RISCV_ISA_RV32I and the like, and RISCV_ISA_EXT_M and the like. `target` is the name of the board with
    its SoC, and `boards` are its directories. The result is empty for a tree that declares the instruction set
    elsewhere. Of several declarations, such as those of several cores, the common extensions count, as in Zephyr.
    Overwritten and deleted properties are not evaluated.
    """
    if _BASE not in read_text(base / _KCONFIG):
        return frozenset()
    name, _, *rest = target.split("/")
    for stem in (target.replace("/", "_"), "_".join([name, *rest])):
        for folder in boards:
            if (folder / f"{stem}.dts").is_file():
                return _of_source(folder / f"{stem}.dts", base)
    return frozenset()


def _of_source(file: Path, base: Path) -> frozenset[str]:
    text = "\n".join(_with_includes(file, base, set()))
    bases = _values(_BASE, text)
    names = {f"RISCV_ISA_{one.upper()}" for one in _common(bases)}
    return frozenset(
        names | {f"RISCV_ISA_EXT_{one.upper()}" for one in _common(_values(_EXTENSIONS, text)) if one != "i"}
    )


def _with_includes(file: Path, base: Path, done: set[Path]) -> Iterator[str]:
    """Yield the text of a devicetree source and of the files that it includes, each once."""
    if file in done:
        return
    done.add(file)
    text = _COMMENT.sub(" ", read_text(file))
    yield text
    for name in _INCLUDE.findall(text):
        places = (file.parent / name, *(base / place / name for place in _PLACES))
        found = next((place for place in places if place.is_file()), None)
        if found is not None:
            yield from _with_includes(found, base, done)


def _values(name: str, text: str) -> list[frozenset[str]]:
    """Return the strings of each assignment to a property."""
    assigned = re.findall(rf"{re.escape(name)}\s*=([^;]*);", text)
    return [frozenset(re.findall(r'"([^"]*)"', value)) for value in assigned]


def _common(values: list[frozenset[str]]) -> frozenset[str]:
    return frozenset.intersection(*values) if values else frozenset()
