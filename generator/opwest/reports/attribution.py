# SPDX-License-Identifier: Apache-2.0
"""The bytes of a linked image that belong to a model, by symbol and object file.

The sources are the symbol table and the map file. A byte belongs to a model if its object file does: the objects of its
library (operators, constants, metadata, run), of the runtime, and the functions of libraries that only these call.
Workspaces are recognised by the names and sizes of their pools.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import CNames, member_name
from opwest.objects.calls import UndecodedError, branches
from opwest.objects.elf import (
    ET_REL,
    SHF_ALLOC,
    SHF_WRITE,
    SHT_NOBITS,
    STT_FILE,
    STT_FUNC,
    STT_OBJECT,
    Elf,
    Section,
)
from opwest.objects.facts import ObjectError
from opwest.objects.link_map import LinkMap, Piece, base_name
from opwest.reports import data

RUNTIME: Final = "runtime"
ALIGNMENT: Final = "alignment"
_RUNTIME_ARCHIVE: Final = "libopwest.a"
_ARCHIVE: Final = re.compile(r"libopwest_(.+)\.a")
_LIBRARIES: Final = re.compile(r"lib(?:gcc|m|c|g|clang_rt.*|stdc\+\+|supc\+\+|lib__libc__.*)(?:_nano)?\.a|.*cmsis.*")
_GENERATED: Final = r"_(?:run|metadata|registry|devices|bridges|service|stream|tvm_crt)\.(?:c|o)"
_CONSTANTS: Final = ("constants.S", "note.S")
_COMPILED: Final = re.compile(r"(.+\.(?:c|cc|cpp|cxx|C|S|s|ll))\.(?:o|obj)")
_EVERY_MODEL: Final = ""
_MERGED: Final = re.compile(r"\.(?:str|cst)[0-9]")
_READ_ONLY: Final = ".data.rel.ro"
"""Constants with addresses in relocatable images: sections that are writable for the loader only."""
MAIN_STACK: Final = "z_main_stack"
_POINTERS: Final = {32: "I", 64: "Q"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or an object of an image."""

    name: str
    section: str
    address: int
    size: int
    is_function: bool
    is_local: bool
    file: str
    """Of a local symbol: its source."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an image that belong to one model."""

    flash: tuple[data.ImageItem, ...]
    ram: tuple[data.ImageItem, ...]


@dataclass(frozen=True, slots=True)
class _Owned:
    """An input section that belongs to a model."""

    piece: Piece
    stem: str
    """Its object file without the suffixes of compilers: `operators.c`."""
    kind: str
    """`operators`, `constants`, `generated`, `runtime` or `library`."""


def symbols_of(elf: Elf) -> list[Symbol]:
    """Return the functions and objects of an image, one for each address. Raises ObjectError."""
    names = elf.symbol_names()
    found: dict[tuple[str, int], Symbol] = {}
    file = ""
    for raw in elf.symbols():
        if raw.kind == STT_FILE:
            file = base_name(names.name(raw.name))
        if raw.section <= 0 or raw.kind not in (STT_OBJECT, STT_FUNC) or not raw.size:
            continue
        section = elf.sections[raw.section]
        if not section.flags & SHF_ALLOC:
            continue
        name = names.name(raw.name)
        if raw.size > len(elf.content) and section.kind != SHT_NOBITS:
            raise ObjectError(f"symbol {name[:80]!r} of {raw.size} bytes in a file of {len(elf.content)} bytes")
        address = raw.value & ~1 if raw.kind == STT_FUNC and elf.machine_name == "arm" else raw.value
        is_function = raw.kind == STT_FUNC
        new = Symbol(name, section.name, address, raw.size, is_function, raw.is_local, file if raw.is_local else "")
        old = found.get((section.name, address))
        if old is None or (new.size, not new.is_local) > (old.size, not old.is_local):
            found[section.name, address] = new
    return sorted(found.values(), key=lambda symbol: (symbol.section, symbol.address))


def attribute(
    elf: Elf, link_map: LinkMap | None, models: Sequence[data.Model], notes: Mapping[str, Any]
) -> list[Parts]:
    """Return the parts of an image for each model; `notes` are those of the image, by model. Raises ObjectError."""
    symbols = symbols_of(elf)
    families = [_Names(model) for model in models]
    pieces = list(link_map.pieces) if link_map is not None else list(_pieces_of(symbols, families))
    sections = {section.name: section for section in elf.sections if section.flags & SHF_ALLOC}
    pieces = [piece for piece in pieces if piece.output in sections]
    by_output: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        by_output[symbol.section].append(symbol)
    starts = {output: [symbol.address for symbol in inside] for output, inside in by_output.items()}

    def inside(piece: Piece) -> list[Symbol]:
        own, at = by_output.get(piece.output, []), starts.get(piece.output, [])
        first = bisect_right(at, piece.address - 1)
        return own[first : bisect_right(at, piece.address + piece.size - 1)]

    claims = [_claim(piece, inside(piece), families) for piece in pieces]
    every = {id(piece) for piece, claim in zip(pieces, claims, strict=True) if claim}
    libraries = _Libraries(elf, sections, symbols, pieces, every)
    results = []
    for names in families:
        owned = [
            _Owned(piece, _stem(piece), claim[names.model] if names.model in claim else claim[_EVERY_MODEL])
            for piece, claim in zip(pieces, claims, strict=True)
            if names.model in claim or _EVERY_MODEL in claim
        ]
        called = libraries.called_by({id(item.piece) for item in owned})
        owned += [_Owned(piece, f"{piece.archive}({_stem(piece)})", "library") for piece in called]
        results.append(_parts(names, owned, inside, sections, symbols, notes.get(names.model, {})))
    return results


def _stem(piece: Piece) -> str:
    match = _COMPILED.fullmatch(piece.member)
    return match[1] if match else piece.member


def _claim(piece: Piece, symbols: Sequence[Symbol], models: Sequence[_Names]) -> dict[str, str]:
    """Return the models that an input section belongs to, with its kind; _EVERY_MODEL stands for all."""
    if piece.archive == _RUNTIME_ARCHIVE:
        return {_EVERY_MODEL: RUNTIME}
    stem = _stem(piece)
    library = _ARCHIVE.fullmatch(piece.archive)
    if library is not None:
        return {names.model: names.kind(stem) for names in models if names.model == library[1]}
    if _LIBRARIES.fullmatch(piece.archive) or piece.file.startswith("zephyr/"):
        return {}
    claim = {}
    for names in models:  # opwest_add_model() compiles a model into the application
        if stem in _CONSTANTS:
            if any(symbol.name in names.constants for symbol in symbols):
                claim[names.model] = "constants"
        elif names.is_generated(stem) or stem in names.sources:
            claim[names.model] = names.kind(stem)
    return claim


class _Names:
    """The C symbols and the object files of one model."""

    def __init__(self, model: data.Model) -> None:
        """Collect the names once: images have thousands of symbols."""
        self.model = model.name
        self.c_names = CNames(model.name)
        self.constants = {self.c_names.constant(one.name): (one.name, "constant") for one in model.constants}
        self.constants |= {program.symbol: (program.name, "program") for program in model.programs}
        self.operators: dict[str, str] = {}
        for operator in model.operators:  # operators can share a function
            symbol = self.c_names.operator(operator.symbol)
            known = self.operators.get(symbol)
            self.operators[symbol] = f"{known}, {operator.name}" if known else operator.name
        self.sources = {base_name(re.sub(r".*\((.*)\)$", r"\1", item.name)) for item in model.objects}
        self._generated = re.compile(re.escape(model.name) + _GENERATED)

    def is_generated(self, stem: str) -> bool:
        """Whether an object file is of a generated C source."""
        return self._generated.fullmatch(stem) is not None

    def kind(self, stem: str) -> str:
        """Return the kind of an object file of the model's library."""
        if stem in _CONSTANTS:
            return "constants"
        return "generated" if self.is_generated(stem) else "operators"

    def plain(self, symbol: Symbol) -> str:
        """Return the name of a symbol without the model's prefix and the suffixes of compilers."""
        return symbol.name.partition(".")[0].removeprefix(self.c_names.operator(""))


def _pieces_of(symbols: Sequence[Symbol], models: Sequence[_Names]) -> Iterator[Piece]:
    """Yield symbols as input sections, for images without a map file: by their sources and prefixes of names.

    The source of a global symbol is not known. Sources of the same name in several models are left out.
    """
    for symbol in symbols:
        place = symbol.section, "", symbol.address, symbol.size
        sources = [names.model for names in models if symbol.file in names.sources]
        generated = [names.model for names in models if names.is_generated(symbol.file)]
        if len(sources + generated) == 1:
            yield Piece(*place, f"libopwest_{(sources + generated)[0]}.a({symbol.file})")
        elif symbol.name.startswith("opwest_") and not any(symbol.name in names.constants for names in models):
            yield Piece(*place, f"{_RUNTIME_ARCHIVE}({symbol.file or 'runtime'})")
        elif not symbol.is_local or not symbol.file:
            for names in models:
                if file := _file_by_name(symbol.name, names, models):
                    yield Piece(*place, f"libopwest_{names.model}.a({file})")


def _file_by_name(symbol: str, names: _Names, models: Sequence[_Names]) -> str | None:
    """Return the kind of file that defines a global symbol of a model."""
    if symbol in names.constants:
        return _CONSTANTS[0]
    if any(symbol.startswith(f"{other.model}_") for other in models if other.model.startswith(f"{names.model}_")):
        return None
    if symbol.startswith(names.c_names.operator("")):
        return "operators"
    is_workspace = symbol.startswith(f"{names.model}_workspace")
    return f"{names.model}_run.c" if symbol.startswith(names.c_names.function("")) and not is_workspace else None


class _Libraries:
    """The input sections of libraries that only models and the runtime refer to, by branches and addresses in data."""

    def __init__(
        self,
        elf: Elf,
        sections: Mapping[str, Section],
        symbols: Sequence[Symbol],
        pieces: Sequence[Piece],
        models: Collection[int],
    ) -> None:
        """Find the references in a linked image; `models` are the ids of the pieces of models and the runtime."""
        self._candidates = [piece for piece in pieces if _LIBRARIES.fullmatch(piece.archive)]
        self._references: dict[int, set[int]] = defaultdict(set)
        if elf.type == ET_REL or not self._candidates:
            self._candidates = []
            return
        wanted = {id(piece) for piece in self._candidates}
        ordered = sorted(pieces, key=lambda piece: piece.address)
        starts = [piece.address for piece in ordered]

        def at(address: int) -> Piece | None:
            piece = ordered[max(bisect_right(starts, address) - 1, 0)]
            return piece if 0 <= address - piece.address < piece.size else None

        try:
            functions = {symbol.address for symbol in symbols if symbol.is_function}
            for source, target in _references(elf, sections, functions):
                to = at(target)
                if to is not None and id(to) in wanted and (origin := at(source)) is not to:
                    self._references[id(to)].add(id(origin))
        except UndecodedError:
            self._candidates = []
        kept = {id(piece) for piece in self._candidates if self._references[id(piece)]}
        while lost := {piece for piece in kept if not self._references[piece] <= kept.union(models)}:
            kept -= lost
        self._candidates = [piece for piece in self._candidates if id(piece) in kept]

    def called_by(self, pieces: Collection[int]) -> list[Piece]:
        """Return those that some pieces refer to, directly or through another library function."""
        reached = set(pieces)
        while more := {id(p) for p in self._candidates if id(p) not in reached and self._references[id(p)] & reached}:
            reached |= more
        return [piece for piece in self._candidates if id(piece) in reached]


def _references(elf: Elf, sections: Mapping[str, Section], functions: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the addresses of branches and of pointers to functions, with their targets. Words can be numbers, too."""
    yield from branches(elf)
    form = _POINTERS[elf.layout.bits]
    width = struct.calcsize(f"={form}")
    thumb = 1 if elf.machine_name == "arm" else 0
    for section in sections.values():
        content = elf.data(section)
        skipped = -section.address % width
        usable = content[skipped : skipped + (len(content) - skipped) // width * width]
        for index, (word,) in enumerate(struct.iter_unpack(f"{elf.layout.order}{form}", usable)):
            if word & thumb == thumb and word - thumb in functions:
                yield section.address + skipped + index * width, word - thumb


def _parts(
    names: _Names,
    owned: Sequence[_Owned],
    inside: Callable[[Piece], Sequence[Symbol]],
    sections: Mapping[str, Section],
    symbols: Sequence[Symbol],
    note: Mapping[str, Any],
) -> Parts:
    flash: dict[tuple[str, str, str], int] = defaultdict(int)
    ram: dict[tuple[str, str, str], int] = defaultdict(int)
    workspaces = dict(_workspaces(names.model, symbols, note))
    counted: set[Symbol] = set()
    for item in owned:
        section = sections[item.piece.output]
        parts = list(_split(item.piece, inside(item.piece)))
        if section.kind != SHT_NOBITS:
            flash[ALIGNMENT, ALIGNMENT, ""] += item.piece.fill
            for name, kind, size in _named(names, item, parts):
                flash[name, kind, item.stem if kind != ALIGNMENT else ""] += size
        if section.flags & SHF_WRITE and not item.piece.name.startswith(_READ_ONLY):
            ram[ALIGNMENT, ALIGNMENT, ""] += item.piece.fill
            counted.update(symbol for symbol, _ in parts if symbol in workspaces)
            for symbol, size in parts:
                if symbol is None:
                    ram[ALIGNMENT, ALIGNMENT, ""] += size
                elif symbol not in workspaces:
                    kind = item.kind if item.kind in (RUNTIME, "library") else "state"
                    ram[names.plain(symbol), kind, item.stem] += size
    for symbol, kind in workspaces.items():
        ram[symbol.name, kind, ""] += symbol.size
        if sections[symbol.section].kind != SHT_NOBITS and symbol not in counted:
            flash[f"initial values of {symbol.name}", "other", ""] += symbol.size
    for symbol in symbols:
        if symbol.name == MAIN_STACK:
            ram["stack of main()", "stack", ""] += symbol.size
    return Parts(_items(flash), _items(ram))


def _items(sizes: Mapping[tuple[str, str, str], int]) -> tuple[data.ImageItem, ...]:
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return tuple(data.ImageItem(name, kind, size, file) for (name, kind, file), size in ordered if size)


def _split(piece: Piece, symbols: Sequence[Symbol]) -> Iterator[tuple[Symbol | None, int]]:
    """Yield the bytes of each symbol in an input section, and the rest."""
    at, rest = piece.address, piece.size
    for symbol in symbols:
        start = max(at, symbol.address)
        size = min(symbol.address + symbol.size, piece.address + piece.size) - start
        if size > 0:
            at, rest = start + size, rest - size
            yield symbol, size
    if rest:
        yield None, rest


def _named(names: _Names, item: _Owned, parts: Sequence[tuple[Symbol | None, int]]) -> Iterator[tuple[str, str, int]]:
    """Yield the bytes of an input section in flash by name and kind."""
    piece = item.piece
    if item.kind == "library":
        functions = [symbol.name for symbol, _ in parts if symbol is not None]
        yield functions[0] if len(functions) == 1 else item.stem, item.kind, piece.size
    elif item.kind == RUNTIME:
        yield item.stem, RUNTIME, piece.size
    elif item.kind == "generated":
        yield item.stem, "other", piece.size
    else:
        for symbol, size in parts:
            if symbol is None and _MERGED.search(piece.name):
                yield f"merged strings and constants of {item.stem}", "table", size
            elif symbol is None:
                yield ALIGNMENT, ALIGNMENT, size
            elif symbol.name in names.constants:
                yield *names.constants[symbol.name], size
            elif (operator := names.operators.get(symbol.name.partition(".")[0])) is not None:
                yield operator, "code", size
            else:
                yield names.plain(symbol), "kernel" if symbol.is_function else "table", size


def _workspaces(model: str, symbols: Sequence[Symbol], note: Mapping[str, Any]) -> Iterator[tuple[Symbol, str]]:
    """Yield the variables of <MODEL>_WORKSPACE_DEFINE(): NAME, and NAME_POOL for each pool, with the kind of each."""
    objects: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        if not symbol.is_function:
            objects[symbol.name].append(symbol)
    stems: dict[str, None] = {}
    for pool in note.get("pools", []):
        suffix = f"_{member_name(pool['name'])}"
        for name, found in objects.items():
            if name.endswith(suffix) and name.removesuffix(suffix) in objects:
                for symbol in found:
                    if symbol.size == pool["size"]:
                        stems[name.removesuffix(suffix)] = None
                        yield symbol, "pool"
    if not note.get("pools") and f"{model}_workspace" in objects:
        stems[f"{model}_workspace"] = None
    for stem in stems:
        for symbol in objects[stem]:
            yield symbol, "workspace"
