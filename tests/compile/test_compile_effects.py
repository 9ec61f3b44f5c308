# SPDX-License-Identifier: Apache-2.0
"""Hidden effects of operators: one judgement of C sources, objects, LLVM IR, members of archives, in every command."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from c_support import compile_all, run
from campaign import sized
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.resources import script
from opwest.bundles.checks import check_effects
from opwest.bundles.image import CompileUnit
from opwest.bundles.toolchain import Libraries, Library
from opwest.cli.main import main
from opwest.model.types.builds import SourceFile, TargetBuild
from opwest.objects.inspect import read_member
from opwest.objects.library_symbols import LIBCS, listed_symbols
from requirements_support import need
from test_compile_hidden_state import build_step, write_commands

FLAGS = ("-O0", "-fno-builtin", "-fno-pic", "-fno-stack-protector", "-w")
CHAINS = {
    "host": (["gcc"], "x86-64"),
    "newlib": (["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"], "cortex-m3"),
    "picolibc": (["riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv32imac", "-mabi=ilp32"], "rv32imac"),
}
WORDS = {
    "keeps state": "state",
    "uses the heap": "heap",
    "reads or writes files": "io",
    "depends on the time": "nondeterminism",
    "can end, suspend": "control",
    "floating-point environment": "fenv",
}


class Called(NamedTuple):
    """A call of a function of the C library, with the effects that the standards give it; `newlib` are its own."""

    header: str
    call: str
    effects: str
    newlib: str


TABLE = """\
-              -     string.h  memcpy(y, x, 4); memset(y, 0, 4); strlen((const char *)x); strchr((char *)y, 3)
-              -     string.h  strtok_r((char *)y, " ", (char **)z)
-              -     stdlib.h  abs(*x); qsort(y, 1, 4, compare); bsearch(x, x, 1, 4, compare); rand_r((unsigned *)y)
-              -     stdlib.h  strtol((const char *)x, 0, 10); atoi((const char *)x)
-              -     math.h    fabsf((float)*x); floorf((float)*x); ldexpf((float)*x, 2); sqrtf((float)*x)
-              -     math.h    expf((float)*x); powf((float)*x, 2.5f); logf((float)*x); tanhf((float)*x)
-              heap  stdio.h   snprintf((char *)y, 4, "%d", *x)
-              heap  stdlib.h  strtod((const char *)x, 0)
state          -     stdlib.h  rand(); srand(3); mbtowc(0, (const char *)x, 4)
state          -     string.h  strtok((char *)y, " "); strerror(*x)
state          -     time.h    asctime(z); ctime(z); gmtime(z); localtime(z)
state          -     locale.h  setlocale(0, "C"); localeconv()
state          -     math.h    lgamma((double)*x); lgammaf((float)*x)
heap           -     stdlib.h  malloc(4); calloc(1, 4); realloc(y, 8); free(y); aligned_alloc(8, 8)
heap           -     string.h  strdup((const char *)x)
io             heap  stdio.h   printf("%d", *x); puts("a"); fopen("a", "r"); fflush(0); setbuf((FILE *)z, 0)
io             -     stdio.h   remove("a"); perror("a")
nondeterminism -     time.h    time(0); clock()
nondeterminism -     stdlib.h  getenv("HOME")
control        -     stdlib.h  exit(0); _Exit(0); abort(); atexit(0)
control        -     setjmp.h  longjmp(z, 1)
control        -     signal.h  signal(2, 0); raise(2)
fenv           -     fenv.h    fesetround(0); feclearexcept(1); feraiseexcept(1); fetestexcept(1); feholdexcept(z)
"""
"""Effects in every library, those that newlib adds, header, calls; independent of opwest's table."""
CALLS = {}
for _line in TABLE.splitlines():
    _effects, _newlib, _header, _calls = _line.split(maxsplit=3)
    for _call in _calls.split("; "):
        CALLS[_call.partition("(")[0]] = Called(_header, _call, _effects.strip("-"), _newlib.strip("-"))
ORDER = ("state", "heap", "io", "nondeterminism", "control", "fenv")


def expected(name: str, libc: str) -> tuple[str, ...]:
    """Return the hidden effects of a function in a C library."""
    found = {CALLS[name].effects, CALLS[name].newlib if libc == "newlib" else ""}
    return tuple(effect for effect in ORDER if effect in found)


def source(name: str) -> str:
    """Return an operator that calls a function; its symbol is `op_<name>`."""
    call = CALLS[name]
    return (
        f"#define _GNU_SOURCE\n#include <stdint.h>\n#include <{call.header}>\n"
        "int compare(const void *a, const void *b);\n"
        f"int32_t op_{name}(const int32_t *x, int32_t *y, void *z);\n"
        f"int32_t op_{name}(const int32_t *x, int32_t *y, void *z)\n"
        f"{{\n\t(void)x;\n\t(void)y;\n\t(void)z;\n\t(void){call.call};\n\treturn 0;\n}}\n"
    )


def ir(name: str) -> str:
    """Return LLVM IR that calls a function, without its arguments."""
    return (
        f"declare i32 @{name}(...)\n"
        f"define i32 @op_{name}(ptr %x, ptr %y, ptr %z) {{\n"
        f"  %r = call i32 (...) @{name}()\n  ret i32 0\n}}\n"
    )


@pytest.fixture(scope="module", params=CHAINS)
def compiled(request, tmp_path_factory):
    """Return a C library and a directory with a source, an object and LLVM IR of each operator, and one archive."""
    (compiler, *flags), target = CHAINS[request.param]
    need(compiler)
    folder = tmp_path_factory.mktemp(request.param)
    for name in CALLS:
        (folder / f"{name}.c").write_text(source(name))
        (folder / f"{name}.ll").write_text(ir(name))
    compile_all(folder, [folder / f"{name}.c" for name in CALLS], compiler, [*flags, *FLAGS], [])
    subprocess.run(["ar", "rc", "libops.a", *(f"{name}.o" for name in CALLS)], cwd=folder, check=True)
    return request.param, folder, target


def manifest(folder, entries, libc, names):
    """Write a manifest with an operator for each function."""
    one = {"dtype": "int32", "shape": [1]}
    args = [{"name": "x", **one}, {"name": "y", **one, "direction": "inout"}]
    args.append({"name": "z", "dtype": "int32", "shape": [64], "direction": "scratch"})
    run = {"inputs": {"x": one}, "outputs": {"r": one}, "state": {"y": one}}
    content = {
        "version": 1,
        "model": "m",
        **({"libc": libc} if libc != "host" else {}),
        "objects": entries,
        "externals": [{"symbol": "compare", "from": "the test"}],
        "operators": {name: {"symbol": f"op_{name}", "args": args} for name in names},
        "run": run | {"steps": [{"call": name, "args": ["x", "y"]} for name in names]},
    }
    (folder / "m.yaml").write_text(json.dumps(content))


def judged(lines):
    """Return the effects of each called function in messages."""
    found = {}
    for line in lines:
        if " calls '" in line and ", which " in line:
            name = line.split(" calls '")[1].split("'")[0]
            found[name] = tuple(effect for words, effect in WORDS.items() if words in line.split(", which ")[1])
    return found


def wanted(libc, names=tuple(CALLS)):
    return {name: effects for name in names if (effects := expected(name, libc))}


@pytest.mark.parametrize("kind", ["c", "o", "ll", "a"])
def test_check_and_inspect_agree(compiled, kind, capsys, monkeypatch):
    libc, folder, target = compiled
    calls = tuple(CALLS)
    if kind == "ll":  # each file is read in a process; every library reads others of the sample
        calls = calls[sized(list(CHAINS).index(libc), 0) :: sized(6, 1)]
    names = ["libops.a"] if kind == "a" else [f"{name}.{kind}" for name in calls]
    # Sources without a target are judged for the default of the manifest.
    manifest(folder, [{"files": names} if kind == "c" else {"files": names, "target": target}], libc, calls)
    monkeypatch.chdir(folder)
    main(["check", "m.yaml"])
    assert judged(line for line in capsys.readouterr().err.splitlines() if "error:" in line) == wanted(libc, calls)
    options = [] if libc == "host" else ["--libc", libc]
    for_target = ["--target", target] if kind == "ll" else []
    main(["inspect", "--json", *options, *for_target, *names])
    files = json.loads(capsys.readouterr().out)["result"]
    rows = [row for file in files for row in file.get("members", [file])]
    assert {one["symbol"]: tuple(one["effects"]) for row in rows for one in row["effects"]} == wanted(libc, calls)
    hidden = {row["name"].removesuffix(".o") if "name" in row else row["file"][:-2] for row in rows if row["effects"]}
    if kind != "ll":
        assert hidden == set(wanted(libc))


def test_compiled_operators_and_bundles_agree(compiled):
    libc, folder, _ = compiled
    (folder / "lib.dir").mkdir()
    for name in CALLS:
        shutil.copy(folder / f"{name}.o", folder / "lib.dir")
    write_commands(folder, CALLS)
    code, messages = build_step(folder, *((f"{name}.c", "1:1", "-") for name in CALLS), libc=libc)
    assert code == 1
    assert judged(messages.splitlines()) == wanted(libc)
    faults = Diagnostics()
    units = [
        CompileUnit(
            Path(f"{name}.o"), read_member(name, (folder / f"{name}.o").read_bytes()), f"{name}.c", Location("m.yaml")
        )
        for name in CALLS
    ]
    sources = tuple(SourceFile(Path(f"{name}.c"), b"", True) for name in CALLS)
    known = check_effects(units, TargetBuild(None, (), sources, (), libc, ()), faults)
    assert judged(fault.message for fault in faults) == wanted(libc)
    assert known == {(f"{name}.c", name) for name in wanted(libc)}


def test_every_function_of_the_libraries_has_an_effect():
    """The table of effects has each name of the tables of providers, and no effect is unknown."""
    effects = script("effects")
    for libc in LIBCS:
        known = listed_symbols(f"{libc}.txt")
        table = effects.table(libc)
        assert (known["libc"] | known["libm"]) - table.keys() == set()
        assert {one for found in table.values() for one in found} <= {*effects.EFFECTS, "pure", "errno"}
        both = {name for name, found in table.items() if {"pure", "errno"} & {*found} and len(found) > 1}
        assert both == {name for name in both if set(table[name]) - {"errno"} <= {"heap", "state"} and libc != "host"}


LEAVES = {
    **dict.fromkeys(("_malloc_r", "_calloc_r", "_realloc_r", "_free_r", "_sbrk_r", "_Balloc"), "heap"),
    **dict.fromkeys(("abort", "exit", "_exit", "raise", "_kill_r", "longjmp", "__assert_func"), "control"),
    **dict.fromkeys(("_write_r", "_read_r", "_lseek_r", "_close_r", "_fflush_r", "__sinit", "write", "_write"), "io"),
    **dict.fromkeys(("_gettimeofday", "_gettimeofday_r", "_times", "_times_r", "_getpid_r"), "nondeterminism"),
}
ERRNO = ("errno", "__errno")
CONSTANT = {"_impure_ptr", "impure_data", "_PathLocale", "__global_locale", "__fdlib_version", "numempty"}
"""Data that functions of the table only read, or write as errno: the structure of a thread, the locale, options."""
CHECKS = ("__chk_fail", "__stack_chk_fail")
"""Ends of the program after memory is damaged."""
ASSERTED = ("__assert_func",)
"""newlib asserts that its allocation in dtoa succeeds."""


def derived(folder: Path, names: frozenset[str]) -> dict[str, set[str]]:
    """Return the effects of functions: leaves that their members reach, and written data."""
    libraries = Libraries([Library(folder / "libc.a"), Library(folder / "libm.a")])
    return {name: _derived(libraries, name) for name in sorted(names) if libraries.find(name) is not None}


def _derived(libraries: Libraries, name: str) -> set[str]:
    found: set[str] = set()
    seen: set[str] = set()
    pending = [name]
    while pending:
        symbol = pending.pop()
        if symbol in seen or symbol in ERRNO or symbol in CHECKS or (symbol != name and symbol in ASSERTED):
            continue
        seen.add(symbol)
        if symbol != name and symbol in LEAVES:
            found.add(LEAVES[symbol])
            continue
        member = libraries.find(symbol)
        if member is None:
            continue
        if set(member.stateful_symbols) - CONSTANT:
            found.add("state")
        pending += member.undefined_strong
    return found


def test_members_of_newlib_have_the_effects_of_the_table():
    """What the members of newlib that a call links contain and need; `errno` and the pointer to it are errno's."""
    need("arm-none-eabi-gcc")
    table = script("effects").table("newlib")
    library = run(["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-print-file-name=libc.a"], Path()).strip()
    differing = {}
    known = listed_symbols("newlib.txt")
    for name, found in derived(Path(library).parent, known["libc"] | known["libm"]).items():
        hidden = set(table[name]) - {"pure", "errno"}
        if name.removeprefix("v") in ("siprintf", "sniprintf"):  # their member allocates for asprintf only
            assert found == {"heap"}
        elif (found and not hidden) or ("heap" in found and not hidden & {"heap", "state", "control"}):
            differing[name] = found, hidden
    assert differing == {}
