# SPDX-License-Identifier: Apache-2.0
"""Hidden effects of operators: one judgement of C sources, objects, LLVM IR, members of archives, in every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from c_support import ROOT, compile_all
from campaign import sized
from library_functions import CALLS, expected, ir, source
from opwest.bundles.checks import check_effects
from opwest.bundles.image import Unit
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics, Location
from opwest.model.builds import SourceFile, TargetBuild
from opwest.objects.inspect import read_member
from opwest.objects.providers import LIBCS, providers
from opwest.resources import script
from requirements_support import need

FLAGS = ("-O0", "-fno-builtin", "-fno-pic", "-fno-stack-protector", "-w")
CHAINS = {
    "host": (("gcc",), "x86-64", "native_sim/native/64"),
    "newlib": (("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"), "cortex-m3", "mps2/an385"),
    "picolibc": (
        ("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv32imac", "-mabi=ilp32"),
        "rv32imac",
        "qemu_riscv32",
    ),
}
WORDS = {
    "keeps state": "state",
    "uses the heap": "heap",
    "reads or writes files": "io",
    "depends on the time": "nondeterminism",
    "can end, suspend": "control",
    "floating-point environment": "fenv",
}


@pytest.fixture(scope="module", params=CHAINS)
def compiled(request, tmp_path_factory):
    """Return a C library and a directory with a source, an object and LLVM IR of each operator, and one archive."""
    command, target, _ = CHAINS[request.param]
    need(command[0])
    folder = tmp_path_factory.mktemp(request.param)
    for name in CALLS:
        (folder / f"{name}.c").write_text(source(name))
        (folder / f"{name}.ll").write_text(ir(name))
    compile_all(folder, [folder / f"{name}.c" for name in CALLS], command[0], [*command[1:], *FLAGS], [])
    subprocess.run(["ar", "rc", "libops.a", *(f"{name}.o" for name in CALLS)], cwd=folder, check=True)
    return request.param, folder, target


def manifest(folder, entries, libc, names=tuple(CALLS)):
    """Write a manifest with an operator for each function."""
    operators = {
        name: {
            "symbol": f"op_{name}",
            "args": [
                {"name": "x", "dtype": "int32", "shape": [1]},
                {"name": "y", "dtype": "int32", "shape": [1], "direction": "inout"},
                {"name": "z", "dtype": "int32", "shape": [64], "direction": "scratch"},
            ],
        }
        for name in names
    }
    content = {
        "version": 1,
        "model": "m",
        **({"libc": libc} if libc != "host" else {}),
        "objects": entries,
        "externals": [{"symbol": "compare", "from": "the test"}],
        "operators": operators,
    }
    content["run"] = {
        "inputs": {"x": {"dtype": "int32", "shape": [1]}},
        "outputs": {"r": {"dtype": "int32", "shape": [1]}},
        "state": {"y": {"dtype": "int32", "shape": [1]}},
        "steps": [{"call": name, "args": ["x", "y"]} for name in names],
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


def check(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    main(["check", "m.yaml"])
    return judged(line for line in capsys.readouterr().err.splitlines() if "error:" in line)


@pytest.mark.parametrize("kind", ["c", "o", "ll", "a"])
def test_check_and_inspect_agree(compiled, kind, capsys, monkeypatch):
    libc, folder, target = compiled
    calls = tuple(CALLS)
    if kind == "ll":  # each file is read in a process; every library reads others of the sample
        calls = calls[sized(list(CHAINS).index(libc), 0) :: sized(6, 1)]
    names = ["libops.a"] if kind == "a" else [f"{name}.{kind}" for name in calls]
    # Sources without a target are judged for the default of the manifest.
    manifest(folder, [{"files": names} if kind == "c" else {"files": names, "target": target}], libc, calls)
    assert check(folder, capsys, monkeypatch) == wanted(libc, calls)
    options = [] if libc == "host" else ["--libc", libc]
    for_target = ["--target", target] if kind == "ll" else []
    main(["inspect", "--json", *options, *for_target, *names])
    files = json.loads(capsys.readouterr().out)["result"]
    rows = [row for file in files for row in file.get("members", [file])]
    assert {name: tuple(effects) for row in rows for name, effects in row["effects"].items()} == wanted(libc, calls)
    hidden = {row["name"].removesuffix(".o") if "name" in row else row["file"][:-2] for row in rows if row["effects"]}
    if kind != "ll":
        assert hidden == set(wanted(libc))


def test_compiled_operators_and_bundles_agree(compiled):
    libc, folder, _ = compiled
    rows = "".join(f"{folder / name}.c\tm.yaml:1:1\t-\n" for name in CALLS)
    commands = [
        {"directory": str(folder), "file": f"{folder / name}.c", "command": f"cc -o lib.dir/{name}.o -c {name}.c"}
        for name in CALLS
    ]
    (folder / "lib.dir").mkdir()
    for name in CALLS:
        (folder / "lib.dir" / f"{name}.o").write_bytes((folder / f"{name}.o").read_bytes())
    (folder / "rows.txt").write_text(rows)
    (folder / "all.json").write_text(json.dumps(commands))
    program = ROOT / "zephyr_module" / "scripts" / "check_operators.py"
    words = ["--model", "m", "--library", "lib", "--sources", "rows.txt", "--commands", "all.json", "--record", "r"]
    done = subprocess.run(
        [sys.executable, program, *words, "--libc", libc], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert judged(done.stderr.splitlines()) == wanted(libc)
    faults = Diagnostics()
    units = [
        Unit(Path(f"{name}.o"), read_member(name, (folder / f"{name}.o").read_bytes()), f"{name}.c", Location("m.yaml"))
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
        known = providers("", libc)
        table = effects.table(libc)
        assert (known.standard | known.math) - table.keys() == set()
        assert {one for found in table.values() for one in found} <= {*effects.EFFECTS, "pure", "errno"}
        both = {name for name, found in table.items() if {"pure", "errno"} & {*found} and len(found) > 1}
        assert both == {name for name in both if set(table[name]) - {"errno"} <= {"heap", "state"} and libc != "host"}


def test_members_of_newlib_have_the_effects_of_the_table():
    """What the members of newlib that a call links contain and need; `errno` and the pointer to it are errno's."""
    from newlib_effects import derived

    need("arm-none-eabi-gcc")
    table = script("effects").table("newlib")
    folder = subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-print-file-name=libc.a"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    differing = {}
    known = providers("arm", "newlib")
    for name, found in derived(Path(folder).parent, known.standard | known.math).items():
        hidden = set(table[name]) - {"pure", "errno"}
        if name.removeprefix("v") in ("siprintf", "sniprintf"):  # their member allocates for asprintf only
            assert found == {"heap"}
        elif (found and not hidden) or ("heap" in found and not hidden & {"heap", "state", "control"}):
            differing[name] = found, hidden
    assert differing == {}
