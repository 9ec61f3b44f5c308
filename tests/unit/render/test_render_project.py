# SPDX-License-Identifier: Apache-2.0
"""Complete projects rendered in memory, as other programs (twister, CMake, Zephyr's devicetree) read them."""

import re
import subprocess

import projects
import pytest
import yaml
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.host.own_templates import own_renderer
from opwest.render.c.header import board_kconfig
from opwest.render.project_files import render_project
from opwest.render.tensors import devicetree_node
from requirements_support import need

SOURCE = """#include <stdint.h>
int32_t op(const int8_t *x, int8_t *y);
int32_t op(const int8_t *x, int8_t *y)
{
	*y = *x;
	return 0;
}
"""


def rendered(work, *, model="m", head="", source="op.c", extra="", argument="", shape="[4]", steps=None):
    """Return the files of a project with one operator, by path."""
    path = work / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SOURCE)
    manifest = work / "manifest.yaml"
    steps = steps or "{call: op, args: [x, y]}"
    manifest.write_text(
        f"version: 1\nmodel: {model}\n{head}\nobjects: [{{files: [{source!r}]}}]\n"
        f"operators: {{op: {{args: [{{name: x, dtype: int8, shape: {shape}{argument}}}, "
        f"{{name: y, dtype: int8, shape: {shape}, direction: out{argument}}}]}}}}\n{extra}\n"
        f"run:\n  inputs: {{x: {{dtype: int8, shape: {shape}}}}}\n"
        f"  outputs: {{y: {{dtype: int8, shape: {shape}}}}}\n  steps: [{steps}]\n"
    )
    planned = projects.check([manifest], Diagnostics())
    return {str(f.path): f.content.decode() for f in render_project(own_renderer(), planned, None)}


TWISTER = {"sample", "common", "tests"}


def sample_of(files):
    """Return sample.yaml as twister reads it: YAML 1.1."""
    sample = yaml.safe_load(files["sample.yaml"])
    assert set(sample) == TWISTER
    return sample


def test_sample_yaml(tmp_path):
    text = 'a: "b" # {c} \\d'
    console = yaml.dump([text]).strip()
    head = f"boards: [native_sim/native/64, nucleo_l4r5zi]\ndescription: {yaml.dump(text).strip()}\n"
    sample = sample_of(rendered(tmp_path, head=head, extra=f"application: {{console: [{console[2:]}]}}"))
    assert sample["sample"] == {"name": "m", "description": text}
    assert sample["common"]["harness_config"]["regex"] == [text]
    (test,) = sample["tests"].values()
    assert test["platform_allow"] == ["native_sim/native/64", "nucleo_l4r5zi"]
    assert test["integration_platforms"] == ["native_sim/native/64"]


@pytest.mark.parametrize("model", ["no", "on", "off", "yes", "null"])
def test_sample_yaml_of_models_with_special_names(model, tmp_path):
    sample = sample_of(rendered(tmp_path, model=f"'{model}'"))
    assert sample["sample"]["name"] == model


def test_overlays_of_two_models(tmp_path):
    """A board has one overlay: those of all models concatenated, equal ones once."""
    manifests = []
    for model, overlays in (("one", "{a: same.overlay, b: own.overlay}"), ("two", "{a: same.overlay, b: own.overlay}")):
        folder = tmp_path / model
        folder.mkdir()
        (folder / "same.overlay").write_text("/* same */\n")
        (folder / "own.overlay").write_text(f"/* {model} */\n")
        rendered(folder, model=model, extra=f"application: {{overlays: {overlays}}}")
        manifests.append(folder / "manifest.yaml")
    planned = projects.check(manifests, Diagnostics())
    files = {str(f.path): f.content for f in render_project(own_renderer(), planned, None)}
    assert files["boards/a.overlay"] == b"/* same */\n"
    assert files["boards/b.overlay"] == b"/* one */\n\n/* two */\n"


def cmake_list(text, variable, work):
    """Return the list that a set(...) of a model's CMake file makes, as CMake reads it."""
    need("cmake")
    (block,) = re.findall(rf"^set\({variable}\n.*?^\)$", text, re.M | re.S)
    script = work / "script.cmake"
    script.write_text(f'{block}\nforeach(item IN LISTS {variable})\n  message(NOTICE "[${{item}}]")\nendforeach()\n')
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=True)
    return [line[1:-1] for line in done.stderr.splitlines()]


def test_cmake_sources(tmp_path):
    files = rendered(tmp_path, source="operators/sub/op-1.c")
    text = files["models/m/model.cmake"]
    assert cmake_list(text, "m_OPERATORS", tmp_path) == ["operators/sub/op-1.c"]


@pytest.mark.parametrize("source", ["my ops/op.c", "a${b}.c", "a(b).c", 'a"b.c', "a#b.c"])
def test_cmake_sources_with_special_names(source, tmp_path):
    try:
        files = rendered(tmp_path, source=source)
    except OpwestError:
        return  # rejection of such names would be correct too
    listed = cmake_list(files["models/m/model.cmake"], "m_OPERATORS", tmp_path)
    assert listed == [source]
    assert f"models/m/objects/any/{source}" in files


@pytest.mark.parametrize(
    ("kind", "value", "index", "node"),
    [
        ("nodelabel", "npu0", 0, "DT_NODELABEL(npu0)"),
        ("alias", "npu-1", 0, "DT_ALIAS(npu_1)"),
        ("alias", "NPU-1", 0, "DT_ALIAS(npu_1)"),
        ("chosen", "zephyr,sram", 0, "DT_CHOSEN(zephyr_sram)"),
        ("compatible", "vendor,npu-4.x", 3, "DT_INST(3, vendor_npu_4_x)"),
        ("compatible", "Vendor,NPU", 0, "DT_INST(0, vendor_npu)"),
    ],
)
def test_devicetree_nodes(kind, value, index, node):
    assert devicetree_node(kind, value, index) == node


@pytest.mark.parametrize(
    ("kind", "value", "node"),
    [("nodelabel", "NPU0", "DT_NODELABEL(npu0)"), ("chosen", "Vendor,NPU", "DT_CHOSEN(vendor_npu)")],
)
def test_devicetree_nodes_in_capitals(kind, value, node):
    assert devicetree_node(kind, value, 0) == node


@pytest.mark.parametrize(
    ("board", "symbol"),
    [
        ("qemu_cortex_m3", "CONFIG_BOARD_QEMU_CORTEX_M3"),
        ("mps3/corstone300/an547", "CONFIG_BOARD_MPS3_CORSTONE300_AN547"),
        ("plank@1.0.0", "CONFIG_BOARD_PLANK"),
        ("96b_nitrogen", "CONFIG_BOARD_96B_NITROGEN"),
    ],
)
def test_board_symbols(board, symbol):
    assert board_kconfig(board) == symbol


def test_board_symbols_with_revision_and_qualifiers():
    assert board_kconfig("plank@1.0.0/soc/cpu") == "CONFIG_BOARD_PLANK_SOC_CPU"


def aligned_to(files, text):
    return max(int(number) for number in re.findall(text, files["models/m/src/m_run.c"]))


def test_intermediates_have_the_alignment_that_operators_need(tmp_path):
    steps = "{call: op, args: [x, t]}, {call: op, args: [t, y]}"
    files = rendered(tmp_path, argument=", align: 64", steps=steps)
    assert "#define M_POOL_SRAM_ALIGN 64U" in files["models/m/include/m.h"]


def test_inputs_and_outputs_have_the_alignment_that_operators_need(tmp_path):
    files = rendered(tmp_path, argument=", align: 64")
    assert aligned_to(files, r"usable\(inputs->x, (\d+)U\)") == 64
    assert aligned_to(files, r"usable\(outputs->y, (\d+)U\)") == 64


def test_constants_have_the_alignment_that_operators_need(tmp_path):
    (tmp_path / "k.bin").write_bytes(bytes(4))
    extra = "constants: {k: {file: k.bin}}"
    files = rendered(tmp_path, argument=", align: 64", extra=extra, steps="{call: op, args: [k, y]}")
    assert ".balign 64" in files["models/m/constants.S"]


@pytest.mark.parametrize("shape", ["[65536, 65536]", "[2147483647, 2147483647]"])
def test_tensors_that_32_bits_cannot_hold_are_faults(shape, tmp_path):
    with pytest.raises(OpwestError):
        rendered(tmp_path, shape=shape)


def test_texts_that_are_not_unicode_are_faults(tmp_path):
    with pytest.raises(OpwestError):
        rendered(tmp_path, head='description: "\\ud800"')
