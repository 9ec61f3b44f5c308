# SPDX-License-Identifier: Apache-2.0
"""The targets, and small modules of IR."""

import shutil
from pathlib import Path
from typing import Literal

import pytest
from opwest.model.inputs.targets import make_target
from opwest.objects.compat import TargetAbi
from opwest.objects.facts import Member
from opwest.objects.inspect import read_member
from opwest.objects.llvm.api import compile_ir, compile_many
from opwest.objects.llvm.facts import CompileJob, LlvmTarget
from opwest.objects.targets import named_targets
from requirements_support import need
from session_support import made_once

needs_llvmlite = pytest.mark.needs("llvmlite")

_BLANK = {"features": "", "abi": ""}
_entries = {name: {**_BLANK, **row["llvm"]} for name, row in named_targets().items()}
NAMES = tuple(_entries)


def entry(name: str) -> dict:
    return named_targets()[name]


def target(name: str, /, **changes: object) -> LlvmTarget:
    row, known = _entries[name], entry(name)
    values = {
        "name": name,
        "triple": row["triple"],
        "cpu": row["cpu"],
        "features": row["features"],
        "float_abi": known.get("float_abi"),
        "machine": known["machine"],
        "bits": known["bits"],
        "abi": row["abi"],
        "data_layout": row["data_layout"],
    }
    return LlvmTarget(**{**values, **changes})


def abi(name: str) -> TargetAbi:
    return make_target(name, entry(name))


def compiled(ir: str | bytes, name: str, optimize: Literal["size", "speed"] = "size") -> tuple[bytes, Member]:
    content = ir.encode() if isinstance(ir, str) else ir
    made = compile_ir(content, target(name), optimize)
    return made, read_member(f"{name}.o", made)


def everything(name: str, optimize: Literal["size", "speed"] = "size") -> tuple[bytes, Member]:
    """Return EVERYTHING compiled: for all targets once in a session, by one child process."""

    def make(folder: Path) -> None:
        jobs = [CompileJob(EVERYTHING.encode(), target(each), optimize, "op.ll") for each in NAMES]
        for each, content in zip(NAMES, compile_many(jobs), strict=True):
            assert isinstance(content, bytes), content
            (folder / f"{each}.o").write_bytes(content)

    made = (made_once(f"llvm/everything_{optimize}", make) / f"{name}.o").read_bytes()
    return made, read_member(f"{name}.o", made)


def tool(name: str) -> str:
    need(name)
    found = shutil.which(name)
    assert found is not None
    return found


def bitcode(ir: str) -> bytes:
    """Uses llvmlite in this process: only for valid IR."""
    import llvmlite.binding as llvm

    with llvm.parse_assembly(ir, llvm.create_context()) as module:
        module.verify()
        return module.as_bitcode()


ADD = """
define void @add(ptr noalias %a, ptr noalias %b, ptr noalias %out) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr float, ptr %a, i32 %i
  %pb = getelementptr float, ptr %b, i32 %i
  %po = getelementptr float, ptr %out, i32 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %s = fadd float %x, %y
  %m = fmul float %s, 1.5
  store float %m, ptr %po
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 64
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

# All parts that an ABI affects: floats, doubles, 64-bit integers, constants, state, calls.
EVERYTHING = (
    ADD
    + """
@table = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@names = constant [2 x ptr] [ptr @.text, ptr @table]
@.text = private unnamed_addr constant [3 x i8] c"ab\\00"
@counter = internal global i32 3
@zeroed = global [4 x i32] zeroinitializer
declare float @expf(float)
declare i32 @other(ptr, ...)
define float @scale(float %a, double %b) {
  %e = call float @expf(float %a)
  %c = fptrunc double %b to float
  %r = fmul float %e, %c
  ret float %r
}
define double @wide(double %a, i64 %n) {
  %x = sitofp i64 %n to double
  %r = fadd double %a, %x
  ret double %r
}
define i32 @calls(i32 %a) {
  %p = getelementptr i32, ptr @table, i32 %a
  %v = load i32, ptr %p
  %c = load i32, ptr @counter
  %n = add i32 %c, %v
  store i32 %n, ptr @counter
  %z = load i32, ptr @zeroed
  %r = call i32 (ptr, ...) @other(ptr @names, i32 %n)
  %s = add i32 %r, %z
  ret i32 %s
}
"""
)
