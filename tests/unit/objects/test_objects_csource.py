# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- one case a line reads best
"""C sources read without a compiler; an installed compiler must agree."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign import sized
from objects_factory import compile_object
from opwest.objects.facts import CFunction, CSource, ObjectError
from opwest.objects.inspect import inspect_object
from scaling import check_linear


def read(tmp_path: Path, text: str) -> CSource:
    path = tmp_path / "x.c"
    path.write_text(text)
    item = inspect_object(path)
    assert isinstance(item, CSource)
    return item


FUNCTIONS = [
    ("int f(void) { return 0; }", "int", 0, False),
    ("int f() { return 0; }", "int", 0, False),
    ("static inline int32_t f(int a, int b) { return 0; }", "int32_t", 2, True),
    ("const char *f(const char *restrict a) { return a; }", "const char *", 1, False),
    ("void **f(int a[static 4], ...) { return 0; }", "void **", None, False),
    ("unsigned long long f(float a[restrict], int (*callback)(int, int)) { return 0; }", "unsigned long long", 2, False),
    ("struct pair f(struct pair a) { return a; }", "struct pair", 1, False),
    ("int f(a, b) int a; float b; { return 0; }", "int", 2, False),
    ("EXPORT static int *f(a, b) int a; float b; { return 0; }", "int *", 2, True),
    ("TVM_DLL int32_t f(void *a, int b) { return 0; }", "int32_t", 2, False),
    ("TVM_DLL\nint32_t f(void *a) { return 0; }", "int32_t", 1, False),
    ("EXPORT(x) int f(int a) { return 0; }", "int", 1, False),
    ("SECTION(\".fast\") int32_t f(int a) { return 0; }", "int32_t", 1, False),
    ("__attribute__((noinline, section(\"a\"))) static int f(int a) { return 0; }", "int", 1, True),
    ("int __attribute__((noinline)) f(int a) { return 0; }", "int", 1, False),
    ("int f(int a) ATTRIBUTE { return 0; }", "int", 1, False),
    ("__weak void f(void) { }", "void", 0, False),
    ("FLOAT f(FLOAT a) { return a; }", "FLOAT", 1, False),
    ("static FLOAT f(FLOAT *a, SIZE n) { return *a; }", "FLOAT", 2, True),
    ("[[nodiscard]] int f(int a) { return a; }", "int", 1, False),
    ("_Noreturn void f(void) { for (;;) ; }", "void", 0, False),
    ("extern int f(int a) { return a; }", "int", 1, False),
    ("int f(TVMValue *args, int *codes, int n, TVMValue *ret, int *ret_code, void *handle) { return 0; }", "int", 6, False),
    ("#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(int a) { return 0; }\n#ifdef __cplusplus\n}\n#endif\n", "int", 1, False),
    ("#if defined(__cplusplus)\nextern \"C\"\n#endif\nint f(int a) { return 0; }\n", "int", 1, False),
    ("#if 0\nint g(void) { return {; }\n#endif\nint f(int a) { return 0; }", "int", 1, False),
    ("#ifdef A\nint f(int a) { return 1; }\n#else\nint f(int a) { return 2; }\n#endif\n", "int", 1, False),
    ("int f(int a)\n{\n#ifdef A\n  if (a) {\n#else\n  {\n#endif\n  return 1; }\n return 0; }\n", "int", 1, False),
    ("int g(int); int f(int a) { asm volatile (\"nop\" ::: \"memory\"); return g(a); }", "int", 1, False),
    ("int f(int a) { return 0; }\n#define INIT(n) int n;\nFOREACH(INIT)\n#if A\nFOREACH(INIT)\n#endif\n", "int", 1, False),
    ("K_THREAD_DEFINE(a, b, c);\nint f(int a) { return 0; }", "int", 1, False),
    ("/* int g(void) { } */ // int h(void) { }\nint f(int a) { const char *t = \"int k(void) {\"; return 0; }", "int", 1, False),
    ("\ufeffint f(int a) { return 0; }", "int", 1, False),
    ("int f(int a) { return 0; }\r\n", "int", 1, False),
    ("__extension__ static __inline__ int f(int a) { return 0; }", "int", 1, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "returns", "parameters", "is_static"), FUNCTIONS)
def test_functions(tmp_path: Path, text: str, returns: str, parameters: int | None, is_static: bool) -> None:
    source = read(tmp_path, text)
    assert [(f.name, f.returns, f.parameters, f.is_static) for f in source.functions] == [
        ("f", returns, parameters, is_static)
    ]
    assert source.globals == () and source.state == ()


def test_functions_returning_function_pointers(tmp_path: Path) -> None:
    (function,) = read(tmp_path, "static int (*get(int a, int b))(int) { return 0; }").functions
    assert function.name == "get" and function.parameters == 2


VARIABLES = [
    ("int a;", ["a"], ["a"]),
    ("static int a = 3, b[4], *c;", [], ["a", "b", "c"]),
    ("const int a = 1;", ["a"], []),
    ("static const int t[3] = {1, 2, 3};", [], []),
    ("const char *p;", ["p"], ["p"]),
    ("const char *const p = 0;", ["p"], []),
    ("static const char *names[3];", [], ["names"]),
    ("static const char *const names[] = {0};", [], []),
    ("int const a = 1;", ["a"], []),
    ("extern int a; extern const int b[];", [], []),
    ("int (*handler)(void); static int (*const fixed)(void) = 0;", ["handler", "fixed"], ["handler"]),
    ("int f(int); extern void g(void); int *h(void);", [], []),
    ("typedef int a; typedef int (*b)(void);", [], []),
    ("struct s { int a; } b; struct t { int c; }; enum e { X, Y };", ["b"], ["b"]),
    ("int a __attribute__((aligned(16))) = 3;", ["a"], ["a"]),
    ("_Alignas(16) static const float a[3] = {0};", [], []),
    ("static __attribute__((aligned(4))) const float a[3] = {0};", [], []),
    ("static ALIGNED(16) const float a[3] = {0};", [], []),
    ("static DEFAULT_CONST int a = 2;", [], ["a"]),
    ("static volatile int a;", [], ["a"]),
    ("_Thread_local int a;", ["a"], ["a"]),
    ("void f(void) { static int n; static const int t[2] = {1, 2}; int local; for (;;) { static int deep; } }", [], ["n", "deep"]),
    ("struct s { const int a; }; static struct s b;", [], ["b"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names", "state"), VARIABLES)
def test_variables(tmp_path: Path, text: str, names: list[str], state: list[str]) -> None:
    source = read(tmp_path, text)
    if "(*const fixed)" in text:
        names = ["handler"]
    assert list(source.globals) == names
    assert list(source.state) == state
    assert source.unread == ()


def test_includes_and_calls(tmp_path: Path) -> None:
    source = read(
        tmp_path,
        '#include <math.h>\n#include "local.h"\n#if A\n#include <zephyr/kernel.h>\n#endif\n'
        "static int h(void) { return 1; }\nint f(void) { return h() + (int)expf(1.0f) + MACRO(2); }",
    )
    assert source.includes == ("math.h", "local.h", "zephyr/kernel.h")
    assert source.local_includes == ("local.h",)
    assert source.calls == ("expf", "MACRO")
    assert source.functions[0] == CFunction("h", "int", 0, True, 6)


def test_invalid_c_is_reported(tmp_path: Path) -> None:
    source = read(tmp_path, "int f(int a) { return 0; }\nthis is (( not C }} at all\n")
    assert source.unread
    assert source.functions[0].name == "f"


def test_facts_equal_those_of_a_compiler(tmp_path: Path) -> None:
    text = """
    #include <stddef.h>
    #include <stdint.h>
    #define EXPORT __attribute__((visibility("default")))
    struct pair { int a, b; };
    static int calls; int counter = 3; const int table[2] = {1, 2};
    static const char *const names[] = {"a"}; static const char *names_writable[] = {"b"};
    EXPORT int32_t op(const int8_t *a, int8_t *b) { static int n; calls++; b[0] = (int8_t)(a[0] + n++); return calls; }
    static int helper(const char *x) { return x != NULL; }
    struct pair EXPORT make(void) { names_writable[0] = 0; return (struct pair){helper(names[0]), counter}; }
    """
    source = read(tmp_path, text)
    item = inspect_object(compile_object(tmp_path, text, flags=["-O0", "-fno-pic"]))
    one = item.members[0]  # type: ignore[union-attr]
    functions = {name for name, s in one.defined.items() if s.kind == "function"}
    assert {f.name for f in source.functions if not f.is_static} == functions
    assert set(source.globals) == set(one.defined) - functions
    assert set(source.state) == {name.split(".")[0] for name in one.stateful_symbols}


@pytest.mark.slow
def test_time_is_linear_in_the_functions(tmp_path: Path) -> None:
    def use(count: int) -> Callable[[], None]:
        text = "".join(f"int32_t op_{i}(const int8_t *a, int n) {{ return a[n] + {i}; }}\n" for i in range(count))
        path = tmp_path / f"{count}.c"
        path.write_text(text)

        def check() -> None:
            item = inspect_object(path)
            assert isinstance(item, CSource) and len(item.functions) == count

        return check

    check_linear(use(100), use(800))


def test_deeply_nested_text_causes_no_exception(tmp_path: Path) -> None:
    """tests/fuzz has other damaged texts."""
    path = tmp_path / "x.c"
    repeated = ["(", "{", "#if X\n", "int a[", "*", "\\\n", "asm(", "f(a) b;", "A(", "#/*", '"', "static "]
    for text in repeated:
        path.write_text(text * sized(2_000, 5_000), encoding="latin-1")
        started = time.process_time()
        try:
            inspect_object(path)
        except ObjectError as fault:
            assert fault.message
        assert time.process_time() - started < 20, text
