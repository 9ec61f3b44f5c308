# SPDX-License-Identifier: Apache-2.0
"""`opwest.generate`: a Zephyr application from manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from opwest import pipeline
from opwest.api.calls import AnyPath, CallResult, Paths, Words, api_function, check_choices, path_of, paths_of, words_of
from opwest.api.runtime import Runtime, RuntimeOption, choose_runtime
from opwest.api.zephyr import warn_of_base, zephyr_options
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.project.request import Request


@dataclass(frozen=True)
class GenerateResult(CallResult):
    """The files of an application. Paths are relative to its directory."""

    directory: Path
    written: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    """The number of generated files that have not changed."""
    kept: tuple[str, ...]
    """The files of the user that a generated file did not replace."""
    runtime: Literal["vendored", "module"]
    runtime_module: Path | None
    """The Zephyr module of the workspace; None for a copy, and if no workspace lists the module."""


@api_function
def generate(
    faults: Diagnostics,
    manifests: Paths,
    *,
    output: AnyPath,
    runtime: RuntimeOption = "auto",
    metadata: Literal["c", "llvm"] = "c",
    target: Words = (),
    board: Words = (),
    zephyr_version: str | None = None,
    zephyr_base: AnyPath | None = None,
    template: AnyPath | None = None,
    layout: Literal["application", "model"] = "application",
    inputs: AnyPath | None = None,
    depfile: AnyPath | None = None,
) -> GenerateResult:
    """Generate a complete Zephyr application in `output`, which is new, empty, or generated before.

    A repeated call replaces the generated files and keeps yours.
    """
    check_choices(
        faults,
        ("runtime", runtime, ("auto", "vendored", "module")),
        ("metadata", metadata, ("c", "llvm")),
        ("layout", layout, ("application", "model")),
    )
    if target and metadata != "llvm":
        raise fail("--target requires --metadata=llvm")
    base, folder = path_of(zephyr_base), Path(output)
    warn_of_base(base, faults)
    if layout == "model" and runtime == "module":  # a build, which has the module
        chosen = Runtime(vendored=False)
    else:
        chosen = choose_runtime(runtime, folder, base, faults)
    request = Request(
        paths_of(manifests),
        folder,
        vendored=chosen.vendored,
        metadata=metadata,
        targets=tuple(dict.fromkeys(words_of(target))),
        layout=layout,
        template=path_of(template),
        zephyr=zephyr_options(words_of(board), zephyr_version, base, folder),
        inputs=path_of(inputs),
        depfile=path_of(depfile),
    )
    done = pipeline.run(request, faults).written
    return GenerateResult(
        directory=folder,
        written=done.written,
        removed=done.removed,
        unchanged=done.unchanged,
        kept=done.kept,
        runtime="vendored" if chosen.vendored else "module",
        runtime_module=None if chosen.module is None else chosen.module.path,
    )
