# SPDX-License-Identifier: Apache-2.0
"""Facts of objects: symbols, sizes, state, ABI, and reasons why some cannot be linked."""

import io
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from elf_writer import build_elf
from elftools.elf.elffile import ELFFile
from judgements import compare_judgements
from objects_factory import compile_object, make_archive
from opwest.objects.facts import Abi, ObjectError, ObjectFile, Sizes
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.linkability import state_of
from requirements_support import need
from tracing import untraced

SOURCE = """
extern int given(int);
extern int maybe(void) __attribute__((weak));
static int calls;
int counter = 3;
int zeroed[4];
const int table[2] = {1, 2};
static int helper(int a) { return a * 2 + calls++; }
__attribute__((weak)) int fallback(void) { return 7; }
int op(int a) { return given(helper(a)) + (maybe ? maybe() : 0) + table[a & 1] + counter + zeroed[a & 3]; }
"""


# test_objects_compat.py tests other attributes of these compilers.
DETAILS = ("enum_size", "wchar_size", "static_base", "dsp", "mve", "fpu", "be8", "rve", "rvc")


def member(path):
    item = inspect_object(path)
    assert isinstance(item, ObjectFile)
    return item.members[0]


@pytest.mark.parametrize(
    ("compiler", "flags", "abi"),
    [
        ("gcc", [], Abi("x86-64", 64, "little")),
        ("gcc", ["-m32"], Abi("i386", 32, "little")),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m0", "-mthumb"], Abi("arm", 32, "little", "v6S-M", "soft", 5)),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb"], Abi("arm", 32, "little", "v7-M", "soft", 5)),
        (
            "arm-none-eabi-gcc",
            ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=softfp"],
            Abi("arm", 32, "little", "v7E-M", "softfp", 5),
        ),
        (
            "arm-none-eabi-gcc",
            ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"],
            Abi("arm", 32, "little", "v8.1-M.mainline", "hard", 5),
        ),
        (
            "arm-none-eabi-gcc",
            ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=soft"],
            Abi("arm", 32, "little", "v8.1-M.mainline", "soft", 5),
        ),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m23", "-mthumb"], Abi("arm", 32, "little", "v8-M.baseline", "soft", 5)),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-r5", "-marm"], Abi("arm", 32, "little", "v7-R", "soft", 5)),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-a9", "-marm", "-mbig-endian"], Abi("arm", 32, "big", "v7-A", "soft", 5)),
        (
            "riscv64-unknown-elf-gcc",
            ["-march=rv32imac", "-mabi=ilp32"],
            Abi("riscv", 32, "little", "rv32i2p0_m2p0_a2p0_c2p0", "soft"),
        ),
        (
            "riscv64-unknown-elf-gcc",
            ["-march=rv64gc", "-mabi=lp64d"],
            Abi("riscv", 64, "little", "rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0", "double"),
        ),
    ],
)
def test_abi_and_symbols(tmp_path, compiler, flags, abi):
    one = member(compile_object(tmp_path, SOURCE, compiler, flags))
    if abi.machine == "riscv" and one.abi.arch:  # the versions in the string vary between compilers
        assert one.abi.arch.startswith(f"rv{abi.bits}i")
        abi = Abi(abi.machine, abi.bits, abi.endian, one.abi.arch, abi.float_abi, None)
    assert replace(abi, **{name: getattr(one.abi, name) for name in DETAILS}) == one.abi
    assert not one.faults
    helpers = {name for name in one.defined if name.startswith("__x86.")}
    assert all(one.defined[name].binding == "weak" for name in helpers)
    assert set(one.defined) - helpers == {"op", "fallback", "counter", "zeroed", "table"}
    assert one.defined["op"].kind == "function" and one.defined["op"].section == "code"
    assert one.defined["op"].size > 0
    assert one.defined["fallback"].binding == "weak"
    assert one.defined["table"].section == "constant"
    assert one.defined["counter"].section == "data"
    assert one.defined["zeroed"].section in ("bss", "common")
    assert set(one.undefined_strong) - {"_GLOBAL_OFFSET_TABLE_"} == {"given"}
    assert one.undefined_weak == ("maybe",)
    assert one.undefined == one.undefined_strong + one.undefined_weak
    assert set(one.stateful_symbols) == {"calls", "counter", "zeroed"}
    assert one.sizes.data == 4 and one.sizes.bss >= 20 and one.sizes.writable == one.sizes.bss + 4
    assert one.sizes.code > 0 and one.sizes.constant >= 8
    assert not any(s.name.startswith(("$", ".L")) for s in one.symbols)


def test_symbols_are_those_of_pyelftools(tmp_path):
    path = compile_object(tmp_path, SOURCE, flags=["-g", "-ffunction-sections"])
    elf = ELFFile(io.BytesIO(path.read_bytes()))
    table = elf.get_section_by_name(".symtab")
    expected = [
        (s.name, s["st_size"])
        for s in table.iter_symbols()
        if s.name and s["st_info"]["type"] not in ("STT_SECTION", "STT_FILE")
    ]
    assert [(s.name, s.size) for s in member(path).symbols] == expected


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("endian", ["little", "big"])
def test_every_class_and_byte_order(bits, endian):
    one = read_member("x.o", build_elf(bits=bits, endian=endian, machine=20))
    assert one.abi == Abi("ppc", bits, endian)
    assert set(one.defined) == {"op"} and one.undefined == ("memcpy",)
    assert one.sizes == Sizes(code=16)


def test_unknown_machine_has_a_name():
    assert read_member("x.o", build_elf(machine=60001)).abi.machine == "machine-60001"


def test_common_symbols_count_as_bss(tmp_path):
    one = member(compile_object(tmp_path, "int shared[8];", flags=["-fcommon"]))
    assert one.defined["shared"].section == "common"
    assert one.sizes.bss == 32 and one.stateful_symbols == ("shared",)


def test_constant_pointers_of_position_independent_code_are_not_state(tmp_path):
    one = member(compile_object(tmp_path, 'const char *const names[2] = {"a", "b"};', flags=["-fPIC"]))
    assert one.defined["names"].section == "constant" and one.stateful_symbols == ()


@pytest.mark.slow
def test_more_sections_than_sixteen_bits_can_count(tmp_path):
    need("as")
    count = 66000
    kinds = {"a": "object", "ax": "function"}
    text = "".join(
        f'.section .s{i}{flags},"{flags}"\n.globl {kind}{i}\n.type {kind}{i},%{kind}\n{kind}{i}: .byte 1\n'
        for i in range(count // 2)
        for flags, kind in kinds.items()
    )
    (tmp_path / "many.s").write_text(text)
    subprocess.run(["as", "-o", "many.o", "many.s"], cwd=tmp_path, check=True)
    with untraced():
        started = time.process_time()
        one = member(tmp_path / "many.o")
        assert time.process_time() - started < 5
    assert len(one.defined) == count
    assert {s.section for s in one.symbols} == {"constant", "code"}


FAULTS = [
    ("int op(void) { return 1; }", ["-flto"], "-flto"),
    ("int op(void) { return 1; }", ["-flto", "-ffat-lto-objects"], "-flto"),
    (
        "int n; __attribute__((constructor)) void early(void) { n = 1; } int op(void) { return n; }",
        [],
        "before or after main",
    ),
    ("_Thread_local int local; int op(void) { return local++; }", [], "thread-local variables (local)"),
    ("extern _Thread_local int other; int op(void) { return other++; }", [], "thread-local variables (other)"),
    (
        "static int a(void) { return 1; } static int (*pick(void))(void) { return a; } "
        'int op(void) __attribute__((ifunc("pick")));',
        [],
        "uses indirect functions (op)",
    ),
]


@pytest.mark.parametrize(("source", "flags", "expected"), FAULTS)
def test_faults(tmp_path, source, flags, expected):
    one = member(compile_object(tmp_path, source, flags=flags))
    assert one.faults
    assert len(one.faults) == 1 and expected in one.faults[0]


def test_linked_files_are_not_relocatable(tmp_path):
    path = compile_object(tmp_path, "int op(void) { return 1; } int main(void) { return op(); }", flags=["-fPIC"])
    for flags, expected in (
        (["-shared"], "a shared library"),
        (["-no-pie"], "an executable"),
        (["-pie"], "an executable"),
    ):
        subprocess.run(["gcc", *flags, path, "-o", tmp_path / "linked"], check=True)
        one = member(tmp_path / "linked")
        assert one.faults == (f"not relocatable: {expected}; link the .o files instead",)
    assert "core dump" in read_member("core", build_elf(kind=4)).faults[0]
    assert "unknown ELF file type 77" in read_member("x", build_elf(kind=77)).faults[0]


def test_stripped_object():
    assert "no symbol table" in read_member("x.o", build_elf(symbol_table=False)).faults[0]
    empty = build_elf(symbol_table=False, sections=())  # libraries contain such members as placeholders
    assert not read_member("x.o", empty).faults


def test_partial_link_is_an_object(tmp_path):
    path = compile_object(tmp_path, SOURCE)
    subprocess.run(["gcc", "-r", "-nostdlib", path, "-o", tmp_path / "all.o"], check=True)
    assert not member(tmp_path / "all.o").faults


def test_archives(tmp_path):
    one = compile_object(tmp_path, "int one(void) { return 1; }", name="one.o")
    long = compile_object(tmp_path, "int two(void) { return 2; }", name="a_very_long_member_name_indeed.o")
    other = compile_object(tmp_path / "sub", "int three(void) { return 3; }", name="one.o")
    path = make_archive(tmp_path / "lib.a", [one, long, other], flags="qcsD")
    item = inspect_object(path)
    assert isinstance(item, ObjectFile) and item.kind == "archive"
    assert [m.name for m in item.members] == ["one.o", "a_very_long_member_name_indeed.o", "one.o"]
    assert [list(m.defined) for m in item.members] == [["one"], ["two"], ["three"]]
    assert item.members[1].content == long.read_bytes()
    assert not any(m.loose for m in item.members)


def test_bsd_archive(tmp_path):
    content = build_elf()
    name = b"a_long_name_of_bsd.o".ljust(24, b"\0")
    head = f"{'#1/24':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content) + 24:<10}`\n".encode()
    table = f"{'__.SYMDEF':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{8:<10}`\n".encode() + bytes(8)
    (tmp_path / "lib.a").write_bytes(b"!<arch>\n" + table + head + name + content)
    item = inspect_object(tmp_path / "lib.a")
    assert isinstance(item, ObjectFile)
    assert [m.name for m in item.members] == ["a_long_name_of_bsd.o"]


def test_archive_refusals(tmp_path):
    path = compile_object(tmp_path, "int one(void) { return 1; }")
    need("ar")
    (tmp_path / "notes.txt").write_text("hello")
    cases = {
        "empty.a": (b"!<arch>\n", "the archive is empty"),
        "text.a": (make_archive(tmp_path / "t.a", [path, tmp_path / "notes.txt"]).read_bytes(), "member notes.txt"),
        "nested.a": (
            make_archive(tmp_path / "n.a", [make_archive(tmp_path / "inner.a", [path])]).read_bytes(),
            "archive member inner.a: not an ELF object: this is an archive",
        ),
        "of_thin.a": (
            make_archive(tmp_path / "o.a", [make_archive(tmp_path / "in_thin.a", [path], flags="rcT")]).read_bytes(),
            "archive member in_thin.a: not an ELF object: this is a thin archive, which contains only file names",
        ),
        "thin.a": (make_archive(tmp_path / "thin.a", [path], flags="rcT").read_bytes(), "thin archive"),
    }
    for name, (content, expected) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ObjectError) as caught:
            inspect_object(tmp_path / name)
        assert expected in caught.value.message
        assert caught.value.hint


def test_archive_member_with_a_negative_size_does_not_loop(tmp_path):
    head = f"{'x.o/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{-60:<10}`\n".encode()
    (tmp_path / "lib.a").write_bytes(b"!<arch>\n" + head * 3)
    with pytest.raises(ObjectError, match="invalid size of the archive member"):
        inspect_object(tmp_path / "lib.a")


CONTENTS = [
    ("empty.o", b"", "the file is empty"),
    ("x.o", b"BC\xc0\xde" + bytes(20), "LLVM bitcode"),
    ("x.o", b"\xcf\xfa\xed\xfe" + bytes(40), "a Mach-O object (macOS)"),
    ("x.obj", b"\x64\x86\x01\x00" + bytes(16) + bytes(60), "a Windows COFF object"),
    ("x.o", b"; ModuleID = 'x'\ndefine i32 @op() {\n", "LLVM IR text"),
    ("x.o", b"#!/bin/sh\necho\n", "a script"),
    ("x.o", b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    ("x.o", b'\t.file\t"x.c"\n\t.text\n', "assembly text"),
    ("x.a", b"/* GNU ld script */\nGROUP ( libm-2.36.a libmvec.a )\n", "a linker script"),
    ("x.o", b"\x7fEL", "a truncated object"),
    ("x.a", b"!<arch>", "a truncated object"),
    ("x.o", b"just words", "this is text"),
    ("x.o", bytes(range(256)), "data in an unknown format"),
    ("x.c", b"\xff\xfei\0n\0t\0", "UTF-16"),
    ("x.c", b"int a;\0\0", "NUL bytes"),
    ("x.c", b"", "the file is empty"),
]


@pytest.mark.parametrize(("name", "content", "expected"), CONTENTS)
def test_other_files(tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ObjectError) as caught:
        inspect_object(tmp_path / name)
    assert expected in caught.value.message


def test_paths_that_are_not_files(tmp_path):
    for path, expected in (
        (tmp_path, "a directory"),
        (tmp_path / "none.o", "cannot read the file: No such file or directory"),
        (tmp_path / "nul\0.o", "cannot read"),
        (Path(os.devnull), "not a regular file"),
    ):
        with pytest.raises(ObjectError, match=expected):
            inspect_object(path)


# --- Sections that are state, and those that only look like it

HEAD = (
    ' .globl count\n .type count,%function\n .section .ramfunc,"awx"\ncount:\n .long 0x12345678\n .size count,.-count\n'
)
VARIABLE = " .type n,%object\n .size n,4\nn: .long 0\n"


def assembled(folder, text):
    need("gcc")
    path = folder / "one.o"
    command = ["gcc", "-c", "-x", "assembler", "-", "-o", path]
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)
    compare_judgements(path)
    item = inspect_object(path)
    assert isinstance(item, ObjectFile)
    return item.members[0]


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        (HEAD, "none", 4),
        (HEAD + VARIABLE, "4 bytes: n", 4),
        (HEAD + " .zero 64\n", "64 bytes: unnamed data", 4),
        (HEAD + " .zero 8\n .type f,%function\nf: .long 1\n .size f,4\n", "none", 16),  # padding
        (HEAD.replace(" .size count,.-count\n", "") + " .zero 64\n", "none", 68),  # assembly without sizes
        (' .section .ram,"awx"\n' + VARIABLE, "4 bytes: n", 0),
        (' .section .ram,"awx"\nlabel: .long 0\n', "4 bytes: label", 0),
        (' .section .ram,"awx",%nobits\n .type n,%object\n .size n,4\nn: .zero 4\n', "4 bytes: n", 0),
        (' .section .ram,"awx"\nlabel:\n', "none", 0),
        (HEAD.replace("awx", "ax"), "none", 4),
        (" .data\nempty:\n .bss\nnothing:\n", "none", 0),
        (' .section .data.rel.ro.local,"aw"\nt: .quad t\n', "none", 0),
        (' .section .data.rel.local.DW.ref.rust_eh_personality,"aw"\n .quad t\n', "none", 0),
        (' .section .data.rel.local,"aw"\nt: .quad t\n', "8 bytes: t", 0),
    ],
)
def test_state_of_sections(tmp_path, text, state, code):
    """Variables in sections for code are state; code in RAM, relocated constants and empty sections are not."""
    found = assembled(tmp_path, text)
    assert str(state_of(found)) == state
    assert found.sizes.code == code


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc"])
def test_state_of_compiled_sections(tmp_path, compiler):
    """A variable is state, and a function is not, in a section with the flags of both."""
    need(compiler)
    comment = "@" if compiler.startswith("arm") else "#"
    place = f'__attribute__((section(".fast,\\"awx\\",%progbits {comment}")))'
    variable = f"{place} static int counter;\nint count(int *y); int count(int *y) {{ *y = ++counter; return 0; }}\n"
    function = f"{place} int count(int *y); int count(int *y) {{ *y = 1; return 0; }}\n"
    for text, state in ((variable, "4 bytes: counter"), (function, "none")):
        item = inspect_object(compile_object(tmp_path, text, compiler))
        assert isinstance(item, ObjectFile)
        assert str(state_of(item.members[0])) == state
