# SPDX-License-Identifier: Apache-2.0
"""Sizes of a model in linked firmware, from the symbols of its ELF file: the only source for C operators."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.model.types.c_names import CNames
from opwest.objects.elf import SHF_ALLOC, SHT_NOBITS, Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.library_symbols import is_float_code
from opwest.report import data

OWN: Final = "run, metadata, registry, runtime"
HELPERS: Final = "helpers of operators"
_EXPECTED: Final = "an image of this project, such as build/zephyr/zephyr.elf"
_LARGEST: Final = 1 << 30
_MOST_RAM: Final = 1 << 40
_OBJECT, _FUNCTION = 1, 2


def add_images(models: Sequence[data.Model], files: Sequence[Path], faults: Diagnostics) -> list[data.Model]:
    """Return the models with their sizes in the images; report every unusable file."""
    found = list(models)
    for path in files:
        at = Location(str(path))
        try:
            elf = _elf(path)
            symbols, whole = _symbols(elf), (*_whole(elf), _float_code(elf))
            name = _unused(_name(path), [image.source for model in found for image in model.images], path)
        except OSError as error:
            faults.error(
                f"cannot read the image: {error.strerror or error}",
                at,
                expected=_EXPECTED,
                hint=path_suggestions.hint_for(path),
            )
            continue
        except ObjectError as error:
            faults.error(f"cannot read the image: {error.message}", at, expected=_EXPECTED, hint=error.hint)
            continue
        parts = [_items(model, [other.name for other in models], symbols) for model in models]
        if not any(item.kind in ("code", "constant") for items in parts for item in items):  # programs are shared
            names = ", ".join(model.name for model in models)
            faults.error(f"the image has no symbols of models: {names}", at, expected=_EXPECTED)
            continue
        found = [
            replace(model, images=(*model.images, data.Image(name, elf.machine_name, items, *whole)))
            if items
            else model
            for model, items in zip(found, parts, strict=True)
        ]
    return found


def _name(path: Path) -> str:
    """Return the board of an image in a build directory of Zephyr, else the directory; of other images, the file."""
    if path.absolute().parent.name != "zephyr":
        return path.name
    try:
        text = (path.parent / ".config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for symbol in ("CONFIG_BOARD_TARGET", "CONFIG_BOARD"):  # the former since Zephyr 3.7
        if found := re.search(rf'^{symbol}="([^"\n]+)"$', text, re.MULTILINE):
            return found[1]
    return _folder(path)


def _folder(path: Path) -> str:
    """Return the name of the build directory of `<build>/zephyr/zephyr.elf`."""
    return path.absolute().parent.parent.name or path.name


def _unused(name: str, known: Sequence[str], path: Path) -> str:
    """Return a name for an image that no other has: with its build directory, then with a number."""
    if name in known and path.absolute().parent.name == "zephyr":
        name = f"{name}, {_folder(path)}"
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return name if name not in known else next(one for one in numbered if one not in known)


def _float_code(elf: Elf) -> tuple[data.ImageItem, ...]:
    """Return the functions of libm and of soft float in an image; aliases are one function."""
    table = elf.symbol_table()
    if table is None:
        return ()
    names = elf.strings_of(table)
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for symbol in elf.raw_symbols(table):
        if symbol.section > 0 and symbol.info & 0xF == _FUNCTION and 0 < symbol.size <= len(elf.content):
            name = names.name(symbol.name)
            if is_float_code(name):
                place = symbol.section, symbol.value
                known, size = found.get(place, (name, 0))
                found[place] = (min(known, name), max(size, symbol.size))
    items = sorted(found.values(), key=lambda item: (-item[1], item[0]))
    return tuple(data.ImageItem(name, "code", size) for name, size in items)


def _whole(elf: Elf) -> tuple[int | None, int | None]:
    """Return the flash and RAM size of the whole image in bytes, as printed by the linker."""
    try:
        headers = [one.header for one in ELFFile(BytesIO(elf.content)).iter_segments("PT_LOAD")]
    except Exception:  # pyelftools raises various exceptions for damaged files
        headers = []
    if not headers:  # not linked
        return None, None
    moved = [one for one in headers if one.p_vaddr != one.p_paddr or one.p_memsz != one.p_filesz]
    flash, ram = sum(one.p_filesz for one in headers), sum(one.p_memsz for one in moved)
    if flash > len(elf.content) or ram > _MOST_RAM:
        raise ObjectError(f"segments of {flash} bytes in a file of {len(elf.content)} bytes, and {ram} bytes in memory")
    return flash, ram


def _elf(path: Path) -> Elf:
    if path.stat().st_size > _LARGEST:
        raise ObjectError(f"more than {_LARGEST} bytes")
    content = path.read_bytes()
    if not content.startswith(b"\x7fELF"):
        raise ObjectError("not an ELF file")
    return parse_elf(content)


def _symbols(elf: Elf) -> dict[str, int]:
    """Return the bytes of every function and object in flash by name."""
    table = elf.symbol_table()
    if table is None:
        raise ObjectError("no symbol table")
    names = elf.strings_of(table)
    sizes: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for symbol in elf.raw_symbols(table):
        section = elf.sections[symbol.section] if symbol.section > 0 else None
        if section is None or not section.flags & SHF_ALLOC or section.kind == SHT_NOBITS or not symbol.size:
            continue
        name = names.name(symbol.name)
        if symbol.size > len(elf.content):
            raise ObjectError(f"symbol {name[:80]!r} of {symbol.size} bytes in a file of {len(elf.content)} bytes")
        if symbol.info & 0xF in (_OBJECT, _FUNCTION) and (name, symbol.value) not in seen:
            seen.add((name, symbol.value))
            sizes[name] = sizes.get(name, 0) + symbol.size
    return sizes


def _items(model: data.Model, models: Sequence[str], symbols: dict[str, int]) -> tuple[data.ImageItem, ...]:
    """Return the items of a model, the largest first."""
    sizes: dict[tuple[str, str], int] = {}
    for name, kind, count in _named(model, models, symbols):
        sizes[name, kind] = sizes.get((name, kind), 0) + count
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return tuple(data.ImageItem(name, kind, count) for (name, kind), count in ordered)


def _named(model: data.Model, models: Sequence[str], symbols: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    names = CNames(model.name)
    operators: dict[str, str] = {}
    for operator in model.operators:  # operators may share a function
        known = operators.get(operator.symbol)
        operators[operator.symbol] = f"{known}, {operator.name}" if known else operator.name
    constants = {names.constant(one.name): one.name for one in model.constants}
    programs = {one.symbol: one.name for one in model.programs}
    renamed = names.operator("")
    longer = tuple(f"{other}_" for other in models if other.startswith(f"{model.name}_"))
    for symbol, count in symbols.items():
        if symbol in constants:
            yield constants[symbol], "constant", count
        elif symbol in programs:
            yield programs[symbol], "program", count
        elif symbol.startswith(longer):
            continue
        elif symbol.startswith(renamed):
            of = symbol.removeprefix(renamed).partition(".")[0]  # f.constprop.0 is a part of f
            yield (operators[of], "code", count) if of in operators else (HELPERS, "other", count)
        elif symbol.startswith((names.function(""), "opwest_")):
            yield OWN, "other", count
