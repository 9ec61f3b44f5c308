# SPDX-License-Identifier: Apache-2.0
"""Host runs of operators that call CMSIS-NN: the message without it, the results with it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from opwest.zephyr.cmsis_nn import required_sources
from requirements_support import need, skip_here

_SOURCE = """\
#include <stdint.h>
#include <arm_nnfunctions.h>

/* y = saturate(relu6(w x + b)), a fully connected layer with the scale 1, and its softmax. */
int32_t dense(const int8_t *x, const int8_t *w, const int32_t *b, int8_t *y, int8_t *p)
{
	const cmsis_nn_context context = {0};
	const cmsis_nn_fc_params params = {.activation = {-128, 127}};
	const cmsis_nn_per_tensor_quant_params scale = {.multiplier = 1 << 30, .shift = 1};
	const cmsis_nn_dims input = {1, 1, 1, 4}, filter = {4, 1, 1, 3}, bias = {1, 1, 1, 3}, output = {1, 1, 1, 3};

	if (arm_fully_connected_s8(&context, &params, &scale, &input, x, &filter, w, &bias, b, &output, y) !=
	    ARM_CMSIS_NN_SUCCESS) {
		return -1;
	}
	arm_softmax_s8(y, 1, 3, 1 << 30, 20, -31, p);
	return 0;
}
"""
_MANIFEST = """\
version: 1
model: layer
objects:
  - {files: [dense.c]}
operators:
  dense:
    args:
      - {name: x, dtype: int8, shape: [4]}
      - {name: w, dtype: int8, shape: [3, 4]}
      - {name: b, dtype: int32, shape: [3]}
      - {name: y, dtype: int8, shape: [3], direction: out}
      - {name: p, dtype: int8, shape: [3], direction: out}
run:
  inputs: {x: {dtype: int8, shape: [4]}, w: {dtype: int8, shape: [3, 4]}, b: {dtype: int32, shape: [3]}}
  outputs: {y: {dtype: int8, shape: [3]}, p: {dtype: int8, shape: [3]}}
  steps:
    - {call: dense, args: [x, w, b, y, p]}
"""
X = np.array([1, -2, 3, 4], np.int8)
W = np.array([[1, 2, 3, 4], [-5, 6, 7, -8], [100, 100, 100, 100]], np.int8)
B = np.array([5, -6, 7], np.int32)


@pytest.fixture
def app(opwest, tmp_path, monkeypatch):
    monkeypatch.delenv("CMSIS_NN", raising=False)
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dense.c").write_text(_SOURCE)
    (tmp_path / "manifest.yaml").write_text(_MANIFEST)
    for name, array in (("x", X), ("w", W), ("b", B)):
        np.save(tmp_path / f"{name}.npy", array)
    done = opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app")
    assert done.code == 0, done.err
    return tmp_path / "app"


def cmsis_nn():
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    found = base.parent / "modules" / "lib" / "cmsis-nn"
    if not (found / "Source").is_dir():
        skip_here(f"no CMSIS-NN at {found}")
    return found


def inputs(folder):
    return [word for name in "xwb" for word in ("--input", f"{name}={folder / name}.npy")]


def test_message_without_cmsis_nn(opwest, app):
    need("cc")
    done = opwest("run", app, "--host", *inputs(app.parent))
    assert done.code == 1
    assert done.err == (
        f"{app}: error: the operators of model 'layer' call CMSIS-NN, which is not part of the application\n"
        "  expected: --cmsis-nn DIR or $CMSIS_NN: a directory with Include/arm_nnfunctions.h and Source/\n"
        "  hint: in a Zephyr workspace it is modules/lib/cmsis-nn (west update cmsis-nn); set ZEPHYR_BASE to use it\n"
    )


def test_another_directory_is_an_error(opwest, app, tmp_path, monkeypatch):
    need("cc")
    done = opwest("run", app, "--host", "--cmsis-nn", tmp_path)
    assert done.code == 1
    assert f"error: --cmsis-nn: '{tmp_path}' is not CMSIS-NN\n" in done.err
    assert "  expected: a directory with Include/arm_nnfunctions.h and Source/\n" in done.err
    monkeypatch.setenv("CMSIS_NN", str(tmp_path))
    assert f"error: $CMSIS_NN: '{tmp_path}' is not CMSIS-NN\n" in opwest("run", app, "--host").err


@pytest.mark.slow
@pytest.mark.parametrize("way", ["option", "variable", "workspace"])
def test_results(opwest, way, request, monkeypatch):
    need("cc")
    folder = cmsis_nn()
    app = request.getfixturevalue("app")
    options = ["--cmsis-nn", folder] if way == "option" else []
    if way == "variable":
        monkeypatch.setenv("CMSIS_NN", str(folder))
    elif way == "workspace":
        monkeypatch.setenv("ZEPHYR_BASE", str(folder.parents[2] / "zephyr"))
    done = opwest("run", app, "--host", *inputs(app.parent), *options, "--json")
    assert done.code == 0, done.err
    outputs = json.loads(done.out)["result"]["outputs"]
    expected = np.clip(W.astype(np.int32) @ X + B, -128, 127)
    assert outputs["y"] == expected.tolist() == [27, -34, 127]
    assert outputs["p"][2] > 100 and min(outputs["p"]) < -100


def test_only_the_required_sources_are_compiled(app):
    folder = cmsis_nn()
    names = {path.name for path in required_sources(folder, [app.parent / "dense.c"])}
    assert {"arm_fully_connected_s8.c", "arm_softmax_s8.c", "arm_nn_vec_mat_mult_t_s8.c"} <= names
    assert len(names) < 20


def test_options_of_host_with_board(opwest, app):
    done = opwest("run", app, "--board", "native_sim", "--cmsis-nn", app, "--bits", "32")
    assert done.code == 1
    assert "error: --cmsis-nn requires --host\n" in done.err and "error: --bits requires --host\n" in done.err


def test_steps_of_a_board_are_compared_with_a_host_run_that_needs_it(opwest, app):
    words = ["--board", "native_sim", "--check-steps", *inputs(app.parent), "--cmsis-nn", app.parent]
    assert opwest("run", app, *words).err.startswith(f"opwest: error: --cmsis-nn: '{app.parent}' is not CMSIS-NN\n")


def test_instruction_set_of_imports(opwest, app):
    need("cc")
    source = app / "models/layer/objects/any/dense.c"
    reason = "generated by TVM for cortex-m55: requires an Arm Cortex-M with MVE (Helium), because of its buffers"
    source.write_text(f'#error "{reason}"\n')
    done = opwest("run", app, "--host", *inputs(app.parent))
    assert done.code == 1
    assert done.err.startswith(
        f"opwest: error: the operators of the application cannot run on this machine: {reason}\n"
    )
