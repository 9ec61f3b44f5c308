# SPDX-License-Identifier: Apache-2.0
"""The interface of this package: read and compile LLVM IR. Does not import llvmlite."""

from __future__ import annotations

import importlib.util
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from opwest.base import path_suggestions
from opwest.base.result import counted
from opwest.objects.llvm.child import Request, run
from opwest.objects.llvm.facts import (
    CompileJob,
    IrFunction,
    IrModule,
    IrParameter,
    IrUse,
    LlvmError,
    LlvmTarget,
    Optimize,
)
from opwest.objects.llvm.magic import MAX_FILE, looks_like_ir, not_ir

_T = TypeVar("_T")


def is_available() -> bool:
    """Return whether llvmlite is installed, without importing it."""
    try:
        return importlib.util.find_spec("llvmlite") is not None
    except (ImportError, ValueError):
        return False


def missing() -> LlvmError:
    """Return the error for missing llvmlite."""
    return LlvmError("missing Python package llvmlite, required for LLVM IR", hint="run pip install llvmlite")


def read_ir(path: Path) -> IrModule:
    """Return the facts about a file of bitcode or textual IR, verified by LLVM; raise LlvmError."""
    return _or_raise(read_many([path])[0])


def read_many(paths: Sequence[Path], *, uses: bool = False) -> list[IrModule | LlvmError]:
    """Return the facts about each file, or its error; several files share one child process.

    With `uses`, the facts include how functions use their parameters.
    """
    if not is_available():
        return [missing() for _ in paths]
    results: list[IrModule | LlvmError] = []
    requests: list[Request] = []
    waiting: list[tuple[int, Path, bytes]] = []
    for index, path in enumerate(paths):
        try:
            content = _read(path)
        except LlvmError as fault:
            results.append(fault)
            continue
        results.append(missing())  # replaced below
        waiting.append((index, path, content))
        requests.append(Request({"do": "read", "uses": uses}, content, f"reading {path.name}"))
    for (index, path, content), answer in zip(waiting, run(requests), strict=True):
        results[index] = answer if isinstance(answer, LlvmError) else _module(path, content, answer.header)
    return results


def compile_ir(module_bytes: bytes, target: LlvmTarget, optimize: Optimize = "size") -> bytes:
    """Return the ELF object of a module for a target; raise LlvmError."""
    return _or_raise(compile_many([CompileJob(module_bytes, target, optimize)])[0])


def compile_many(jobs: Sequence[CompileJob]) -> list[bytes | LlvmError]:
    """Return the object of each job, or its error; the jobs share one child process until it ends."""
    if not is_available():
        return [missing() for _ in jobs]
    requests = []
    for job in jobs:
        target = {name: getattr(job.target, name) for name in LlvmTarget.__slots__}
        header = {"do": "compile", "target": target, "optimize": job.optimize}
        requests.append(Request(header, job.content, f"compiling {job.name} for {job.target.name}"))
    return [answer if isinstance(answer, LlvmError) else answer.blob for answer in run(requests)]


def _or_raise(result: _T | LlvmError) -> _T:
    if isinstance(result, LlvmError):
        raise result
    return result


def _read(path: Path) -> bytes:
    """Return the content of an IR file. Raises LlvmError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise LlvmError("cannot read the file: not a regular file", "a file of LLVM bitcode or textual IR")
        if status.st_size > MAX_FILE:
            raise LlvmError(f"the file has {counted(status.st_size, 'byte')}", f"at most {MAX_FILE} bytes")
        content = path.read_bytes()
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        expected = "LLVM bitcode or textual IR" if isinstance(fault, FileNotFoundError) else None
        raise LlvmError(f"cannot read the file: {reason}", expected, path_suggestions.hint_for(path)) from fault
    if looks_like_ir(content) is None:
        raise not_ir(content)
    return content


def _module(path: Path, content: bytes, facts: Mapping[str, Any]) -> IrModule:
    """Return the child's response as a value: its keys are the names of the fields."""
    functions = [
        IrFunction(
            **{
                **function,
                "returns": None if function["returns"] is None else IrParameter(*function["returns"]),
                "parameters": tuple(IrParameter(*parameter) for parameter in function["parameters"]),
                "uses": tuple(IrUse(name, access, tuple(elements)) for name, access, elements in function["uses"]),
            }
        )
        for function in facts["functions"]
    ]
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    sets = {name: frozenset(facts[name]) for name in ("defined", "undefined", "target_attributes")}
    return IrModule(path, content, **(values | sets | {"functions": tuple(functions)}))
