# SPDX-License-Identifier: Apache-2.0
"""LLVM IR outside of a manifest: it is judged as the object that `check` would link for its nearest target."""

from __future__ import annotations

from pathlib import Path

from opwest.llvm.api import compile_ir, read_ir
from opwest.llvm.facts import CompileOptions, IrModule
from opwest.model.builds import Target
from opwest.model.ir import matching_targets, module_faults
from opwest.model.targets import make_target
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import read_member
from opwest.records import dataclass
from opwest.system.paths import spelled
from opwest.targets import named_targets


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
