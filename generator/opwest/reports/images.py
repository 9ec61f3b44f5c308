# SPDX-License-Identifier: Apache-2.0
"""Linked images: the models that they contain, their map files, and the variants that a report describes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.elf import ET_REL, SHF_ALLOC, STT_FUNC, Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.images import read_image
from opwest.objects.library_symbols import is_float_code
from opwest.objects.link_map import LinkMap, read_map
from opwest.project.request import Examination
from opwest.render.note import note_record
from opwest.reports import data
from opwest.reports.files import read_limited

EXPECTED: Final = "an image of this project, such as build/zephyr/zephyr.elf, or its build directory"
_MAX_BYTES: Final = 1 << 30
_MAX_RAM: Final = 1 << 40
_HASH_LENGTH: Final = 12
_TEXTS: Final = ("opwest", "description")
"""Members of a note without influence on the image."""


@dataclass(frozen=True)
class LinkedImage:
    """An image with models."""

    path: Path
    source: str
    """Its board, build directory or file; unique in a report."""
    elf: Elf
    notes: Mapping[str, Mapping[str, Any]]
    """The notes of its models, by name."""
    link_map: LinkMap | None
    map_path: Path | None
    flash: int | None
    """Bytes of the whole image; None if it is not linked."""
    ram: int | None
    float_code: tuple[data.ImageItem, ...]

    @property
    def location(self) -> Location:
        """The location of faults."""
        return Location(str(self.path))


def read_images(files: Sequence[Path], faults: Diagnostics) -> list[LinkedImage]:
    """Return the images of files or build directories; report every unusable one."""
    images: list[LinkedImage] = []
    for given in files:
        path = given
        try:
            path = image_file(given)
            name = _unused(_name(path), [image.source for image in images], path)
            images.append(_read(path, name))
        except ValueError as error:
            hint = path_suggestions.hint_for(path)
            faults.error(f"cannot read the image: {error}", Location(str(path)), expected=EXPECTED, hint=hint)
        except ObjectError as error:
            expected = error.expected if error.expected and "image" in error.expected else EXPECTED
            faults.error(
                f"cannot read the image: {error.message}", Location(str(path)), expected=expected, hint=error.hint
            )
    return images


def image_file(path: Path) -> Path:
    """Return the image of a build directory; a file as it is. Raises ValueError for another directory."""
    if not path.is_dir():
        return path
    own = path / "zephyr" / "zephyr.elf"
    if own.is_file():
        return own
    inner = sorted(image for image in path.glob("*/zephyr/zephyr.elf") if image.parts[-3] != "mcuboot")
    if len(inner) == 1:
        return inner[0]
    if inner:
        names = ", ".join(image.parts[-3] for image in inner)
        raise ValueError(f"the build directory has several images: {names}; name one of these directories")
    raise ValueError("the directory has no zephyr/zephyr.elf")


def _read(path: Path, name: str) -> LinkedImage:
    """Return an image. Raises ValueError and ObjectError."""
    content = read_limited(path, _MAX_BYTES)
    if not content.startswith(b"\x7fELF"):
        raise ObjectError("not an ELF file")
    elf = parse_elf(content)
    if elf.symbol_table() is None:
        raise ObjectError("no symbol table")
    notes = {str(note["model"]): note for note in read_image(elf).models}
    flash, ram = _whole(elf)
    map_path = next((at for at in map_files(path) if at.is_file()), None)
    link_map = None
    if map_path is not None:
        try:
            link_map = read_map(read_limited(map_path, _MAX_BYTES).decode("utf-8", "replace"))
            _check_map(elf, link_map)
        except (ValueError, ObjectError) as error:
            message = error.message if isinstance(error, ObjectError) else str(error)
            raise ObjectError(f"its map file {map_path.name}: {message}", hint=_MAP_HINT) from None
    return LinkedImage(path, name, elf, notes, link_map, map_path, flash, ram, _float_code(elf))


_MAP_HINT: Final = "build again, or remove the map file: sizes are then those of symbols only"


def map_files(image: Path) -> tuple[Path, ...]:
    """Return the possible map files of an image: those of Zephyr, and the name of the image with `.map`."""
    return image.with_suffix(".map"), image.with_name("zephyr_final.map")


def _check_map(elf: Elf, link_map: LinkMap) -> None:
    """Raise ObjectError if a map file describes another image."""
    largest: dict[str, int] = {}
    for piece in link_map.pieces:
        largest[piece.output] = max(piece.size, largest.get(piece.output, 0))
    for section in elf.sections:
        place = link_map.outputs.get(section.name)
        if not section.flags & SHF_ALLOC or place is None:
            continue
        if largest.get(section.name, 0) > section.size:
            raise ObjectError(f"an input section is larger than section {section.name} of {section.size} bytes")
        if place[1] != section.size or (elf.type != ET_REL and place[0] != section.address):
            raise ObjectError(
                f"it is of another image: section {section.name} has {place[1]} bytes at {place[0]:#x}, "
                f"in the image {section.size} bytes at {section.address:#x}"
            )


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
        if symbol.section > 0 and symbol.kind == STT_FUNC and 0 < symbol.size <= len(elf.content):
            name = names.name(symbol.name)
            if is_float_code(name):
                place = symbol.section, symbol.value
                known, size = functions.get(place, (name, 0))
                functions[place] = (min(known, name), max(size, symbol.size))
    items = sorted(functions.values(), key=lambda item: (-item[1], item[0]))
    return tuple(data.ImageItem(name, "code", size) for name, size in items)


def _whole(elf: Elf) -> tuple[int | None, int | None]:
    """Return the flash and RAM size of the whole image in bytes, as printed by the linker."""
    from elftools.elf.elffile import ELFFile  # only images need it, and it takes long to import

    try:
        headers = [segment.header for segment in ELFFile(BytesIO(elf.content)).iter_segments("PT_LOAD")]
    except Exception:  # pyelftools raises various exceptions for damaged files
        headers = []
    if not headers:  # not linked
        return None, None
    moved = [header for header in headers if header.p_vaddr != header.p_paddr or header.p_memsz != header.p_filesz]
    flash = _used([(header.p_paddr, header.p_filesz, header.p_align) for header in headers if header.p_filesz])
    ram = _used([(header.p_vaddr, header.p_memsz, header.p_align) for header in moved])
    if flash > len(elf.content) or ram > _MAX_RAM:
        raise ObjectError(f"segments of {flash} bytes in a file of {len(elf.content)} bytes, and {ram} bytes in memory")
    return flash, ram


def _used(segments: Sequence[tuple[int, int, int]]) -> int:
    """Return the bytes of segments (address, size, alignment), with the gaps that alignment made between them."""
    used, end = 0, None
    for start, size, align in sorted(segments):
        gap = start - end if end is not None else 0
        used += size + (gap if 0 < gap < align else 0)
        end = start + size
    return used


def check_models(images: Sequence[LinkedImage], names: Sequence[str], faults: Diagnostics) -> None:
    """Report every image without one of the models."""
    for image in images:
        if not set(names).intersection(image.notes):
            faults.error(
                f"the image has no model of the application: it has {', '.join(image.notes)}",
                image.location,
                expected=", ".join(names),
                hint="give the application that the image was built from",
            )


def check_examination(
    examination: Examination, all_of_model: Sequence[Examination], images: Sequence[LinkedImage], faults: Diagnostics
) -> None:
    """Report every image with another variant or generation of a model than an examination."""
    model = examination.model
    own = json_of_note(examination)
    for image in images:
        note = image.notes.get(model.name)
        if note is None:
            continue
        here, there = own.get("variant"), note.get("variant")
        if here != there:
            known = [item.model.variant.name if item.model.variant else None for item in all_of_model]
            has = f"the image has {_variant(there)} of model '{model.name}'"
            faults.error(
                f"{has}, which the application lacks" if there not in known else f"{has}, the report {_variant(here)}",
                image.location,
                expected=f"an image with {_variant(here)}",
                hint="build the image again, or give the application that it was built from"
                if there not in known
                else "omit --variant to show the variant of an image; make one report for each variant",
            )
            continue
        if difference := _difference(note, own):
            faults.error(
                f"the image was built from another generation of model '{model.name}': {difference}",
                image.location,
                expected="an image of the current inputs of the application",
                hint="run 'opwest update', then build the image again; or give the application that it was built from",
            )


def json_of_note(examination: Examination) -> dict[str, Any]:
    """Return the note that an image of a model has."""
    own: dict[str, Any] = json.loads(json.dumps(note_record(examination.model, examination.plan)))
    return own


def _difference(note: Mapping[str, Any], own: Mapping[str, Any]) -> str | None:
    """Return how an image differs from an application; None if it has the same model."""
    for key in own:
        if key in _TEXTS or note.get(key) == own[key]:
            continue
        if key == "hash":
            short = [str(side[key])[:_HASH_LENGTH] for side in (note, own)]
            return f"its hash is {short[0]}…, that of the application {short[1]}…"
        if key == "metadata":
            return f"its metadata has version {note[key]}, that of the application {own[key]}"
        if key == "pools":
            sizes = [{pool["name"]: pool["size"] for pool in side[key]} for side in (note, own)]
            if sizes[0] != sizes[1]:
                texts = [", ".join(f"{name} {size}" for name, size in side.items()) or "none" for side in sizes]
                return f"its pools have other bytes ({texts[0]}) than those of the application ({texts[1]})"
        return f"its {key} differ from those of the application"
    return None


def _variant(name: str | None) -> str:
    return "the base" if name is None else f"variant '{name}'"
