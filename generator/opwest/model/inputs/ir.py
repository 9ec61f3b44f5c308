# SPDX-License-Identifier: Apache-2.0
"""LLVM IR in `objects`: read it, compare it with targets and operators, compile it for each target."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from opwest.base.diagnostics import printable
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.model.inputs.context import Context, IrFile
from opwest.model.inputs.targets import make_target
from opwest.model.inputs.written import report_written
from opwest.model.types.builds import Examined, Target
from opwest.model.types.model import Argument, Operator
from opwest.objects.compat import Fault
from opwest.objects.facts import Member, ObjectError, ObjectFile
from opwest.objects.inspect import read_member
from opwest.objects.llvm.api import compile_ir, compile_many, is_available, missing, read_ir, read_many
from opwest.objects.llvm.facts import (
    CompileJob,
    IrFunction,
    IrModule,
    IrParameter,
    LlvmError,
    Optimize,
    contradictions,
)
from opwest.objects.targets import named_targets


@dataclass(frozen=True)
class IrObject:
    """A file of IR compiled for one target."""

    file: IrFile
    target: str
    member: Member
    examined: Examined


def compile_ir_files(
    context: Context, files: list[IrFile], targets: dict[str, Target], named: Iterable[str]
) -> tuple[list[IrObject], list[tuple[IrFile, IrModule]], list[str]]:
    """Return the objects, the modules, and the names of the files with reported errors.

    `named` are the targets of the other entries of `objects`: IR is compiled for them by default.
    """
    if not files:
        return [], [], []
    if not is_available():
        absent = missing()
        for file in files:
            context.examine(file.name, file.entry.get("target"), "LLVM IR").refuse(absent.message)
        context.faults.error(absent.message, files[0].location, expected=absent.expected, hint=absent.hint)
        return [], [], [file.name for file in files]
    modules: list[tuple[IrFile, IrModule]] = []
    failed: list[str] = []
    for file, answer in zip(files, read_many([file.path for file in files], uses=True), strict=True):
        if isinstance(answer, LlvmError):
            examined = context.examine(file.name, file.entry.get("target"), "LLVM IR")
            examined.error(answer.message, file.location, expected=answer.expected, hint=answer.hint)
            failed.append(file.name)
        else:
            modules.append((file, answer))
    work: list[tuple[IrFile, str, Examined]] = []
    jobs: list[CompileJob] = []
    for file, module in modules:
        optimize = _optimize(context, file)
        selected = _targets_of(context, file, named)
        failed += [] if selected else [file.name]
        for name in selected:
            target = targets.get(name)
            examined = context.examine(file.name, name, "LLVM IR")
            if target is None:
                examined.refuse(f"invalid target {name!r}")
                failed.append(file.name)
                continue
            unfit = module_faults(module, target)
            for fault in unfit:
                examined.error(fault.message, file.location, expected=fault.expected, hint=fault.hint)
            failed += [file.name] if unfit else []
            if not unfit and target.llvm is not None:
                work.append((file, name, examined))
                jobs.append(CompileJob(module.content, target.llvm, optimize, file.name))
    objects: list[IrObject] = []
    for (file, name, examined), result in zip(work, compile_many(jobs), strict=True):
        try:
            if isinstance(result, LlvmError):
                raise result
            member = read_member(file.name, result)
            examined.item = member
            objects.append(IrObject(file, name, member, examined))
        except ObjectError as error:
            message = f"for target {name!r}: {error.message}"
            examined.error(message, file.location, expected=error.expected, hint=error.hint)
            failed.append(file.name)
    return objects, modules, failed


def _optimize(context: Context, file: IrFile) -> Optimize:
    """Return what a file is optimised for; report the value that only sources have."""
    given: str = file.entry.get("optimize", "size")
    if given == "application":
        context.faults.error(
            f"'optimize: application' in an entry with LLVM IR {file.name!r}",
            file.entry.value_location("optimize"),
            expected="optimize: size or speed",
            hint="opwest compiles LLVM IR, before the options of the application are known",
        )
    return "speed" if given == "speed" else "size"


def _targets_of(context: Context, file: IrFile, named: Iterable[str]) -> list[str]:
    if "target" in file.entry:
        return [file.entry["target"]]
    selected = list(file.entry.get("targets", named))
    if not selected:
        context.examine(file.name, None, "LLVM IR").error(
            "no target for LLVM IR",
            file.location,
            expected="targets: [...] in this entry",
            hint="`opwest targets` lists the targets",
        )
    return selected


def module_faults(module: IrModule, target: Target) -> list[Fault]:
    """Return why a module cannot be compiled for a target: its content, or a triple of another machine."""
    for present, what in (
        (module.has_constructors, "constructors (code run before main)"),
        (module.thread_local, "thread-local variables"),
        (module.indirect_functions, "indirect functions (resolved at program start)"),
    ):
        if present:
            return [Fault(f"the IR contains {what}", "plain functions and constants")]
    if target.llvm is None:
        return [Fault(f"missing key 'llvm' in target {target.name!r}", "llvm: {triple: ..., cpu: ...} in the target")]
    return contradictions(module, target.llvm)


def matching_targets(module: IrModule, name: str = "") -> list[str]:
    """Return the named targets that match the triple of a module, the nearest first; none without a triple.

    A target with the name of a directory in `name` precedes all others.
    """
    if not module.triple:
        return []
    ranked = []
    for order, (target_name, entry) in enumerate(named_targets().items()):
        target = make_target(target_name, entry).llvm
        if target is None or contradictions(module, target):
            continue
        cpu = f"target-cpu={target.cpu}" not in module.target_attributes
        architecture = target.triple.split("-")[0] != module.triple.split("-")[0]
        folder = target_name not in PurePosixPath(name).parts[:-1]
        ranked.append((folder, cpu, architecture, target.triple != module.triple, order, target_name))
    return [rank[-1] for rank in sorted(ranked)]


def check_signatures(
    context: Context, modules: Iterable[tuple[IrFile, IrModule]], operators: dict[str, Operator]
) -> None:
    """Compare the functions of IR with the operators: count and kinds of parameters, and the result."""
    by_symbol: dict[str, list[Operator]] = {}
    for operator in operators.values():
        by_symbol.setdefault(operator.symbol, []).append(operator)
    for file, module in modules:
        for function in module.functions:
            if function.is_definition:
                for operator in by_symbol.get(function.name, ()):
                    _check_signature(context, file, function, operator)


def _check_signature(context: Context, file: IrFile, function: IrFunction, operator: Operator) -> None:
    if operator.convention.arrays is None:
        declared = [_parameter(argument) for argument in operator.passed]
        names = [argument.name for argument in operator.passed]
        if operator.takes_device:
            declared.append(IrParameter("pointer", 0))
            names.append("its device")
    else:
        declared = [
            IrParameter(*(("pointer", 0) if "*" in type_ else ("integer", 32))) for _, type_ in operator.parameters
        ]
        names = [name for name, _ in operator.parameters]
    head = f"{file.name}: function {function.name!r}"
    if function.convention:
        context.faults.error(
            f"{head} has the calling convention {function.convention!r}",
            operator.location,
            expected="that of C",
            hint="declare the function extern, without an attribute for its convention",
        )
    if len(function.parameters) != len(declared) or function.variadic:
        many = "a variable number of" if function.variadic else str(len(function.parameters))
        context.faults.error(
            f"{head} has {many} parameters, operator {operator.name!r} has {len(declared)}",
            operator.location,
            expected=", ".join(names),
        )
    else:
        for name, seen, parameter in zip(names, function.parameters, declared, strict=True):
            if seen.kind != parameter.kind or (parameter.kind != "pointer" and seen.bits != parameter.bits):
                context.faults.error(
                    f"{head} takes {seen} for {name!r}, operator {operator.name!r} passes {parameter}",
                    operator.location,
                    expected=str(parameter),
                )
    for argument, use in zip(operator.passed, function.uses, strict=False):  # the device follows
        if argument.direction == "in" and not argument.scalar and use.access in ("writes", "stores"):
            report_written(context.faults, file.name, operator, argument, None if use.access == "stores" else "out")
    status = IrParameter("integer", 32)
    result = _value(operator.result) if operator.result else status if operator.returns_status else None
    if function.returns != result:
        seen_words = "void" if function.returns is None else str(function.returns)
        declared_words = "void" if result is None else "a status" if operator.result is None else str(result)
        expected = "a function that returns i32, or void" if operator.result is None else str(result or status)
        context.faults.error(
            f"{head} returns {seen_words}, operator {operator.name!r} returns {declared_words}",
            operator.location,
            expected="returns: void" if function.returns is None else expected,
        )


def _parameter(argument: Argument) -> IrParameter:
    return _value(argument) if argument.scalar else IrParameter("pointer", 0)


def _value(argument: Argument) -> IrParameter:
    dtype = argument.type.dtype
    return IrParameter("float" if dtype.is_float else "integer", dtype.size * 8)


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
    member = read_member(path.name, compile_ir(module.content, target.llvm))
    return InspectedIr(module, target, ObjectFile(path, "elf", (member,)))


def uncompiled_as_text(label: str, inspected: InspectedIr) -> str:
    """Return the facts about a module as aligned text that ends with a newline."""
    defined = sorted(f.name for f in inspected.module.functions if f.is_definition)
    rows = [
        ("triple", inspected.module.triple or "none"),
        ("defines", ", ".join(defined) or "no functions"),
        ("state", ", ".join(inspected.module.state) or "none"),
        ("exportable", f"no: {inspected.faults[0]}"),
    ]
    lines = [f"{label}: LLVM IR", *(f"  {name:<13} {value}" for name, value in rows)]
    return "\n".join(map(printable, lines)) + "\n"


def uncompiled_as_json(label: str, inspected: InspectedIr) -> dict[str, Any]:
    """Return the facts about a module as plain JSON values."""
    return {
        "file": label,
        "kind": "llvm-ir",
        "target": inspected.target.name,
        "triple": inspected.module.triple,
        "exportable": False,
        "reasons": list(inspected.faults),
        "functions": sorted(f.name for f in inspected.module.functions if f.is_definition),
        "state_bytes": None,
        "variables": list(inspected.module.state),
    }
