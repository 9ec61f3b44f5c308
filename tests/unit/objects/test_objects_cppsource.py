# SPDX-License-Identifier: Apache-2.0

"""C++ sources read without a compiler; an installed compiler must agree."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign import sized
from opwest.objects.cppsource import needs_library, read_cpp_source, with_headers
from opwest.objects.facts import CSource, ObjectError
from opwest.objects.inspect import inspect_object
from requirements_support import need
from scaling import check_linear


def read(tmp_path: Path, text: str) -> CSource:
    path = tmp_path / "x.cpp"
    path.write_text(text)
    item = inspect_object(path)
    assert isinstance(item, CSource)
    return item


@pytest.mark.parametrize("suffix", [".cc", ".cpp", ".cxx"])
def test_suffixes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text('extern "C" int f(int a) { return a; }')
    item = inspect_object(path)
    assert isinstance(item, CSource)
    assert (item.language, [f.name for f in item.c_functions]) == ("C++", ["f"])


FUNCTIONS = [
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


@pytest.mark.parametrize(("text", "returns", "parameters"), FUNCTIONS)
def test_functions_with_c_linkage(tmp_path: Path, text: str, returns: str, parameters: int) -> None:
    source = read(tmp_path, text)
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
def test_names_with_cpp_linkage(tmp_path: Path, text: str, functions: list[str], scope: list[str]) -> None:
    source = read(tmp_path, text)
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
def test_number_of_parameters(tmp_path: Path, text: str, count: int | None) -> None:
    (function,) = read(tmp_path, text).functions
    assert function.parameters == count


VARIABLES = [
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


@pytest.mark.parametrize(("text", "names", "state"), VARIABLES)
def test_variables(tmp_path: Path, text: str, names: list[str], state: list[str]) -> None:
    source = read(tmp_path, text)
    assert sorted(source.globals) == names
    assert sorted(source.state) == state


def test_declarations_of_headers_give_c_linkage(tmp_path: Path) -> None:
    source = read(tmp_path, '#include "ops.h"\n#include <algorithm>\nint f(int a) { return a; }\nint g() { return 0; }')
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
def test_full_library(tmp_path: Path, text: str, needed: bool) -> None:
    assert needs_library(read(tmp_path, text)) is needed


@pytest.mark.needs("g++", "nm")
def test_facts_equal_those_of_a_compiler(tmp_path: Path) -> None:
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
    source = read(tmp_path, text)
    subprocess.run(["g++", "-O0", "-fno-pic", "-c", "x.cpp", "-o", "x.o"], cwd=tmp_path, check=True)

    def symbols(kinds: str, *options: str) -> set[str]:
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


@pytest.mark.slow
def test_time_is_linear_in_the_functions(tmp_path: Path) -> None:
    def use(count: int) -> Callable[[], None]:
        text = "".join(
            f'namespace n{i} {{ int v; }}\nextern "C" int op_{i}(const int8_t *a, int n) {{ return a[n] + {i}; }}\n'
            for i in range(count)
        )
        path = tmp_path / f"{count}.cpp"
        path.write_text(text)

        def check() -> None:
            item = inspect_object(path)
            assert isinstance(item, CSource) and len(item.functions) == count

        return check

    check_linear(use(100), use(800))


def test_deeply_nested_text_causes_no_exception(tmp_path: Path) -> None:
    """tests/fuzz has other damaged texts."""
    path = tmp_path / "x.cpp"
    repeated = ["(", "{", "namespace a {", 'extern "C" {', "template <", "a::", 'R"(', "<", "::", "1'", "class A {"]
    for text in repeated:
        path.write_text(text * sized(2_000, 5_000), encoding="latin-1")
        started = time.process_time()
        try:
            inspect_object(path)
        except ObjectError as fault:
            assert fault.message
        assert time.process_time() - started < 20, text
