# SPDX-License-Identifier: Apache-2.0
"""Which archive members are linked, and the providers of undefined symbols."""

import subprocess
from pathlib import Path

import pytest
from elf_writer import build_elf
from objects_factory import compile_object, make_archive
from opwest.objects.archives import needed_members
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.library_symbols import LIBCS, listed_symbols, provider_of, uses_libm
from requirements_support import absent, need

# --- Providers of undefined symbols; the lists agree with the installed toolchains


def test_providers_of_common_symbols():
    assert provider_of("__aeabi_fadd", "arm", "picolibc") == "libgcc"
    assert provider_of("__divdi3", "i386", "host") == "libgcc"
    assert provider_of("__divdi3", "x86-64", "host") is None
    assert provider_of("__muldi3", "riscv", "minimal") == "libgcc"
    assert provider_of("__addtf3", "aarch64", "picolibc") == "libgcc"
    assert provider_of("__aeabi_unwind_cpp_pr0", "arm", "minimal") == "libgcc"
    assert provider_of("__aeabi_unwind_cpp_pr0", "riscv", "minimal") is None
    assert provider_of("memcpy", "arm", "minimal") == "minimal"
    assert provider_of("__aeabi_memcpy", "arm", "newlib") == "newlib"
    assert provider_of("__aeabi_memcpy", "arm", "minimal") is None
    assert provider_of("expf", "arm", "picolibc") == "picolibc (libm)"
    assert provider_of("expf", "arm", "minimal") is None
    assert provider_of("__stack_chk_fail", "x86-64", "host") == "host"
    assert provider_of("__errno_location", "x86-64", "host") == "host"
    assert provider_of("__errno", "arm", "newlib") == "newlib"
    assert provider_of("_GLOBAL_OFFSET_TABLE_", "i386", "host") == "linker"
    assert provider_of("npu_submit", "arm", "newlib") is None
    assert provider_of("memcpy", "xtensa", "newlib") == "newlib"


def test_libm():
    assert uses_libm("expf") and uses_libm("sqrt") and uses_libm("tanh")
    assert not uses_libm("memcpy") and not uses_libm("op")


@pytest.mark.parametrize("libc", LIBCS)
def test_every_libc_has_the_basics(libc):
    for name in ("memcpy", "memset", "memmove", "memcmp", "strlen", "malloc", "printf", "qsort"):
        assert provider_of(name, "arm", libc) == libc
    if libc != "minimal":
        for name in ("exp", "expf", "tanhf", "roundf", "lrintf", "erff", "powf", "fmaxf", "nearbyintf"):
            assert provider_of(name, "arm", libc) == f"{libc} (libm)"
            assert uses_libm(name)


def test_unknown_libc():
    with pytest.raises(ValueError, match="unknown libc"):
        provider_of("memcpy", "arm", "musl")


def defined_in(library):
    out = subprocess.run(["nm", "-g", "--defined-only", "-P", library], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in out.stdout.splitlines() if len(line.split()) > 1}


@pytest.mark.parametrize(
    ("compiler", "machine", "libc"), [("gcc", "x86-64", "host"), ("arm-none-eabi-gcc", "arm", "newlib")]
)
def test_symbol_lists_equal_those_of_the_toolchain(compiler, machine, libc):
    need(compiler, "nm")

    def library(name):
        found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        if not Path(found.stdout.strip()).is_absolute():
            absent(f"{compiler} has no {name}", compiler)
        return found.stdout.strip()

    known, support = listed_symbols(f"{libc}.txt"), listed_symbols(f"libgcc-{machine}.txt")[""]
    math = defined_in("/usr/lib/x86_64-linux-gnu/libm-2.36.a") if libc == "host" else defined_in(library("libm.a"))
    standard = defined_in(library("libc.a")) | math
    if len(standard) < 500:
        absent(f"{compiler} has no static libc to compare with", compiler)
    # Few names are only in other variants of the library (other word sizes).
    assert len((known["libc"] | known["libm"]) - standard) < 20
    assert len(support & defined_in(library("libgcc.a"))) > 50


@pytest.mark.parametrize(
    ("compiler", "flags", "libc"),
    [
        ("gcc", [], "host"),
        ("gcc", ["-m32"], "host"),
        ("gcc", ["-fstack-protector-all", "-D_FORTIFY_SOURCE=2"], "host"),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m0", "-mthumb"], "newlib"),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m0", "-mthumb", "-fstack-protector-all"], "picolibc"),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"], "newlib"),
    ],
)
def test_symbols_of_operators_have_providers(tmp_path, compiler, flags, libc):
    source = """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    float soft(float a, float b) { return expf(a) / b + sqrtf(a) * tanhf(b) + roundf(a); }
    double wide(double a, int64_t b) { return pow(a, (double)b) + lrint(a) + floor(a); }
    int64_t whole(int64_t a, int64_t b, uint64_t c) {
        return a / b + (int64_t)(c % (uint64_t)a) + (a << (b & 7)); }
    void copy(char *a, const char *b, unsigned n) {
        char t[64]; strcpy(t, b); memcpy(a, t, n); memset(t, 0, n); }
    int bits(unsigned a) { return __builtin_popcount(a) + __builtin_clz(a) + (int)(a / 7u); }
    int choose(int a) { switch (a) { case 0: return 3; case 1: return 9; case 2: return 4; case 3: return 7;
        case 4: return 1; case 5: return 8; default: return 0; } }
    """
    item = inspect_object(compile_object(tmp_path, source, compiler, flags))
    one = item.members[0]
    unknown = [n for n in one.undefined if provider_of(n, one.abi.machine, libc) is None]
    canaries = [n for n in unknown if n.startswith("__stack_chk")]
    assert unknown == canaries  # Zephyr's own are not for prebuilt objects
    assert bool(canaries) == (libc != "host" and "-fstack-protector-all" in flags)


def piece(name, defines="", needs="", weak="", *, loose=False):
    symbols = [(s, 1, 2, 1) for s in defines.split()]
    symbols += [(s, 1, 0, 0) for s in needs.split()] + [(s, 2, 0, 0) for s in weak.split()]
    return read_member(name, build_elf(symbols=symbols), loose=loose)


def names(members):
    return [m.name for m in members]


CHAIN = [piece("c", "c"), piece("unused", "u", "c"), piece("a", "a", "b"), piece("b", "b", "c")]
CYCLE = [piece("a", "a", "b"), piece("b", "b", "a")]
TWICE = [piece("one", "f"), piece("two", "f g")]
LOOSE = [piece("archived", "f"), piece("loose", "f", "g", loose=True), piece("g", "g")]
WEAK = [piece("a", "a", weak="b"), piece("b", "b")]


@pytest.mark.parametrize(
    ("members", "wanted", "expected"),
    [
        (CHAIN, ["a"], ["c", "a", "b"]),
        (CHAIN, [], []),
        (CHAIN, ["nowhere"], []),
        (CYCLE, ["a"], ["a", "b"]),
        (TWICE, ["f"], ["one"]),
        (TWICE, ["g", "f"], ["two"]),
        (LOOSE, ["f"], ["loose", "g"]),
        (LOOSE, [], ["loose", "g"]),
        (WEAK, ["a"], ["a"]),
    ],
)
def test_needed_members_in_the_order_of_the_archive(members, wanted, expected):
    assert names(needed_members(members, wanted)) == expected


def test_members_equal_those_of_a_linker(tmp_path):
    need("gcc", "ar", "ld")
    sources = {
        "d": "int d(void) { return 4; }",
        "a": "int b(void), a2; int a(void) { return b(); }",
        "u": "int u(void) { return 9; }",
        "b": "int d(void); extern int w(void) __attribute__((weak)); int b(void) { return d() + (w ? w() : 0); }",
        "w": "int w(void) { return 1; }",
    }
    objects = [compile_object(tmp_path, text, flags=["-fno-pic"], name=f"{n}.o") for n, text in sources.items()]
    archive = make_archive(tmp_path / "lib.a", objects)
    link = ["ld", "-e", "a", "-u", "a", "-t", archive, "-o", tmp_path / "out"]
    result = subprocess.run(link, check=True, capture_output=True, text=True)
    taken = {line.rsplit("(", 1)[-1].rstrip(")") for line in result.stdout.splitlines() if "(" in line}
    item = inspect_object(archive)
    assert isinstance(item, ObjectFile)
    assert set(names(needed_members(item.members, ["a"]))) == (taken or {"a.o", "b.o", "d.o"})
    assert names(needed_members(item.members, ["a"])) == ["d.o", "a.o", "b.o"]
