# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- one case a line reads best
"""C and C++ sources read without a compiler; an installed compiler must agree."""

import re
import subprocess
import time

import pytest
from campaign import sized
from objects_factory import compile_object
from opwest.objects.cpp_source import needs_library, read_cpp_source, with_headers
from opwest.objects.facts import CFunction, CSource, ObjectError
from opwest.objects.inspect import inspect_object
from requirements_support import need
from scaling import check_linear


def read(tmp_path, text, name="x.c"):
    path = tmp_path / name
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
def test_functions(tmp_path, text, returns, parameters, is_static):
    source = read(tmp_path, text)
    assert [(f.name, f.returns, f.parameters, f.is_static) for f in source.functions] == [
        ("f", returns, parameters, is_static)
    ]
    assert source.globals == () and source.state == ()


def test_functions_returning_function_pointers(tmp_path):
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
def test_variables(tmp_path, text, names, state):
    source = read(tmp_path, text)
    if "(*const fixed)" in text:
        names = ["handler"]
    assert list(source.globals) == names
    assert list(source.state) == state
    assert source.unread == ()


def test_includes_and_calls(tmp_path):
    source = read(
        tmp_path,
        '#include <math.h>\n#include "local.h"\n#if A\n#include <zephyr/kernel.h>\n#endif\n'
        "static int h(void) { return 1; }\nint f(void) { return h() + (int)expf(1.0f) + MACRO(2); }",
    )
    assert source.includes == ("math.h", "local.h", "zephyr/kernel.h")
    assert source.local_includes == ("local.h",)
    assert source.calls == ("expf", "MACRO")
    assert source.functions[0] == CFunction("h", "int", 0, True, 6)


def test_invalid_c_is_reported(tmp_path):
    source = read(tmp_path, "int f(int a) { return 0; }\nthis is (( not C }} at all\n")
    assert source.unread
    assert source.functions[0].name == "f"


def test_facts_equal_those_of_a_compiler(tmp_path):
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
    one = item.members[0]
    functions = {name for name, s in one.defined.items() if s.kind == "function"}
    assert {f.name for f in source.functions if not f.is_static} == functions
    assert set(source.globals) == set(one.defined) - functions
    assert set(source.state) == {name.split(".")[0] for name in one.stateful_symbols}


# --- C++ sources read without a compiler; an installed compiler must agree


def read_cpp(tmp_path, text):
    return read(tmp_path, text, "x.cpp")


@pytest.mark.parametrize("suffix", [".cc", ".cpp", ".cxx"])
def test_suffixes(tmp_path, suffix):
    item = read(tmp_path, 'extern "C" int f(int a) { return a; }', f"x{suffix}")
    assert (item.language, [f.name for f in item.c_functions]) == ("C++", ["f"])


FUNCTIONS_OF_CPP = [
    ('extern "C" int32_t f(const int8_t *a, int8_t *b) { return 0; }', "int32_t", 2),
    ('extern "C" { int32_t f(const int8_t *a, int8_t *b) { return 0; } }', "int32_t", 2),
    ('#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int a) { return 0; }\n#ifdef __cplusplus\n}\n#endif\n', "int", 1),
    ('#ifdef __cplusplus\nextern "C"\n#endif\nTVM_DLL int32_t f(void *a) { return 0; }\n', "int32_t", 1),
    ('extern "C" TVM_DLL int32_t f(void *a, int b) { return 0; }', "int32_t", 2),
    ('extern "C" {\nTVM_DLL int32_t f(void *a, int b) { return 0; }\n}', "int32_t", 2),
    ('extern "C" int f(int); int f(int a) { return a; }', "int", 1),
    ('namespace ops { extern "C" int f(int a) { return a; } }', "int", 1),
    ('extern "C" int f() noexcept { return 0; }', "int", 0),
    ('extern "C" [[gnu::noinline]] int f(float &a, int b[4]) { return 0; }', "int", 2),
    ('extern "C" auto f(int a) -> int { return [=] { return a; }(); }', "auto", 1),
    ('const char *t = R"x(extern "C" int g(int) { )x"; extern "C" int f(int a) { return 1\'000; }', "int", 1),
]


@pytest.mark.parametrize(("text", "returns", "parameters"), FUNCTIONS_OF_CPP)
def test_functions_with_c_linkage(tmp_path, text, returns, parameters):
    source = read_cpp(tmp_path, text)
    assert [(f.name, f.returns, f.parameters) for f in source.c_functions] == [("f", returns, parameters)]
    assert not source.unread


MANGLED = [
    ("int f(int a) { return a; }", ["f"], ["f"]),
    ('extern "C++" int f(int a) { return a; }', ["f"], ["f"]),
    ("static int f(int a) { return a; }", [], []),
    ("namespace { int f(int a) { return a; } }", [], []),
    ("namespace ops { int f(int a) { return a; } }", ["ops::f"], ["ops"]),
    ("namespace a::b { struct S { int f() { return 0; } }; }", [], ["a"]),
    ("template <typename T> T f(T a) { return a; }", ["f"], ["f"]),
    ("struct S { int f(); }; int S::f() { return 0; }", ["S::f"], ["S"]),
    ("class C; enum class E { A }; union U { int a; };", [], ["E", "U"]),
    ("struct S { int a; } static const s = {1};", [], ["S"]),
    ("inline int f(int a) { return a; } int f(float a) { return 0; }", ["f"], ["f"]),
    ("namespace std { template <> struct hash<int> {}; }", [], []),
]


@pytest.mark.parametrize(("text", "functions", "scope"), MANGLED)
def test_names_with_cpp_linkage(tmp_path, text, functions, scope):
    source = read_cpp(tmp_path, text)
    assert [f.name for f in source.functions if f.mangled and not f.is_static] == functions
    assert list(source.scope) == scope
    assert not source.c_functions


PARAMETERS = [
    ("int f(const int *a, int b = 1, int = 2) { return b; }", 3),
    ("int f(int a, ...) { return a; }", None),
    ("int f(void) { return 1; }", 0),
    ("template <class... T> int f(T... a) { return 1; }", None),
]


@pytest.mark.parametrize(("text", "count"), PARAMETERS)
def test_number_of_parameters(tmp_path, text, count):
    (function,) = read_cpp(tmp_path, text).functions
    assert function.parameters == count


VARIABLES_OF_CPP = [
    ("int a;", ["a"], ["a"]),
    ("const int a = 1; constexpr int b[2] = {1, 2};", [], []),
    ("extern const int a = 1; inline int b = 2;", ["a", "b"], ["b"]),
    ("namespace { int a; } namespace n { int b; const int c = 1; }", [], ["a", "b"]),
    ('extern "C" int a; extern "C" int b = 1; extern "C" { int c; }', ["b", "c"], ["b", "c"]),
    (
        "struct S { static int a; static const int b = 1; inline static int c = 0; int d; }; int S::a = 1;",
        ["S::a"],
        ["S::a", "c"],
    ),
    ("struct S { int f() { static int n; return ++n; } };", [], ["n"]),
    ("int f() { static const int a = 1; static constexpr int b = 2; thread_local int c; return a + b; }", [], []),
    ("static auto f = [](int a) { static int n; return n + a; };", [], ["f", "n"]),
    ("static constexpr auto f = [](int a) { return a; };", [], []),
    ("std::vector<int> v{1, 2}; int &r = v[0];", ["r", "v"], ["r", "v"]),
    ('using A = int; typedef int B; static_assert(sizeof(int) == 4, "");', [], []),
]


@pytest.mark.parametrize(("text", "names", "state"), VARIABLES_OF_CPP)
def test_variables_of_cpp(tmp_path, text, names, state):
    source = read_cpp(tmp_path, text)
    assert sorted(source.globals) == names
    assert sorted(source.state) == state


def test_declarations_of_headers_give_c_linkage(tmp_path):
    source = read_cpp(
        tmp_path, '#include "ops.h"\n#include <algorithm>\nint f(int a) { return a; }\nint g() { return 0; }'
    )
    header = read_cpp_source(
        tmp_path / "ops.h",
        b'#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int a);\n#ifdef __cplusplus\n}\n#endif\n'
        b"template <typename T> struct Tile { T t; };\n#include <array>\n",
    )
    assert header.declared == ("f",)
    whole = with_headers(source, [header])
    assert [f.name for f in whole.c_functions] == ["f"]
    assert whole.scope == ("g", "Tile")
    assert whole.includes == ("ops.h", "algorithm", "array")


@pytest.mark.parametrize(
    ("text", "needed"),
    [("#include <cstdint>\n#include <new>\n#include <stdint.h>", False), ("#include <algorithm>", True)],
)
def test_full_library(tmp_path, text, needed):
    assert needs_library(read_cpp(tmp_path, text)) is needed


@pytest.mark.needs("g++", "nm")
def test_facts_equal_those_of_a_compiler_cpp(tmp_path):
    need("g++", "nm")
    text = """
    #include <cstdint>
    struct Pair { int a, b; int sum() const; static int made; };
    static int calls; int counter = 3; const int table[2] = {1, 2}; extern const int shared[1] = {1};
    int Pair::made = 0;
    namespace ops { int inner = 1; int twice(int a) { return a * inner + calls; } }
    namespace { int hidden(int a) { return a + table[a]; } }
    int Pair::sum() const { return a + b + ++made; }
    int overloaded(int a) { return a; }
    int overloaded(float a) { return (int)a; }
    template <typename T> T clamp(T a) { return a; }
    extern "C" int32_t op(const int8_t *a, int8_t *b)
    { static int n; calls++; b[0] = (int8_t)(a[0] + n++ + hidden(1) + ops::twice(counter)); return clamp(calls); }
    extern "C" { static int own(void) { return 1; } int32_t other(void) { return own(); } }
    """
    source = read_cpp(tmp_path, text)
    subprocess.run(["g++", "-O0", "-fno-pic", "-c", "x.cpp", "-o", "x.o"], cwd=tmp_path, check=True)

    def symbols(kinds, *options):
        done = subprocess.run(["nm", *options, "x.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
        return {m[2] for m in re.finditer(r"^\w+ (\w) (.*)$", done.stdout, re.M) if m[1] in kinds}

    assert {f.name for f in source.c_functions} == {name for name in symbols("T") if not name.startswith("_Z")}
    demangled = {name.split("(")[0] for name in symbols("TW", "-C")}
    mangled = {f.name for f in source.functions if f.mangled and not f.is_static}
    assert mangled == {re.sub(r"^int |<int>$", "", name) for name in demangled} - {"op", "other"}
    variables = {name for name in symbols("BDR") if not name.startswith("_Z")}
    assert {name for name in source.globals if "::" not in name} == variables
    writable = {re.sub(r"^op::|\(.*", "", n.rsplit("::n", 1)[-1] or "n") for n in symbols("BDbd", "-C")}
    assert {name.rsplit("::", 1)[-1] for name in source.state} == {name.rsplit("::", 1)[-1] for name in writable}


# --- Time and depth

MANY = {
    "c": "int32_t op_@(const int8_t *a, int n) { return a[n] + @; }\n",
    "cpp": 'namespace n@ { int v; }\nextern "C" int op_@(const int8_t *a, int n) { return a[n] + @; }\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MANY)
def test_time_is_linear_in_the_functions(tmp_path, suffix):
    def use(count):
        path = tmp_path / f"{count}.{suffix}"
        path.write_text("".join(MANY[suffix].replace("@", str(i)) for i in range(count)))

        def check():
            item = inspect_object(path)
            assert isinstance(item, CSource) and len(item.functions) == count

        return check

    check_linear(use(100), use(800))


NESTED = {
    "c": ["(", "{", "#if X\n", "int a[", "*", "\\\n", "asm(", "f(a) b;", "A(", "#/*", '"', "static "],
    "cpp": ["(", "{", "namespace a {", 'extern "C" {', "template <", "a::", 'R"(', "<", "::", "1'", "class A {"],
}


@pytest.mark.parametrize("suffix", NESTED)
def test_deeply_nested_text_causes_no_exception(tmp_path, suffix):
    """tests/fuzz has other damaged texts."""
    path = tmp_path / f"x.{suffix}"
    for text in NESTED[suffix]:
        path.write_text(text * sized(2_000, 5_000), encoding="latin-1")
        started = time.process_time()
        try:
            inspect_object(path)
        except ObjectError as fault:
            assert fault.message
        assert time.process_time() - started < 20, text
