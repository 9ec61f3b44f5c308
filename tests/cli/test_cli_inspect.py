# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect`: its judgement is that of `opwest check`, also for LLVM IR."""

import itertools
import json
import re
import subprocess

import pytest
from campaign import sized
from judgements import compare_judgements
from objects_factory import compile_object, make_archive

SOURCES = {
    "plain": "int relu(int a) { return a; }",
    "data": "int calls = 1; int relu(int a) { return a + calls++; }",
    "bss": "static int calls; int relu(int a) { return a + calls++; }",
    "common": "int calls; int relu(int a) { return a + calls++; }",
    "undefined": "int vendor(int); int relu(int a) { return vendor(a); }",
    "weak": "__attribute__((weak)) int vendor(int); int relu(int a) { return vendor ? vendor(a) : a; }",
    "libm": "float expf(float); int relu(int a) { return (int)expf((float)a); }",
    "newlib": "int *__errno(void); int relu(int a) { return a + *__errno(); }",
    "constructor": '__attribute__((constructor)) void early(void) { __asm__ volatile(""); }\n'
    "int relu(int a) { return a; }",
    "thread": "_Thread_local int mine; int relu(int a) { return a + mine++; }",
    "tvm": "int TVMFuncCall(void *); int relu(int a) { return TVMFuncCall(&a); }",
    "workspace": "void *TVMBackendAllocWorkspace(int, int, unsigned long long, int, int);\n"
    "int relu(int a) { return TVMBackendAllocWorkspace(1, 0, 4, 0, 8) == 0; }",
    "context": "void *__tvm_module_ctx; int relu(int a) { return a; }",
    "pointers": "extern int table[]; int *relu(void) { return table; }",
}
COMPILERS = {
    "x86-64": ("gcc", ()),
    "i386": ("gcc", ("-m32",)),
    "i386 pic": ("gcc", ("-m32", "-fPIC")),
    "cortex-m3": ("arm-none-eabi-gcc", ("-mcpu=cortex-m3", "-mthumb")),
    "cortex-m4f pic": ("arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-fPIC")),
    "static base": ("arm-none-eabi-gcc", ("-mcpu=cortex-m3", "-mthumb", "-msingle-pic-base", "-fpic")),
    "big-endian": ("arm-none-eabi-gcc", ("-mcpu=cortex-m3", "-mthumb", "-mbig-endian")),
    "rv32": ("riscv64-unknown-elf-gcc", ("-march=rv32imac", "-mabi=ilp32")),
    "rv64 medlow": ("riscv64-unknown-elf-gcc", ("-march=rv64gc", "-mabi=lp64d", "-mcmodel=medlow")),
    "rv64 pic": ("riscv64-unknown-elf-gcc", ("-march=rv64gc", "-mabi=lp64d", "-fPIC")),
}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_one_judgement_on_objects_and_archives(tmp_path, compiler):
    """`compile_object` and `make_archive` compare both commands."""
    program, flags = COMPILERS[compiler]
    flags = ["-ffreestanding", "-fcommon", *flags]
    paths = []
    for name, text in SOURCES.items():
        text = text.replace("relu", f"relu_{name}")
        paths.append(compile_object(tmp_path, text, program, flags, f"{name}.o"))
    make_archive(tmp_path / "all.a", paths)
    rows = compare_judgements(tmp_path / "data.o")
    assert rows[0]["reasons"][-1] == "writable state of 4 bytes: calls"
    assert not compare_judgements(tmp_path / "context.o")[0]["variables"]


@pytest.mark.parametrize("name", SOURCES)
def test_one_judgement_on_sources(tmp_path, name):
    path = tmp_path / "operators.c"
    path.write_text(SOURCES[name] + "\n")
    rows = compare_judgements(path)
    assert (rows[0]["reasons"] == ["writable state: calls"]) == (name in ("data", "bss", "common"))


TRIPLES = ("x86_64-unknown-linux-gnu", "thumbv7m-unknown-none-eabi", "")
SUFFIXES = (".ll", ".bc")
NAMES = sorted(SOURCES.keys() - {"newlib"})
FORMS = sized(
    [(name, TRIPLES[n % 3], SUFFIXES[n % 2]) for n, name in enumerate(NAMES)],
    [*itertools.product(NAMES, TRIPLES, SUFFIXES)],
)


@pytest.mark.needs("llvmlite", "clang")
@pytest.mark.parametrize(("name", "triple", "suffix"), FORMS)
def test_one_judgement_on_llvm_ir(tmp_path, name, triple, suffix):
    source, path = tmp_path / "operators.c", tmp_path / f"operators{suffix}"
    source.write_text(SOURCES[name] + "\n")
    command = ["clang", f"--target={triple or TRIPLES[0]}", "-O1", "-ffreestanding", "-emit-llvm", source, "-o", path]
    subprocess.run([*command, "-S" if suffix == ".ll" else "-c"], check=True, timeout=60)
    if not triple and suffix == ".ll":
        path.write_text(re.sub(r"(?m)^target .*\n", "", path.read_text()))
    rows = compare_judgements(path)
    if name != "weak":  # LLVM 22 rejects the text that older versions of clang write
        assert bool(rows[0]["reasons"]) == (name not in ("plain", "libm", "context")), rows


@pytest.mark.needs("llvmlite")
def test_llvm_ir(opwest, succeed, fail, tmp_path):
    path = tmp_path / "relu.ll"
    path.write_text('target triple = "thumbv7m-unknown-none-eabi"\ndefine i32 @relu(i32 %a) {\n  ret i32 %a\n}\n')
    done = opwest("inspect", path)
    lines = done.out.splitlines()
    assert done.code == 0 and lines[0] == f"{path}: LLVM IR, compiled for cortex-m3"
    assert lines[1].startswith("  machine       arm, 32 bits") and lines[-2:] == ["  exportable    yes", ""]
    succeed("inspect", "--target", "cortex-m7f", path)
    value = json.loads(opwest("inspect", "--json", "--target", "x86-64", path).out)["result"][0]
    assert (value["kind"], value["target"], value["exportable"]) == ("llvm-ir", "x86-64", False)
    assert value["reasons"][0].endswith("another architecture")
    done = opwest("inspect", "--target", "x86-64", path)
    assert done.out.startswith(f"{path}: LLVM IR\n  triple        thumbv7m-unknown-none-eabi\n  defines       relu\n")
    path.write_text("define i32 @relu(i32 %a) {\n  ret i64 %a\n}\n")
    done = fail("inspect", path)
    assert not done.out and done.err.startswith(f"{path}: error: ")
    fail("inspect", tmp_path / "absent.ll")


@pytest.mark.needs("gcc")
def test_programs_without_models_are_objects(fail, tmp_path):
    """The judgement is that of `check`, beside the error that the program has no models."""
    path = compile_object(tmp_path, SOURCES["plain"])
    program = tmp_path / "program.elf"
    subprocess.run(["gcc", "-static", "-nostdlib", "-Wl,-e,relu", "-o", program, path], check=True)
    done = fail("inspect", program)
    assert done.out.endswith("  exportable    no: not relocatable: an executable; link the .o files instead\n\n")
    assert done.err.startswith(f"{program}: error: the image contains no note of a model\n")


def test_objects_are_judged_for_a_target(opwest, fail, tmp_path):
    flags = ["-mcpu=cortex-m4", "-mthumb", "-ffreestanding"]
    path = compile_object(tmp_path, SOURCES["plain"], "arm-none-eabi-gcc", flags, "m4.o")
    no = "no: compiled for the Arm architecture v7E-M"
    for target, answer in ([], "yes"), (["--target", "cortex-m7"], "yes"), (["--target", "cortex-m3"], no):
        assert opwest("inspect", *target, path).out.endswith(f"  exportable    {answer}\n\n")
    done = fail("inspect", "--target", "cortex-m33x", path)
    assert done.err == (
        "opwest: error: unknown target 'cortex-m33x'\n  hint: did you mean 'cortex-m33'? (`opwest targets` lists all)\n"
    )
