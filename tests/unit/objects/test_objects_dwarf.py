# SPDX-License-Identifier: Apache-2.0
"""Signatures and structures from debug information, and how signatures are compared."""

import subprocess

import pytest
from campaign import sized
from objects_factory import compile_object
from opwest.objects.dwarf_signatures import NO_DEBUG_INFORMATION, DeclaredParameter, compare, signatures
from opwest.objects.dwarf_types import POINTER_TO_CONST
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from requirements_support import need
from scaling import check_linear

# --- Signatures from debug information, and how they are compared

SOURCE = """
#ifdef __riscv
typedef signed char int8_t; typedef unsigned char uint8_t; typedef long int int32_t; typedef unsigned short uint16_t;
#else
#include <stdint.h>
#endif
struct device;
typedef struct device handle;
enum mode { A, B };
typedef const float constant;
typedef struct { int a; } unnamed;
int32_t conv(const int8_t *data, const float *weight, int8_t *restrict out, const struct device *dev)
{ return data[0] + (int)weight[0]; }
void dense(uint8_t *a, volatile constant *b, float c, double d, enum mode m, _Bool q, void *p, unnamed *u, handle *h,
           long l, char *s, int (*back)(int)) { }
int variadic(int a, ...) { return a; }
long old(a, b) float *a; int b; { return b; }
static inline int inner(int8_t *x) { return *x; }
int inlined(int8_t *x) { return inner(x); }
int user(int8_t *x) { return inlined(x) + 1; }
unsigned short array(int8_t a[3][4], uint16_t **p) { return 1; }
static int hidden(void) { return 1; }
int (*leak(void))(void) { return hidden; }
int named(int8_t *x) __asm__("other_name");
int named(int8_t *x) { return *x; }
"""
EXPECTED = {
    "conv": "int32_t (const int8_t *, const float *, int8_t *, const struct device *)",
    "dense": "void (uint8_t *, const constant *, float, double, enum mode, _Bool, void *, unnamed *, handle *, long, "
    "char *, a pointer to a function)",
    "variadic": "int (int, ...)",
    "old": "long (float *, int)",
    "inlined": "int (int8_t *)",
    "user": "int (int8_t *)",
    "array": "unsigned short (int8_t *, uint16_t **)",
    "leak": "a pointer to a function (void)",
    "other_name": "int (int8_t *)",
}
ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
MACHINES = [
    ("gcc", ["-m64"]),
    ("gcc", ["-m32"]),
    (ARM, ["-mcpu=cortex-m3", "-mthumb"]),
    (ARM, ["-mcpu=cortex-r5", "-marm", "-mbig-endian"]),
    (RISCV, ["-march=rv32imac", "-mabi=ilp32"]),
    (RISCV, ["-march=rv64gc", "-mabi=lp64d"]),
    ("clang", ["-m64"]),
    ("clang", ["-m32", "-ffreestanding"]),
    ("clang", ["--target=thumbv7m-none-unknown-eabi", "-ffreestanding"]),
    ("clang", ["--target=aarch64-none-elf", "-ffreestanding"]),
    ("clang", ["--target=aarch64_be-none-elf", "-ffreestanding"]),
    ("clang", ["--target=riscv32-none-elf"]),
    ("clang", ["--target=riscv64-none-elf"]),
]
QUIET = ["-w", "-O2"]


def found(path):
    result = signatures(read_member(path.name, path.read_bytes()))
    assert isinstance(result, dict), result
    return result


def words(path):
    """Return the signatures as text; GCC writes `long int`, clang writes `long`."""
    texts = {name: str(signature) for name, signature in found(path).items()}
    return {n: t.replace("long int", "long").replace("short unsigned int", "unsigned short") for n, t in texts.items()}


@pytest.mark.parametrize("version", ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize(("compiler", "flags"), MACHINES)
def test_unlinked_objects_of_every_machine(tmp_path, compiler, flags, version):
    assert words(compile_object(tmp_path, SOURCE, compiler, [*flags, *QUIET, version])) == EXPECTED
    assert words(compile_object(tmp_path, SOURCE, compiler, [*flags, "-w", "-O0", version])) == EXPECTED


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_64_bit_dwarf_and_sections_of_types(tmp_path, compiler):
    assert words(compile_object(tmp_path, SOURCE, compiler, [*QUIET, "-gdwarf-5", "-gdwarf64"])) == EXPECTED
    for version in ("-gdwarf-4", "-gdwarf-5"):
        flags = [*QUIET, version, "-fdebug-types-section"]
        seen = words(compile_object(tmp_path, SOURCE, compiler, flags))
        assert seen["conv"] == EXPECTED["conv"] and set(seen) == set(EXPECTED)


def test_partial_links(tmp_path):
    need("ld", "riscv64-unknown-elf-ld", RISCV)
    for compiler, flags, linker in (
        ("gcc", ["-m64"], ["ld"]),
        (RISCV, ["-march=rv32imac", "-mabi=ilp32"], ["riscv64-unknown-elf-ld", "-m", "elf32lriscv"]),
    ):
        one = compile_object(tmp_path, SOURCE, compiler, [*flags, *QUIET, "-g"], name="one.o")
        two = compile_object(tmp_path, "float extra(double *x) { return *x; }", compiler, [*flags, "-g"], name="two.o")
        subprocess.run([*linker, "-r", "-o", tmp_path / "both.o", two, one], check=True)
        assert words(tmp_path / "both.o") == {**EXPECTED, "extra": "float (double *)"}


def test_unreadable_signatures_are_explained(tmp_path):
    def sentence(*flags):
        path = compile_object(tmp_path, SOURCE, flags=[*QUIET, *flags])
        result = signatures(read_member("x.o", path.read_bytes()))
        assert isinstance(result, str) and result.startswith("signature not checked: ")
        return result

    assert sentence() == NO_DEBUG_INFORMATION
    assert "-gz=none" in sentence("-g", "-gz")
    for version in ("-gdwarf-4", "-gdwarf-5"):
        assert "-gsplit-dwarf" in sentence(version, "-gsplit-dwarf")


def test_types_in_detail(tmp_path):
    path = compile_object(tmp_path, SOURCE, RISCV, ["-march=rv32imac", "-mabi=ilp32", *QUIET, "-g"])
    conv, dense = found(path)["conv"], found(path)["dense"]
    assert (conv.returns.kind, conv.returns.size, conv.returns.signed) == ("integer", 4, True)
    first = conv.parameters[0].target
    assert first is not None and (first.kind, first.size, first.signed, first.const) == ("integer", 1, True, True)
    device = conv.parameters[3].target
    assert device is not None and device.kind == "struct" and device.name == "struct device" and device.const
    handle = dense.parameters[8].target
    assert handle is not None and handle.names == {"handle", "struct device"}
    text = dense.parameters[10].target
    assert text is not None and text.signed is None  # plain char is either


WANTED = [
    DeclaredParameter("data", "const int8_t *", "int8 tensor"),
    DeclaredParameter("weight", "const int8_t *", "int8 tensor"),
    DeclaredParameter("result", "int8_t *", "int8 tensor"),
    DeclaredParameter("device", "const struct device *"),
]


def signature_of(tmp_path, declaration, flags=("-m32",)):
    source = (
        "typedef signed char int8_t; typedef unsigned char uint8_t; typedef int int32_t; typedef unsigned uint32_t;"
        "typedef unsigned short uint16_t; typedef long long int64_t; struct device; struct other; enum e { A, B };"
        f"{declaration} {{ __builtin_trap(); }}"
    )
    return found(compile_object(tmp_path, source, flags=[*flags, "-g", "-w"]))["f"]


def test_differences_as_text(tmp_path):
    good = signature_of(tmp_path, "int32_t f(const int8_t *a, const int8_t *b, int8_t *c, const struct device *d)")
    assert compare(good, "status", WANTED) == []
    assert compare(good, "void", WANTED) == ["declared with `returns: void`, the function returns int32_t"]
    bad = signature_of(tmp_path, "void f(const int8_t *a, float *b, const int8_t *c, struct other *d)")
    assert compare(bad, "status", WANTED) == [
        "declared to return a status (int32_t), the function returns void (declare it with `returns: void`)",
        "argument 2 'weight' is int8 tensor (const int8_t *), the function takes float *",
        "argument 3 'result' is int8 tensor (int8_t *), the function takes const int8_t * and does not write it",
        "argument 4 'device' is const struct device *, the function takes struct other *",
    ]
    assert compare(bad, "void", WANTED[:2]) == [
        "2 arguments declared, the function takes 4: void (const int8_t *, float *, const int8_t *, struct other *)"
    ]
    assert "takes variable arguments" in compare(signature_of(tmp_path, "int f(void *a, ...)"), "status", WANTED)[0]
    assert compare(signature_of(tmp_path, "int64_t f(void)"), "status", []) == [
        "declared to return a status (int32_t), the function returns int64_t"
    ]


@pytest.mark.parametrize(
    ("wanted", "seen", "fits"),
    [
        ("const int8_t *", "char *", True),
        ("uint8_t *", "char *", True),
        ("uint8_t *", "_Bool *", True),
        ("int8_t *", "_Bool *", False),
        ("int8_t *", "uint8_t *", False),
        ("const float *", "void *", True),
        ("const struct device *", "void *", True),
        ("const struct device *", "struct device *", True),
        ("const struct device *", "const struct other *", False),
        ("const struct device *", "int", False),
        ("const int8_t *", "int8_t **", False),
        ("uint16_t *", "_Float16 *", True),
        ("uint16_t", "_Float16", False),
        ("float *", "double *", False),
        ("int8_t *", "int8_t a[4][4] *", True),
        ("int32_t", "long", True),
        ("int32_t", "enum e", True),
        ("int32_t", "int64_t", False),
        ("int32_t", "uint32_t", False),
        ("int32_t", "float", False),
        ("int32_t", "int32_t *", False),
        ("float", "float", True),
        ("float", "double", False),
        ("bool", "_Bool", True),
        ("uint8_t", "_Bool", True),
        ("int64_t", "long long", True),
        ("int32_t *", "long *", True),
        ("int32_t *", "enum e *", True),
    ],
)
def test_compatible_debug_types(tmp_path, wanted, seen, fits):
    parameter = "int8_t a[4][4]" if "[" in seen else f"{seen} a"
    flags = ("-m32", "-msse2", "-mfpmath=sse") if "Float16" in seen else ("-m32",)
    signature = signature_of(tmp_path, f"void f({parameter})", flags)
    assert (compare(signature, "void", [DeclaredParameter("x", wanted)]) == []) == fits


def test_long_is_not_int32_on_64_bits(tmp_path):
    signature = signature_of(tmp_path, "int f(long a)", ("-m64",))
    assert compare(signature, "status", [DeclaredParameter("n", "int32_t", "int32")]) == [
        "argument 1 'n' is int32 (int32_t), the function takes long int"
    ]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    commands = [
        ("gcc", ["-m64", "-gdwarf-5"]),
        ("gcc", ["-m32", "-gdwarf-4"]),
        (RISCV, ["-march=rv32imac", "-mabi=ilp32", "-g"]),
        ("clang", ["--target=thumbv7m-none-unknown-eabi", "-ffreestanding", "-gdwarf-5"]),
    ]
    return [
        compile_object(folder, SOURCE, compiler, [*flags, *QUIET], name=f"{n}.o").read_bytes()
        for n, (compiler, flags) in enumerate(commands)
    ]


def test_truncated_debug_sections(samples):
    for content in samples:
        member = read_member("x.o", content)
        elf = parse_elf(content)
        for index, section in enumerate(elf.sections):
            if not section.name.startswith(".debug_"):
                continue
            wide = elf.layout.bits == 64
            at = elf.table_offset + index * elf.layout.section.size + (32 if wide else 20)
            for size in range(0, section.size, max(1, section.size // sized(6, 20))):
                damaged = bytearray(content)
                damaged[at : at + 4] = size.to_bytes(4, elf.layout.endian)
                object.__setattr__(member, "content", bytes(damaged))
                assert signatures(member) is not None


@pytest.mark.slow
def test_time_is_linear_in_the_functions(tmp_path):
    def use(count):
        functions = "".join(
            f"int f{n}(const signed char *a, float *b, int n) {{ int s = n; return a[s] + (b == 0); }}\n"
            for n in range(count)
        )
        path = compile_object(tmp_path, functions, flags=["-O0", "-g", "-ffunction-sections"], name=f"{count}.o")

        def check():
            assert len(found(path)) == count

        return check

    check_linear(use(100), use(800))


NESTED = """
namespace outer { namespace inner {
int plain(const signed char *x, float *y) { return x[0] + (int)y[0]; }
extern "C" int exported(const signed char *x, float *y) { return plain(x, y); }
} }
"""


def test_namespaces_and_second_names(tmp_path):
    """Functions in namespaces have signatures; a second name has that of the function at its address, no other."""
    need("g++", "objcopy")
    source, made = tmp_path / "n.cpp", tmp_path / "n.o"
    source.write_text(NESTED)
    subprocess.run(["g++", "-g", "-O0", "-c", source, "-o", made], check=True)
    for command in (
        ["--add-symbol", "plain=.text:0,global,function"],
        ["--add-symbol", "inner=.text:2,global,function"],
    ):
        subprocess.run(["objcopy", *command, made], check=True)
    seen = signatures(read_member("n.o", made.read_bytes()))
    assert isinstance(seen, dict)
    assert {name: str(one) for name, one in seen.items()} == {
        "_ZN5outer5inner5plainEPKaPf": "int (const signed char *, float *)",
        "exported": "int (const signed char *, float *)",
        "plain": "int (const signed char *, float *)",
    }
    # The same name at another address is another function.
    moved = made.read_bytes()
    subprocess.run(
        ["objcopy", "--strip-symbol=plain", "--add-symbol", "plain=.text:1,global,function", made], check=True
    )
    assert made.read_bytes() != moved
    again = signatures(read_member("n.o", made.read_bytes()))
    assert isinstance(again, dict)
    assert "plain" not in again


@pytest.mark.parametrize(
    ("name", "const"),
    [
        ("*const i8", True), ("*mut i8", False), ("&i8", True), ("&mut [f32; 4]", False), ("[*]const i8", True),
        ("[*]i8", False), ("[*c]const u8", True), ("[*:0]const u8", True), ("*align(4) const f32", True),
        ("*align(4) f32", False), ("", False), ("*const fn", True),
    ],
)  # fmt: skip
def test_const_in_names_of_pointers(name, const):
    """Rust and Zig record const in the name of a pointer type."""
    assert bool(POINTER_TO_CONST.match(name)) is const


# --- Sizes and alignments of structures, from debug information, against those of the compiler

STRUCTURES = {
    "bytes": "char a[3]; unsigned char b;",
    "halves": "short a; char b;",
    "wide": "char a; long long b;",
    "doubles": "char a; double b[2]; float c;",
    "pointers": "char a; void (*f)(int); const int *p;",
    "nested": "char a; struct { short x; struct { int y; } z[2]; } b;",
    "unions": "char a; union { char c; long long d; } b;",
    "bits": "unsigned a : 3; unsigned b : 7; char c;",
    "enums": "enum { A, B } a; _Bool b;",
    "empty": "char a[0]; short b;",
    "complex": "float _Complex a[2];",
    "set": "char a; int b __attribute__((aligned(32)));",
    "vectors": "float a; ints_t b;",
    "short_vectors": "const shorts_t a[2]; char b;",
    "typed": "char a; index_t b; const volatile index_t c;",
}
FLAGS = [
    ("gcc", []), ("gcc", ["-m32"]), ("clang", []), ("arm-none-eabi-gcc", ["-mcpu=cortex-m4", "-mthumb"]),
    ("riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32", "-msmall-data-limit=0"]),
]  # fmt: skip


@pytest.mark.parametrize(("compiler", "flags"), FLAGS)
def test_sizes_and_alignments(tmp_path, compiler, flags):
    """The sizes and alignments of structures are those that the compiler uses."""
    lines = ["typedef long long index_t;"]
    lines.append("typedef int ints_t __attribute__((vector_size(16)));")
    lines.append("typedef short shorts_t __attribute__((vector_size(8)));")
    for name, members in STRUCTURES.items():
        lines += [
            f"struct {name} {{ {members} }}; int use_{name}(struct {name} *s) {{ return !s; }}",
            f"const unsigned char facts_{name}[] = {{ sizeof(struct {name}), _Alignof(struct {name}) }};",
        ]
    lines.append("typedef struct { char a; short b; } __attribute__((packed)) tight;")
    lines.append("int use_tight(const tight *s) { return !s; } const unsigned char facts_tight[] = { 3, 1 };")
    lines.append("struct opaque; int use_opaque(struct opaque *s) { return !s; }")
    path = compile_object(tmp_path, "\n".join(lines), compiler, [*flags, "-g", "-O0", "-fno-pic", "-fdata-sections"])
    item = inspect_object(path)
    assert isinstance(item, ObjectFile)
    found = signatures(item.members[0])
    assert isinstance(found, dict)
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        expected = {
            name: tuple(elf.get_section_by_name(f".rodata.facts_{name}").data()[:2]) for name in (*STRUCTURES, "tight")
        }
    seen = {}
    for name in expected:
        target = found[f"use_{name}"].parameters[0].target
        assert target is not None
        seen[name] = (target.size, target.align)
    assert seen == expected
    opaque = found["use_opaque"].parameters[0].target
    assert opaque is not None and (opaque.size, opaque.align) == (0, 1)
