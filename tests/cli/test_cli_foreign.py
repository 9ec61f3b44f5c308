# SPDX-License-Identifier: Apache-2.0
"""Operators of other tools on the host: all of docs/compilers together, and faults of Halide's and MLIR's."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from foreign_project import TOLERANCE, TOOLS, foreign_project, is_usable, rows_of_drafts, rows_of_pages
from foreign_support import HALIDE_TARGETS, halide_headers, make_mlir, make_mlir_with_heap, make_pipeline
from opwest.cli.main import main
from opwest.render.llvm.printer import ir_struct_type
from opwest.render.tables import layout
from opwest.render.tables.types import Abi, offsets, size_and_alignment
from requirements_support import need, need_x86_64, skip_here

pytestmark = pytest.mark.slow
RUNTIME = Path(__file__).resolve().parents[2] / "zephyr_module"
MANIFEST = """
version: 1
model: foreign
objects:
  - {target: x86-64, files: [scale.o]}
  - {targets: [x86-64], files: [half.ll]}
operators:
  scale:
    convention: halide
    workspace: 192
    args:
      - {name: image, dtype: int16, shape: [4, 5]}
      - {name: factor, dtype: int32, scalar: true}
      - {name: result, dtype: int16, shape: [4, 5], direction: out}
  half:
    symbol: _mlir_ciface_half
    convention: memref
    args:
      - {name: x, dtype: int16, shape: [4, 5]}
      - {name: by, dtype: int16, scalar: true}
      - {name: y, dtype: int16, shape: [5, 4], direction: out}
  total:
    symbol: _mlir_ciface_total
    convention: memref
    returns: {name: total, dtype: int32}
    args: [{name: x, dtype: int16, shape: [5, 4]}]
run:
  inputs: {image: {dtype: int16, shape: [4, 5]}}
  outputs: {y: {dtype: int16, shape: [5, 4]}, total: {dtype: int32, shape: [1]}}
  steps:
    - {call: scale, args: [image, 3, scaled]}
    - {call: half, args: [scaled, -7, y]}
    - {call: total, args: [y, total]}
"""


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The outputs of all cases of one application with the operators of all installed tools, with LLVM's metadata."""
    need("cc", "llvmlite")
    need_x86_64()
    project = foreign_project()
    folder = tmp_path_factory.mktemp("answered")
    app, outputs = folder / "app", folder / "outputs"
    assert main(["generate", str(project.write("manifest.yaml")), "-o", str(app), "--metadata=llvm"]) == 0
    words = ["run", str(app), "--host", "--output-dir", str(outputs)]
    for name in project.manifest["run"]["inputs"]:
        np.save(folder / f"{name}.npy", project.arrays[name])
        words += ["--stream", f"{name}={folder / name}.npy"]
    assert main(words) == 0
    return project, app, {name: np.load(outputs / f"{name}.npy") for name in project.outputs}


@pytest.mark.parametrize("tool", TOOLS)
def test_answers_of_each_tool(answered, tool):
    need(*TOOLS[tool].needs)
    if not is_usable(tool):
        skip_here(f"{tool}: not in the modules of the Zephyr workspace")
    project, _, results = answered
    for name in TOOLS[tool].outputs:
        found, expected = results[name], project.arrays[name]
        assert found.size == expected.size and len(np.unique(found)) > 2, name
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=TOLERANCE.get(name, 0))


def missing_headers(app):
    """Return the headers of the runtime that the sources of an application include, but that it does not contain.

    An option that the manifest does not set has no files there: opwest_runtime_files() of CMake reports it.
    """
    sources = [*(app / "models").rglob("*.[ch]"), *(app / "src").glob("*.c")]
    texts = [re.sub(r"(?ms)^#if[^\n]*\bCONFIG_OPWEST_\w+\b.*?^#endif$", "", path.read_text()) for path in sources]
    found = {name for text in texts for name in re.findall(r"#include <(opwest/\w+\.h)>", text)}
    assert "opwest/model.h" in found
    return [name for name in sorted(found) if not (app / "modules/opwest/include" / name).is_file()]


@pytest.mark.needs("llvmlite")
def test_headers_of_the_application(answered, tmp_path, succeed):
    """Bridges of Halide and for values need different headers; neither model has state."""
    assert missing_headers(answered[1]) == []
    (tmp_path / "label.c").write_text("int label(const signed char *x) { return x[0]; }\n")
    text = "{version: 1, model: m, objects: [{files: [label.c]}], operators: {label: {returns: "
    text += "{name: y, dtype: int32}, args: [{name: x, dtype: int8, shape: [4]}]}}, run: {inputs: {x: {dtype: int8, "
    text += "shape: [4]}}, outputs: {y: {dtype: int32, shape: [1]}}, steps: [{call: label, args: [x, y]}]}}"
    (tmp_path / "m.yaml").write_text(text)
    succeed("generate", tmp_path / "m.yaml", "-o", tmp_path / "app", "--metadata=llvm", "--target=x86-64")
    assert missing_headers(tmp_path / "app") == []


def test_table_of_the_pages(answered, opwest, monkeypatch):
    """The table lists the marks of each draft and the lines of each manifest."""
    need(*(name for tool in TOOLS.values() for name in tool.needs))
    project, _, _ = answered
    monkeypatch.chdir(project.folder)
    assert sorted(rows_of_drafts(TOOLS, opwest)) == sorted(rows_of_pages(TOOLS))


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    need_x86_64()
    folder = tmp_path_factory.mktemp("foreign")
    make_pipeline(folder / "scale.o", HALIDE_TARGETS["x86-64"])
    make_mlir(folder / "half.ll", 64)
    return folder


@pytest.fixture
def manifest(objects):
    (objects / "manifest.yaml").write_text(MANIFEST)
    return objects / "manifest.yaml"


@pytest.mark.needs("cc", "llvmlite")
@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_answers(opwest, succeed, manifest, tmp_path, metadata):
    done = opwest("generate", manifest, "-o", tmp_path / "app", "--metadata", metadata)
    assert (done.code, done.err) == (0, "")
    image = np.random.default_rng(1).integers(-1000, 1000, (4, 5)).astype(np.int16)
    np.save(tmp_path / "image.npy", image)
    done = succeed("run", tmp_path / "app", "--host", "--input", f"image={tmp_path / 'image.npy'}", "--json")
    outputs = json.loads(done.out)["result"]["outputs"]
    expected = (image * 3 + image[0] - 7).T
    assert outputs["y"] == expected.tolist() and outputs["total"] == [expected.sum()]


@pytest.mark.needs("cc", "llvmlite")
def test_exhausted_workspace(succeed, fail, manifest, tmp_path):
    # 40 bytes and 8 in one unit of 64, and a unit before them.
    manifest.write_text(MANIFEST.replace("workspace: 192", "workspace: 64"))
    succeed("generate", manifest, "-o", tmp_path / "app")
    np.save(tmp_path / "image.npy", np.zeros((4, 5), np.int16))
    done = fail("run", tmp_path / "app", "--host", "--input", f"image={tmp_path / 'image.npy'}")
    assert "-12 (Cannot allocate memory) in step 0 (scale)" in done.err, done.err


def test_faults_of_the_compilers_output(fail, manifest, objects):
    """What passed `check` and crashed: plain pointers. Also the runtime, threads, and memory of a heap."""
    make_pipeline(objects / "with_runtime.o", "x86-64-linux")
    make_pipeline(objects / "threads.o", HALIDE_TARGETS["x86-64"], schedule="parallel")
    make_mlir_with_heap(objects / "heap.ll")
    plain = MANIFEST.replace("convention: halide\n    workspace: 192", "description: plain pointers")
    heap = MANIFEST.replace("files: [half.ll]", "files: [half.ll, heap.ll]").replace("_ciface_total", "_ciface_copied")
    heap = heap.replace("\n    returns: {name: total, dtype: int32}", "").replace("total]", "y]")
    for text, fault, advice in (
        (plain, "operator 'scale' is unpacked, but Halide compiled the function 'scale'", "convention: halide"),
        (MANIFEST.replace("scale.o", "with_runtime.o"), "a copy of Halide's runtime in with_runtime.o", "no_runtime"),
        (MANIFEST.replace("scale.o", "threads.o"), "unsupported function 'halide_do_par_for'", "without parallel()"),
        (MANIFEST.replace("_mlir_ciface_half", "half"), "operator 'half' is memref", "symbol: _mlir_ciface_half"),
        (heap, "heap.ll calls 'malloc', which uses the heap", "direction: scratch"),
    ):
        manifest.write_text(text)
        done = fail("check", manifest)
        assert fault in done.err and advice in done.err, done.err


def test_layout_of_halide():
    """The structures and functions are those of Halide's own header."""
    need("cc")
    lines = ["#include <stddef.h>", "#include <HalideRuntime.h>"]
    for struct in (layout.HALIDE_TYPE, layout.HALIDE_DIMENSION, layout.HALIDE_BUFFER):
        for name, offset in offsets(struct, Abi(8)).items():
            lines.append(f'_Static_assert(offsetof({struct.c_type}, {name}) == {offset}, "{struct.name}.{name}");')
        size, _ = size_and_alignment(struct, Abi(8))
        lines.append(f'_Static_assert(sizeof({struct.c_type}) == {size}, "{struct.name}");')
    for code, member in enumerate(layout.HALIDE_TYPE_CODE.members):
        lines.append(f'_Static_assert(halide_type_{member} == {code}, "{member}");')
    lines.append('_Static_assert(halide_error_code_out_of_memory == -11, "out_of_memory");')
    # The prototypes of the runtime's header, after the structures: a difference is an error.
    header = (RUNTIME / "include/opwest/halide_buffer.h").read_text()
    lines.append(header[header.index("int32_t opwest_halide_code") : header.index("#ifdef __cplusplus\n}")])
    command = ["cc", "-std=c11", "-fsyntax-only", f"-I{halide_headers()}", "-x", "c", "-"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_codes_of_halide():
    """Each function returns the code that Halide's header lists for it."""
    header = (halide_headers() / "HalideRuntime.h").read_text()
    codes = dict(re.findall(r"halide_error_code_(\w+) = (-\d+)", header))
    source = (RUNTIME / "src/halide_backend.c").read_text()
    bodies = {part.partition("(")[0]: part for part in source.split("\nint halide_error_")[1:]}
    found = {name: re.search(r"return fail\((-\d+),", body) for name, body in bodies.items()}
    returned = {name: match[1] for name, match in found.items() if match}
    declared = set(re.findall(r"\bint halide_error_(\w+)\(", header))
    assert bodies.keys() == declared
    assert declared - returned.keys() == {"bounds_inference_call_failed", "extern_stage_failed"}
    for name, code in returned.items():
        assert codes[name if name in codes else name.rpartition("_")[0]] == code, name


@pytest.mark.parametrize("bits", [32, 64])
def test_layout_of_mlir(tmp_path, bits):
    """The structure is the descriptor in MLIR's own LLVM IR."""
    need("llvmlite")
    text = make_mlir(tmp_path / "half.ll", bits).read_text()
    described = ir_struct_type(layout.MEMREFS[2], bits).partition(" = type ")[2]
    assert described in text and described.count("[2 x ") == 2
