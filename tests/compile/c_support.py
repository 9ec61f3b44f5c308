# SPDX-License-Identifier: Apache-2.0
"""Compilation and execution of emitted projects, with the flags that emitted C must support."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from campaign import SANITIZED_LEVEL
from golden_support import Metadata, copy_project, generate_quickly
from opwest.render.model_files import metadata_object
from opwest.runs.compile import RUNTIME_SOURCES
from session_support import digest, digest_of_files, made_once

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "zephyr_module"
STUBS = Path(__file__).parent / "zephyr_stubs"

# All emitted C compiles with each of these. Omitted: -Wpadded, -Wcast-align=strict (a pool is bytes that
# become other types, at offsets that the planner aligned), -Wunused-macros (macros are for the application), and
# -Wfloat-equal, which is about computations; and for clang -Weverything, which includes all of these.
STRICT = [
    *("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wsign-conversion"),
    *("-Wmissing-prototypes", "-Wstrict-prototypes", "-Wshadow", "-Wcast-qual", "-Wundef", "-Wvla"),
    *("-Wmissing-declarations", "-Wredundant-decls", "-Wdouble-promotion", "-Wwrite-strings", "-Wformat=2"),
]
ON_ZEPHYR = [*(flag for flag in STRICT if flag not in ("-Wpedantic", "-Wundef")), "-D__ZEPHYR__=1", f"-I{STUBS}"]
"""Zephyr is written in GNU C."""
SANITIZED = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
SANITIZED += ["-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def golden_app(name: str, work: Path, metadata: Metadata = "c") -> Path:
    """Return a golden project below `work`, generated once in a session."""

    def make(folder: Path) -> None:
        generate_quickly(copy_project(name, folder / "source"), folder / "app", metadata=metadata)

    shutil.copytree(made_once(f"golden/{name}_{metadata}", make), work, dirs_exist_ok=True)
    return work / "app"


def read_record(app: Path) -> dict:
    """Return the models of the project from its lock."""
    return json.loads((app / ".opwest" / "lock.json").read_text())["record"]


def includes(app: Path) -> list[str]:
    """Return the -I options of a generated project, with the complete runtime, which includes the files for hosts."""
    folders = [RUNTIME, *(app / "models" / m["name"] for m in read_record(app)["models"])]
    return [f"-I{folder / 'include'}" for folder in folders]


def portable_sources(app: Path) -> list[Path]:
    """Return the runtime's portable sources and those of the models (where they are C), without operators."""
    sources = [RUNTIME / "src" / name for name in RUNTIME_SOURCES]
    record = read_record(app)
    for model in record["models"]:
        parts = ("metadata", "run") if record["metadata"] == "c" else ()
        parts = (*parts, *(part for part in ("bridges", "tvm_crt") if parts and model[part]))
        if any(tensor["reached"] for tensor in model["tensors"]):
            parts = (*parts, "devices")
        parts = (*parts, *(("tvmgen",) if model["tvmgen"] else ()))
        sources += [app / "models" / model["name"] / "src" / f"{model['name']}_{part}.c" for part in parts]
    return sources


def write_definitions(app: Path, source: Path) -> None:
    """Write what an application for Zephyr defines for each model; a runner with CONFIG_OPWEST_RUNNER."""
    lines = []
    for model in read_record(app)["models"]:
        name, macro = model["name"], model["macro"]
        lines += [
            f"#include <{name}_devicetree.h>",
            "#ifdef CONFIG_OPWEST_RUNNER",
            f"#include <{name}_runner.h>",
            "#endif",
            f"{macro}_WORKSPACE_DEFINE({name}_memory);",
            f"const void *const use_{name} = &{name}_memory;",
            f"const struct {name}_devices {name}_context = {macro}_DEVICES_DT_INIT;",
            "#ifdef CONFIG_OPWEST_RUNNER",
            f"{macro}_RUNNER_DEFINE(of_{name}, 2048, 5);",
            f"#ifdef {macro}_WORKSPACE_DEFINE_IN",
            f"{macro}_WORKSPACE_DEFINE_IN(in_{name}, partition);",
            f"const void *const use_in_{name} = &in_{name};",
            "#endif",
            "#endif",
        ]
    source.write_text("\n".join([*lines, ""]))


def run(command: Sequence[str | Path], cwd: Path, *, text: str | None = None) -> str:
    """Run a command that must succeed and return its output."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def compile_all(
    work: Path, sources: Sequence[Path], compiler: str, flags: Sequence[str], options: Sequence[str]
) -> list[Path]:
    """Compile sources with unique names in `work`, one at a time, as ccache requires; return all objects there."""
    work.mkdir(parents=True, exist_ok=True)
    for source in sources:
        run([compiler, *flags, *options, "-c", source], work)
    return sorted(work.glob("*.o"))


def compile_program(work: Path, sources: Sequence[Path], flags: Sequence[str], options: Sequence[str] = ()) -> Path:
    """Compile and link a program with GCC."""
    run(["gcc", *flags, *compile_all(work / "objects", sources, "gcc", flags, options), "-o", "program"], work)
    return work / "program"


def runtime_objects(sources: Sequence[Path], compiler: str, flags: Sequence[str]) -> list[Path]:
    """Return objects of the runtime's sources, compiled once in a session for each compiler and its flags."""
    include = sources[0].parents[1] / "include"
    key = digest(compiler, *flags, *(part for path in sources for part in (path.name, path.read_bytes())))

    def make(folder: Path) -> None:
        compile_all(folder, sources, compiler, flags, [f"-I{include}"])

    return sorted(made_once(f"runtime/{key}_{digest_of_files(include)}", make).glob("*.o"))


def build(
    app: Path,
    work: Path,
    main: Path | None,
    compiler: str = "gcc",
    flags: Sequence[str] = SANITIZED,
    *,
    operator_flags: Sequence[str] = ("-Wno-unused-variable", "-Wno-unused-but-set-variable"),
    extra_objects: Sequence[Path] = (),
    linker: str | None = None,
) -> Path:
    """Build `main` with all models of a project and the runtime; return the program.

    Operators are compiled with the same sanitizers. Objects are those for this machine.
    """
    work.mkdir(parents=True, exist_ok=True)
    bits = 32 if "-m32" in flags else 64
    options = includes(app)
    objects: list[Path] = list(extra_objects)

    def add(folder: str, sources: Sequence[Path], extra: Sequence[str] = ()) -> None:
        objects.extend(compile_all(work / folder, sources, compiler, [*flags, *extra], options))

    portable = portable_sources(app)
    own = [source for source in portable if source.is_relative_to(app / "models")]
    objects += runtime_objects([source for source in portable if source not in own], compiler, flags)
    if own:
        add("models", own)
    if main:
        add("main", [main])
    record = read_record(app)
    for model in record["models"]:
        folder = app / "models" / model["name"]
        if model["constants"] and record["metadata"] == "c":
            add(f"{model['name']}_constants", [folder / "constants.S"], [f"-Wa,-I{folder / 'constants'}"])
        chosen = [b for b in model["builds"] if b["target"] is None or (b["bits"] == bits and "x86_64" in b["host"])]
        assert chosen, f"{model['name']} has no objects for this machine"
        sources = [folder / source for source in chosen[0]["sources"]]
        if sources:
            rename = ["-include", str(folder / chosen[0]["rename"]), "-idirafter", str(RUNTIME / "include_tvm")]
            add(f"{model['name']}_operators", sources, [*rename, *operator_flags])
        objects.extend(folder / item for item in chosen[0]["objects"])
        if record["metadata"] == "llvm":
            objects.append(folder / metadata_object(model["name"], chosen[0]["target"]))
    program = work / "program"
    run([linker or compiler, *flags, *objects, "-o", program, "-lm", "-pthread"], work)
    return program


def execute(program: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess:
    """Run a program of a test."""
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    command = [str(program), *arguments]
    return subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def pass_all_cases(program: Path) -> None:
    """Run all cases of a program that uses programs/cases.h."""
    done = execute(program)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
