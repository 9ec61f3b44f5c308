# SPDX-License-Identifier: Apache-2.0
"""The request to the pipeline, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.files import ProjectFile
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import Examined
from opwest.model.types.model import MemoryPlanner, Model
from opwest.plan.memory import MemoryPlan
from opwest.project.writer import WriteResult
from opwest.zephyr.version import TwisterFiles
from opwest.zephyr.workspace import ZephyrOptions

Metadata = Literal["c", "llvm"]
"""The form of run, metadata and registry: C sources, or one object per target."""

Layout = Literal["application", "model"]
"""The output: a whole application, or only the models, for the build of an existing application."""

Stage = Literal["plan", "render", "write"]
"""The last stage of the pipeline."""


@dataclass(frozen=True, slots=True)
class Request:
    """One run of the pipeline."""

    manifests: tuple[Path, ...]
    output: Path | None = None
    """The directory to write; None if the pipeline ends before the stage `write`."""
    vendored: bool = True
    """Whether to copy the runtime into the application."""
    metadata: Metadata = "c"
    targets: tuple[str, ...] = ()
    """For metadata as objects: the targets of models that have only C sources; empty: those of their boards."""
    layout: Layout = "application"
    template: Path | None = None
    """A directory of the user's own templates."""
    zephyr: ZephyrOptions = field(default_factory=ZephyrOptions)
    twister: TwisterFiles | None = None
    """The names of twister's files; None: those of an existing project, else those that the version of Zephyr wants."""
    planner: MemoryPlanner | None = None
    """The memory planner to use in place of that of the manifests."""
    inputs: Path | None = None
    """A file for the absolute paths of all files read, one per line, written even after errors."""
    depfile: Path | None = None
    """A file for the same paths as dependencies of a target, for make and ninja."""
    texts: Mapping[Path, bytes] = field(default_factory=dict)
    """The contents to use in place of those of manifests."""

    @property
    def folder(self) -> Path:
        """The directory to write. Raises ValueError if there is none."""
        if self.output is None:
            raise ValueError("the request names no output")
        return self.output


class Examination(NamedTuple):
    """The contents of one manifest, or of one variant; valid only if no error was reported."""

    model: Model
    plan: MemoryPlan
    objects: tuple[Examined, ...]
    files: tuple[Path, ...]
    """The files read, except for the manifest."""


def of_variant(examinations: Sequence[Examination], name: str | None, faults: Diagnostics) -> list[Examination]:
    """Return the base of each manifest, or its variant with a name.

    Raises OpwestError if no manifest has the variant.
    """
    bases = [examination for examination in examinations if examination.model.variant is None]
    if name is None:
        return bases
    variants = [(item.model.variant.name, item) for item in examinations if item.model.variant is not None]
    named = {item.model.name: item for variant, item in variants if variant == name}
    if not named:
        faults.error(
            f"--variant: unknown variant {name!r}",
            hint=nearest(name, [variant for variant, _ in variants]) or "no manifest has 'variants'",
        )
        faults.raise_if_errors()
    return [named.get(base.model.name, base) for base in bases]


class Project(NamedTuple):
    """The output of the pipeline up to its last stage."""

    examinations: list[Examination]
    """One for each loaded manifest, followed by one for each of its variants."""
    files: Sequence[ProjectFile] = ()
    record: Mapping[str, Any] = MappingProxyType({})
    """The record of the project for later commands."""
    written: WriteResult = WriteResult((), 0, (), ())
