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
from mlf_made import HEADER, changed
from requirements_support import need, skip_here

X = np.array([interface_project.INPUT], np.float32)


def imported(files, folder, *options, run=succeed):
    (folder / "net.tar").write_bytes(made.tar_of(files))
    return run("import", "mlf", folder / "net.tar", "-o", folder / "net", *options)


def without_mathematics(files):
    return {name: content.replace(b"#include <math.h>\n", b"") for name, content in files.items()}


@pytest.mark.parametrize("make", [made.usmp, made.workspace, made.packed, made.graph])
def test_application_runs_on_the_host(make, tmp_path):
    need("cc", "g++")
    imported(without_mathematics(make()), tmp_path, "--compat", "tvmgen")
    manifest = interface_project.add_application(tmp_path / "net")
    succeed("generate", manifest, "-o", tmp_path / "app")
    for name in ("src/main.c", "include/labels.h"):
        assert (tmp_path / "app" / name).read_text() == interface_project.FILES[name]
    done = succeed("run", tmp_path / "app", "--host", "--json")
    expected = interface_project.lines(tuple(made.reference(X)[0]))
    assert json.loads(done.stdout)["result"]["stdout"].splitlines() == expected.splitlines()


def header_of(tmp_path, files):
    imported(files, tmp_path, "--compat", "tvmgen")
    succeed("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    return next((tmp_path / "app/models").glob("*/include/tvmgen_*.h")).read_text()


def test_names_of_the_header(tmp_path):
    names = {"default": "kws", "DEFAULT": "KWS", "void* x;": "void* serving_default_input_0;"}
    names |= {"void* y;": "void* PartitionedCall_0;", "inputs->x": "inputs->serving_default_input_0"}
    names |= {"outputs->y": "outputs->PartitionedCall_0"}
    files = made.usmp()
    for old, new in names.items():
        files = {name.replace(old, new): text.replace(old.encode(), new.encode()) for name, text in files.items()}
    text = header_of(tmp_path, files)
    assert "#define TVMGEN_KWS_SERVING_DEFAULT_INPUT_0_SIZE 16\n" in text
    assert "#define TVMGEN_KWS_PARTITIONEDCALL_0_SIZE 8\n" in text
    assert "\tvoid *serving_default_input_0;\n" in text and "\tvoid *PartitionedCall_0;\n" in text


def test_pools_of_the_caller(tmp_path):
    files = made.usmp()
    files[HEADER] += b"struct tvmgen_default_workspace_pools {\n  void* sram;\n};\n"
    text = header_of(tmp_path, files)
    assert "struct tvmgen_default_workspace_pools *workspace_pools);" in text
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
    files[HEADER] += text + b"\n"
    done = imported(files, tmp_path, "--compat", "tvmgen", run=fail)
    assert f"error: --compat tvmgen does not support {words} in tvmgen_default.h" in done.stderr
    assert not (tmp_path / "net").exists()
    imported(files, tmp_path)


def result_of(app, folder, *options, run=succeed):
    """Run an application on X."""
    np.save(folder / "x.npy", X)
    given = ("--input", f"x={folder}/x.npy", "--output-dir", folder / "out")
    return run("run", app, "--host", *options, *given)


def test_headers_in_subdirectories(tmp_path):
    need("cc")
    include = '#include "tvm/runtime/c_backend_api.h"\n'
    files = changed(
        without_mathematics(made.usmp()),
        (include, f'{include}#include <kernels/float/dense.h>\n#include "own/limits.h"\n'),
        ("float sum = ", "sum_t sum = LIMIT * KEPT(0) + "),
    )
    for name, text in {
        "include/kernels/float/dense.h": b'#include "types.h"\n#include <kernels/common.h>\n'
        b"#define KEPT(x) ((sum_t)(x) + ZERO)\n",
        "include/kernels/float/types.h": b"typedef float sum_t;\n",
        "include/kernels/common.h": b'#pragma once\n#include "float/dense.h"\n#define ZERO 0\n',
        "src/own/limits.h": b"#define LIMIT 1\n",
        "include/unused.h": b"#error unused\n",
    }.items():
        files[f"codegen/host/{name}"] = text
    done = imported(files, tmp_path)
    assert "warning" not in done.stderr
    operators = tmp_path / "net/operators"
    found = {path.relative_to(operators).as_posix() for path in operators.rglob("*.h")}
    assert found == {"kernels/float/dense.h", "kernels/float/types.h", "kernels/common.h", "own/limits.h"}
    assert '#include "kernels/float/dense.h"' in (operators / "default_lib1.c").read_text()
    assert '#include "../common.h"' in (operators / "kernels/float/dense.h").read_text()
    done = opwest("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    assert done.returncode == 0 and not done.stderr, done.stderr
    result_of(tmp_path / "app", tmp_path)
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
    files = changed(made.usmp(), ("#define TVM_EXPORTS\n", f'#define TVM_EXPORTS\n#include "{name}"\n'))
    files[f"codegen/host/include/{name}"] = content
    assert f"error: {words}" in imported(files, tmp_path, run=fail).stderr
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_imports_with_cmsis_nn_on_the_host(cpu, tmp_path):
    """Buffers for DSP are large enough for plain C; those for MVE need not be."""
    need("cc")
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    library = base.parent / "modules" / "lib" / "cmsis-nn"
    if not (library / "Source").is_dir():
        skip_here(f"no CMSIS-NN at {library}")
    imported(without_mathematics(made.cmsis_nn(cpu)), tmp_path)
    succeed("generate", tmp_path / "net/manifest.yaml", "-o", tmp_path / "app")
    if cpu == "cortex-m55":
        done = result_of(tmp_path / "app", tmp_path, "--cmsis-nn", library, run=fail)
        assert "error: the operators of the application cannot run on this machine: generated by TVM" in done.stderr
    else:
        result_of(tmp_path / "app", tmp_path, "--cmsis-nn", library)
        np.testing.assert_allclose(np.load(tmp_path / "out/y.npy"), made.reference(X), rtol=1e-6)
