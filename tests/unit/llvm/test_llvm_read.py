# SPDX-License-Identifier: Apache-2.0
"""Facts about IR, and error messages for rejected files."""

import struct

import pytest
from llvm_support import ADD, bitcode, needs_llvmlite
from opwest.objects.llvm.api import read_ir, read_many
from opwest.objects.llvm.facts import IrModule, IrParameter, LlvmError
from opwest.objects.llvm.magic import looks_like_ir

MODULE = """
target datalayout = "e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64"
target triple = "thumbv7em-unknown-none-eabi"
%pair = type { i32, i32 }
@table = constant [3 x i32] [i32 1, i32 2, i32 3]
@hidden = internal global i32 5
@seen = global [2 x i8] zeroinitializer
@shared = common global i32 0
@weakly = weak global i32 1
@given = external global i32
@maybe = extern_weak global i32
@unused_given = external global i32
@per_thread = thread_local global i32 0
@"a name" = private constant i8 1
@second = alias i32, ptr @hidden
@chosen = ifunc i32 (), ptr @resolver
@llvm.used = appending global [1 x ptr] [ptr @op], section "llvm.metadata"
define i32 @op(ptr %a, i8 signext %b, float %c, half %d, double %e, i64 %f, <4 x i32> %g) #0 {
  %x = load i32, ptr @given
  %y = load i32, ptr @maybe
  %z = call i32 (ptr, ...) @printf(ptr @"a name", i32 %x)
  call void @llvm.memset.p0.i32(ptr %a, i8 0, i32 64, i1 false)
  call void asm sideeffect "", "~{memory}"()
  ret i32 %y
}
define weak void @soft(ptr byval(%pair) %a, ptr sret(%pair) %b, ptr addrspace(1) %c) #1 { ret void }
define internal void @mine() { ret void }
define linkonce_odr %pair @inline() { ret %pair zeroinitializer }
define available_externally i32 @elsewhere() { ret i32 1 }
define ptr @resolver() { ret ptr @op }
declare i32 @printf(ptr, ...)
declare void @never(i32)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
attributes #0 = { nounwind "target-cpu"="cortex-m4" "target-features"="+dsp" }
attributes #1 = { "target-cpu"="cortex-m7" }
"""


def write(folder, content, name="op.ll"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@needs_llvmlite
@pytest.mark.parametrize("form", ["text", "bitcode", "wrapped"])
def test_facts(tmp_path, form):
    content = MODULE.encode() if form == "text" else bitcode(MODULE)
    if form == "wrapped":
        content = struct.pack("<5I", 0x0B17C0DE, 0, 20, len(content), 40) + content
    module = read_ir(write(tmp_path, content))
    assert looks_like_ir(content) == ("text" if form == "text" else "bitcode")
    assert (module.content, module.path.name) == (content, "op.ll")
    assert module.triple == "thumbv7em-unknown-none-eabi"
    assert module.data_layout == "e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64"
    functions = {f.name: f for f in module.functions}
    op = functions["op"]
    assert op.returns == IrParameter("integer", 32)
    assert [(p.kind, p.bits) for p in op.parameters] == [
        ("pointer", 0), ("integer", 8), ("float", 32), ("float", 16), ("float", 64), ("integer", 64), ("other", 0),
    ]  # fmt: skip
    assert (op.variadic, op.is_definition, op.linkage) == (False, True, "external")
    assert functions["soft"].returns is None and functions["soft"].linkage == "weak"
    assert [p.kind for p in functions["soft"].parameters] == ["other", "other", "other"]
    assert functions["inline"].returns == IrParameter("other", 0)
    assert functions["inline"].linkage == "linkonce_odr"
    assert functions["mine"].linkage == "internal"
    assert functions["printf"].variadic and not functions["printf"].is_definition
    assert not functions["elsewhere"].is_definition
    assert not any(name.startswith("llvm.") for name in functions)
    assert module.defined == {
        "op", "soft", "inline", "resolver", "table", "seen", "shared", "weakly", "second", "chosen", "per_thread",
    }  # fmt: skip
    assert module.undefined == {"printf", "given", "maybe"}
    assert module.state == ("hidden", "seen", "shared", "weakly")
    assert module.thread_local == ("per_thread",)
    assert module.indirect_functions == ("chosen",)
    assert module.target_attributes == {"target-cpu=cortex-m4", "target-cpu=cortex-m7", "target-features=+dsp"}
    assert not module.has_constructors and not module.has_assembly and module.target_abi is None


@needs_llvmlite
def test_constructors_assembly_and_the_riscv_abi(tmp_path):
    module = read_ir(
        write(
            tmp_path,
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]\n"
            'define void @f() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}\n'
            '!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"target-abi", !"ilp32f"}\n',
        )
    )
    assert module.has_constructors and module.has_assembly and module.target_abi == "ilp32f"
    assert module.defined == {"f"} and module.triple == ""


@needs_llvmlite
def test_empty_list_of_constructors_is_none(tmp_path):
    """TVM's printed IR contains one."""
    text = "@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n"
    assert not read_ir(write(tmp_path, text)).has_constructors


@needs_llvmlite
def test_symbol_with_odd_characters(tmp_path):
    module = read_ir(
        write(tmp_path, 'define void @"a b\\22\\C3\\A9"() { ret void }\ndefine void @"\\01raw"() { ret void }')
    )
    assert module.defined == {'a b"é', "raw"} == {f.name for f in module.functions}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"BC\xc0\xde....", "bitcode"),
        (b"\xde\xc0\x17\x0b....", "bitcode"),
        (b"; ModuleID = 'x'\n", "text"),
        (b"; a comment\n\n  ; another\ndefine void @f() {\n", "text"),
        (b'target triple = "x86_64"\n', "text"),
        (b'source_filename = "a.c"\n', "text"),
        (b"@a = global i32 0\n", "text"),
        (b"%t = type { i32 }\n", "text"),
        (b"declare void @f()\n", "text"),
        (b"", None),
        (b"; only a comment\n", None),
        (b"\x7fELF\x02", None),
        (b"!<arch>\n", None),
        (b"int f(void) { return 1; }\n", None),
        (b"#define X @y\n", None),
        (b"define: yaml\n", None),
        (b"define void @f()\0\n", None),
    ],
)
def test_looks_like_ir(content, kind):
    assert looks_like_ir(content) == kind


@needs_llvmlite
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF....", "this is an ELF object"),
        (b"int f(void);", "not LLVM IR"),
        (b"BC\xc0\xde", "cannot parse the file"),
        (b"BC\xc0\xde" + bytes(64), "cannot parse the file: "),
        (b"define void @f() {\n  ret i32\n}\n", "line 3, column 1: expected value token"),
        (b"define void @f() {\n  call void @g()\n  ret void\n}\n", "line 2, column 13: use of undefined value '@g'"),
        (b"define void @f(\xff) {\n", "not UTF-8"),
        (b"define i32 @f() {\n  ret void\n}\n", "line 2"),
        (b"define void @f() {\n %a = add i32 %b, 1\n %b = add i32 %a, 1\n ret void\n}\n", "invalid IR: "),
    ],
)
def test_rejected_input(tmp_path, content, words):
    with pytest.raises(LlvmError) as caught:
        read_ir(write(tmp_path, content, "op.bc"))
    assert words in caught.value.message
    assert caught.value.expected


@needs_llvmlite
def test_paths_that_are_not_files(tmp_path):
    results = read_many([tmp_path, tmp_path / "absent.bc", write(tmp_path, ADD)])
    assert [type(r) for r in results] == [LlvmError, LlvmError, IrModule]
    assert "not a regular file" in str(results[0]) and "No such file or directory" in str(results[1])


@needs_llvmlite
def test_truncated_bitcode(tmp_path):
    whole = bitcode(ADD)
    results = read_many([write(tmp_path, whole[:size], f"{size}.bc") for size in range(4, len(whole), 64)])
    assert all(isinstance(r, LlvmError) for r in results)


ALIASES = """
@first = alias i32 (ptr, float), ptr @mine
@second = unnamed_addr alias i32 (ptr, float), ptr @first
@inner = internal alias i32 (ptr, float), ptr @mine
@number = alias i32, ptr @value
@shifted = alias i8, getelementptr (i8, ptr @value, i32 1)
@value = constant i32 5
declare i32 @rust_eh_personality(...)
define internal i32 @mine(ptr readonly %in, float %f) personality ptr @rust_eh_personality {
  %x = load i8, ptr %in
  ret i32 0
}
"""


@needs_llvmlite
def test_aliases_are_definitions(tmp_path):
    """A second name of a function is a function with its signature, as rustc and Zig export them."""
    module = read_many([write(tmp_path, ALIASES)], uses=True)[0]
    assert isinstance(module, IrModule)
    functions = {f.name: f for f in module.functions}
    assert functions.keys() == {"mine", "first", "second", "inner", "rust_eh_personality"}
    assert not module.undefined  # compiled functions have no personality routine
    for name in ("first", "second"):
        one = functions[name]
        assert one.is_definition and one.linkage == "external" and name in module.defined
        assert [p.kind for p in one.parameters] == ["pointer", "float"]
        assert [(u.name, u.access, u.elements) for u in one.uses] == [("in", "reads", ("i8",)), ("f", "unknown", ())]
    assert module.defined == {"first", "second", "number", "shifted", "value"}
