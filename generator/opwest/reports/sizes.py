# SPDX-License-Identifier: Apache-2.0
"""The flash and RAM of a model by item, as far as its objects contain them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.model.types.c_names import CNames
from opwest.objects.elf import SHF_ALLOC, SHT_NOBITS, STT_FUNC, STT_OBJECT, Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.library_symbols import is_float_code
from opwest.reports import data, words
from opwest.reports.files import read_limited

MAX_ITEMS: Final = 48
"""The maximum number of items drawn; the smallest others are combined."""


_IN_IMAGES: Final = {
    "code": "code of an operator",
    "constant": "constant",
    "program": "program of a device",
    "other": "other code and data of the model",
}


def flash_items(model: data.Model, target: str | None) -> list[dict[str, Any]]:
    """Return the known flash items: name, kind, bytes and description."""
    items = []
    for constant in model.constants:
        readers = f", read by {words.listed(constant.operators, 4)}" if constant.operators else ""
        what = f"constant {words.tensor(constant.dtype, constant.shape)}{readers}"
        items.append(_item(constant.name, "constant", constant.bytes, what))
    items += [_item(program.name, "program", program.bytes, "program of a device") for program in model.programs]
    if target is not None:
        own = {operator.symbol: operator for operator in model.operators if target in operator.code}
        items += [_item(o.name, "code", o.code[target], f"code for {target}") for o in own.values()]
        called = model.totals("code")[target] - sum(operator.code[target] for operator in own.values())
        items.append(_item("other code", "other", max(called, 0), "functions of the objects that operators call"))
        tables = model.totals("constant").get(target, 0)
        items.append(_item("tables", "other", tables, "constants inside the objects"))
    return items


def _largest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted((item for item in items if item["bytes"]), key=lambda item: (-item["bytes"], item["name"]))
    if len(ordered) <= MAX_ITEMS:
        return ordered
    rest = ordered[MAX_ITEMS - 1 :]
    others = _item(f"{len(rest)} others", "other", sum(i["bytes"] for i in rest), "each smaller than the ones shown")
    return sorted([*ordered[: MAX_ITEMS - 1], others], key=lambda item: (-item["bytes"], item["name"]))


def _item(name: str, kind: str, count: int, text: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "bytes": count, "what": text, "text": f"{words.counted(count, 'byte')}; {text}"}


def flash_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the flash of a model: in images, for targets, or the part known before compilation."""
    rows = []
    for image in model.images:
        items = [_item(item.name, item.kind, item.bytes, _IN_IMAGES.get(item.kind, item.kind)) for item in image.items]
        rows.append(_flash_row(f"{image.source} ({image.machine})", items, image.flash))
    known = tuple(model.totals("code"))
    if known or not rows:
        rows += [_flash_row(target, flash_items(model, target)) for target in known or (None,)]
    return rows


def _flash_row(target: str | None, items: list[dict[str, Any]], whole: int | None = None) -> dict[str, Any]:
    items = _largest(items)
    total = sum(item["bytes"] for item in items)
    largest = max((item["bytes"] for item in items), default=1)
    return {
        "target": target,
        "items": items,
        "total": total,
        "whole": whole,
        "rows": [
            {
                **item,
                "share": words.percent(item["bytes"], total),
                "bar": f"{item['bytes'] / largest * 100:.2f}%",
            }
            for item in items
        ],
        "legend": [
            {"kind": kind, "label": "code of an operator" if kind == "code" else kind}
            for kind in dict.fromkeys(item["kind"] for item in items)
        ],
    }


def ram_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the RAM items: pools, state of objects, the largest frames of operators."""
    rows = []
    for pool in model.pools:
        note = f"of {words.size(pool.limit)}" if pool.limit is not None else "no limit"
        kept = sum(buffer.bytes for buffer in model.buffers if buffer.pool == pool.name and buffer.role == "state")
        note += f"; {words.size(kept)} of them state, kept between runs" if kept else ""
        rows.append(_ram_row(f"pool {pool.name}", pool.planned, note, pool.limit))
    states = model.totals("state")
    for target in model.totals("code"):
        if state := states.get(target):
            rows.append(_ram_row("state of the objects", state, f"for {target}"))
        frames = {operator.name: operator.stack[target] for operator in model.operators if target in operator.stack}
        if frames:
            largest = max(frames, key=lambda name: (frames[name], name))
            note = f"of {largest}, for {target}"
            if len(frames) < len(model.operators):
                note += f"; {len(frames)} of {len(model.operators)} are known"
            rows.append(_ram_row("largest stack frame", frames[largest], note))
    for image in model.images:
        if image.ram:
            rows.append(_ram_row("whole image", image.ram, f"of {image.source}, including Zephyr"))
    return rows


def _ram_row(name: str, count: int, note: str, limit: int | None = None) -> dict[str, Any]:
    bar = f"{min(count / limit, 1) * 100:.2f}%" if limit else None
    return {"name": name, "bytes": count, "note": note, "bar": bar}


OWN: Final = "run, metadata, registry, runtime"
HELPERS: Final = "helpers of operators"
_EXPECTED: Final = "an image of this project, such as build/zephyr/zephyr.elf"
_MAX_BYTES: Final = 1 << 30
_MAX_RAM: Final = 1 << 40


def add_images(models: Sequence[data.Model], files: Sequence[Path], faults: Diagnostics) -> list[data.Model]:
    """Return the models with their sizes in the images; report every unusable file."""
    images = list(models)
    for path in files:
        at = Location(str(path))
        try:
            content = read_limited(path, _MAX_BYTES)
            if not content.startswith(b"\x7fELF"):
                raise ObjectError("not an ELF file")
            elf = parse_elf(content)
            symbols, whole = _symbols(elf), (*_whole(elf), _float_code(elf))
            name = _unused(_name(path), [image.source for model in images for image in model.images], path)
        except ValueError as error:
            hint = path_suggestions.hint_for(path)
            faults.error(f"cannot read the image: {error}", at, expected=_EXPECTED, hint=hint)
            continue
        except ObjectError as error:
            faults.error(f"cannot read the image: {error.message}", at, expected=_EXPECTED, hint=error.hint)
            continue
        parts = [_items(model, [other.name for other in models], symbols) for model in models]
        if not any(item.kind in ("code", "constant") for items in parts for item in items):  # programs are shared
            names = ", ".join(model.name for model in models)
            faults.error(f"the image has no symbols of models: {names}", at, expected=_EXPECTED)
            continue
        images = [
            replace(model, images=(*model.images, data.Image(name, elf.machine_name, items, *whole)))
            if items
            else model
            for model, items in zip(images, parts, strict=True)
        ]
    return images


def _name(path: Path) -> str:
    """Return the board of an image in a build directory of Zephyr, else the directory; of other images, the file."""
    if path.absolute().parent.name != "zephyr":
        return path.name
    try:
        text = (path.parent / ".config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for symbol in ("CONFIG_BOARD_TARGET", "CONFIG_BOARD"):  # the former since Zephyr 3.7
        if match := re.search(rf'^{symbol}="([^"\n]+)"$', text, re.MULTILINE):
            return match[1]
    return _folder(path)


def _folder(path: Path) -> str:
    """Return the name of the build directory of `<build>/zephyr/zephyr.elf`."""
    return path.absolute().parent.parent.name or path.name


def _unused(name: str, known: Sequence[str], path: Path) -> str:
    """Return a name for an image that no other has: with its build directory, then with a number."""
    if name in known and path.absolute().parent.name == "zephyr":
        name = f"{name}, {_folder(path)}"
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return name if name not in known else next(other for other in numbered if other not in known)


def _float_code(elf: Elf) -> tuple[data.ImageItem, ...]:
    """Return the functions of libm and of soft float in an image; aliases are one function."""
    names = elf.symbol_names()
    functions: dict[tuple[int, int], tuple[str, int]] = {}
    for symbol in elf.symbols():
        if symbol.section > 0 and symbol.info & 0xF == STT_FUNC and 0 < symbol.size <= len(elf.content):
            name = names.name(symbol.name)
            if is_float_code(name):
                place = symbol.section, symbol.value
                known, size = functions.get(place, (name, 0))
                functions[place] = (min(known, name), max(size, symbol.size))
    items = sorted(functions.values(), key=lambda item: (-item[1], item[0]))
    return tuple(data.ImageItem(name, "code", size) for name, size in items)


def _whole(elf: Elf) -> tuple[int | None, int | None]:
    """Return the flash and RAM size of the whole image in bytes, as printed by the linker."""
    try:
        headers = [segment.header for segment in ELFFile(BytesIO(elf.content)).iter_segments("PT_LOAD")]
    except Exception:  # pyelftools raises various exceptions for damaged files
        headers = []
    if not headers:  # not linked
        return None, None
    moved = [header for header in headers if header.p_vaddr != header.p_paddr or header.p_memsz != header.p_filesz]
    flash, ram = sum(header.p_filesz for header in headers), sum(header.p_memsz for header in moved)
    if flash > len(elf.content) or ram > _MAX_RAM:
        raise ObjectError(f"segments of {flash} bytes in a file of {len(elf.content)} bytes, and {ram} bytes in memory")
    return flash, ram


def _symbols(elf: Elf) -> dict[str, int]:
    """Return the bytes of every function and object in flash by name."""
    if elf.symbol_table() is None:
        raise ObjectError("no symbol table")
    names = elf.symbol_names()
    sizes: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for symbol in elf.symbols():
        section = elf.sections[symbol.section] if symbol.section > 0 else None
        if section is None or not section.flags & SHF_ALLOC or section.kind == SHT_NOBITS or not symbol.size:
            continue
        name = names.name(symbol.name)
        if symbol.size > len(elf.content):
            raise ObjectError(f"symbol {name[:80]!r} of {symbol.size} bytes in a file of {len(elf.content)} bytes")
        if symbol.info & 0xF in (STT_OBJECT, STT_FUNC) and (name, symbol.value) not in seen:
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
    constants = {names.constant(constant.name): constant.name for constant in model.constants}
    programs = {program.symbol: program.name for program in model.programs}
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
