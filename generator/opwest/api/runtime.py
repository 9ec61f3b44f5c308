# SPDX-License-Identifier: Apache-2.0
"""Where an application gets the runtime from: a copy, or the Zephyr module of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.project.writer import read_record
from opwest.zephyr.runtime_module import RuntimeModule, find_runtime_module, workspace_of

RuntimeOption = Literal["auto", "vendored", "module"]


@dataclass(frozen=True)
class Runtime:
    """The runtime of an application."""

    vendored: bool
    module: RuntimeModule | None = None
    """The module of the workspace; None for a copy, and if no workspace lists it."""


def choose_runtime(option: RuntimeOption, output: Path, zephyr_base: Path | None, faults: Diagnostics) -> Runtime:
    """Return the requested runtime; by default that of an existing application, else the workspace's module or a copy.

    The module of the workspace is used if it has the version of this generator.
    """
    recorded = read_record(output) if option == "auto" and output.is_dir() else None
    if recorded is not None:
        option = "module" if recorded.get("runtime") == "module" else "vendored"
    if option == "vendored":
        return Runtime(vendored=True)
    workspace = workspace_of(output, zephyr_base)
    module = find_runtime_module(workspace)
    if option == "module":
        check_module(workspace, module, output, faults)
        return Runtime(vendored=False, module=module)
    if module is not None and not module.is_current:
        _warn_of_version(module, "the runtime is copied", faults, hint="update the module, then generate again")
    current = module is not None and module.is_current
    return Runtime(vendored=not current, module=module if current else None)


def check_recorded(application: Path, zephyr_base: Path | None, faults: Diagnostics) -> None:
    """Report that the workspace lacks the module that an application uses, or has another version of it."""
    workspace = workspace_of(application, zephyr_base)
    check_module(workspace, find_runtime_module(workspace), application, faults)


def check_module(workspace: Path | None, module: RuntimeModule | None, application: Path, faults: Diagnostics) -> None:
    """Report a missing module of a workspace, or one of another version."""
    again = f"opwest generate MANIFEST -o {quoted(str(application))} --runtime=vendored"
    if module is None and workspace is not None:
        faults.warning(
            "the application needs the Zephyr module opwest, which the west workspace does not list",
            Location(str(workspace)),
            hint=f"add the project opwest to your west.yml and run `west update`, or copy the runtime: {again}",
        )
    elif module is not None and not module.is_current:
        _warn_of_version(module, "the application needs this version", faults, hint=f"`west update`, or {again}")


def _warn_of_version(module: RuntimeModule, what: str, faults: Diagnostics, *, hint: str) -> None:
    faults.warning(
        f"the module opwest of the workspace has another version ({module.version}) than this opwest: {what}",
        Location(str(module.path)),
        hint=hint,
    )
