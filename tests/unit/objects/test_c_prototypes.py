# SPDX-License-Identifier: Apache-2.0
"""Prototypes of headers: the same as debug information, through macros and includes; what is not read is named."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from objects_factory import compile_object
from opwest.objects.c_expressions import evaluate
from opwest.objects.c_prototypes import read_declarations
from opwest.objects.c_types import ANY_MODEL, data_model
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import inspect_object

HEADER = """\
#ifndef OPS_H
#define OPS_H
#include <stdint.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__) && __GNUC__ >= 4 /* export */
#  define OPS_API __attribute__((visibility("default")))
#else
#  error "unknown compiler"
#endif
#define OPS_CALL(name) ops_##name
#define TAPS (1 << 2)
typedef int8_t q7; typedef float vec_t[TAPS * 2];
typedef enum { SAME, VALID = 1 } pad_t;
enum far { NEAR = -200, FAR = 70000 };
typedef struct ctx { uint8_t on; double z[TAPS]; struct { int16_t a, b; } pair; const void *p; } ctx_t;
struct __attribute__((packed)) tight { uint8_t a; uint32_t b; };
union both { float f; uint16_t h[3]; };
struct opaque;
OPS_API int32_t OPS_CALL(conv)(const q7 *restrict x, q7 const w[3][TAPS],
	q7 *y, pad_t pad, enum far reach) __attribute__((nonnull(1)));
OPS_API void OPS_CALL(iir)(ctx_t *c, const vec_t x, vec_t y, const struct tight *t, union both *u), ops_two(float *x);
unsigned long long sizes(size_t n, long l, unsigned short s, unsigned char c, _Bool b, double d, char k, const char *t);
float *ops_leak(struct opaque *o, int (*f)(int), void **v, void *any, int32_t *const last);
typedef int op_fn(const float *, float *);
op_fn typed;
int variadic(const char *format, ...);
static inline int helper(int a) { return a; }
#ifdef __cplusplus
}
#endif
#endif
"""
BODIES = """
int32_t ops_conv(const q7 *restrict x, q7 const w[3][TAPS], q7 *y, pad_t pad, enum far reach)
{ *y = (q7)(*x + w[0][0] + pad + reach); return 0; }
void ops_iir(ctx_t *c, const vec_t x, vec_t y, const struct tight *t, union both *u)
{ y[0] = x[0] + c->on + t->a + u->f; }
void ops_two(float *x) { *x = 1; }
unsigned long long sizes(size_t n, long l, unsigned short s, unsigned char c, _Bool b, double d, char k, const char *t)
{ return n + l + s + c + b + (unsigned)d + k + *t; }
float *ops_leak(struct opaque *o, int (*f)(int), void **v, void *any, int32_t *const last)
{ *last = o != 0; return f(1) ? *v : any; }
int typed(const float *x, float *y) { *y = *x; return 0; }
int variadic(const char *format, ...) { return *format; }
"""


def read(text, files=None, model=ANY_MODEL, **options):
    files = {PurePosixPath(name): content.encode() for name, content in (files or {}).items()}
    return read_declarations({PurePosixPath("ops.h"): text.encode()}, files.get, model, **options)


def plain(type_):
    """Return a type without the names that only one reading has."""
    target = plain(type_.target) if type_.target is not None and type_.target.kind != "function" else None
    align = type_.align if type_.size else 0  # of a structure without definition
    return replace(type_, name="", names=frozenset(), align=align, target=target, is_array=False, shape=())


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", []), ("gcc", ["-m32"]), ("arm-none-eabi-gcc", ["-mcpu=cortex-m4", "-mthumb"]),
     ("riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32", "-ffreestanding"])],
)  # fmt: skip
def test_header_describes_functions_as_debug_information_does(tmp_path, compiler, flags):
    (member,) = inspect_object(compile_object(tmp_path, HEADER + BODIES, compiler, ["-g", *flags])).members
    compiled = signatures(member, names=True)
    declared = read(HEADER, model=data_model(member.abi))
    assert declared.faults == () and declared.functions.keys() - compiled.keys() == {"helper"}
    for name, seen in compiled.items():
        header = declared.functions[name].signature
        assert header.names == seen.names if name != "typed" else header.names == ("", "")
        assert (plain(header.returns), header.variadic) == (plain(seen.returns), seen.variadic)
        assert [plain(p) for p in header.parameters] == [plain(p) for p in seen.parameters], name
    conv, iir = declared.functions["ops_conv"], declared.functions["ops_iir"]
    assert (str(conv.place), conv.shapes[:2], iir.shapes[1]) == ("ops.h:22", (None, (3, 4)), (8,))


CASES = {
    # Text, the functions, the parts that are not read.
    "macros": ("#define DECL(n, ...) int n(__VA_ARGS__)\n#define X(a) #a\n#define E\nDECL(f, int *a E,\n int b); "
               "DECL(g, char c[sizeof X(ab) ? 2 : 1]);\n", {"f": "int (int *, int)", "g": "int (char *)"}, []),
    "recursive macros": ("#define f(x) g(x)\n#define g(x) f(x)\nint f(int *a);\n", {"f": "int (int *)"}, []),
    "conditions": ("#if 0\nint a(int);\n#elif defined V && V == 2\nint b(int);\n#else\nint c(int);\n#endif\n"
                   "#if defined(W) || __has_include(<x.h>)\nint d(int);\n#endif\n#if V(\n#endif\n",
                   {"b": "int (int)"}, ["ops.h:11: cannot evaluate the condition 'V('"]),
    "includes": ('#include "types.h"\n#include <more/types.h>\n#include "none.h"\nown_t f(more_t *x);\n',
                 {"f": "own_t (more_t *)"}, ["ops.h:3: header 'none.h' not found"]),
    "unknown types": ("vendor_t f(const other_t *x);\n", {"f": "vendor_t (const other_t *)"}, []),
    "unknown macros": ("int CALL(f)(int *a);\nint g(int);\n", {"g": "int (int)"},
                       ["ops.h:1: cannot parse `CALL(f)(int *a)`: is 'CALL' a macro?"]),
    "no parameters": ("int f();\nint g(void);\n", {"g": "int (void)"},
                      ["ops.h:1: f() is declared without types of parameters"]),
    "errors": ("#error choose\nint f(int;\n", {}, ["ops.h:1: #error choose", "ops.h:2: cannot parse `int f(int;`"]),
    "structures without layout": ("struct b { int x : 3; }; struct a { int x __attribute__((aligned(16))); };\n"
                                  "void f(struct b *b, struct a *a);\n", {"f": "void (struct b *, struct a *)"}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_header_declares(case):
    text, functions, faults = CASES[case]
    files = {
        "types.h": '#pragma once\n#include "types.h"\ntypedef int own_t;\n',
        "dir/more/types.h": "typedef short more_t;\n",
    }
    found = read(text, files, folders=[PurePosixPath("dir")], defines=["V=2"])
    assert {name: str(one.signature).replace("  ", " ") for name, one in found.functions.items()} == functions
    assert [f"{fault.place}: {fault.reason}" for fault in found.faults] == faults
    if case == "structures without layout":
        assert found.functions["f"].structures == {"struct a", "struct b"}


def test_hostile_headers_end(monkeypatch):
    monkeypatch.setattr("opwest.objects.c_preprocessor.MAX_TOKENS", 9000)
    bomb = (
        "#define A0 1\n"
        + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 40))
        + "int x[A39];\nint f(int);\n"
    )
    assert read(bomb).faults[0].reason == "macros expand to more than 9000 tokens"
    assert len(read('#include "ops.h"\nint f(int);\n', {"ops.h": '#include "ops.h"\n'}).functions) == 1
    with pytest.raises(ObjectError, match="nested too deeply"):
        read("#define F(x) x\n" + "F(" * 1200 + ")" * 1200)
    with pytest.raises(ObjectError, match="NUL"):
        read("\0")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 + 2 * 3 == 7 && !0", 1), ("(0x10 | 1) << 2", 68), ("-7 / 2", -3), ("1 ? 2 : 3", 2), ("010 + 'a'", 105),
     ("1 / 0", None), ("1 +", None), ("sizeof x", None), ("(" * 999, None), ("1 << 99", 0), ("~0 & 3 ^ 1", 2)],
)  # fmt: skip
def test_expressions(text, value):
    assert evaluate(re.findall(r"\w+|'.'|\S", text)) == value
