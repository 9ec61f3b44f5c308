# SPDX-License-Identifier: Apache-2.0
"""The compilation and the link of an image."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.bundles.libraries import Libraries, Library
from opwest.bundles.toolchain import Toolchain
from opwest.diagnostics import Location
from opwest.model.builds import ANY_TARGET, TargetBuild
from opwest.model.c_names import CNames
from opwest.model.model import Model
from opwest.objects.facts import Member
from opwest.objects.inspect import read_member
from opwest.render.model_files import rename_header
from opwest.resources import resource

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


class Unit(NamedTuple):
    """An object of the link; `origin` is the file of the manifest for one with operators."""

    path: Path
    member: Member
    origin: str | None = None
    location: Location | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of the object."""
        return hashlib.sha256(self.member.content).hexdigest()


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
        self.units: list[Unit] = []

    def compile(self, *, steps: bool) -> None:
        """Compile all sources, and add the objects of the manifest; `steps`: run reports the end of each step."""
        name = self.model.name
        target = self.build.target.name if self.build.target else ANY_TARGET
        first = ["-include", "opwest/bundle_image.h", *(["-DOPWEST_BUNDLE_STEPS"] if steps else [])]
        parts = [f"src/{name}_run.c", f"src/{name}_metadata.c", f"src/{name}_bridges.c", f"bundle/{name}_bundle.c"]
        for part in parts:
            named = [f'-DOPWEST_TARGET="{target}"'] if part.endswith("_metadata.c") else []
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
        own = ["status.c", *(["state.c"] if self.model.states else [])]
        for source in own:
            self._add(self.runtime / "src" / source, ["-DOPWEST_BUNDLE_RUNTIME", *first])
        image = self.runtime / "bundle" / "image"
        for source in (_ERRORS, *(["memory.c"] if self._libraries_missing() else [])):
            self._add(image / source, [])
        if self.model.devices:
            for path in sorted((image / "drivers").glob("*.c")):
                self._add(path, [])

    def _libraries_missing(self) -> bool:
        return not self.chain.has_c_library

    def _add_operators(self) -> None:
        for source in self.build.sources:
            if not source.compiled:
                continue
            path = self.folder / source.unit if source.is_wrapped else self.sources / source.path
            tvm = ["-idirafter", str(self.runtime / "include_tvm")]
            own = [f"-I{self.sources / folder}" for folder in source.options.include_dirs]
            macros = [f"-D{define}" for define in source.options.defines]
            rename = ["-include", str(self.folder / rename_header(self.build)), f"-iquote{self.sources}"]
            at = Location(self.model.manifest, source.line, source.column)
            self._add(path, [*rename, *macros, *source.options.flags, *tvm], str(source.path), at, own)
        target = self.build.target.name if self.build.target else ANY_TARGET
        for item in self.build.objects:
            path = self.folder / "objects" / target / item.path
            member = read_member(str(item.path), item.content)
            self.units.append(Unit(path, member, str(item.path), self._location_of(member)))

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
        self.units.append(Unit(target, read_member(target.name, target.read_bytes()), origin, at))

    def libraries(self) -> Libraries:
        """Return the libraries that the linker searches."""
        return Libraries([Library(path) for path in self.chain.archives(self.work)])

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
