# SPDX-License-Identifier: Apache-2.0
"""`opwest import mlf --compat tvmgen`: an application of microTVM's C interface builds unchanged."""

import json
import os
from pathlib import Path

import interface_project
import mlf_made as made
import numpy as np
import pytest
from in_process import fail, opwest, succeed
from requirements_support import need, skip_here

X = np.array([interface_project.INPUT], np.float32)


def imported(files, folder, *options):
    tar = folder / "net.tar"
    tar.write_bytes(made.tar_of(files))
    return succeed("import", "mlf", tar, "-o", folder / "net", *options)


@pytest.mark.parametrize("make", [made.usmp, made.workspace, made.packed, made.graph])
def test_application_runs_on_the_host(make, tmp_path):
    need("cc", "g++")
    files = {name: content.replace(b"#include <math.h>\n", b"") for name, content in make().items()}
    imported(files, tmp_path, "--compat", "tvmgen")
    manifest = interface_project.add_application(tmp_path / "net")
    succeed("generate", manifest, "-o", tmp_path / "app")
    for name, place in (("src/main.c", "src/main.c"), ("include/labels.h", "include/labels.h")):
        assert (tmp_path / "app" / place).read_text() == interface_project.FILES[name]
    done = succeed("run", tmp_path / "app", "--host", "--json")
    assert json.loads(done.stdout)["result"]["stdout"].splitlines() == (
        interface_project.lines(tuple(made.reference(X)[0])).splitlines()
    )


def header_of(tmp_path, files):
    imported(files, tmp_path, "--compat", "tvmgen")
    succeed("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    return next((tmp_path / "app/models").glob("*/include/tvmgen_*.h")).read_text()


def test_names_of_the_header(tmp_path):
    files = made.usmp("kws")
    for name, content in files.items():
        if name.endswith("tvmgen_kws.h"):
            files[name] = content.replace(b"void* x;", b"void* serving_default_input_0;").replace(
                b"void* y;", b"void* PartitionedCall_0;"
            )
        elif name.endswith("lib0.c"):
            files[name] = content.replace(b"inputs->x", b"inputs->serving_default_input_0").replace(
                b"outputs->y", b"outputs->PartitionedCall_0"
            )
    header = header_of(tmp_path, files)
    assert "#define TVMGEN_KWS_SERVING_DEFAULT_INPUT_0_SIZE 16\n" in header
    assert "#define TVMGEN_KWS_PARTITIONEDCALL_0_SIZE 8\n" in header
    assert "\tvoid *serving_default_input_0;\n" in header and "\tvoid *PartitionedCall_0;\n" in header


def test_pools_of_the_caller(tmp_path):
    files = made.usmp()
    header = "codegen/host/include/tvmgen_default.h"
    pools = b"struct tvmgen_default_workspace_pools {\n  void* sram;\n};\n#define TVMGEN_DEFAULT_WORKSPACE_SIZE"
    files[header] = files[header].replace(b"#define TVMGEN_DEFAULT_WORKSPACE_SIZE", pools)
    text = header_of(tmp_path, files)
    assert "struct tvmgen_default_workspace_pools *workspace_pools\n);" in text
    assert "#define TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE " in text


def test_the_option_is_offered(tmp_path):
    done = imported(made.usmp(), tmp_path)
    assert "for an application that includes tvmgen_default.h: import with --compat tvmgen" in done.stdout
    assert "compat" not in (tmp_path / "net/manifest.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"struct tvmgen_default_inputs tvmgen_default_map_inputs(void);", "inputs in workspaces"),
        (b"#define TVMGEN_DEFAULT_FLASH_INIT_DATA {0}", "constants in memory of the caller"),
    ],
)
def test_unsupported_interfaces(text, words, tmp_path):
    files = made.usmp()
    header = "codegen/host/include/tvmgen_default.h"
    files[header] += text + b"\n"
    (tmp_path / "net.tar").write_bytes(made.tar_of(files))
    done = fail("import", "mlf", tmp_path / "net.tar", "-o", tmp_path / "net", "--compat", "tvmgen")
    assert f"error: --compat tvmgen does not support {words} in tvmgen_default.h" in done.stderr
    assert not (tmp_path / "net").exists()
    succeed("import", "mlf", tmp_path / "net.tar", "-o", tmp_path / "net")


def with_headers():
    """A model whose operators include headers in subdirectories."""
    files = {name: content.replace(b"#include <math.h>\n", b"") for name, content in made.usmp().items()}
    lib = "codegen/host/src/default_lib1.c"
    files[lib] = files[lib].replace(
        b'#include "tvm/runtime/c_backend_api.h"\n',
        b'#include "tvm/runtime/c_backend_api.h"\n#include <kernels/float/dense.h>\n#include "own/limits.h"\n',
    )
    files["codegen/host/include/kernels/float/dense.h"] = (
        b'#include "types.h"\n#include <kernels/common.h>\n#define KEPT(x) ((sum_t)(x) + ZERO)\n'
    )
    files["codegen/host/include/kernels/float/types.h"] = b"typedef float sum_t;\n"
    files["codegen/host/include/kernels/common.h"] = b'#pragma once\n#include "float/dense.h"\n#define ZERO 0\n'
    files["codegen/host/src/own/limits.h"] = b"#define LIMIT 1\n"
    files["codegen/host/include/unused.h"] = b"#error unused\n"
    files[lib] = files[lib].replace(b"float sum = ", b"sum_t sum = LIMIT * KEPT(0) + ")
    return files


def test_headers_in_subdirectories(tmp_path):
    need("cc")
    done = imported(with_headers(), tmp_path)
    assert "warning" not in done.stderr
    operators = tmp_path / "net/operators"
    found = {path.relative_to(operators).as_posix() for path in operators.rglob("*.h")}
    assert found == {"kernels/float/dense.h", "kernels/float/types.h", "kernels/common.h", "own/limits.h"}
    assert '#include "kernels/float/dense.h"' in (operators / "default_lib1.c").read_text()
    assert '#include "../common.h"' in (operators / "kernels/float/dense.h").read_text()
    done = opwest("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    assert done.returncode == 0 and not done.stderr, done.stderr
    np.save(tmp_path / "x.npy", X)
    run = ("run", tmp_path / "app", "--host", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out")
    succeed(*run)
    np.testing.assert_allclose(np.load(tmp_path / "out/y.npy"), made.reference(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a b/x.h", b"", "invalid file name 'a b/x.h' for a manifest"),
        ("a/x.h", b"\xff", "the header is not UTF-8"),
        ("a/x.h", b"\0", "NUL character in the header"),
    ],
)
def test_unusable_headers(name, content, words, tmp_path):
    files = made.usmp()
    lib = "codegen/host/src/default_lib1.c"
    files[lib] = f'#include "{name}"\n'.encode() + files[lib]
    files[f"codegen/host/include/{name}"] = content
    (tmp_path / "net.tar").write_bytes(made.tar_of(files))
    done = opwest("import", "mlf", tmp_path / "net.tar", "-o", tmp_path / "net")
    assert done.returncode == 1 and f"error: {words}" in done.stderr
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_imports_with_cmsis_nn_on_the_host(cpu, tmp_path):
    """Buffers for DSP are large enough for plain C; those for MVE need not be."""
    need("cc")
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    library = base.parent / "modules" / "lib" / "cmsis-nn"
    if not (library / "Source").is_dir():
        skip_here(f"no CMSIS-NN at {library}")
    files = {name: content.replace(b"#include <math.h>\n", b"") for name, content in made.cmsis_nn(cpu).items()}
    imported(files, tmp_path)
    succeed("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    np.save(tmp_path / "x.npy", X)
    done = opwest(
        *("run", tmp_path / "app", "--host", "--cmsis-nn", library),
        *("--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out"),
    )
    if cpu == "cortex-m55":
        assert done.returncode == 1
        assert "error: the operators of the application cannot run on this machine: generated by TVM" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out/y.npy"), made.reference(X), rtol=1e-6)
