# SPDX-License-Identifier: Apache-2.0
"""The compilation and the link of an image."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.base.diagnostics import Location
from opwest.base.resources import resource
from opwest.bundles.toolchain import Libraries, Library, Toolchain, linked_archives
from opwest.model.types.builds import ANY_TARGET, TargetBuild
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model
from opwest.objects.elf import SHF_ALLOC, SHT_NOBITS, SHT_REL, SHT_RELA, UNDEFINED, Elf, RawSymbol, damaged
from opwest.objects.facts import Member
from opwest.objects.inspect import read_member
from opwest.objects.relocations import Entry, relocation_entries
from opwest.render.model_files import rename_header

IMAGE = ".image"
"""The section of the linker script with the whole image."""
DESCRIPTOR = "opwest_bundle"
_FACTS = ".opwest_bundle.facts"
_PT_LOAD = 1


class Facts(NamedTuple):
    """The numbers of the array opwest_bundle_facts, in its order."""

    machine: int
    float_abi: int
    pointer_size: int
    big_endian: int
    metadata_version: int
    host_version: int
    slot_size: int
    workspace_size: int
    workspace_align: int
    short_enums: int


def facts_of(elf: Elf) -> Facts:
    """Return the numbers of an object or image. Raises ObjectError without them."""
    section = elf.find(_FACTS)
    data = elf.data(section) if section else b""
    size = 4 * len(Facts._fields)
    if len(data) < size:
        raise damaged("the image has no facts")
    return Facts(*struct.unpack(f"{elf.layout.order}{len(Facts._fields)}I", data[:size]))


def named_symbols(elf: Elf) -> list[tuple[str, RawSymbol]]:
    """Return all symbols with their names."""
    names = elf.symbol_names()
    return [(names.name(raw.name), raw) for raw in elf.symbols()]


def loaded_relocations(elf: Elf) -> Iterator[Entry]:
    """Yield the relocations of sections in memory. Raises ObjectError for a wrong entry size."""
    for index, section in enumerate(elf.sections):
        is_of_section = section.kind in (SHT_REL, SHT_RELA) and 0 < section.info < len(elf.sections)
        if is_of_section and elf.sections[section.info].flags & SHF_ALLOC:
            yield from relocation_entries(elf, index)


def foreign_sections(elf: Elf) -> list[tuple[str, int]]:
    """Return the names and sizes of sections in memory besides the image."""
    loaded = [section for section in elf.sections if section.flags & SHF_ALLOC and section.size]
    return [(section.name, section.size) for section in loaded if section.name != IMAGE]


def image_of(elf: Elf, address: int) -> bytes:
    """Return the bytes of the image, which must be linked at an address. Raises ObjectError."""
    section = elf.find(IMAGE)
    if section is None or section.kind == SHT_NOBITS or not section.size:
        raise damaged("the linker wrote no image")
    if _address_of(elf, section.offset) != address:
        raise damaged("the linker placed the image at another address")
    return elf.data(section)


def _address_of(elf: Elf, offset: int) -> int:
    """Return the address of a byte of the file, by the program headers."""
    wide = elf.layout.bits == 64
    fields = elf.layout.header.unpack_from(elf.content, 16)
    begin, size, count = fields[4], fields[8], fields[9]
    program = struct.Struct(elf.layout.order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    if size != program.size or begin + count * size > len(elf.content):
        raise damaged("invalid program headers")
    for index in range(count):
        row = program.unpack_from(elf.content, begin + index * size)
        kind, at, address, length = (row[0], row[2], row[3], row[5]) if wide else (row[0], row[1], row[2], row[4])
        if kind == _PT_LOAD and at <= offset < at + length:
            return int(address + offset - at)
    raise damaged("the image is in no segment")


def descriptor_of(elf: Elf, address: int) -> int:
    """Return the offset of the descriptor in the image. Raises ObjectError without one."""
    for name, raw in named_symbols(elf):
        if name == DESCRIPTOR and raw.section != UNDEFINED:
            return raw.value - address
    raise damaged(f"the image has no symbol {DESCRIPTOR!r}")


_COMMON = (
    "-ffunction-sections", "-fdata-sections", "-fno-common", "-fno-strict-aliasing", "-fno-lto", "-fno-pic",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-w", "-DOPWEST_BUNDLE_IMAGE",
)  # fmt: skip
_LINK = ("-nostdlib", "-static", "-fno-lto", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-S")
_ERRORS = "math_errors.c"
_DISCARDED = """SECTIONS
{
	/DISCARD/ : { *(.ARM.exidx .ARM.exidx.* .ARM.extab .ARM.extab.* .eh_frame .eh_frame.* .comment .note .note.*) }
}
"""


class CompileUnit(NamedTuple):
    """An object of the link; `origin` is the file of the manifest for one with operators."""

    path: Path
    member: Member
    origin: str | None = None
    location: Location | None = None


class ImageBuilder:
    """Compiles and links a model, whose files are in `folder`; objects go to `work`."""

    def __init__(self, chain: Toolchain, model: Model, build: TargetBuild, folder: Path, work: Path) -> None:
        self.chain = chain
        self.model = model
        self.build = build
        self.folder = folder
        self.work = work
        self.sources = Path(model.manifest).parent
        self.runtime = resource("zephyr_module")
        self.target = build.target.name if build.target else ANY_TARGET
        self.units: list[CompileUnit] = []

    def compile(self, *, steps: bool) -> None:
        """Compile all sources, and add the objects of the manifest; `steps`: run reports the end of each step."""
        name = self.model.name
        first = ["-include", "opwest/bundle_image.h", *(["-DOPWEST_BUNDLE_STEPS"] if steps else [])]
        parts = [f"src/{name}_run.c", f"src/{name}_metadata.c", f"src/{name}_bridges.c", f"bundle/{name}_bundle.c"]
        for part in parts:
            named = [f'-DOPWEST_TARGET="{self.target}"'] if part.endswith("_metadata.c") else []
            if (self.folder / part).is_file():
                self._add(self.folder / part, [*first, *named])
        if any(tensor.agents - {"cpu"} and not tensor.placed for tensor in (*self.model.inputs, *self.model.outputs)):
            self._add(self.folder / f"src/{name}_devices.c", ["-U__ZEPHYR__", *first])
        for source, data in (("constants.S", "constants"), ("bundle/vectors.S", "bundle/vectors")):
            if (self.folder / source).is_file():
                self._add(self.folder / source, [f"-I{self.folder / data}"])
        self._add_runtime(first)
        self._add_operators()

    def _add_runtime(self, first: Sequence[str]) -> None:
        for source in ("status.c", *(["state.c"] if self.model.states else [])):
            self._add(self.runtime / "src" / source, ["-DOPWEST_BUNDLE_RUNTIME", *first])
        image = self.runtime / "bundle" / "image"
        for source in (_ERRORS, *([] if self.chain.has_c_library else ["memory.c"])):
            self._add(image / source, [])
        if self.model.devices:
            for path in sorted((image / "drivers").glob("*.c")):
                self._add(path, [])

    def _add_operators(self) -> None:
        for source in self.build.sources:
            if not source.compiled:
                continue
            path = self.folder / source.unit if source.is_wrapped else self.sources / source.path
            tvm = ["-idirafter", str(self.runtime / "include_tvm")]
            own = [f"-I{self.sources / folder}" for folder in source.options.include_dirs]
            macros = [f"-D{define}" for define in source.options.defines]
            flags = [*self.chain.optimisation(source.options.optimize), *source.options.flags]
            rename = ["-include", str(self.folder / rename_header(self.build)), f"-iquote{self.sources}"]
            at = Location(self.model.manifest, source.line, source.column)
            self._add(path, [*rename, *macros, *flags, *tvm], str(source.path), at, own)
        for item in self.build.objects:
            path = self.folder / "objects" / self.target / item.path
            member = read_member(str(item.path), item.content)
            self.units.append(CompileUnit(path, member, str(item.path), self._location_of(member)))

    def _location_of(self, member: Member) -> Location:
        """Return the place of the first operator of an object; that of the model without one."""
        names = CNames(self.model.name)
        for operator in self.model.operators:
            if names.operator(operator.symbol) in member.defined:
                return operator.location
        return self.model.location

    def _add(
        self,
        source: Path,
        extra: Sequence[str],
        origin: str | None = None,
        at: Location | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """Compile a source; `before` are directories of headers in front of those of the build."""
        target = self.work / f"{len(self.units)}_{source.stem[:60]}.o"
        headers = [*before, f"-I{self.runtime / 'include'}", f"-I{self.folder / 'include'}"]
        maps = [f"-ffile-prefix-map={path}=." for path in (self.folder, self.runtime, self.sources.resolve())]
        words = [*self.chain.machine, *headers, *self.chain.options, *_COMMON, *maps, *extra]
        self.chain.run([*words, "-c", str(source), "-o", str(target)])
        self.units.append(CompileUnit(target, read_member(target.name, target.read_bytes()), origin, at))

    def libraries(self) -> Libraries:
        """Return the libraries that the linker searches."""
        paths = linked_archives(self.chain, self.chain.link_libraries, self.work) or []
        return Libraries([Library(path) for path in paths])

    def link_relocatable(self, replaced: dict[str, str]) -> Path:
        """Link what the descriptor needs, with members of libraries, into one relocatable object."""
        script, output = self.work / "discarded.ld", self.work / "whole.o"
        script.write_text(_DISCARDED, encoding="utf-8")
        roots = ["-Wl,-e,opwest_bundle", "-Wl,-u,opwest_bundle_facts"]
        aliases = [f"-Wl,--defsym={name}={function}" for name, function in replaced.items()]
        self.chain.run(
            [
                *(*self.chain.machine, *_LINK, "-r", "-T", str(script), *roots, *aliases),
                *(str(unit.path) for unit in self.units),
                *("-Wl,--start-group", *self.chain.link_libraries, "-Wl,--end-group", "-o", str(output)),
            ]
        )
        return output

    def link_image(self, whole: Path, script: Path) -> Path:
        """Link the relocatable object with the linker script of the image."""
        output = self.work / "image.elf"
        self.chain.run([*self.chain.machine, *_LINK, "-T", str(script), str(whole), "-o", str(output)])
        return output
