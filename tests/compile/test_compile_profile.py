# SPDX-License-Identifier: Apache-2.0
"""CONFIG_OPWEST_PROFILE: no code if disabled, equal measurements of both back ends if enabled."""

import re
from pathlib import Path

import projects
import pytest
from c_support import RUNTIME, SANITIZED, build, compile_all, execute, golden_app, includes, run
from golden_support import Metadata
from opwest.base.diagnostics import Diagnostics
from opwest.objects.calls import functions
from opwest.objects.inspect import inspect_object
from opwest.render.tables.model import points
from requirements_support import need, need_compiler

PROGRAM = Path(__file__).parent / "programs" / "asynchronous.c"
PROFILED = "-DCONFIG_OPWEST_PROFILE"
MODELS = {"asynchronous": "asynchronous", "devices": "accelerated", "many_kinds": "many_kinds"}
COMPILERS = {
    "gcc -O2": ("gcc", ["-O2"]),
    "gcc -m32 -Os": ("gcc", ["-m32", "-Os"]),
    "clang -O2": ("clang", ["-O2"]),
    "cortex-m3 -Os": ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb", "-Os"]),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("golden", MODELS)
def test_run_is_the_same_object_as_without_any_points(golden: str, compiler: str, tmp_path: Path) -> None:
    command, flags = COMPILERS[compiler]
    need_compiler(command, flags)
    app = golden_app(golden, tmp_path)
    source = app / "models" / MODELS[golden] / "src" / f"{MODELS[golden]}_run.c"
    text = source.read_text()
    plain, count = re.subn(r"^\tOPWEST_PROFILE_(BEGIN|END)\([^;]*\);\n", "", text, flags=re.MULTILINE)
    assert count > 6
    plain = re.sub(r"^\trc = (opwest_devices_close\(.*;)\n\treturn rc;", r"\treturn \1", plain, flags=re.MULTILINE)
    objects = []
    for content in (text, plain):
        source.write_text(content)
        compile_all(tmp_path / "o", [source], command, flags, includes(app))
        objects.append((tmp_path / "o" / f"{source.stem}.o").read_bytes())
    assert "OPWEST_PROFILE_" not in plain and objects[0] == objects[1]


def test_run_of_llvm_does_not_call_c_run(tmp_path: Path) -> None:
    need("llvmlite")
    app = golden_app("asynchronous", tmp_path, "llvm")
    path = app / "models" / "asynchronous" / "objects" / "x86-64" / "asynchronous_metadata.o"
    (member,) = inspect_object(path).members
    found = {function.name: function for function in functions(member)}

    def called(name: str) -> set[str]:
        return {callee for callee in found[name].callees if isinstance(callee, str)}

    ours = {"opwest_profile_begin", "opwest_profile_end"}
    assert "opwest_devices_sync" in called("asynchronous_run") and not called("asynchronous_run") & ours
    assert called("asynchronous_run_profiled") == called("asynchronous_run") | ours
    assert not any(called(name) & ours for name in found if name != "asynchronous_run_profiled")


@pytest.mark.parametrize("flags", [(), ("-m32",)], ids=["64", "32"])
def test_every_measurement_of_a_run(metadata: Metadata, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Each read of the counter increments it by one: every point takes 1, `run` twice the number of points."""
    options = [*SANITIZED, *flags, PROFILED, *(["-no-pie"] if flags and metadata == "llvm" else [])]
    need_compiler("gcc", options, link=True)
    compile_all(tmp_path / "p", [RUNTIME / "src" / "profile.c"], "gcc", options, [f"-I{RUNTIME / 'include'}"])
    app = golden_app("asynchronous", tmp_path, metadata)
    program = build(app, tmp_path / "b", PROGRAM, flags=options, extra_objects=[tmp_path / "p" / "profile.o"])
    done = execute(program, "profile")
    assert done.returncode == 0, done.stderr
    ((model, plan),) = projects.check([tmp_path / "source" / "manifest.yaml"], Diagnostics())
    expected = points(model, plan)
    assert {point.kind for point in expected} == {"run", "step", "launch", "wait", "cache"}
    events = [f"{sign}{p.name} {i}" for i, p in enumerate(expected) if i for sign in "+-"]
    failing = next(i for i, p in enumerate(expected) if p.kind == "launch")
    lines = ["run 0", *events, "run 0", *events[: 2 * failing], "run -5"]
    for index, p in enumerate(expected):
        runs, each = (2, 2 * len(expected) - 1) if index == 0 else (3 if index <= failing else 2, 1)
        lines.append(f"point {index} {p.kind} {p.name} {p.step} {p.device}: {runs} {each} {each} {each} {runs * each}")
    assert done.stdout.splitlines() == [*lines, "done"]


def test_profiling_compiles_with_all_warnings_and_as_cpp(tmp_path: Path) -> None:
    need_compiler("g++", [])
    app = golden_app("asynchronous", tmp_path)
    strict = ["-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", PROFILED]
    sources = [app / "models" / "asynchronous" / "src" / "asynchronous_run.c"]
    sources += [RUNTIME / "src" / name for name in ("profile.c", "port_profile_host.c", "service.c")]
    compile_all(tmp_path / "c", sources, "gcc", ["-std=c11", "-O2", *strict], includes(app))
    user = tmp_path / "user.cpp"
    user.write_text(
        "#include <asynchronous.h>\nASYNCHRONOUS_WORKSPACE_DEFINE(workspace);\n"
        "uint64_t total();\nuint64_t total() { return workspace.profile[0].total; }\n"
    )
    run(["g++", "-std=c++17", "-c", *strict, *includes(app), user, "-o", tmp_path / "user.o"], tmp_path)
