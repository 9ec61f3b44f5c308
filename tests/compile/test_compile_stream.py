# SPDX-License-Identifier: Apache-2.0
"""The emitted C of a stream, and the runtime for it, compile with all strict options; the header also as C++."""

import shutil
from pathlib import Path

import pytest
from c_support import RUNTIME, STRICT, compile_all, generate_quickly, includes, run
from opwest.host.compile import STREAM_SOURCES
from requirements_support import need

EXAMPLE = RUNTIME.parent / "examples" / "two_npus"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The example without emulation, whose definitions are C only."""
    work = tmp_path_factory.mktemp("pipeline")
    shutil.copytree(EXAMPLE, work / "source")
    manifest = work / "source" / "manifest_pipeline.yaml"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if "host: {" not in line))
    return generate_quickly([manifest], work / "app")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_strict_options(app, compiler, tmp_path):
    need(compiler)
    sources = [RUNTIME / "src" / name for name in STREAM_SOURCES]
    sources.append(app / "models" / "npu_pipeline" / "src" / "npu_pipeline_stream.c")
    for profile in ([], ["-DCONFIG_OPWEST_PROFILE=1"]):
        compile_all(tmp_path, sources, compiler, [*STRICT, *profile], includes(app))
    assert len(list(tmp_path.glob("*.o"))) == len(sources)


def test_header_in_cpp(app, tmp_path):
    need("g++")
    main = Path(tmp_path / "main.cpp")
    text = "#include <npu_pipeline.h>\nNPU_PIPELINE_STREAM_DEFINE(stream);\n"
    main.write_text(text + "int main() { return stream.state == nullptr; }\n")
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-function"]
    run(["g++", *flags, *includes(app), "-c", main, "-o", tmp_path / "main.o"], tmp_path)
    assert (tmp_path / "main.o").stat().st_size > 0
