# SPDX-License-Identifier: Apache-2.0
"""The repository as a module: two lines of CMake add a model to an application; west's commands in a workspace."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cover import MAIN as CURRENT
from cover import configured
from requirements_support import skip_here
from zephyr_support import ROOT, need_in

pytestmark = pytest.mark.zephyr
NATIVE, AN385 = "native_sim/native/64", "mps2/an385"
MODULE = f"-DEXTRA_ZEPHYR_MODULES={ROOT}"

LINES = """
opwest_add_model({name} MANIFEST ${{CMAKE_CURRENT_SOURCE_DIR}}/{name}/manifest.yaml)
target_link_libraries(app PRIVATE {name})
"""
OPERATOR = """#include <stdint.h>
#include "how.h"
int32_t add(const int32_t *x, const int32_t *by, int32_t *y);
int32_t add(const int32_t *x, const int32_t *by, int32_t *y)
{
	*y = *x HOW *by + NOTHING;
	return 0;
}
"""
MANIFEST = """version: 1
model: {name}
objects: [{{files: [add.c], include_dirs: [headers], defines: ["NOTHING=(1 - 1)"], cflags: [-O2]}}]
operators:
  add:
    args:
      - {{name: x, dtype: int32, shape: [1]}}
      - {{name: by, dtype: int32, shape: [1]}}
      - {{name: y, dtype: int32, shape: [1], direction: out}}
constants: {{step: {{file: step.bin}}}}
run:
  inputs: {{x: {{dtype: int32, shape: [1]}}}}
  outputs: {{y: {{dtype: int32, shape: [1]}}}}
  steps: [{{call: add, args: [x, step, y]}}]
"""
MAIN = """#include <stdio.h>
#include <one.h>
#include <one_devicetree.h>
#include <two.h>
#include <two_devicetree.h>

ONE_WORKSPACE_DEFINE(first);
TWO_WORKSPACE_DEFINE(second);
static const struct one_devices one = ONE_DEVICES_DT_INIT;
static const struct two_devices two = TWO_DEVICES_DT_INIT;

int main(void)
{
	int32_t x = 1, y = 0, z = 0;
	int rc = one_open(&first, &one) | two_open(&second, &two);

	rc |= one_run(&(struct one_inputs){&x}, &(struct one_outputs){&y}, &first, &one);
	rc |= two_run(&(struct two_inputs){&y}, &(struct two_outputs){&z}, &second, &two);
	printf("Hello World! %s %d %d end %d\\n", CONFIG_BOARD_TARGET, (int)y, (int)z, rc);
	return 0;
}
"""


def hello_world(workspace, folder):
    """Return a copy of Zephyr's own sample with two models."""
    app = folder / "hello_world"
    shutil.copytree(workspace.base / "samples" / "hello_world", app)
    for name, step in (("one", 10), ("two", 200)):
        own = app / name
        own.mkdir()
        (own / "add.c").write_text(OPERATOR)
        (own / "headers").mkdir()
        (own / "headers" / "how.h").write_text("#define HOW +\n")
        (own / "manifest.yaml").write_text(MANIFEST.format(name=name))
        (own / "step.bin").write_bytes(step.to_bytes(4, "little"))
        with (app / "CMakeLists.txt").open("a") as file:
            file.write(LINES.format(name=name))
    (app / "src" / "main.c").write_text(MAIN)
    (app / "prj.conf").write_text("CONFIG_OPWEST=y\n")
    return app


@pytest.mark.usefixtures("packages")
@configured("board", [NATIVE, AN385])
def test_two_models_in_an_existing_application(workspace, tmp_path, board):
    app = hello_world(workspace, tmp_path)
    built = workspace.build(app, board, MODULE)
    assert f"Hello World! {board} 11 211 end 0" in built.run(r"end -?[0-9]+\s")
    compiled_files = [one["file"] for one in json.loads((built.folder / "compile_commands.json").read_text())]
    registries = [file for file in compiled_files if file.endswith("/src/registry.c")]
    assert registries == [f"{ROOT}/zephyr_module/src/registry.c"]
    assert sum(file.endswith("_run.c") for file in compiled_files) == 2

    log = built.rebuilt()
    assert "add.c" not in log and "main.c" not in log
    if board == AN385:  # Zephyr builds native_sim's runner every time
        assert "ninja: no work to do" in log

    (app / "one" / "step.bin").write_bytes((30).to_bytes(4, "little"))
    log = built.rebuilt()
    # The constant, and the hash of the model, which the metadata and the note contain.
    assert compiled(log) == {f"{GENERATED}/{file}.obj" for file in ("constants.S", "note.S", "src/one_metadata.c")}, log
    assert CONFIGURED not in log
    assert f"Hello World! {board} 31 231 end 0" in built.run(r"end -?[0-9]+\s")
    if board == NATIVE:
        changed_sources(app, built)


GENERATED = "CMakeFiles/app.dir/opwest/one/models/one"
OBJECT = "CMakeFiles/opwest_one.operators.0.dir/one/add.c.obj"
CONFIGURED = "Configuring done"
STATE = """add.c has writable state of 4 bytes when compiled: counter in section .bss.counter
  expected: operators without .data and .bss, so that models are reentrant
  hint: make it const"""


def compiled(log):
    """Return the compiled objects, without Zephyr's table of interrupts, which it generates for every link."""
    found = [file for file in re.findall(r"Building \w+ object (\S+)", log) if "/zephyr_final.dir/" not in file]
    assert len(found) == len(set(found))
    return set(found)


def changed_sources(app, built):
    """Changed operators are examined and compiled without CMake, unless the list of files or their needs change."""
    source, header, manifest = (app / "one" / name for name in ("add.c", "headers/how.h", "manifest.yaml"))

    source.write_text(OPERATOR.replace("*y = ", "*y = 1 + "))
    log = built.rebuilt()
    assert compiled(log) == {OBJECT, *(f"{GENERATED}/{file}.obj" for file in ("note.S", "src/one_metadata.c"))}, log
    assert CONFIGURED not in log and "opwest/two" not in log
    assert f"Hello World! {NATIVE} 32 232 end 0" in built.run(r"end -?[0-9]+\s")

    helper = "int32_t half(int32_t value);\nint32_t half(int32_t value) { return value / 2; }\n"
    source.write_text(OPERATOR.replace("int32_t add", f"{helper}int32_t add", 1).replace("HOW *by", "HOW half(*by)"))
    assert CONFIGURED not in built.rebuilt()
    assert b"\0one__half\0" in (built.folder / OBJECT).read_bytes()
    assert f"Hello World! {NATIVE} 16 216 end 0" in built.run(r"end -?[0-9]+\s")

    source.write_text(OPERATOR.replace("const int32_t *by, ", "").replace("HOW *by", "HOW 1"))
    code, log = built.again()
    assert code != 0 and CONFIGURED not in log
    assert f"{manifest}:5:3: error: add.c:4: function 'add' has 2 parameters, operator 'add' has 3" in log

    header.write_text("#define HOW +\nstatic int counter;\nstatic inline int next(void) { return counter++; }\n")
    source.write_text(OPERATOR.replace("return 0", "return 0 * next()"))
    code, log = built.again()
    assert code != 0 and CONFIGURED not in log
    assert f"{manifest}:3:20: error: {source.parent}/{STATE}" in log

    # What the sources need, and the files, are in model.cmake.
    (app / "one" / "more.c").write_text("const int extra = 1;\n")
    manifest.write_text(manifest.read_text().replace("[add.c]", "[add.c, more.c], stateful: true"))
    log = built.rebuilt()
    assert CONFIGURED in log and "more.c.obj" in log
    header.write_text("#define HOW -\n")
    source.write_text("#include <math.h>\n" + OPERATOR)
    assert CONFIGURED in built.rebuilt()
    assert f"Hello World! {NATIVE} -29 171 end 0" in built.run(r"end -?[0-9]+\s")


@configured(board=NATIVE)
@pytest.mark.usefixtures("packages")
def test_make_instead_of_ninja(workspace, tmp_path):
    """make does not read a changed model.cmake before it builds: the build fails, and the next one is complete."""
    app = hello_world(workspace, tmp_path)
    target = "opwest_one.operators.check"
    code, built = workspace.try_build(app, NATIVE, MODULE, "-GUnix Makefiles", target=target)
    assert code == 0, built.log[-3000:]
    source = app / "one" / "add.c"
    source.write_text(OPERATOR.replace("HOW *by", "HOW 1 + *by"))
    code, log = built.again(target)
    assert code == 0 and "Generating model one" in log and OBJECT in log and CONFIGURED not in log, log
    code, log = built.again(target)
    assert code == 0 and "Generating model one" not in log and OBJECT not in log, log
    source.write_text("#include <math.h>\n" + OPERATOR)
    code, log = built.again(target)
    assert code != 0 and "Start the build again" in " ".join(log.split()), log
    code, log = built.again(target)
    assert code == 0 and CONFIGURED in log, log
    (app / "one" / "headers" / "how.h").write_text("#define HOW + counter++ +\nstatic int counter;\n")
    code, log = built.again(target)
    assert code != 0 and STATE in log


@configured(
    "board, options",
    [
        (NATIVE, ("-DCONFIG_COVERAGE=y", "-DCONFIG_ASAN=y", "-DCONFIG_UBSAN=y")),
        (AN385, ("-DCONFIG_LTO=y", "-DCONFIG_ISR_TABLES_LOCAL_DECLARATION=y")),
    ],
)
def test_state_with_instrumentation_and_lto(workspace, opwest, tmp_path, board, options):
    """The build of a generated application, up to the check of the operators."""
    app = hello_world(workspace, tmp_path)
    opwest("generate", app / "one" / "manifest.yaml", "-o", tmp_path / "made")
    target = "opwest_one.operators.check"
    code, built = workspace.try_build(tmp_path / "made", board, *options, target=target)
    assert code == 0, built.log[-3000:]
    assert {option.removeprefix("-D") for option in options} <= set(built.options)
    (obj,) = built.folder.rglob("add.c.obj")
    assert (b".gnu.lto_" if board == AN385 else b"__gcov") in obj.read_bytes()

    (app / "one" / "headers" / "how.h").write_text("#define HOW + counter++ +\nstatic int counter;\n")
    opwest("generate", app / "one" / "manifest.yaml", "-o", tmp_path / "made")
    code, log = built.again(target)
    assert code != 0 and CONFIGURED not in log
    assert f"manifest.yaml:3:20: error: {tmp_path}/made/models/one/objects/any/{STATE}" in log


OPTIMISED = {"add": "", "small": "optimize: size", "same": "optimize: application", "own": "cflags: [-Os, -O3]"}


@configured(
    "version, board, options, levels",
    [
        (CURRENT, AN385, (), ("-O2", "-Os", "-Os", "-O3")),
        (CURRENT, "qemu_riscv32", (), ("-O2 -fno-schedule-insns", "-Os", "-Os", "-O3")),
        (CURRENT, NATIVE, ("-DCONFIG_DEBUG_OPTIMIZATIONS=y",), ("-Og", "-Og", "-Og", "-O3")),
        ("3.4", NATIVE, ("-DCONFIG_SPEED_OPTIMIZATIONS=y",), ("-O2", "-Os", "-O2", "-O3")),
    ],
)
def test_optimisation_of_operators(workspaces, opwest, tmp_path, version, board, options, levels):
    """The last option decides: that of the manifest, after the application's; `cflags` follow it."""
    app = hello_world(workspaces(CURRENT), tmp_path)
    entries = []
    for name, keys in OPTIMISED.items():
        more = f", {keys}" if keys else ""
        entries.append(f"{{files: [{name}.c], include_dirs: [headers], defines: [NOTHING=0]{more}}}")
        if name != "add":
            text = f"int {name}(int x);\nint {name}(int x)\n{{\n\treturn x;\n}}\n"
            (app / "one" / f"{name}.c").write_text(text)
    manifest = app / "one" / "manifest.yaml"
    manifest.write_text(re.sub(r"objects: \[.*\]", f"objects: [{', '.join(entries)}]", manifest.read_text()))
    opwest("generate", manifest, "-o", tmp_path / "made")
    other = workspaces(version)
    code, built = other.try_build(tmp_path / "made", other.board(board), *options, target="")
    assert code == 0, built.log[-3000:]
    rows = json.loads((built.folder / "compile_commands.json").read_text())
    level = re.compile(r"(?<= )-O\S*(?: -fno-schedule-insns)?")
    given = {Path(row["file"]).stem: level.findall(row["command"]) for row in rows if "/any/" in row["file"]}
    assert {name: words[-1] for name, words in given.items()} == dict(zip(OPTIMISED, levels, strict=True))


@configured(board=NATIVE, back_end="llvm")
@pytest.mark.usefixtures("packages")
def test_model_of_a_generated_project_and_metadata_of_llvm_in_an_existing_application(workspace, opwest, tmp_path):
    """One model is used as a module; the runtime is that of the repository.

    The other one has only C sources: TARGET names the targets, and the build links the object of its own.
    """
    need_in(workspace, "llvmlite")
    app = hello_world(workspace, tmp_path)
    opwest("generate", app / "one" / "manifest.yaml", "-o", tmp_path / "made")
    text = (app / "CMakeLists.txt").read_text().replace(LINES.format(name="one"), "")
    manifest = "two/manifest.yaml"
    text = text.replace(f"{manifest})", f"{manifest} METADATA llvm TARGET cortex-m3 x86-64)")
    (app / "CMakeLists.txt").write_text(text)
    (app / "prj.conf").write_text("CONFIG_OPWEST_MODEL_ONE=y\n")  # selects CONFIG_OPWEST
    built = workspace.build(app, NATIVE, f"{MODULE};{tmp_path / 'made' / 'models' / 'one'}")
    assert f"Hello World! {NATIVE} 11 211 end 0" in built.run(r"end -?[0-9]+\s")
    assert "model two: objects for x86-64\n" in built.log
    compiled_files = [one["file"] for one in json.loads((built.folder / "compile_commands.json").read_text())]
    assert not [file for file in compiled_files if file.endswith(("two_metadata.c", "two_run.c"))]


@configured(board=NATIVE)
@pytest.mark.usefixtures("packages")
def test_sysbuild(workspace, opwest, tmp_path):
    """Both methods work for an application that is one image of sysbuild."""
    app = hello_world(workspace, tmp_path)
    built = workspace.build(app, NATIVE, MODULE, sysbuild=True)
    assert f"Hello World! {NATIVE} 11 211 end 0" in built.run(r"end -?[0-9]+\s")
    (app / "two" / "headers" / "how.h").write_text("#define HOW -\n")
    replace(built, folder=built.folder.parent).rebuilt()
    assert f"Hello World! {NATIVE} 11 -189 end 0" in built.run(r"end -?[0-9]+\s")

    opwest("generate", app / "one" / "manifest.yaml", "-o", tmp_path / "made")
    built = workspace.build(tmp_path / "made", NATIVE, sysbuild=True)
    assert "one: run returned 0" in built.run(r"run returned -?[0-9]+\s")


@configured(board=NATIVE)
@pytest.mark.usefixtures("packages")
def test_errors_of_the_manifest_stop_the_build(workspace, tmp_path):
    app = hello_world(workspace, tmp_path)
    manifest = app / "two" / "manifest.yaml"
    good = manifest.read_text()
    manifest.write_text(good.replace("[x, step, y]", "[x, stop, y]"))
    log = workspace.refused(app, NATIVE, MODULE)
    assert f"{manifest}:14:33: error: tensor 'stop' is read but never written" in log
    assert "hint: did you mean 'step'?" in log and "Traceback" not in log
    manifest.write_text(good)
    (app / "CMakeLists.txt").write_text((app / "CMakeLists.txt").read_text().replace("two MANIFEST", "three MANIFEST"))
    assert "declares a model of another name" in workspace.refused(app, NATIVE, MODULE)


def commit_all(folder):
    """Make a repository of a directory."""
    own = ["-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "protocol.file.allow=always"]
    for words in ("init -q -b main", "add -A", "commit -q -m all"):
        subprocess.run(["git", *own, *words.split()], cwd=folder, check=True, capture_output=True)


def west(workspace, folder, *arguments, code=0):
    """Run west, which must return a code; return its output or, after an error, its messages."""
    env = {k: v for k, v in workspace.environment(NATIVE).items() if k != "ZEPHYR_BASE"}
    env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    done = subprocess.run(
        [workspace.west, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def clone(tmp_path):
    """A repository with the files of `git ls-files`, like a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        skip_here("this is no git repository: nothing to clone")
    folder = tmp_path / "upstream"
    for name in listed.stdout.splitlines():
        if not name.startswith("tests/") and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    commit_all(folder)
    return folder


@pytest.mark.usefixtures("packages")
@configured("form", ["project", "import"])
def test_west_opwest_in_a_workspace(workspace, clone, tmp_path, form):
    """Listed as a project with `west-commands`, or imported with its whole manifest."""
    topdir = tmp_path / "workspace"
    manifest = topdir / "manifest"
    manifest.mkdir(parents=True)
    how = "import: {name-allowlist: [none]}" if form == "import" else "west-commands: west-commands.yml"
    (manifest / "west.yml").write_text(
        "manifest:\n  self: {path: manifest}\n  projects:\n"
        f"    - {{name: opwest, url: '{clone}', revision: main, path: modules/lib/opwest, {how}}}\n"
    )
    commit_all(manifest)
    west(workspace, topdir, "init", "-l", "manifest")
    west(workspace, topdir, "update", "opwest")

    shown = west(workspace, topdir, "opwest", "--help")
    assert shown.startswith("usage: west opwest ")
    commands = re.search(r"commands:\n  COMMAND\n((?:    .*\n)+)", shown)
    names = re.findall(r"^    (\w+) ", commands[1], re.MULTILINE)
    assert {"import", "init", "check", "generate", "run", "report"} == set(names)
    for name in ("generate", "run"):  # of every command: tests/cli/test_cli_commands.py
        assert west(workspace, topdir, "opwest", name, "--help").startswith(f"usage: west opwest {name} ")
    example = topdir / "modules" / "lib" / "opwest" / "examples" / "two_npus" / "manifest.yaml"
    assert "wait npu0" in west(workspace, topdir, "opwest", "check", "--schedule", str(example))
    told = west(workspace, topdir, "opwest", "check", "absent.yaml", code=1)
    assert "absent.yaml: error: cannot read the manifest" in told


# --- `west packages pip` of a workspace with opwest lists requirements.txt: no project is downloaded

PROJECTS = """manifest:
  self: {path: manifest}
  projects:
    - {name: zephyr, url: "file:///absent/zephyr", west-commands: scripts/west-commands.yml}
    - {name: opwest, url: "file:///absent/opwest", path: modules/lib/opwest}
"""


@pytest.fixture
def topdir(workspace, tmp_path):
    """A workspace of two projects: the Zephyr tree at hand and this repository."""
    if not (workspace.base / "scripts" / "west_commands" / "packages.py").is_file():
        skip_here(f"Zephyr {workspace.version} has no 'west packages'")
    configuration = "[manifest]\npath = manifest\nfile = west.yml\n[zephyr]\nbase = zephyr\n"
    for name, text in ((".west/config", configuration), ("manifest/west.yml", PROJECTS)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "modules" / "lib").mkdir(parents=True)
    (tmp_path / "zephyr").symlink_to(workspace.base)
    (tmp_path / "modules" / "lib" / "opwest").symlink_to(ROOT)
    return tmp_path


@pytest.mark.parametrize("module", [None, "opwest"])
def test_requirements_of_opwest_are_listed(workspace, topdir, module):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ZEPHYR", "PYTHON"))}
    command = [workspace.west, "packages", *(["-m", module] if module else []), "pip"]
    done = subprocess.run(command, cwd=topdir, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [Path(line.removeprefix("-r ")).resolve() for line in done.stdout.splitlines()]
    zephyr = [] if module else [workspace.base.resolve() / "scripts" / "requirements.txt"]
    assert files == [*zephyr, ROOT / "requirements.txt"]
