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
from opwest.objects.elf import SHF_ALLOC, SHT_NOBITS, Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.library_symbols import is_float_code
from opwest.report import data, words

MAX_ITEMS: Final = 48
"""The maximum number of items drawn; the smallest others are combined."""


def targets(model: data.Model) -> list[str]:
    """Return the targets for which the size of code is known."""
    return list(dict.fromkeys(one.target for one in model.objects if one.code is not None))


def image_items(image: data.Image) -> list[dict[str, Any]]:
    """Return the flash items of a linked image."""
    words_of = {
        "code": "code of an operator",
        "constant": "constant",
        "program": "program of a device",
        "other": "other code and data of the model",
    }
    return _largest(
        [_item(item.name, item.kind, item.bytes, words_of.get(item.kind, item.kind)) for item in image.items]
    )


def flash_items(model: data.Model, target: str | None) -> list[dict[str, Any]]:
    """Return the known flash items, the largest first: name, kind, bytes and description."""
    items = [
        _item(
            constant.name,
            "constant",
            constant.bytes,
            f"constant {words.tensor(constant.dtype, constant.shape)}{_users(constant.operators)}",
        )
        for constant in model.constants
    ]
    items += [_item(program.name, "program", program.bytes, "program of a device") for program in model.programs]
    if target is not None:
        own = {operator.symbol: operator for operator in model.operators if target in operator.code}
        items += [_item(one.name, "code", one.code[target], f"code for {target}") for one in own.values()]
        held = [one for one in model.objects if one.target == target]
        called = sum(one.code or 0 for one in held) - sum(one.code[target] for one in own.values())
        items.append(_item("other code", "other", max(called, 0), "functions of the objects that operators call"))
        read_only = sum(one.constant or 0 for one in held)
        items.append(_item("tables", "other", read_only, "constants inside the objects"))
    return _largest(items)


def _largest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = sorted((item for item in items if item["bytes"]), key=lambda item: (-item["bytes"], item["name"]))
    if len(found) <= MAX_ITEMS:
        return found
    rest = found[MAX_ITEMS - 1 :]
    others = _item(f"{len(rest)} others", "other", sum(i["bytes"] for i in rest), "each smaller than the ones shown")
    return sorted([*found[: MAX_ITEMS - 1], others], key=lambda item: (-item["bytes"], item["name"]))


def _item(name: str, kind: str, count: int, text: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "bytes": count, "text": f"{words.counted(count, 'byte')}; {text}"}


def _users(operators: tuple[str, ...]) -> str:
    shown = ", ".join(operators[:4]) + (f" and {len(operators) - 4} more" if len(operators) > 4 else "")
    return f", read by {shown}" if operators else ""


def flash_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the flash of a model: in images, for targets, or the part known before compilation."""
    rows = [_flash_row(f"{image.source} ({image.machine})", image_items(image), image.flash) for image in model.images]
    known = targets(model)
    if known or not rows:
        rows += [_flash_row(target, flash_items(model, target)) for target in known or (None,)]
    return rows


def _flash_row(target: str | None, items: list[dict[str, Any]], whole: int | None = None) -> dict[str, Any]:
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
                "shown": words.number(item["bytes"]),
                "share": words.percent(item["bytes"], total),
                "bar": f"{item['bytes'] / largest * 100:.2f}%",
                "what": item["text"].partition("; ")[2],
            }
            for item in items
        ],
        "kinds": list(dict.fromkeys(item["kind"] for item in items)),
    }


def ram_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the RAM items: pools, state of objects, the largest frames of operators."""
    rows = []
    for pool in model.pools:
        note = f"of {words.size(pool.limit)}" if pool.limit is not None else "no limit"
        kept = sum(buffer.bytes for buffer in model.buffers if buffer.pool == pool.name and buffer.role == "state")
        note += f"; {words.size(kept)} of them state, kept between runs" if kept else ""
        rows.append(_ram_row(f"pool {pool.name}", pool.planned, note, pool.limit))
    for target in targets(model):
        state = sum(one.state or 0 for one in model.objects if one.target == target)
        if state:
            rows.append(_ram_row("state of the objects", state, f"for {target}"))
        frames = {operator.name: operator.stack[target] for operator in model.operators if target in operator.stack}
        if frames:
            largest = max(frames, key=lambda name: (frames[name], name))
            known = (
                "" if len(frames) == len(model.operators) else f"; {len(frames)} of {len(model.operators)} are known"
            )
            rows.append(_ram_row("largest stack frame", frames[largest], f"of {largest}, for {target}{known}"))
    rows += [
        _ram_row("whole image", image.ram, f"of {image.source}, including Zephyr")
        for image in model.images
        if image.ram
    ]
    return rows


def _ram_row(name: str, count: int, note: str, limit: int | None = None) -> dict[str, Any]:
    bar = f"{min(count / limit, 1) * 100:.2f}%" if limit else None
    return {"name": name, "shown": words.number(count), "note": note, "bar": bar}


OWN: Final = "run, metadata, registry, runtime"
HELPERS: Final = "helpers of operators"
_EXPECTED: Final = "an image of this project, such as build/zephyr/zephyr.elf"
_MAX_BYTES: Final = 1 << 30
_MAX_RAM: Final = 1 << 40
_OBJECT, _FUNCTION = 1, 2


def add_images(models: Sequence[data.Model], files: Sequence[Path], faults: Diagnostics) -> list[data.Model]:
    """Return the models with their sizes in the images; report every unusable file."""
    images = list(models)
    for path in files:
        at = Location(str(path))
        try:
            elf = _elf(path)
            symbols, whole = _symbols(elf), (*_whole(elf), _float_code(elf))
            name = _unused(_name(path), [image.source for model in images for image in model.images], path)
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
        headers = [segment.header for segment in ELFFile(BytesIO(elf.content)).iter_segments("PT_LOAD")]
    except Exception:  # pyelftools raises various exceptions for damaged files
        headers = []
    if not headers:  # not linked
        return None, None
    moved = [header for header in headers if header.p_vaddr != header.p_paddr or header.p_memsz != header.p_filesz]
    flash, ram = sum(header.p_filesz for header in headers), sum(one.p_memsz for one in moved)
    if flash > len(elf.content) or ram > _MAX_RAM:
        raise ObjectError(f"segments of {flash} bytes in a file of {len(elf.content)} bytes, and {ram} bytes in memory")
    return flash, ram


def _elf(path: Path) -> Elf:
    if path.stat().st_size > _MAX_BYTES:
        raise ObjectError(f"more than {_MAX_BYTES} bytes")
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
