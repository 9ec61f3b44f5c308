# SPDX-License-Identifier: Apache-2.0
"""Call graphs, decoded from objects of several compilers of one source."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.objects.calls import Function, UndecodedError, functions
from opwest.objects.facts import Member, ObjectError
from opwest.objects.inspect import read_member
from requirements_support import need

SOURCE = """
extern int ext(int);
extern int table[];
static __attribute__((noinline)) int leaf(int *x, int n)
{ volatile int b[16]; for (int i = 0; i < n; i++) b[i & 15] = x[i]; return b[3] + table[n]; }
static __attribute__((noinline)) int again(int n) { return n < 2 ? 1 : again(n - 1) * 2 + again(n - 2) % 7; }
int below(int *x, int n) { volatile char a[100]; a[n] = 1; return leaf(x, n) + a[n - 1]; }
int tail(int *x, int n) { x[0]++; return leaf(x, n); }
int recursive(int n) { return again(n) + 1; }
int pointer(int (*f)(int), int n) { return f(n) + 1; }
int pointed_tail(int (*f)(int), int n) { return f(n); }
int outside(int n) { return ext(n) + ext(n + 1); }
int loops(int *x, int n) { int s = 0; for (int i = 0; i < n; i++) { if (x[i] > 3) s += x[i]; else s ^= i; } return s; }
float divides(float a, float b) { return a / b; }
"""
CALLED = {
    "leaf": set(),
    "again": {"again"},
    "below": {"leaf"},
    "tail": {"leaf"},
    "recursive": {"again"},
    "pointer": set(),
    "pointed_tail": set(),
    "outside": {"ext"},
    "loops": set(),
}
RISCV = "riscv64-unknown-elf-gcc"
COMPILERS = {
    "x86-64": ("gcc", ["-m64", "-fno-pic"]),
    "x86-64-pic": ("gcc", ["-m64", "-fPIC", "-fcf-protection=full"]),
    "x86-64-no-plt": ("gcc", ["-m64", "-fPIC", "-fno-plt"]),
    "i386": ("gcc", ["-m32", "-fno-pic"]),
    "i386-sections": ("gcc", ["-m32", "-fno-pic", "-ffunction-sections"]),
    "cortex-m0": ("arm-none-eabi-gcc", ["-mcpu=cortex-m0", "-mthumb"]),
    "cortex-m3": ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb"]),
    "cortex-m3-sections": ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-ffunction-sections"]),
    "cortex-m55": ("arm-none-eabi-gcc", ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"]),
    "cortex-m3-clang": ("clang", ["--target=thumbv7m-none-eabi"]),
    "aarch64-clang": ("clang", ["--target=aarch64-none-elf"]),
    "rv32": (RISCV, ["-march=rv32imac", "-mabi=ilp32"]),
    "rv64": (RISCV, ["-march=rv64gc", "-mabi=lp64d"]),
    "rv32-no-relax": (RISCV, ["-march=rv32imac", "-mabi=ilp32", "-mno-relax"]),
}


def read(path: Path) -> Member:
    return read_member(path.name, path.read_bytes())


def named(found: list[Function]) -> dict[str, tuple[set[str], bool]]:
    names = {function.place: function.name for function in found}
    return {
        f.name: ({callee if isinstance(callee, str) else names[callee] for callee in f.callees}, f.indirect)
        for f in found
    }


@pytest.mark.parametrize("optimize", ["-Os", "-O2", "-O0"])
@pytest.mark.parametrize("target", COMPILERS)
def test_calls_of_every_machine(target: str, optimize: str, tmp_path: Path) -> None:
    compiler, flags = COMPILERS[target]
    path = compile_object(tmp_path, SOURCE, compiler, [*flags, optimize], "o.o")
    found = named(functions(read(path)))
    for name, callees in CALLED.items():
        # Position-independent code of i386 gets its address by a call; soft floating point is in libgcc.
        others = {c for c in found[name][0] if not c.startswith(("__x86", "__aeabi", "__riscv"))}
        assert (others, found[name][1]) == (callees, name.startswith("point")), name
    soft = {"cortex-m0": "__aeabi_fdiv", "cortex-m3": "__aeabi_fdiv", "rv32": "__divsf3"}
    assert found["divides"] == ({soft[target]} if target in soft else found["divides"][0], False)


def test_tables_of_jumps(tmp_path: Path) -> None:
    """Thumb has instructions for jump tables; on other machines they count as calls through a pointer."""
    body = "".join(f"case {i}: x[{i * i}] = {i}; return ext(x[{i}]);" for i in range(8))
    source = f"extern int ext(int); int jumps(int n, int *x) {{ switch (n) {{ {body} }} return 0; }}"
    path = compile_object(tmp_path, source, "arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-O2"], "m3.o")
    assert named(functions(read(path))) == {"jumps": ({"ext"}, False)}
    path = compile_object(tmp_path, source, "gcc", ["-O2", "-fno-pic"], "x.o")
    assert named(functions(read(path))) == {"jumps": ({"ext"}, True)}


def test_data_between_instructions_is_not_decoded(tmp_path: Path) -> None:
    """A word that decodes as `bl` to itself, after an instruction that jumps over it."""
    need("arm-none-eabi-gcc")
    source = """
__attribute__((naked)) int op(void)
{ __asm__ volatile("b 1f\\n .word 0xf800f000\\n .short 0x4780\\n 1: mov r0, #1\\n bx lr\\n"); }
"""
    path = compile_object(tmp_path, source, "arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-O2"], "o.o")
    assert named(functions(read(path))) == {"op": (set(), False)}


def test_calls_are_unknown_without_capstone_and_for_other_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compile_object(tmp_path, SOURCE, "gcc", ["-O2"], "o.o")
    monkeypatch.setitem(sys.modules, "capstone", None)
    with pytest.raises(UndecodedError, match=r"^capstone is not installed$"):
        functions(read(path))
    monkeypatch.undo()
    assert functions(read(path))
    path = compile_object(tmp_path, "int op(int x) { return x; }", "arm-none-eabi-gcc", ["-mbig-endian"], "b.o")
    with pytest.raises(UndecodedError, match=r"^big-endian code$"):
        functions(read(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ImportError('ERROR: fail to load the dynamic library.')", "ERROR: fail to load the dynamic library."),
        ("raise OSError('invalid ELF header')", "invalid ELF header"),
        ("import absent_part_of_capstone", "No module named 'absent_part_of_capstone'"),
    ],
)
def test_a_damaged_capstone_is_not_an_absent_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    path = compile_object(tmp_path, SOURCE, "gcc", ["-O2"], "o.o")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "capstone.py").write_text(text)
    monkeypatch.delitem(sys.modules, "capstone", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(UndecodedError) as raised:
        functions(read(path))
    assert str(raised.value) == f"cannot import capstone: {reason}"


def test_damaged_objects_raise_nothing_else(tmp_path: Path) -> None:
    member = read(compile_object(tmp_path, SOURCE, "gcc", ["-O1"], "o.o"))
    source = random.Random(7)
    read_all = 0
    for _ in range(300):
        damaged = bytearray(member.content)
        for _ in range(source.randint(1, 6)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            functions(replace(member, content=bytes(damaged)))
            read_all += 1
        except (ObjectError, UndecodedError):
            pass
    assert read_all > 100


@pytest.mark.slow
def test_nested_functions_are_decoded_in_bounded_time(tmp_path: Path) -> None:
    nop = ".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0"
    labels = "".join(f".globl f{i}\n.type f{i}, %function\nf{i}: {nop}\n.size f{i}, 4000\n" for i in range(200))
    source = f"__asm__({''.join(chr(34) + line + chr(92) + 'n' + chr(34) for line in labels.splitlines())});"
    member = read(compile_object(tmp_path, source, "gcc", [], "o.o"))
    with pytest.raises(ObjectError, match="functions overlap"):
        functions(member)
