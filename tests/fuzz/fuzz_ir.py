# SPDX-License-Identifier: Apache-2.0
"""LLVM IR: bitcode and text, read and compiled by LLVM in a child process; and the text readers of opwest."""

from collections.abc import Sequence
from pathlib import Path

from fuzz_mutators import text_mutator
from fuzz_readers import Read, Reader, plain

_IR = """\
source_filename = "op.c"
target triple = "thumbv7em-unknown-none-eabihf"
@table = internal constant [4 x i8] c"\\01\\02\\03\\04", section ".rodata"
@"odd name" = weak global i32 0, align 4
declare float @llvm.fabs.f32(float)
declare i32 @memcmp(ptr nocapture, ptr, i32) #1
define i32 @op(ptr noalias %x, ptr %y) #0 {
entry:
  %v = load i8, ptr %x, align 1
  %c = icmp eq i8 %v, 0
  br i1 %c, label %yes, label %no
yes:
  store i8 1, ptr %y
  ret i32 0
no:
  %r = call i32 @memcmp(ptr %x, ptr @table, i32 4)
  ret i32 %r
}
attributes #0 = { nounwind "target-cpu"="cortex-m4" "target-features"="+thumb-mode" }
attributes #1 = { "no-builtin" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"min_enum_size", i32 4}
"""
_WORDS = (
    '@ % @op @table @"odd name" @"\\00" i32 i8 ptr void float double [4 x i8] <4 x i8> define declare internal weak '
    'global constant section ".x" align addrspace(1) thread_local dso_local asm sideeffect "nop" module asm "x" '
    'target triple = "" attributes #0 #99 { } !0 !99 !{} ; " \\22 \\ c"\\FF" ret br label call load store '
    'alias ifunc comdat any unnamed_addr nounwind "target-cpu"="" 0 1 -1 99999999999999999999'
).split(" ")


def _start_text(_folder: Path) -> Read:
    from opwest.objects.llvm import text as ir
    from opwest.objects.llvm.facts import LlvmError

    def read(content: bytes) -> str:
        module = content.decode("utf-8", "replace")
        lines = list(ir.globals_of(module))
        names = ir.used_names(module)
        ir.target_attributes(module), ir.target_abi(module)
        for step in (
            ir.without_foreign_attributes,
            ir.without_enum_size,
            ir.with_plain_source_name,
            lambda t: ir.with_sections(t, position_independent=True, jump_tables=False),
        ):
            try:
                module = step(module)
            except LlvmError as fault:
                return plain(fault.message)
        return f"{len(lines)} {len(names)} {ir.has_assembly(module)} {len(module) == len(content)}"

    return read


def _bitcode() -> Sequence[bytes]:
    import llvmlite.binding as llvm

    found = [_IR.encode()]
    for text in (_IR, "define void @f() {\n  ret void\n}\n"):
        module = llvm.parse_assembly(text)
        found.append(module.as_bitcode())
        module.close()
    return found


def _start_bitcode(folder: Path) -> Read:
    """Read and compile each input in a separate process, as opwest does with the first."""
    from llvm_support import target
    from opwest.objects.inspect import read_member
    from opwest.objects.llvm import child
    from opwest.objects.llvm.api import compile_ir, read_ir
    from opwest.objects.llvm.facts import LlvmError

    goal, path = target("cortex-m4f"), folder / "op.bc"
    child.SECONDS = 20.0

    def read(content: bytes) -> str:
        path.write_bytes(content)
        try:
            module = read_ir(path)
            found = f"{len(module.functions)} {module.has_assembly}"
            made = compile_ir(content, goal)
            read_member("op.o", made)
        except LlvmError as fault:
            assert fault.message.strip() and fault.message.isprintable() and len(fault.message) < 2_000
            return plain(fault.message)
        return f"compiled {found}"

    return read


READERS = (
    Reader("IR text", lambda: [_IR], _start_text, text_mutator(_WORDS, pattern=r"[\w.]+|\S")),
    Reader("bitcode", _bitcode, _start_bitcode, runs=5_000, needs="llvmlite"),
)
