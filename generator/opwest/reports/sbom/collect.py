# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a generated project: its files, the inputs of its models, and required libraries."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from opwest import __version__
from opwest.base.diagnostics import Diagnostics, Location, fail
from opwest.model.types.model import Model
from opwest.project.lock import read_lock
from opwest.reports.collect import Inputs
from opwest.reports.files import read_limited, write_own
from opwest.reports.images import LinkedImage, check_models
from opwest.reports.sbom.document import (
    DOCUMENT,
    NOASSERTION,
    Document,
    Elements,
    ExternalDocument,
    File,
    Package,
    Relationship,
    one_line,
    spdx_json,
    tag_value,
)
from opwest.zephyr.version import full_libc, of_externals

_EXPECTED: Final = "build.spdx, as 'west spdx' writes it to build/spdx/"
_MAX_BYTES: Final = 1 << 28
_IMAGE: Final = (
    r"^FileName: \./zephyr[/\\]zephyr\.elf\nSPDXID: (SPDXRef-[A-Za-z0-9.-]+)$(?:\nFileChecksum: SHA1: ([0-9a-f]{40})$)?"
)


class ZephyrBuild(NamedTuple):
    """A document, and the identifier of the linked image in it."""

    document: ExternalDocument
    image: str
    sha1: str | None
    """The checksum of the image in the document."""


def read_build(path: Path) -> ZephyrBuild:
    """Return the document. Raises OpwestError if it is not one of `west spdx` with an image."""
    try:
        content = read_limited(path, _MAX_BYTES)
        text = content.decode("utf-8", errors="replace")
        namespace = re.search(r"^DocumentNamespace: (\S+)$", text, re.MULTILINE)
        if not text.startswith("SPDXVersion: SPDX-2.") or namespace is None:
            raise ValueError("not a tag-value document of SPDX 2")
        image = re.search(_IMAGE, text, re.MULTILINE)
        if image is None:
            raise ValueError("it does not contain zephyr/zephyr.elf")
    except ValueError as error:
        raise fail(f"cannot read the document of the image: {error}", path, expected=_EXPECTED) from None
    digest = hashlib.sha1(content).hexdigest()
    return ZephyrBuild(ExternalDocument("DocumentRef-zephyr-build", namespace[1], digest), image[1], image[2])


def check_images(build: ZephyrBuild, document: Path, images: Sequence[Path], faults: Diagnostics) -> None:
    """Warn of images of another build than the document. native_sim's zephyr.exe is not in any document."""
    for image in images:
        if build.sha1 is not None and image.name == "zephyr.elf":
            digest = hashlib.sha1(image.read_bytes()).hexdigest()
            if digest != build.sha1:
                faults.warning(
                    f"the image is not that of '{document}': its SHA-1 is {digest}",
                    Location(str(image)),
                    expected=build.sha1,
                    hint="build the application, then run 'west spdx' again",
                )


CREATOR: Final = f"Tool: opwest-{__version__}"
RUNTIME: Final = "modules/opwest/"
_MARKS: Final = (b"SPDX-2.", CREATOR.partition("-")[0].encode())
"""What every bill of materials of opwest contains near its start."""
_UNLINKED: Final = (".opwest/", "tests/")
"""Directories of a project without files of its image."""


class _Bill:
    """The elements of a bill of materials while they are collected.

    `files` are the files of a project relative to `project`, `models` the models of its manifests and their variants.
    Raises OpwestError for unreadable files.
    """

    def __init__(self, project: Path, files: Sequence[str], models: Sequence[Model]) -> None:
        self.project, self.models = project, models
        self.elements = Elements()
        self.packages: list[Package] = []
        self.images: list[File] = []
        self.relationships: list[Relationship] = []
        self.of_models: dict[str, str] = {}
        """The identifiers of the models' packages."""
        bases = [model for model in models if model.variant is None]
        roots = tuple(f"models/{model.name}/" for model in bases)
        linked = [name for name in files if not name.startswith(_UNLINKED)]
        application = self._application([n for n in linked if not n.startswith((*roots, RUNTIME))])
        runtime = self._runtime([name for name in linked if name.startswith(RUNTIME)])
        for model, root in zip(bases, roots, strict=True):
            own = [name for name in linked if name.startswith(root) and not name.startswith(f"{root}tests/")]
            package = self._model(model, own)
            self.of_models[model.name] = package
            self._relate(package, "STATIC_LINK", runtime)
            if application is not None:
                self._relate(application, "STATIC_LINK", package)
        described = [application] if application is not None else list(self.of_models.values())
        self.relationships[:0] = [Relationship(DOCUMENT, "DESCRIBES", package) for package in described]
        self._libraries(bases)

    def add_image(self, path: Path, models: Iterable[str]) -> None:
        """Add a linked image with the names of the models in it."""
        image = self.elements.file(path, path.name, comment="a linked image")
        self.images.append(image)
        for name in models:
            self._relate(image.id, "STATIC_LINK", self.of_models[name])

    def add_build(self, build: ZephyrBuild) -> None:
        """Add the relationship of an image in Zephyr's document to all models."""
        for package in self.of_models.values():
            self._relate(f"{build.document.id}:{build.image}", "STATIC_LINK", package)

    def document(self, created: str, externals: tuple[ExternalDocument, ...]) -> Document:
        """Return the document, created at a time (ISO 8601, UTC).

        Its namespace contains a hash of its content, so that equal inputs give equal documents.
        """
        name = self.project.resolve().name or "application"
        own = tuple(sorted(self.elements.own_licences))
        parts = (tuple(self.packages), tuple(self.images), tuple(self.relationships), externals, own)
        draft = Document(name, "", created, CREATOR, *parts)
        digest = hashlib.sha256(spdx_json(draft).encode()).hexdigest()[:32]
        return replace(draft, namespace=f"https://spdx.org/spdxdocs/opwest-{digest}")

    def _application(self, names: Sequence[str]) -> str | None:
        if not names:
            return None
        files = tuple(self.elements.file(self.project / name, name) for name in names)
        comment = "the files of the application that opwest generated; the user may have edited them or added others"
        name = self.project.resolve().name or "application"
        return self._add(Package(name, "APPLICATION", files=files, comment=comment))

    def _runtime(self, names: Sequence[str]) -> str:
        files = tuple(self.elements.file(self.project / name, name) for name in names)
        comment = "the runtime in the application" if files else "the runtime of the Zephyr module opwest"
        purl = f"pkg:pypi/opwest@{__version__}"
        package = Package("opwest-runtime", "LIBRARY", __version__, "Apache-2.0", files, purl=purl, comment=comment)
        return self._add(package)

    def _model(self, model: Model, names: Sequence[str]) -> str:
        """Add the package of a model with its inputs; return its identifier."""
        licence = model.licence or NOASSERTION
        self.elements.note(licence)
        origins = dict(self._origins(model))
        folder = Path(model.manifest).parent
        inputs = {
            name: self.elements.file(folder / name, f"inputs/{model.name}/{name}", model.licence)
            for name in sorted({name for variant in self._with_variants(model) for name, _ in variant.inputs_read})
        }
        files = {}
        for name in names:
            origin = origins.get(name.removeprefix(f"models/{model.name}/"))
            comment = None if origin is None else f"for the target {origin[0]}, from {origin[1]}"
            files[self.elements.file(self.project / name, name, model.licence, comment)] = origin
        description = one_line(model.description or "") or None
        package = self._add(Package(model.name, "LIBRARY", licence=licence, files=tuple(files), comment=description))
        comment = "the manifest and the files that it names"
        source = self._add(
            Package(f"{model.name}-inputs", "SOURCE", licence=licence, files=tuple(inputs.values()), comment=comment)
        )
        self._relate(package, "GENERATED_FROM", source)
        for file, origin in files.items():
            self._relate_input(file, origin, inputs)
            if origin is not None:
                self._relate(package, "STATIC_LINK", file.id, f"for the target {origin[0]}")
        self._imported(folder, model, source)
        return package

    def _relate_input(self, file: File, origin: tuple[str, str] | None, inputs: Mapping[str, File]) -> None:
        """Relate a file to the input with the same content, or to the input that it is a part of."""
        same = next((given for given in inputs.values() if given.sha256 == file.sha256), None)
        if same is not None:
            self._relate(file.id, "COPY_OF", same.id)
        elif origin is not None:
            given = inputs.get(origin[1]) or inputs.get(origin[1].rpartition("(")[0])
            if given is not None:
                self._relate(file.id, "GENERATED_FROM", given.id)

    def _imported(self, folder: Path, model: Model, source: str) -> None:
        """Add the model file that the inputs were imported from, if there is a valid record of it."""
        try:
            record = json.loads((folder / "import.json").read_bytes())
            name, digest = PurePosixPath(record["model"]).name, record["sha256"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            return
        licence, comment = model.licence or NOASSERTION, "the model file that opwest imported"
        package = Package(name, "FILE", licence=licence, file_name=name, sha256=digest, comment=comment)
        self._relate(source, "GENERATED_FROM", self._add(package))

    def _origins(self, model: Model) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield the linked objects of a model and its variants: their path, target and origin."""
        for variant in self._with_variants(model):
            root = "" if variant.variant is None else f"variants/{variant.variant.name}/"
            for build in variant.builds:
                target = "any" if build.target is None else build.target.name
                for linked in build.objects:
                    yield f"{root}objects/{target}/{linked.path}", (target, linked.origin)

    def _with_variants(self, model: Model) -> list[Model]:
        return [other for other in self.models if other.name == model.name]

    def _libraries(self, bases: Sequence[Model]) -> None:
        """Add what the operators require of the build: modules, providers of symbols, the compiler's library."""
        packages: dict[str, str] = {}
        for model in bases:
            variants = self._with_variants(model)
            needed = {**of_externals(variants), **full_libc(variants)}
            comments = {name: f"Zephyr module, for {user}" for name, user in needed.items()}
            known = {e.provider for e in model.externals if of_externals([replace(model, externals=(e,))])}
            for external in model.externals:
                if external.provider not in known:
                    comments[external.provider] = "provider of external symbols"
            functions = sorted({name for variant in variants for build in variant.builds for name in build.soft_float})
            if functions:
                comments["compiler-runtime"] = f"the compiler's library (libgcc or compiler-rt): {', '.join(functions)}"
            for name, comment in comments.items():
                if name not in packages:
                    packages[name] = self._add(Package(name, "LIBRARY", comment=comment))
                self._relate(self.of_models[model.name], "STATIC_LINK", packages[name])

    def _add(self, package: Package) -> str:
        """Add a package with a new identifier; return the identifier."""
        identifier = self.elements.id("Package", package.name)
        self.packages.append(replace(package, id=identifier))
        return identifier

    def _relate(self, element: str, kind: str, related: str, comment: str | None = None) -> None:
        self.relationships.append(Relationship(element, kind, related, comment))


def make_sbom(inputs: Inputs, images: Sequence[LinkedImage], build: Path | None, faults: Diagnostics) -> Document:
    """Return the bill of materials of a project. Raises OpwestError for manifests, and for an outdated project."""
    project = inputs.project
    lock = None if project is None else read_lock(project)
    if project is None or lock is None:
        raise fail("--sbom requires a generated application", hint="opwest generate MANIFEST -o DIR")
    if inputs.stale:
        hint = f"run 'opwest update {project}'"
        raise fail("cannot write the bill of materials: the project is out of date", project, hint=hint)
    files = [*lock.files, *(name for name in lock.user if (project / name).is_file())]
    models = [examination.model for examination in inputs.examinations]
    names = list(dict.fromkeys(model.name for model in models))
    check_models(images, names, faults)
    faults.raise_if_errors()
    zephyr = None if build is None else read_build(build)
    if build is not None and zephyr is not None:
        check_images(zephyr, build, [image.path for image in images], faults)
    created = creation_time()
    bill = _Bill(project, sorted(files), models)
    for image in images:
        bill.add_image(image.path, [name for name in names if name in image.notes])
    if zephyr is None:
        return bill.document(created, ())
    bill.add_build(zephyr)
    return bill.document(created, (zephyr.document,))


def creation_time() -> str:
    """Return the time SOURCE_DATE_EPOCH; without it the start of 1970, so that equal inputs give equal documents.

    Raises OpwestError for another value than seconds. See https://reproducible-builds.org/specs/source-date-epoch/.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    try:
        if not given.isascii() or not given.isdigit():
            raise ValueError
        return datetime.fromtimestamp(int(given), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        expected = "seconds since 1970, such as 1767225600"
        raise fail(f"SOURCE_DATE_EPOCH is {given!r}", expected=expected) from None


def render_sbom(document: Document, path: Path) -> str:
    """Return the text of a document: JSON for the suffix .json, otherwise tag-value."""
    return spdx_json(document) if path.suffix.lower() == ".json" else tag_value(document)


def write_sbom(path: Path, content: str) -> None:
    """Write a bill of materials; replace an earlier one. Raises OpwestError for any other file."""
    write_own(path, content, "bill of materials", "bills of materials of 'opwest report'", _MARKS)
