# SPDX-License-Identifier: Apache-2.0
"""LLVM IR in `objects`: read it, compare it with targets and operators, compile it for each target."""

from __future__ import annotations

from collections.abc import Iterable

from opwest.llvm.api import compile_many, contradictions, is_available, missing, read_many
from opwest.llvm.facts import CompileJob, CompileOptions, IrFunction, IrModule, IrParameter, LlvmError
from opwest.model.context import Context
from opwest.model.examined import Examined
from opwest.model.ir_files import IrFile
from opwest.model.model import Argument, Operator, Target
from opwest.objects.facts import Member, ObjectError
from opwest.objects.inspect import read_member
from opwest.records import dataclass


@dataclass(frozen=True)
class IrObject:
    """A file of IR compiled for one target."""

    file: IrFile
    target: str
    member: Member
    examined: Examined


def compile_ir_files(
    context: Context, files: list[IrFile], targets: dict[str, Target], named: Iterable[str]
) -> tuple[list[IrObject], list[tuple[IrFile, IrModule]], bool]:
    """Return the objects, the modules, and whether an error was reported.

    `named` are the targets of the other entries of `objects`: IR is compiled for them by default.
    """
    if not files:
        return [], [], False
    if not is_available():
        fault = missing()
        for file in files:
            context.examine(file.name, file.entry.get("target"), "LLVM IR").refuse(fault.message)
        context.faults.error(fault.message, files[0].location, expected=fault.expected, hint=fault.hint)
        return [], [], True
    modules: list[tuple[IrFile, IrModule]] = []
    failed = False
    for file, answer in zip(files, read_many([file.path for file in files]), strict=True):
        if isinstance(answer, LlvmError):
            examined = context.examine(file.name, file.entry.get("target"), "LLVM IR")
            examined.error(answer.message, file.location, expected=answer.expected, hint=answer.hint)
            failed = True
        else:
            modules.append((file, answer))
    work: list[tuple[IrFile, str, Examined]] = []
    jobs: list[CompileJob] = []
    for file, module in modules:
        selected = _targets_of(context, file, named)
        failed = failed or not selected
        for name in selected:
            target = targets.get(name)
            examined = context.examine(file.name, name, "LLVM IR")
            if target is None:
                examined.refuse(f"invalid target {name!r}")
                failed = True
            elif not _fits(examined, file, module, target):
                failed = True
            elif target.llvm is not None:
                work.append((file, name, examined))
                options = CompileOptions(optimize=file.entry.get("optimize", "size"))
                jobs.append(CompileJob(module.content, target.llvm, options, file.name))
    objects: list[IrObject] = []
    for (file, name, examined), result in zip(work, compile_many(jobs), strict=True):
        try:
            if isinstance(result, LlvmError):
                raise result
            examined.member = read_member(file.name, result)
            objects.append(IrObject(file, name, examined.member, examined))
        except (LlvmError, ObjectError) as error:
            message = f"for target {name!r}: {error.message}"
            examined.error(message, file.location, expected=error.expected, hint=error.hint)
            failed = True
    return objects, modules, failed


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


def _fits(examined: Examined, file: IrFile, module: IrModule, target: Target) -> bool:
    """Report a module for another target, or with content that no target supports."""
    for present, what in (
        (module.has_constructors, "constructors (code run before main)"),
        (module.thread_local, "thread-local variables"),
        (module.indirect_functions, "indirect functions (resolved at program start)"),
    ):
        if present:
            examined.error(f"the IR contains {what}", file.location, expected="plain functions and constants")
            return False
    if target.llvm is None:
        examined.error(
            f"missing key 'llvm' in target {target.name!r}",
            file.location,
            expected="llvm: {triple: ..., cpu: ...} in the target",
        )
        return False
    faults = contradictions(module, target.llvm, target.llvm.data_layout)
    for fault in faults:
        examined.error(fault.message, file.location, expected=fault.expected, hint=fault.hint)
    return not faults


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
                    f"{head} takes {_words(seen)} for {name!r}, operator {operator.name!r} passes {_words(parameter)}",
                    operator.location,
                    expected=_words(parameter),
                )
    result = IrParameter("integer", 32) if operator.returns_status else None
    if function.returns != result:
        seen_words = "void" if function.returns is None else _words(function.returns)
        context.faults.error(
            f"{head} returns {seen_words}, operator {operator.name!r} returns {'a status' if result else 'void'}",
            operator.location,
            expected="returns: void" if function.returns is None else "a function that returns i32, or void",
        )


def _parameter(argument: Argument) -> IrParameter:
    if not argument.scalar:
        return IrParameter("pointer", 0)
    dtype = argument.type.dtype
    return IrParameter("float" if dtype.is_float else "integer", dtype.size * 8)


def _words(parameter: IrParameter) -> str:
    if parameter.kind == "pointer":
        return "a pointer"
    if parameter.kind == "other":
        return "another type"
    return f"{'an integer' if parameter.kind == 'integer' else 'a float'} of {parameter.bits} bits"
