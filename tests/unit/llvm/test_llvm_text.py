# SPDX-License-Identifier: Apache-2.0
"""The steps on printed IR, without llvmlite."""

import pytest
from opwest.llvm import text as ir


@pytest.mark.parametrize(
    ("written", "symbol", "again"),
    [
        ("conv", "conv", "conv"),
        ('"a b"', "a b", '"a b"'),
        (r'"q\22x\5C"', 'q"x\\', r'"q\22x\5C"'),
        (r'"\01_raw"', "_raw", "_raw"),
        (r'"\C3\A9"', "é", r'"\C3\A9"'),
    ],
)
def test_names(written: str, symbol: str, again: str):
    assert ir.decode_name(written) == symbol
    assert ir.encode_name(symbol) == again


def test_attributes_of_other_machines_are_dropped_without_empty_groups():
    before = (
        'attributes #0 = { nounwind optnone uwtable(sync) memory(argmem: read) "target-cpu"="cortex-m4" '
        '"target-features"="+vfp4,+thumb-mode" "frame-pointer"="all" "no-trapping-math" }\n'
        'attributes #1 = { "tune-cpu"="x" "target-cpu"="cortex-m4" }\n'
    )
    assert ir.without_foreign_attributes(before, keep_unwind=False) == (
        'attributes #0 = { nounwind memory(argmem: read) "frame-pointer"="all" "no-trapping-math" }\n'
        'attributes #1 = { "opwest" }\n'
    )
    assert "uwtable(sync)" in ir.without_foreign_attributes(before, keep_unwind=True)
    assert ir.target_attributes(before) == {"target-cpu=cortex-m4", "target-features=+vfp4,+thumb-mode", "tune-cpu=x"}


def test_renames_do_not_change_strings_comments_and_locals():
    before = (
        "; ModuleID = '@f \"'\n"
        "$f = comdat any\n"
        '@s = constant [3 x i8] c"@f\\00"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @f], section "llvm.metadata"\n'
        "define void @f(ptr %f$f) comdat($f) {\n"
        '  call void @"f"(), !x !{!"@f"}\n'
        "  call void @ff() ; @f\n"
    )
    after = ir.renamed(before, {"f": "m__f", "absent": "x"})
    assert after == (
        "; ModuleID = '@f \"'\n"
        "$m__f = comdat any\n"
        '@s = constant [3 x i8] c"@f\\00"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @m__f], section "llvm.metadata"\n'
        "define void @m__f(ptr %f$f) comdat($m__f) {\n"
        '  call void @m__f(), !x !{!"@f"}\n'
        "  call void @ff() ; @f\n"
    )


@pytest.mark.parametrize(
    ("line", "section"),
    [
        ("@a = constant i32 3", ".rodata.a"),
        ("@a = constant i32 3, align 4, !dbg !3 #2", ".rodata.a"),
        ("@a = constant ptr @b, align 4", ".rodata.a"),
        ("@a = constant [2 x i8] c\"@b\", align 4", ".rodata.a"),
        ("@a = global i32 3, align 4", ".data.a"),
        ("@a = global i32 0", ".bss.a"),
        ("@a = internal global { i32, [2 x i8] } zeroinitializer, comdat, align 4", ".bss.a"),
        ("@a = global float 0.000000e+00", ".bss.a"),
        ("@a = global float -0.000000e+00", ".data.a"),
        ("@a = global [2 x i32] [i32 1, i32 0]", ".data.a"),
        ("@0 = private constant i32 3", ".rodata.0"),
        (r'@"\01a b" = constant i32 3', ".rodata.a b"),
        ("@cst4 = constant i32 3", ".rodata._cst4"),
        ('@a = constant i32 3, section "mine", align 4', None),
        ("@a = external global i32", None),
        ("@a = common global i32 0", None),
        ("@a = thread_local(initialexec) global i32 0", None),
        ("@a = alias i32, ptr @b", None),
        ('@llvm.used = appending global [1 x ptr] [ptr @a], section "llvm.metadata"', None),
        ('@.str = private unnamed_addr constant [3 x i8] c"ab\\00", align 1', None),
    ],
)  # fmt: skip
def test_sections_of_variables(line: str, section: str | None):
    after = ir.with_sections(line, position_independent=False, jump_tables=True)
    if section is None:
        assert after == line
    else:
        assert f', section "{section}"' in after
        assert after.replace(f', section "{section}"', "") == line


def test_constants_with_addresses_in_position_independent_code():
    def placed(line: str) -> str:
        return ir.with_sections(line, position_independent=True, jump_tables=True)

    assert '".data.rel.ro.a"' in placed("@a = constant ptr @b")
    assert '".data.rel.ro.a"' in placed('@a = constant ptr @"b c"')
    assert '".rodata.a"' in placed('@a = constant [2 x i8] c"@b"')


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("define void @f() {", 'define void @f() section ".text.f" {'),
        (
            "define internal fastcc i32 @f(ptr %a, i32 (i8)* %x) unnamed_addr #3 comdat {",
            'define internal fastcc i32 @f(ptr %a, i32 (i8)* %x) unnamed_addr #3 section ".text.f" comdat {',
        ),
        (
            'define %"t(@x" @"f("(ptr byval(%"t(@x") %a) #0 #1 !dbg !4 {',
            'define %"t(@x" @"f("(ptr byval(%"t(@x") %a) #0 #1 section ".text.f(" !dbg !4 {',
        ),
        ('define void @f() #1 section "mine" {', 'define void @f() #1 section "mine" {'),
        ("define available_externally void @f() {", "define available_externally void @f() {"),
    ],
)
def test_sections_of_functions(line: str, expected: str):
    assert ir.with_sections(line, position_independent=False, jump_tables=True) == expected


def test_no_jump_tables_attribute_precedes_the_section():
    after = ir.with_sections("define void @f() #0 {", position_independent=False, jump_tables=False)
    assert after == 'define void @f() #0 "no-jump-tables"="true" section ".text.f" {'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('module asm ".globl f"', True),
        ('  call void asm sideeffect "bkpt 0", ""()', True),
        ('  %r = call i32 asm sideeffect alignstack "mov $0, $1", "=r,r"(i32 1)', True),
        ('  call void asm sideeffect "", "~{memory}"()', False),
        ('  call void @f(ptr %asm), !x !{!"asm x"}', False),
        ('@s = constant [6 x i8] c"asm  \\22"', False),
    ],
)
def test_assembly_is_found(line: str, expected: bool):
    assert ir.has_assembly(line) is expected


def test_names_that_are_used():
    text = "declare void @used()\ndeclare void @unused()\ndefine void @f() {\n  call void @used()\n"
    assert ir.used_names(text) == {"used"}


def test_directory_is_removed_from_the_source_name():
    assert ir.with_plain_source_name('source_filename = "/home/me/a.c"') == 'source_filename = "a.c"'
    assert ir.with_plain_source_name('source_filename = "a.c"') == 'source_filename = "a.c"'
