# SPDX-License-Identifier: Apache-2.0
"""Errors in IR: one error with its line for signatures, targets, damage and assembly."""

import re

import projects
import pytest
from opwest.base.diagnostics import Diagnostics, OpwestError

MANIFEST = """\
version: 1
model: m
objects:
  - {{files: [op.ll]{targets}}}
{more}operators:
  op:{returns}
    args: [{{name: x, dtype: int8, shape: [4]}}, {args}, {{name: y, dtype: int8, shape: [4], direction: out}}]
run:
  inputs: {{x: {{dtype: int8, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps:
    - {{call: op, args: [x, 1, y]}}
"""
GOOD = "define i32 @op(ptr %x, i32 %n, ptr %y) {\n  ret i32 0\n}\n"
FILE, OPERATOR, TARGET = "4:14", "{operator}:3", "4:32"
M3, M4 = "thumbv7m-unknown-none-eabi", "thumbv7em-unknown-none-eabi"
XTENSA = "targets:\n  board: {machine: xtensa, bits: 32, kconfig: {CONFIG_XTENSA: y}}\n"


def ir(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


# name: (IR, changes of the manifest, place, message, expected)
CASES = {
    "optimised as the application": (
        GOOD, {"targets": "cortex-m3, x86-64], optimize: application, uses: [heap"}, "4:62",
        "'optimize: application' in an entry with LLVM IR 'op.ll'", "optimize: size or speed",
    ),
    "calling convention of Windows": (
        ir("define i32", "define win64cc i32"), {}, OPERATOR,
        "op.ll: function 'op' has the calling convention 'win64cc'", "that of C",
    ),
    "too few parameters": (
        ir("ptr %x, i32 %n, ptr %y", "ptr %x, i32 %n"), {}, OPERATOR,
        "op.ll: function 'op' has 2 parameters, operator 'op' has 3", "x, n, y",
    ),
    "variable number": (
        ir("ptr %y", "ptr %y, ..."), {}, OPERATOR,
        "op.ll: function 'op' has a variable number of parameters, operator 'op' has 3", "x, n, y",
    ),
    "integer for a pointer": (
        ir("ptr %y", "i32 %y"), {}, OPERATOR,
        "op.ll: function 'op' takes an integer of 32 bits for 'y', operator 'op' passes a pointer", "a pointer",
    ),
    "pointer for a scalar": (
        ir("i32 %n", "ptr %n"), {}, OPERATOR,
        "op.ll: function 'op' takes a pointer for 'n', operator 'op' passes an integer of 32 bits",
        "an integer of 32 bits",
    ),
    "another width": (
        ir("i32 %n", "i64 %n"), {}, OPERATOR,
        "op.ll: function 'op' takes an integer of 64 bits for 'n', operator 'op' passes an integer of 32 bits",
        "an integer of 32 bits",
    ),
    "vector": (
        ir("i32 %n", "<4 x i32> %n"), {}, OPERATOR,
        "op.ll: function 'op' takes another type for 'n', operator 'op' passes an integer of 32 bits",
        "an integer of 32 bits",
    ),
    "wide status": (
        ir("i32 @op", "i64 @op").replace("ret i32", "ret i64"), {}, OPERATOR,
        "op.ll: function 'op' returns an integer of 64 bits, operator 'op' returns a status",
        "a function that returns i32, or void",
    ),
    "no status": (
        ir("i32 @op", "void @op").replace("ret i32 0", "ret void"), {}, OPERATOR,
        "op.ll: function 'op' returns void, operator 'op' returns a status", "returns: void",
    ),
    "a status too many": (
        GOOD, {"returns": "\n    returns: void"}, OPERATOR,
        "op.ll: function 'op' returns an integer of 32 bits, operator 'op' returns void",
        "a function that returns i32, or void",
    ),
    "another function": (
        ir("@op", "@po"), {}, OPERATOR,
        "no object for target 'x86-64' defines symbol 'op' of operator 'op'", "a function in op.ll",
    ),
    "another triple": (
        f'target triple = "{M3}"\n{GOOD}', {}, FILE,
        f"op.ll: the IR is for {M3}, target 'x86-64' is x86_64-unknown-linux-gnu: another architecture",
        "IR for x86_64-unknown-linux-gnu, or without a triple",
    ),
    "hard float": (
        f'target triple = "{M4}hf"\n{GOOD}', {"targets": "cortex-m4"}, FILE,
        f"op.ll: the IR is for {M4}hf, target 'cortex-m4' is {M4}: "
        "hard float (eabihf), expected floats in integer registers (eabi)",
        f"IR for {M4}, or without a triple",
    ),
    "another data layout": (
        f'target datalayout = "E-m:e-p:32:32"\n{GOOD}', {"targets": "cortex-m3"}, FILE,
        "op.ll: the data layout of the IR is 'E-m:e-p:32:32', that of target 'cortex-m3' is "
        "'e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64': byte order big, expected little",
        f"the data layout of {M3}, or none",
    ),
    "damaged text": (
        "define i32 @op(\n", {}, FILE, "op.ll: line 2, column 1: expected type", "textual IR of LLVM 22 or older",
    ),
    "damaged bitcode": (
        b"BC\xc0\xde\x35\x14\0\0" + b"\xff" * 64, {}, FILE, "op.ll: cannot parse the file: ",
        "bitcode of LLVM 22 or older",
    ),
    "no target": (
        GOOD, {"targets": None}, FILE, "op.ll: no target for LLVM IR",
        "targets: [...] in this entry",
    ),
    "unknown target": (GOOD, {"targets": "cortex-m99"}, TARGET, "unknown target 'cortex-m99'", None),
    "target without llvm": (
        GOOD, {"targets": "board", "more": XTENSA}, FILE,
        "op.ll: missing key 'llvm' in target 'board'",
        "llvm: {triple: ..., cpu: ...} in the target",
    ),
    "module assembly": (
        f'module asm "nop"\n{GOOD}', {"targets": "cortex-m3"}, FILE,
        "op.ll: for target 'cortex-m3': llvmlite cannot assemble the inline or module assembly of the IR for "
        "any target for 'cortex-m3' (arm)",
        "IR without assembly; only ",
    ),
}  # fmt: skip


def check(folder, content, changes):
    target = changes.get("targets", "x86-64")
    text = MANIFEST.format(
        targets="" if target is None else f", targets: [{target}]",
        returns=changes.get("returns", ""),
        more=changes.get("more", ""),
        args="{name: n, dtype: int32, scalar: true}",
    )
    (folder / "op.ll").write_bytes(content if isinstance(content, bytes) else content.encode())
    manifest = folder / "manifest.yaml"
    manifest.write_text(text)
    projects.check([manifest], Diagnostics())
    return text


def test_manifest_with_matching_ir_has_no_faults(tmp_path):
    check(tmp_path, GOOD, {})


@pytest.mark.parametrize("name", CASES)
def test_one_error(name, tmp_path):
    content, changes, place, message, expected = CASES[name]
    with pytest.raises(OpwestError) as raised:
        check(tmp_path, content, changes)
    faults = [d for d in raised.value.diagnostics if d.severity == "error"]
    assert len(faults) == 1, [d.message for d in faults]
    (fault,) = faults
    if message.endswith(": "):
        assert fault.message.startswith(message)
    else:
        assert fault.message == message
    assert (fault.expected or "").startswith(expected or "") and bool(fault.expected) == bool(expected)
    lines = (tmp_path / "manifest.yaml").read_text().splitlines()
    line = place.format(operator=1 + next(i for i, text in enumerate(lines) if text == "  op:"))
    assert re.search(rf"manifest\.yaml:{line}$", str(fault.location)), str(fault.location)
