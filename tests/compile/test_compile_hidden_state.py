# SPDX-License-Identifier: Apache-2.0
"""Writable state in compiled operators, which the sources do not show: zephyr_module/scripts/check_operators.py."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from c_support import ROOT, run
from opwest.base.resources import script
from opwest.cli.main import main
from opwest.objects import linkability
from opwest.objects.inspect import inspect_object
from requirements_support import need, need_x86_64

pytestmark = pytest.mark.needs("gcc", "cc")
SCRIPT = ROOT / "zephyr_module" / "scripts" / "check_operators.py"
check_operators = script("check_operators")

AWX = '__attribute__((section("%s,\\"awx\\",@progbits#")))'
CODE = "int f(int x); int f(int x) { return x + 1; }"
CASES = {
    "code": (CODE, []),
    "constant": ("const int table[4] = {1, 2, 3, 4}; static const char *const names[] = {\"a\"};\n"
                 "const char *f(int i); const char *f(int i) { return names[i & table[0]]; }", []),
    "empty": (f"int empty[0] = {{}}; {CODE}", []),
    "data": ("int counter = 3;", [("counter", ".data.counter")]),
    "bss": ("static int n; int f(void); int f(void) { return n++; }", [("n", ".bss.n")]),
    "function_static": ("int f(void); int f(void) { static int calls; return calls++; }", [("calls", ".bss.calls")]),
    "common": ("__attribute__((common)) int shared;", [("shared", "COMMON")]),
    "pointer": ("int f(void); int (*hook)(void) = f;", [("hook", ".data")]),
    "thread_local": ("_Thread_local int own = 1;", [("own", ".tdata")]),
    "thread_local_zero": ("_Thread_local int own;", [("own", ".tbss")]),
    "own_section": ('__attribute__((section("buffers"))) int memory[8];', [("memory", "buffers")]),
    "constructor": (
        "__attribute__((constructor)) static void first(void) { __asm__(\"\"); }", [("unnamed", ".init_array")]
    ),
    "code_in_ram": (f"{AWX % '.ramcode'} {CODE.split(';', 1)[1]}", []),
    "data_in_code": (f"{AWX % '.ramtext'} int total = 1;", [("total", ".ramtext")]),
    "local_pointers": ("void use(const char **p); void f(void); void f(void) {\n"
                       "const char *p[] = {\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\"}; use(p); }", []),
    "data_of_assembly": (f'__asm__(".data\\n.Lown: .long 1\\n.text"); {CODE}', [("unnamed", ".data")]),
    "context_of_tvm": ("void *__tvm_module_ctx = 0;", []),
}  # fmt: skip
FLAGS = {
    "plain": [],
    "pic": ["-Os", "-fPIC"],
    "lto": ["-flto"],
    "coverage": ["--coverage"],
    "profile": ["-fprofile-arcs", "-ftest-coverage", "-pg"],
    "sanitizers": ["-fsanitize=address,undefined", "-fsanitize-recover=all"],
    "instrumented": ["-finstrument-functions", "-fpatchable-function-entry=2"],
}


def compiled(folder, text, flags, compiler=("gcc",)):
    """Compile a source; return its object and the command."""
    (folder / "op.c").write_text(text)
    obj = folder / "op.o"
    command = [*compiler, "-O1", "-fdata-sections", *flags, "-MD", "-MF", "op.d", "-c", "op.c", "-o", str(obj)]
    run(command, folder)
    return obj, command


def shown(found):
    return [(", ".join(state.symbols) or "unnamed", state.section) for state in found]


def agrees(found, expected):
    """Whether the symbols are equal, and the sections begin as expected: -fdata-sections adds a name."""
    pairs = zip(found, expected, strict=False)
    return len(found) == len(expected) and all(a[0] == b[0] and a[1].startswith(b[1]) for a, b in pairs)


@pytest.mark.parametrize("flags", FLAGS)
def test_state_of_objects(tmp_path, flags):
    wrong = {}
    for name, (text, expected) in CASES.items():
        obj, command = compiled(tmp_path, text, FLAGS[flags])
        (tmp_path / "op.d").unlink()
        found = shown(check_operators.object_facts(str(obj), command, str(tmp_path)).states)
        # PIC moves a pointer to .data.rel.local.
        if not agrees(found, expected):
            wrong[name] = found
        assert not (tmp_path / "op.d").exists() and not list(tmp_path.glob("*.plain"))
    assert not wrong


@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "clang"])
def test_other_compilers(tmp_path, compiler):
    need(compiler)
    for flags in ([], ["-flto"]):
        for name in ("code", "constant", "bss", "function_static"):
            obj, command = compiled(tmp_path, CASES[name][0], flags, (compiler,))
            found = check_operators.object_facts(str(obj), command, str(tmp_path)).states
            # clang adds the name of the function.
            names = [symbol.rpartition(".")[2] for state in found for symbol in state.symbols]
            assert names == [symbol for symbol, _ in CASES[name][1]]


def test_damaged_objects(tmp_path):
    obj, _ = compiled(tmp_path, CASES["bss"][0], [])
    content = obj.read_bytes()
    for size in range(0, len(content), 7):
        with pytest.raises(check_operators.NotElfError):
            check_operators.facts(content[:size])
    for position in range(16, len(content), 3):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        with contextlib.suppress(check_operators.NotElfError):
            check_operators.facts(bytes(changed))


def test_texts_are_those_of_check():
    source = linkability.CSource(Path("a.c"), b"", (), (), ("n",), ())
    (reason,) = linkability.judge(source)
    assert (reason.expected, reason.hint) == (check_operators.EXPECTED, check_operators.HINT)
    assert check_operators.IGNORED == linkability._IGNORED_STATE


SECTIONS = {
    "function": '.section .itcm,"awx",@progbits\n.type f,@function\nf: .zero 40\n.size f, 40\n',
    "variable": '.section .itcm,"awx",@progbits\n.type v,@object\nv: .zero 4\n.size v, 4\n',
    "both": '.section .itcm,"awx",@progbits\n.type f,@function\nf: .zero 40\n.size f, 40\n'
    ".type v,@object\nv: .zero 4\n.size v, 4\n",
    "variables without symbols": '.section .itcm,"awx",@progbits\n.type f,@function\nf: .zero 16\n'
    ".size f, 16\n.Lv: .zero 256\n",
    "padding": '.section .itcm,"awx",@progbits\n.zero 12\n.type f,@function\nf: .zero 16\n.size f, 16\n',
    "labels only": '.section .itcm,"awx",@progbits\nstart: .zero 16\n',
    "no symbols": '.section .itcm,"awx",@progbits\n.zero 16\n',
    "empty": '.section .itcm,"awx",@progbits\n.type f,@function\nf:\n',
    "relocated": '.section .data.rel.ro,"aw"\n.type v,@object\nv: .quad other\n.size v, 8\n',
    "relocated local": '.section .data.rel.ro.local.v,"aw"\n.type v,@object\nv: .quad other\n.size v, 8\n',
    "similar name": '.section .data.rel.rolling,"aw"\n.type v,@object\nv: .quad other\n.size v, 8\n',
    "TVM's pointer": ".bss\n.type __TVMFuncCall,@object\n__TVMFuncCall: .zero 8\n.size __TVMFuncCall, 8\n",
    "common": ".comm n,4,4\n",
    "bss": ".bss\n.type n,@object\nn: .zero 12\n.size n, 12\n",
}


def test_judgement_is_that_of_check(tmp_path):
    """The builds and `opwest check` find the same bytes of state in the same objects."""
    need_x86_64()
    differing = {}
    for name, text in SECTIONS.items():
        source, obj = tmp_path / "s.s", tmp_path / "s.o"
        source.write_text(f".globl op\n.type op,@function\nop: ret\n.size op, 1\n{text}")
        run(["gcc", "-c", source, "-o", obj], tmp_path)
        state = linkability.state_of(inspect_object(obj).members[0])
        sizes = {found.section: found.size for found in check_operators.facts(obj.read_bytes()).states}
        # A section with functions and variables is counted as its variables.
        if sum(sizes.values()) != (state.bytes or 0):
            differing[name] = sizes, state
    assert not differing


MANIFEST = """version: 1
model: m
objects:
  - {files: [op.c]%s}
operators:
  op: {args: [{name: x, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps: [{call: op, args: [x, y]}]
"""
OPERATOR = """#include "next.h"
#include <stdint.h>
int32_t op(const int32_t *x, int32_t *y);
int32_t op(const int32_t *x, int32_t *y)
{
	*y = *x + next();
	return 0;
}
"""
HEADER = "static int count_of_calls;\nstatic inline int next(void) { return count_of_calls++; }\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that generates the application of the manifest with another key of the objects."""
    (tmp_path / "op.c").write_text(OPERATOR)
    (tmp_path / "next.h").write_text(HEADER)
    monkeypatch.chdir(tmp_path)

    def generate(key=""):
        (tmp_path / "manifest.yaml").write_text(MANIFEST % key)
        assert main(["generate", "manifest.yaml", "-o", "app"]) == 0
        return tmp_path / "app"

    return generate


@pytest.mark.parametrize("compiler", ["cc", "gcc -flto --coverage -fsanitize=address"])
def test_host_run_reports_state_of_a_header(project, monkeypatch, capsys, compiler):
    monkeypatch.setenv("CC", compiler)
    app = project()
    assert main(["run", str(app), "--host"]) == 1
    error = capsys.readouterr().err
    state = "writable state of 4 bytes when compiled: count_of_calls in section .bss"
    assert f"manifest.yaml:4:14: error: objects/any/op.c has {state}" in error
    assert f"hint: {check_operators.HINT}" in error and "Traceback" not in error
    assert main(["run", str(project(", stateful: true")), "--host"]) == 0


def test_records_of_earlier_versions_have_no_positions(project, capsys):
    app = project()
    lock = app / ".opwest" / "lock.json"
    content = json.loads(lock.read_text())
    for damage in ([{"line": "4"}], 3):
        content["record"]["models"][0]["builds"][0]["places"] = damage
        lock.write_text(json.dumps(content))
        assert main(["run", str(app), "--host"]) == 1
        assert "the lock is damaged: record.models[0].builds[].places" in capsys.readouterr().err
    del content["record"]["models"][0]["builds"][0]["places"]
    lock.write_text(json.dumps(content))
    assert main(["run", str(app), "--host"]) == 1
    assert "manifest.yaml: error: objects/any/op.c has writable state" in capsys.readouterr().err


def write_commands(folder, names):
    """Write the commands of CMake that compiled sources."""
    entries = [
        {"directory": str(folder), "file": f"{folder}/{name}.c", "command": f"cc -c {name}.c -o lib.dir/{name}.o"}
        for name in names
    ]
    (folder / "all.json").write_text(json.dumps(entries))


def build_step(folder, *rows, script=SCRIPT, libc="host"):
    """Run the check as the build of Zephyr does; return its exit code and messages."""
    lines = [f"{folder / name}\tm.yaml:{at}\t{permits}\n" for name, at, permits in rows]
    (folder / "rows.txt").write_text("".join(lines))
    options = "--model m --library lib --sources rows.txt --commands all.json --record r.json --libc"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    program = [sys.executable, script, *options.split(), libc]
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_build_step_examines_changed_objects(tmp_path):
    (tmp_path / "lib.dir").mkdir()
    write_commands(tmp_path, ("good", "bad"))

    def compile_one(name, text):
        (tmp_path / f"{name}.c").write_text(text)
        run(["cc", "-c", f"{name}.c", "-o", f"lib.dir/{name}.o"], tmp_path)

    compile_one("good", CODE)
    compile_one("bad", "int m__n = 1;")
    rows = [("good.c", "3:1", "-"), ("bad.c", "4:2", "-")]
    expected = f"m.yaml:4:2: error: {tmp_path}/bad.c has writable state of 4 bytes when compiled: n in section .data\n"
    for _ in range(2):  # a faulty object is examined again
        code, text = build_step(tmp_path, *rows)
        assert code == 1 and text.startswith(expected) and text.count("error:") == 1
    assert build_step(tmp_path, rows[0], ("bad.c", "4:2", "state")) == (0, "")
    assert build_step(tmp_path, *rows)[0] == 1
    compile_one("bad", CODE.replace("f(", "g("))
    assert build_step(tmp_path, *rows) == (0, "")
    # Unchanged objects are not read again.
    obj = tmp_path / "lib.dir" / "good.o"
    times = obj.stat()
    obj.write_bytes(b"\0" * times.st_size)
    os.utime(obj, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert build_step(tmp_path, *rows) == (0, "")
    obj.touch()
    code, text = build_step(tmp_path, *rows)
    assert code == 1 and "m.yaml:3:1: error:" in text and "the object is not an ELF file" in text


def test_build_step_adds_no_file_to_the_application(tmp_path):
    """CMake runs again in the next build if a file is added."""
    scripts = tmp_path / "scripts"
    shutil.copytree(SCRIPT.parent, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(scripts.iterdir())
    (tmp_path / "lib.dir").mkdir()
    (tmp_path / "op.c").write_text("#include <stdlib.h>\nint f(void); int f(void) { return rand(); }")
    run(["cc", "-c", "op.c", "-o", "lib.dir/op.o"], tmp_path)
    write_commands(tmp_path, ["op"])
    code, text = build_step(tmp_path, ("op.c", "1:1", "-"), script=scripts / SCRIPT.name)
    assert code == 1 and "calls 'rand'" in text
    assert sorted(scripts.iterdir()) == before
