# SPDX-License-Identifier: Apache-2.0
"""The steps on printed IR, and IR for another target, without llvmlite."""

from pathlib import Path

import pytest
from llvm_support import NAMES, target
from opwest.objects.llvm import text as ir
from opwest.objects.llvm.facts import IrModule, contradictions, parse_triple


@pytest.mark.parametrize(
    ("written", "symbol"),
    [
        ("conv", "conv"),
        ('"a b"', "a b"),
        (r'"q\22x\5C"', 'q"x\\'),
        (r'"\01_raw"', "_raw"),
        (r'"\C3\A9"', "é"),
    ],
)
def test_names(written, symbol):
    assert ir.decode_name(written) == symbol


def test_attributes_of_other_machines_are_dropped_without_empty_groups():
    before = (
        'attributes #0 = { nounwind optnone uwtable(sync) memory(argmem: read) "target-cpu"="cortex-m4" '
        '"target-features"="+vfp4,+thumb-mode" "frame-pointer"="all" "no-trapping-math" }\n'
        'attributes #1 = { "tune-cpu"="x" "target-cpu"="cortex-m4" }\n'
    )
    assert ir.without_foreign_attributes(before) == (
        'attributes #0 = { nounwind memory(argmem: read) "frame-pointer"="all" "no-trapping-math" }\n'
        'attributes #1 = { "opwest" }\n'
    )
    assert ir.target_attributes(before) == {"target-cpu=cortex-m4", "target-features=+vfp4,+thumb-mode", "tune-cpu=x"}


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
def test_sections_of_variables(line, section):
    after = ir.with_sections(line, position_independent=False, jump_tables=True)
    if section is None:
        assert after == line
    else:
        assert f', section "{section}"' in after
        assert after.replace(f', section "{section}"', "") == line


def test_constants_with_addresses_in_position_independent_code():
    def placed(line):
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
def test_sections_of_functions(line, expected):
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
def test_assembly_is_found(line, expected):
    assert ir.has_assembly(line) is expected


def test_names_that_are_used():
    text = "declare void @used()\ndeclare void @unused()\ndefine void @f() {\n  call void @used()\n"
    assert ir.used_names(text) == {"used"}


def test_directory_is_removed_from_the_source_name():
    assert ir.with_plain_source_name('source_filename = "/home/me/a.c"') == 'source_filename = "a.c"'
    assert ir.with_plain_source_name('source_filename = "a.c"') == 'source_filename = "a.c"'


# --- IR for another target is rejected with both names


def module(triple="", data_layout="", target_abi=None):
    return IrModule(Path("op.bc"), b"", triple, data_layout, (), frozenset(), frozenset(), target_abi=target_abi)


@pytest.mark.parametrize("name", NAMES)
def test_module_without_target_matches_every_target(name):
    own = target(name)
    for triple in (own.triple, "", "unknown-unknown-unknown", own.triple.replace("-unknown", "", 1)):
        for layout in (own.data_layout, ""):
            assert contradictions(module(triple, layout, own.abi or None), own) == []


@pytest.mark.parametrize(
    ("triple", "name", "words"),
    [
        ("x86_64-pc-linux-gnu", "cortex-m3", "another architecture"),
        ("x86_64-pc-linux-gnu", "i386", "another architecture"),
        ("aarch64-linux-gnu", "cortex-m4", "another architecture"),
        ("riscv64-unknown-elf", "rv32imac", "64-bit addresses, expected 32-bit"),
        ("x86_64-linux-gnux32", "x86-64", "32-bit addresses, expected 64-bit"),
        ("thumbebv7m-none-eabi", "cortex-m3", "big-endian, expected little-endian"),
        ("aarch64_be-none-elf", "cortex-a53", "big-endian, expected little-endian"),
        ("armv7a-none-eabi", "cortex-m3", "Arm profile A, expected M"),
        ("armv8r-none-eabi", "cortex-m33", "Arm profile R, expected M"),
        ("x86_64-pc-windows-msvc", "x86-64", "calling conventions of windows"),
        ("arm64-apple-darwin", "cortex-a53", "calling conventions of darwin"),
        ("thumbv7em-none-eabihf", "cortex-m4f-softfp", "hard float (eabihf), expected"),
        ("thumbv7em-none-unknown-eabihf", "cortex-m3", "hard float (eabihf), expected"),
        ("armv7m-none-eabi", "cortex-m4f", "integer registers (eabi), expected hard float"),
        ("wasm32-unknown-unknown", "cortex-m3", "another architecture"),
    ],
)
def test_contradictory_triples(triple, name, words):
    (fault,) = contradictions(module(triple), target(name))
    assert triple in fault.message and target(name).triple in fault.message and name in fault.message
    assert words in fault.message
    assert fault.expected and fault.hint


@pytest.mark.parametrize(
    ("triple", "name"),
    [
        ("thumbv7em-none-eabi", "cortex-m3"),
        ("arm-none-eabi", "cortex-m3"),
        ("armv7m-none-eabi", "cortex-m3"),
        ("thumb-unknown-unknown", "cortex-m4f"),
        ("i686-pc-linux-gnu", "i386"),
        ("amd64-unknown-linux-gnu", "x86-64"),
        ("arm64-none-elf", "cortex-a53"),
        ("aarch64-linux-gnu", "cortex-a53"),
    ],
)
def test_matching_triples(triple, name):
    assert contradictions(module(triple), target(name)) == []


@pytest.mark.parametrize(
    ("layout", "name", "words"),
    [
        ("E-m:e-p:32:32", "cortex-m3", "byte order big, expected little"),
        ("e-m:e-p:64:64", "cortex-m3", "pointer size in bits 64, expected 32"),
        ("e-m:o-p:32:32", "cortex-m3", "mangling o, expected e"),
        ("e-m:e-p:32:32-i64:32", "cortex-m3", "alignment of 64-bit integers in bits 32, expected 64"),
        ("e-m:e-p:32:32-f64:64", "i386", "alignment of 64-bit floats in bits 64, expected 32"),
    ],
)
def test_contradictory_data_layouts(layout, name, words):
    (fault,) = contradictions(module("", layout), target(name))
    assert words in fault.message and layout in fault.message and target(name).data_layout in fault.message


def test_partial_data_layouts_are_accepted():
    for layout in ("e", "e-p:32:32", "e-m:e-p:32:32-i64:64-v128:64:128-a:0:32-n8:16:32-S32"):
        assert contradictions(module("", layout), target("cortex-m3")) == []


def test_riscv_abi_of_the_module():
    (fault,) = contradictions(module("riscv32", target_abi="ilp32f"), target("rv32imac"))
    assert "ilp32f" in fault.message and "ilp32" in fault.expected
    assert contradictions(module("riscv32", target_abi="ilp32f"), target("rv32imafc")) == []


def test_profiles_of_arm():
    seen = {name: parse_triple(f"{name}-none-eabi").profile for name in (
        "thumbv6m", "thumbv7em", "armv8m.base", "thumbv8.1m.main", "armv7", "armv7a", "armv8.2a", "armv7r", "arm",
        "armv7l", "armv5te", "armv6k",
    )}  # fmt: skip
    assert seen == {
        "thumbv6m": "M", "thumbv7em": "M", "armv8m.base": "M", "thumbv8.1m.main": "M", "armv7": None, "armv7a": "A",
        "armv8.2a": "A", "armv7r": "R", "arm": None, "armv7l": None, "armv5te": None, "armv6k": None,
    }  # fmt: skip
