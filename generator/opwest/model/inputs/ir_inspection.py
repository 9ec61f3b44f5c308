# SPDX-License-Identifier: Apache-2.0
"""LLVM IR outside of a manifest: it is judged as the object that `check` would link for its nearest target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opwest.base.diagnostics import printable
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.model.inputs.ir import matching_targets, module_faults
from opwest.model.inputs.targets import make_target
from opwest.model.types.builds import Target
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import read_member
from opwest.objects.llvm.api import compile_ir, read_ir
from opwest.objects.llvm.facts import CompileOptions, IrModule
from opwest.objects.targets import named_targets


@dataclass(frozen=True, slots=True)
class InspectedIr:
    """A module, the target that it was judged for, and its object for the target."""

    module: IrModule
    target: Target
    item: ObjectFile | None
    """None if the module cannot be compiled for the target."""
    faults: tuple[str, ...] = ()
    """The reasons why it cannot be compiled."""


def inspect_ir(path: Path, target: Target | None = None) -> InspectedIr:
    """Compile a module for `target`, by default for the named target nearest to its triple.

    A module without a triple, or with one that no named target matches, is compared with the first named target.
    Raises LlvmError if LLVM cannot read or compile the module, ObjectError if the object is unusable.
    """
    module = read_ir(path)
    if target is None:
        name = next(iter(matching_targets(module, spelled(path))), next(iter(named_targets())))
        target = make_target(name, named_targets()[name])
    faults = tuple(fault.message for fault in module_faults(module, target))
    if faults or target.llvm is None:
        return InspectedIr(module, target, None, faults)
    member = read_member(path.name, compile_ir(module.content, target.llvm, CompileOptions(optimize="size")))
    return InspectedIr(module, target, ObjectFile(path, "elf", (member,)))


def uncompiled_as_text(label: str, found: InspectedIr) -> str:
    """Return the facts about a module as aligned text that ends with a newline."""
    defined = sorted(f.name for f in found.module.functions if f.is_definition)
    rows = [
        ("triple", found.module.triple or "none"),
        ("defines", ", ".join(defined) or "no functions"),
        ("state", ", ".join(found.module.state) or "none"),
        ("exportable", f"no: {found.faults[0]}"),
    ]
    lines = [f"{label}: LLVM IR", *(f"  {name:<13} {value}" for name, value in rows)]
    return "\n".join(map(printable, lines)) + "\n"


def uncompiled_as_json(label: str, found: InspectedIr) -> dict[str, Any]:
    """Return the facts about a module as plain JSON values."""
    return {
        "file": label,
        "kind": "llvm-ir",
        "target": found.target.name,
        "triple": found.module.triple,
        "exportable": False,
        "reasons": list(found.faults),
        "functions": sorted(f.name for f in found.module.functions if f.is_definition),
        "state": None,
        "variables": list(found.module.state),
    }
