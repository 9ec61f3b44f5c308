# SPDX-License-Identifier: Apache-2.0
"""Stack per function, compared with the output of compilers (`-fstack-usage`), and call graphs."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest
from elf_writer import build_elf
from objects_factory import compile_object
from opwest.objects.calls import UndecodedError, functions
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.stack import StackUse, read_su, stack_usage
from opwest.objects.unwind_tables import frame_size
from requirements_support import need
from scaling import check_linear

SOURCE = """
extern int sink(void *, ...);
extern int v;
int leaf(int a) { return a + 1; }
int big(int a) { volatile char b[300]; sink((void *)b); return b[a]; }
int huge(int a) { volatile char b[30000]; sink((void *)b); return b[a]; }
int many(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{ return sink(&v, a, b, c, d, e, f, g, h, i) + a + b + c; }
float sum(float *a, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * sink(a); return s; }
double wide(double a, double b, double c) { double x = a * b; sink(&x); return x * c + b * sink(0) + a; }
static __attribute__((noinline)) int clone(int a, int b) { sink(&a, b); return a * b; }
int twice(int a) { return clone(a, 3) + clone(a + 1, 3); }
"""
DYNAMIC = "extern int sink(void *, ...); int op(int n) { char x[n]; return sink(x); }"
M3 = ["-mcpu=cortex-m3", "-mthumb"]
M4F = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]
M0 = ["-mcpu=cortex-m0", "-mthumb"]
RV32 = ["-march=rv32imac", "-mabi=ilp32"]
RV64 = ["-march=rv64gc", "-mabi=lp64d"]
ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"


def read(path):
    return read_member(path.name, path.read_bytes())


def stem(name):
    """GCC omits the number of a clone: `clone.constprop.0` is `clone.constprop` in the .su file."""
    head, _, tail = name.rpartition(".")
    return head if head and tail.isdigit() else name


@pytest.mark.parametrize("optimize", ["-O2", "-O3"])
@pytest.mark.parametrize(
    ("compiler", "flags", "source"),
    [
        ("gcc", ["-m64"], ".eh_frame"),
        ("gcc", ["-m64", "-g", "-fno-asynchronous-unwind-tables"], ".debug_frame"),
        ("gcc", ["-m64", "-ffunction-sections", "-fno-pic"], ".eh_frame"),
        ("gcc", ["-m32"], ".eh_frame"),
        ("gcc", ["-m32", "-fno-pic", "-g", "-fno-asynchronous-unwind-tables"], ".debug_frame"),
        (ARM, [*M3, "-g"], ".debug_frame"),
        (ARM, [*M3, "-g", "-ffunction-sections"], ".debug_frame"),
        (ARM, [*M3, "-funwind-tables"], ".ARM.exidx"),
        (ARM, [*M3, "-funwind-tables", "-ffunction-sections"], ".ARM.exidx"),
        (ARM, [*M4F, "-g"], ".debug_frame"),
        (ARM, [*M4F, "-funwind-tables"], ".ARM.exidx"),
        (ARM, [*M0, "-funwind-tables"], ".ARM.exidx"),
        (ARM, ["-mcpu=cortex-r5", "-marm", "-mbig-endian", "-funwind-tables"], ".ARM.exidx"),
        (ARM, ["-mcpu=cortex-r5", "-marm", "-mbig-endian", "-g"], ".debug_frame"),
        (RISCV, [*RV32, "-g"], ".debug_frame"),
        (RISCV, [*RV32, "-funwind-tables", "-ffunction-sections"], ".eh_frame"),
        (RISCV, [*RV64, "-g", "-ffunction-sections"], ".debug_frame"),
        (RISCV, [*RV64, "-funwind-tables"], ".eh_frame"),
    ],
)
def test_unwind_data_equal_stack_usage_of_gcc(tmp_path, compiler, flags, source, optimize):
    path = compile_object(tmp_path, SOURCE, compiler, [*flags, optimize, "-fstack-usage"])
    expected = read_su(path.with_suffix(".su"))
    assert len(expected) >= 8
    found = {stem(n): use for n, use in stack_usage(read(path)).items() if not n.startswith("__x86.")}
    assert set(found) >= set(expected)
    for name, entry in expected.items():
        assert found[name] == StackUse(entry.bytes, source, True), name


@pytest.mark.parametrize(
    "flags",
    [
        ["-m64", "-fstack-size-section"],
        ["-m64", "-fstack-size-section", "-ffunction-sections"],
        ["-m32", "-fstack-size-section", "-ffreestanding"],
        ["--target=thumbv7m-none-unknown-eabi", "-fstack-size-section", "-ffunction-sections"],
        ["--target=aarch64-none-elf", "-fstack-size-section"],
        ["--target=riscv32-none-elf", "-fstack-size-section"],
    ],
)
def test_stack_sizes_of_llvm(tmp_path, flags):
    path = compile_object(tmp_path, SOURCE.replace("many", "other"), "clang", [*flags, "-fstack-usage"])
    member = read(path)
    expected = read_su(path.with_suffix(".su"))
    extra = {"x86-64": 8, "i386": 4}.get(member.abi.machine, 0)
    found = stack_usage(member)
    for name, entry in expected.items():
        assert entry.from_clang
        assert found[name].bytes is not None and found[name].exact
        if name != "other":  # pushes its arguments on x86, which is only in the unwind data
            assert found[name] == StackUse(entry.bytes + extra, ".stack_sizes", True), name
    with_su = stack_usage(member, expected)
    assert with_su["big"] == StackUse(expected["big"].bytes + extra, ".su", True)


def test_pushed_arguments_that_llvm_does_not_count(tmp_path):
    path = compile_object(tmp_path, SOURCE, "clang", ["-m64", "-fstack-size-section", "-fstack-usage"])
    counted = read_su(path.with_suffix(".su"))["many"].bytes
    use = stack_usage(read(path))["many"]
    assert use.source == ".eh_frame" and use.bytes is not None and use.bytes > counted + 8


def test_frame_pointer_gives_a_lower_bound(tmp_path):
    path = compile_object(tmp_path, SOURCE, flags=["-m64", "-fno-omit-frame-pointer"])
    use = stack_usage(read(path))["big"]
    assert not use.exact and not use.known and use.bytes is not None and 16 <= use.bytes < 300
    assert str(use) == f"at least {use.bytes} bytes"


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", ["-m64"]), (ARM, [*M3, "-g"]), (ARM, [*M3, "-funwind-tables"]), (RISCV, [*RV32, "-g"])],
)
def test_dynamic_frames_are_never_exact(tmp_path, compiler, flags):
    path = compile_object(tmp_path, DYNAMIC, compiler, [*flags, "-fstack-usage"])
    (entry,) = read_su(path.with_suffix(".su")).values()
    assert not entry.exact
    assert not stack_usage(read(path))["op"].known
    with_su = stack_usage(read(path), {"op": entry})["op"]
    assert not with_su.exact and with_su.bytes == entry.bytes


def test_stack_is_unknown_without_sources(tmp_path):
    path = compile_object(tmp_path, SOURCE, ARM, M3)
    found = stack_usage(read(path))
    assert {"leaf", "big", "clone.constprop.0"} <= set(found)
    assert all(use == StackUse() and not use.known and str(use) == "unknown" for use in found.values())
    assert stack_usage(read(path), {"leaf": 0, "big": 320})["big"] == StackUse(320, ".su")


def test_leaf_that_cannot_be_unwound_is_unknown(tmp_path):
    """EXIDX_CANTUNWIND does not contain the size of the frame."""
    path = compile_object(tmp_path, SOURCE, ARM, [*M3, "-fexceptions"])
    found = stack_usage(read(path))
    assert found["leaf"] == StackUse() and found["big"].known
    path = compile_object(tmp_path, SOURCE, ARM, [*M3, "-funwind-tables"])
    assert stack_usage(read(path))["leaf"] == StackUse(0, ".ARM.exidx")


def test_partial_links(tmp_path):
    need("arm-none-eabi-ld", "riscv64-unknown-elf-ld")
    for compiler, flags, linker in (
        (ARM, [*M3, "-g", "-funwind-tables"], ["arm-none-eabi-ld"]),
        (RISCV, [*RV64, "-g"], ["riscv64-unknown-elf-ld", "-m", "elf64lriscv"]),
        ("gcc", ["-m64"], ["ld"]),
    ):
        one = compile_object(tmp_path, SOURCE, compiler, flags, name="one.o")
        two = compile_object(tmp_path, DYNAMIC, compiler, [*flags, "-fomit-frame-pointer"], name="two.o")
        subprocess.run([*linker, "-r", "-o", tmp_path / "both.o", two, one], check=True)
        found, alone = stack_usage(read(tmp_path / "both.o")), stack_usage(read(one))
        assert {name: found[name] for name in alone if not name.startswith("__x86.")} == alone


def test_cold_parts_and_aliases(tmp_path):
    source = """
    extern void out(void *) __attribute__((cold, noreturn));
    int op(int a) { char b[64]; if (a > 3) out(b); return a; }
    int same(int) __attribute__((alias("op")));
    """
    found = stack_usage(read(compile_object(tmp_path, source)))
    assert found["op"] == found["same"] and found["op"].known
    assert "op.cold" not in found or found["op.cold"].known


def test_su_files(tmp_path):
    path = tmp_path / "x.su"
    path.write_text(
        "a.c:4:5:leaf\t0\tstatic\n"
        "C:\\work dir\\a.c:10:7:conv\t64\tdynamic,bounded\r\n"
        "a.c:7:clang_one\t48\tstatic\n"
        "\n"
        "a.c:8:5:grow\t16\tdynamic\n"
        "n.cc:3:5:int ns::f(std::pair<int, int>, a::b)\t24\tstatic\n"
        "b.c:1:1:leaf\t8\tstatic\n"
    )
    found = read_su(path)
    assert found["leaf"].bytes == 8
    assert found["conv"].exact and not found["conv"].from_clang
    assert found["clang_one"].from_clang
    assert not found["grow"].exact
    assert found["int ns::f(std::pair<int, int>, a::b)"].bytes == 24


@pytest.mark.parametrize(
    "text", ["a.c:1:1:f\t12\n", "a.c:1:1:f\t-4\tstatic\n", "f\t4\tstatic\n", "a.c:1:f\t4\tmaybe\n", "\0\n"]
)
def test_invalid_su_files(tmp_path, text):
    (tmp_path / "x.su").write_text("a.c:1:1:g\t4\tstatic\n" + text)
    with pytest.raises(ObjectError, match=r"line 2 does not have the format of a \.su file"):
        read_su(tmp_path / "x.su")
    with pytest.raises(ObjectError, match="cannot read"):
        read_su(tmp_path / "none.su")


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("b0 b0 b0", (0, True)),
        ("84 08", (8, True)),  # pop {r7, lr}
        ("3f 01 a8", (0x100 + 8 + 8, True)),  # vsp += 256, 8; pop {r4, lr}
        ("b2 04 b0", (0x204 + 16, True)),
        ("97 01 84 08", (16, False)),  # vsp = r7
        ("c9 81 b0", (16, True)),  # pop {d8, d9}
        ("b1 0f b4", (20, True)),  # pop {r0-r3}, authentication code
        ("d1 b9", (16 + 20, True)),
        ("00 40", (0, True)),
        ("82 00", (4, False)),  # pop {sp}
    ],
)
def test_instructions_of_arm_tables(codes, expected):
    assert frame_size(bytes.fromhex(codes)) == expected


@pytest.mark.parametrize(
    "codes", ["80 00", "41", "b1 00", "b1 10", "ca", "e0", "b2", "b2 ff ff ff ff ff ff ff ff ff ff", "a8 84"]
)
def test_invalid_unwind_instructions(codes):
    with pytest.raises(ObjectError):
        frame_size(bytes.fromhex(codes))


@pytest.mark.slow
def test_time_is_linear_in_the_functions(tmp_path):
    def use(count):
        functions = "".join(f"int f{n}(int a) {{ char b[{n % 64 + 1}]; return sink(b) + a; }}\n" for n in range(count))
        flags = ["-O0", "-fomit-frame-pointer", "-ffunction-sections"]
        path = compile_object(tmp_path, f"extern int sink(void *);\n{functions}", flags=flags, name=f"{count}.o")
        member = read(path)

        def check():
            found = stack_usage(member)
            assert len(found) == count and all(use.known for use in found.values())

        return check

    check_linear(use(100), use(800))


def test_object_without_symbols():
    assert stack_usage(read_member("x.o", build_elf(symbol_table=False))) == {}


# --- Call graphs, decoded from objects of several compilers of one source

CALLERS = """
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


def named(found):
    names = {function.place: function.name for function in found}
    return {
        f.name: ({callee if isinstance(callee, str) else names[callee] for callee in f.callees}, f.indirect)
        for f in found
    }


@pytest.mark.parametrize("optimize", ["-Os", "-O2", "-O0"])
@pytest.mark.parametrize("target", COMPILERS)
def test_calls_of_every_machine(target, optimize, tmp_path):
    compiler, flags = COMPILERS[target]
    path = compile_object(tmp_path, CALLERS, compiler, [*flags, optimize], "o.o")
    found = named(functions(read(path)))
    for name, callees in CALLED.items():
        # Position-independent code of i386 gets its address by a call; soft floating point is in libgcc.
        others = {c for c in found[name][0] if not c.startswith(("__x86", "__aeabi", "__riscv"))}
        assert (others, found[name][1]) == (callees, name.startswith("point")), name
    soft = {"cortex-m0": "__aeabi_fdiv", "cortex-m3": "__aeabi_fdiv", "rv32": "__divsf3"}
    assert found["divides"] == ({soft[target]} if target in soft else found["divides"][0], False)


def test_tables_of_jumps(tmp_path):
    """Thumb has instructions for jump tables; on other machines they count as calls through a pointer."""
    body = "".join(f"case {i}: x[{i * i}] = {i}; return ext(x[{i}]);" for i in range(8))
    source = f"extern int ext(int); int jumps(int n, int *x) {{ switch (n) {{ {body} }} return 0; }}"
    path = compile_object(tmp_path, source, "arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-O2"], "m3.o")
    assert named(functions(read(path))) == {"jumps": ({"ext"}, False)}
    path = compile_object(tmp_path, source, "gcc", ["-O2", "-fno-pic"], "x.o")
    assert named(functions(read(path))) == {"jumps": ({"ext"}, True)}


def test_data_between_instructions_is_not_decoded(tmp_path):
    """A word that decodes as `bl` to itself, after an instruction that jumps over it."""
    need("arm-none-eabi-gcc")
    source = """
__attribute__((naked)) int op(void)
{ __asm__ volatile("b 1f\\n .word 0xf800f000\\n .short 0x4780\\n 1: mov r0, #1\\n bx lr\\n"); }
"""
    path = compile_object(tmp_path, source, "arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-O2"], "o.o")
    assert named(functions(read(path))) == {"op": (set(), False)}


def test_calls_are_unknown_without_capstone_and_for_other_machines(tmp_path, monkeypatch):
    path = compile_object(tmp_path, CALLERS, "gcc", ["-O2"], "o.o")
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
def test_a_damaged_capstone_is_not_an_absent_one(tmp_path, monkeypatch, text, reason):
    path = compile_object(tmp_path, CALLERS, "gcc", ["-O2"], "o.o")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "capstone.py").write_text(text)
    monkeypatch.delitem(sys.modules, "capstone", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(UndecodedError) as raised:
        functions(read(path))
    assert str(raised.value) == f"cannot import capstone: {reason}"


def test_damaged_objects_raise_nothing_else(tmp_path):
    member = read(compile_object(tmp_path, CALLERS, "gcc", ["-O1"], "o.o"))
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
def test_nested_functions_are_decoded_in_bounded_time(tmp_path):
    nop = ".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0"
    labels = "".join(f".globl f{i}\n.type f{i}, %function\nf{i}: {nop}\n.size f{i}, 4000\n" for i in range(200))
    source = f"__asm__({''.join(chr(34) + line + chr(92) + 'n' + chr(34) for line in labels.splitlines())});"
    member = read(compile_object(tmp_path, source, "gcc", [], "o.o"))
    with pytest.raises(ObjectError, match="functions overlap"):
        functions(member)
