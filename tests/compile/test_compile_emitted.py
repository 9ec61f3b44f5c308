# SPDX-License-Identifier: Apache-2.0
"""Every emitted C file and the portable runtime compile without a warning, under several compilers, and from C++."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from c_support import (
    ON_ZEPHYR,
    ROOT,
    RUNTIME,
    SANITIZED,
    STRICT,
    STUBS,
    build,
    compile_all,
    execute,
    golden_app,
    includes,
    portable_sources,
    read_record,
    run,
    runtime_objects,
    write_definitions,
)
from campaign import sized
from golden_support import PROJECTS, generate_quickly
from opwest.runs.compile import STREAM_SOURCES
from opwest.runs.services import write_services
from requirements_support import fault_of_compiler, need, need_compiler

COMPILERS = {
    # gcc builds the applications and the programs of cases, also for i386; cortex-m3 is gcc too.
    **sized({}, {"gcc": ["gcc"], "gcc-m32": ["gcc", "-m32"]}),
    "clang": ["clang"],
    "cortex-m3": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"],
}
BUILDABLE = [name for name in PROJECTS if name != "targets"]  # whose objects are no programs
IN_CPP = sized(("asynchronous", "devices", "streams"), BUILDABLE)
"""What a C++ program calls; public headers are compiled as C++ for all projects."""
FOREIGN = ("asynchronous",)  # a host has no handle of a vendor-specific type: the model does not open


def digits(work: Path) -> Path:
    """Generate the digits example with the objects that this machine can compile."""
    source = work / "digits"
    shutil.copytree(ROOT / "examples" / "digits", source, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    targets = ["x86-64"] + ([] if fault_of_compiler("gcc", ("-m32",), True) else ["i386"])
    run([sys.executable, "compile_operators.py", *targets], source)
    return generate_quickly([source / "manifest.yaml"], work / "app")


@pytest.fixture(scope="session", params=[*PROJECTS, "digits"])
def app(request, tmp_path_factory):
    work = tmp_path_factory.mktemp(f"compile_{request.param}")
    if request.param == "digits":
        need_compiler("gcc")
        return digits(work)
    return golden_app(request.param, work)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_emitted_c_compiles_without_warnings(app, compiler, tmp_path):
    command, *flags = COMPILERS[compiler]
    need_compiler(command, flags)
    sources = [*portable_sources(app), *sorted((app / "src").glob("*.c"))]
    if compiler == "cortex-m3":  # without the ports of hosts, which use POSIX
        sources = [path for path in sources if "_host" not in path.name]
    own = [path for path in sources if path.is_relative_to(app)]
    compile_all(tmp_path / "c", own, command, [*flags, *STRICT], includes(app))
    runtime_objects([path for path in sources if path not in own], command, [*flags, *STRICT])
    for model in read_record(app)["models"]:
        folder = app / "models" / model["name"]
        if model["constants"]:
            options = [f"-Wa,-I{folder / 'constants'}", "-Wall", "-Werror"]
            compile_all(tmp_path / model["name"], [folder / "constants.S"], command, flags, options)


@pytest.mark.parametrize("compiler", sized(["gcc"], ["gcc", "clang"]))
def test_zephyr_only_files_compile_against_stubs(app, compiler, tmp_path):
    """Files that include Zephyr's headers, the definitions of applications, the list of models, and services."""
    need_compiler(compiler)
    record = read_record(app)
    definitions, listed = tmp_path / "definitions.c", tmp_path / "listed.c"
    write_definitions(app, definitions)
    names = [model["name"] for model in record["models"]]
    lines = ["#include <opwest/model_list.h>", *(f"#include <{name}.h>" for name in names)]
    listed.write_text("\n".join([*lines, *(f"OPWEST_LIST_MODEL({name});" for name in names), ""]))
    emitted = [app / "models" / name / "src" / f"{name}_{part}.c" for name in names for part in ("devices", "run")]
    sources = [definitions, *(path for path in emitted if path.exists())]
    boards = ("NATIVE_SIM_NATIVE_64", "MPS3_CORSTONE300_AN547", "MPS2_AN385")
    for board in boards if compiler == "gcc" else boards[:1]:
        options = [*includes(app), f"-DCONFIG_BOARD_{board}=1"]
        compile_all(tmp_path / board, sources, compiler, ON_ZEPHYR, options)
    # Services of the models, and those that `opwest run --board` generates from the record.
    services = list(app.glob("models/*/src/*_service.c"))
    write_services(tmp_path / "services", app, record)
    services += sorted((tmp_path / "services").glob("*.c"))
    assert len(services) == len(names)
    compile_all(tmp_path / "services", [listed, *services], compiler, ON_ZEPHYR, options)
    compile_all(tmp_path / "runners", [definitions], compiler, ON_ZEPHYR, [*options, "-DCONFIG_OPWEST_RUNNER=1"])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_board_without_a_node_is_a_build_error(compiler, tmp_path):
    need_compiler(compiler)
    app = golden_app("asynchronous", tmp_path)
    source = app / "models" / "asynchronous" / "src" / "asynchronous_devices.c"
    command = [compiler, "-D__ZEPHYR__=1", f"-I{STUBS}", *includes(app), "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "manifest.yaml:32: device narrow: no devicetree node for this board" in done.stderr


def cpp_program(record: dict) -> str:
    """Return a C++ program that opens, runs and closes every model once."""
    lines = [f"#include <{model['name']}.h>" for model in record["models"]]
    body = []
    for model in record["models"]:
        name, macro = model["name"], model["macro"]
        lines += [f"{macro}_WORKSPACE_DEFINE({name}_memory);"]
        lines += [f"static const struct {name}_devices {name}_context = {macro}_DEVICES_DT_INIT;"]
        names = {"input": [], "output": []}
        for tensor in model["tensors"]:
            if not tensor["placed"]:
                buffer = f"{tensor['buffer']}[{tensor['elements']}]"
                lines.append(f"alignas({tensor['align']}) static {tensor['c_type']} {buffer};")
                names[tensor["role"]].append(tensor["buffer"])
        body += [
            f"\tconst {name}_inputs {name}_in = {{{', '.join(names['input']) or '0'}}};",
            f"\tconst {name}_outputs {name}_out = {{{', '.join(names['output']) or '0'}}};",
            f"\tif ({name}_open(&{name}_memory, &{name}_context) != 0) return 1;",
            f"\tif ({name}_run(&{name}_in, &{name}_out, &{name}_memory, &{name}_context) != 0) return 1;",
            f"\tif ({name}_close(&{name}_memory, &{name}_context) != 0) return 1;",
            f"\tif (opwest_find(&{name}_registry, {name}_model.operators[0].name) == nullptr) return 1;",
        ]
    return "\n".join([*lines, "int main()", "{", *body, "\treturn 0;", "}", ""])


@pytest.mark.parametrize(("compiler", "standard"), sized([("g++", "c++11")], [("g++", "c++11"), ("clang++", "c++20")]))
def test_public_header_from_cpp(app, compiler, standard, tmp_path):
    need_compiler(compiler)
    main = tmp_path / "main.cpp"
    main.write_text(cpp_program(read_record(app)))
    flags = [f"-std={standard}", "-O2", "-Wall", "-Wextra", "-Werror", "-Wpedantic"]
    compile_all(tmp_path / "cpp", [main], compiler, flags, includes(app))


@pytest.mark.parametrize("name", [*IN_CPP, "digits"])
def test_cpp_program_links_and_runs(name, tmp_path):
    """The functions are those that the generated application, in C, calls with both back ends."""
    need("g++", "gcc")
    app = digits(tmp_path) if name == "digits" else golden_app(name, tmp_path)
    main = tmp_path / "main.cpp"
    main.write_text(cpp_program(read_record(app)))
    objects = compile_all(tmp_path / "cpp", [main], "g++", ["-std=c++17"], includes(app))
    program = build(app, tmp_path / "build", None, flags=SANITIZED, extra_objects=objects, linker="g++")
    done = execute(program)
    assert done.returncode == (1 if name in FOREIGN else 0), done.stderr


@pytest.mark.parametrize(
    ("name", "metadata"), [(name, one) for name in BUILDABLE for one in ("c", "llvm")], indirect=["metadata"]
)
def test_generated_application_passes_sanitizers(name, metadata, tmp_path):
    """The generated main.c, without changes."""
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    app = golden_app(name, tmp_path, metadata)
    program = build(app, tmp_path / "build", app / "src" / "main.c", "gcc", SANITIZED)
    done = execute(program)
    if name in FOREIGN:
        assert done.stdout == f"{name}: open returned {-errno.ENODEV}\n"
        assert done.returncode == -errno.ENODEV % 256  # main returns the failure
        assert done.stderr == f"opwest: {name}: ready of device dsp returned {-errno.ENODEV}\n"
        return
    assert done.returncode == 0 and not done.stderr, done.stderr
    for model in read_record(app)["models"]:
        assert f"{model['name']}: run returned 0" in done.stdout


def test_runtime_headers_are_self_contained(tmp_path):
    """Each header compiles alone in C and in C++."""
    need("g++", "gcc")
    zephyr_only = {"bundle_storage_zephyr.h", "flash_emul.h", "profile_devices.h", "runner.h"}
    for name in sorted({path.name for path in (RUNTIME / "include" / "opwest").glob("*.h")} - zephyr_only):
        image = ["-DOPWEST_BUNDLE_IMAGE"] if name == "bundle_image.h" else []
        for compiler, suffix, standard in (("gcc", "c", "c11"), ("g++", "cpp", "c++17")):
            text = tmp_path / f"{name}.{suffix}"
            text.write_text(f"#include <opwest/{name}>\n#include <opwest/{name}>\nextern int x;\nint x;\n")
            flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-fsyntax-only"]
            run([compiler, *flags, *image, f"-I{RUNTIME / 'include'}", text], tmp_path)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """An example with a stream, without emulation, whose definitions are C only."""
    source = tmp_path_factory.mktemp("pipeline") / "source"
    shutil.copytree(ROOT / "examples" / "two_npus", source)
    manifest = source / "manifest_pipeline.yaml"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if "host: {" not in line))
    return generate_quickly([manifest], source.parent / "app")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_stream_compiles_without_warnings(pipeline, compiler, tmp_path):
    need(compiler)
    sources = [RUNTIME / "src" / name for name in STREAM_SOURCES]
    sources.append(pipeline / "models" / "npu_pipeline" / "src" / "npu_pipeline_stream.c")
    for profile in ([], ["-DCONFIG_OPWEST_PROFILE=1"]):
        compile_all(tmp_path, sources, compiler, [*STRICT, *profile], includes(pipeline))


def test_header_of_a_stream_in_cpp(pipeline, tmp_path):
    need("g++")
    main = tmp_path / "main.cpp"
    text = "#include <npu_pipeline.h>\nNPU_PIPELINE_STREAM_DEFINE(stream);\n"
    main.write_text(text + "int main() { return stream.state == nullptr; }\n")
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-function"]
    compile_all(tmp_path, [main], "g++", flags, includes(pipeline))
