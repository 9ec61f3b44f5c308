# SPDX-License-Identifier: Apache-2.0
"""Emitted identifiers, and complete projects as other programs read them."""

import itertools
import json
import re
import subprocess

import projects
import pytest
import yaml
from c_support import STRICT, compile_all, includes, portable_sources
from golden_support import generate_quickly
from opwest.base.diagnostics import Diagnostics, Location, OpwestError
from opwest.model.types.sections import Devicetree
from opwest.render.c.header import board_kconfig
from opwest.render.project_files import render_project
from opwest.render.tensors import devicetree_node
from opwest.runs.harness import own_renderer
from requirements_support import need, need_compiler

SOURCE = """#include <stdint.h>
int32_t {symbol}(const int8_t *x, int8_t *y);
int32_t {symbol}(const int8_t *x, int8_t *y)
{{
	*y = *x;
	return 0;
}}
"""
ARGS = "[{name: x, dtype: int8, shape: [1]}, {name: y, dtype: int8, shape: [1], direction: out}]"


def manifest(work, model="m", symbol="op", operator="op", x="x", y="y", between="t", pool="p", constant=None, more=()):
    work.mkdir(parents=True, exist_ok=True)
    (work / "op.c").write_text(SOURCE.format(symbol=symbol))
    (work / "one.bin").write_bytes(b"1")
    constants = f"constants: {{{constant}: {{file: one.bin}}}}\n" if constant else ""
    operators = ", ".join(f"{name}: {{symbol: {symbol}, args: {ARGS}}}" for name in [operator, *more])
    (work / "manifest.yaml").write_text(
        f"version: 1\nmodel: {model}\nobjects: [{{files: [op.c]}}]\nmemory: {{{pool}: {{}}}}\n"
        f"operators: {{{operators}}}\n{constants}"
        f"run:\n  inputs: {{{x}: {{dtype: int8, shape: [1]}}}}\n  outputs: {{{y}: {{dtype: int8, shape: [1]}}}}\n"
        f"  steps:\n    - {{call: {operator}, args: [{x}, {between}]}}\n"
        f"    - {{call: {operator}, args: [{between}, {y}]}}\n"
        + (f"    - {{call: {operator}, args: [{constant}, {y}]}}\n" if constant else "")
    )
    return work / "manifest.yaml"


def faults_of(*manifests):
    try:
        projects.check(manifests, Diagnostics())
    except OpwestError as error:
        return [d.message for d in error.diagnostics if d.severity == "error"]
    return []


def compiles(work, *manifests):
    """Generate, and compile all emitted files."""
    need_compiler("gcc")
    generate_quickly(manifests, work / "app")
    sources = [*portable_sources(work / "app")[5:], work / "app" / "src" / "main.c"]
    compile_all(work / "objects", sources, "gcc", [*STRICT, "-fsyntax-only"], includes(work / "app"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"model": "errno"}, "hides a header"),
        ({"model": "String"}, "hides a header"),
        ({"model": "soc"}, "hides a header"),
        ({"model": "config"}, "is a prefix of names in Zephyr"),
        ({"pool": "opened"}, "is reserved for a member of the workspace"),
    ],
)
def test_clashes_and_bad_names_are_faults(names, message, tmp_path):
    messages = faults_of(manifest(tmp_path, **names))
    assert [text for text in messages if message in text], messages


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ({"model": "a", "symbol": "open"}, {"model": "a_"}, "both map to the C identifier 'a__open'"),
        ({"model": "a", "symbol": "operators"}, {"model": "a_"}, "both map to the C identifier 'a__operators'"),
        ({"model": "a", "constant": "run"}, {"model": "a_constant"}, "both map to the C identifier 'a_constant_run'"),
        (
            {"model": "a", "x": "pool_p"},
            {"model": "a_input", "pool": "p"},
            "both map to the C identifier 'A_INPUT_POOL_P'",
        ),
    ],
)
def test_clashes_of_two_models(first, second, clash, tmp_path):
    pair = [manifest(tmp_path / "1", **first), manifest(tmp_path / "2", **second)]
    for order in (pair, pair[::-1]):
        messages = faults_of(*order)
        assert [text for text in messages if clash in text], messages


# Words that the emitted files use themselves.
WORDS = "status failed usable entries displacements steps pools devices inputs outputs workspace rc i main"
WORDS += " operators transfer align buffer step code dev args"


@pytest.mark.slow
def test_words_of_the_templates_are_names_of_models(tmp_path):
    words = WORDS.split()
    compiles(tmp_path, *[manifest(tmp_path / word, model=word, symbol="kernel", operator=word) for word in words])


@pytest.mark.parametrize("kind", ["symbol", "input", "output", "tensor"])
def test_words_of_the_templates_are_names_in_models(kind, tmp_path):
    """Operators, their symbols and constants; inputs; outputs; pools and tensors between steps."""
    words = WORDS.split()
    symbols = words if kind == "symbol" else ["op"]
    (tmp_path / "op.c").write_text("".join(SOURCE.format(symbol=symbol) for symbol in symbols))
    (tmp_path / "one.bin").write_bytes(b"1")
    tensor = {"dtype": "int8", "shape": [1]}
    inputs = words if kind == "input" else ["x"]
    outputs = words if kind == "output" else ["y"]
    calls = {
        "symbol": [(word, [word, "y"]) for word in words],
        "input": [("op", [word, "y"]) for word in words],
        "output": [("op", ["x", word]) for word in words],
        "tensor": [("op", pair) for pair in itertools.pairwise(["x", *words, "y"])],
    }
    document = {
        "version": 1,
        "model": "m",
        "objects": [{"files": ["op.c"]}],
        "operators": {symbol: {"symbol": symbol, "args": yaml.safe_load(ARGS)} for symbol in symbols},
        "memory": {word: {} for word in words if kind == "tensor" and word != "status"},
        "constants": {word: {"file": "one.bin"} for word in words if kind == "symbol"},
        "run": {
            "inputs": dict.fromkeys(inputs, tensor),
            "outputs": dict.fromkeys(outputs, tensor),
            "steps": [{"call": operator, "args": list(arguments)} for operator, arguments in calls[kind]],
        },
    }
    path = tmp_path / "manifest.yaml"
    path.write_text(json.dumps({key: value for key, value in document.items() if value}))
    compiles(tmp_path, path)


@pytest.mark.parametrize("name", ["EIO", "EINVAL", "INT8_MAX", "UINT16_MAX"])
def test_macros_of_the_headers_that_emitted_files_include(name, tmp_path):
    path = manifest(tmp_path / "source", x=name)
    if not faults_of(path):
        compiles(tmp_path, path)


SHORT = ["a", "open", "model", "input", "constant", "pool"]
PAIRS = {
    "file scope": {"args": ["run", "open", "registry"], "call": ["run", "close"], "run": ["op"]},
    "prefixes": dict.fromkeys(SHORT[:3], SHORT),
}


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_pairs_of_short_names_compile_or_are_faults(pairs, tmp_path):
    """Models and operators named with words of prefixes: the compiler agrees with the generator."""
    manifests = []
    for model, operators in pairs.items():
        accepted = [
            name
            for name in operators
            if not faults_of(manifest(tmp_path / model / name, model=model, operator=name, constant="constant"))
        ]
        if accepted:
            joint = {"model": model, "operator": accepted[0], "more": accepted[1:], "constant": "constant"}
            manifests.append(manifest(tmp_path / model, **joint))
    compiles(tmp_path, *manifests)


# --- Complete projects rendered in memory, as other programs (twister, CMake, Zephyr's devicetree) read them


def rendered(work, *, model="m", head="", source="op.c", extra="", argument="", shape="[4]", steps=None):
    """Return the files of a project with one operator, by path."""
    path = work / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SOURCE.format(symbol="op"))
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
        ("nodelabel", "NPU0", 0, "DT_NODELABEL(npu0)"),
        ("chosen", "Vendor,NPU", 0, "DT_CHOSEN(vendor_npu)"),
    ],
)
def test_devicetree_nodes(kind, value, index, node):
    assert devicetree_node(Devicetree(kind, value, index, Location(""))) == node


@pytest.mark.parametrize(
    ("board", "symbol"),
    [
        ("qemu_cortex_m3", "CONFIG_BOARD_QEMU_CORTEX_M3"),
        ("mps3/corstone300/an547", "CONFIG_BOARD_MPS3_CORSTONE300_AN547"),
        ("plank@1.0.0", "CONFIG_BOARD_PLANK"),
        ("plank@1.0.0/soc/cpu", "CONFIG_BOARD_PLANK_SOC_CPU"),
        ("96b_nitrogen", "CONFIG_BOARD_96B_NITROGEN"),
    ],
)
def test_board_symbols(board, symbol):
    assert board_kconfig(board) == symbol


@pytest.mark.parametrize(
    ("steps", "file", "texts"),
    [
        ("{call: op, args: [x, y]}", "src/m_run.c", ["usable(inputs->x, 64U)", "usable(outputs->y, 64U)"]),
        ("{call: op, args: [x, t]}, {call: op, args: [t, y]}", "include/m.h", ["#define M_POOL_SRAM_ALIGN 64U"]),
        ("{call: op, args: [k, y]}", "constants.S", [".balign 64"]),
    ],
)
def test_tensors_have_the_alignment_that_operators_need(tmp_path, steps, file, texts):
    (tmp_path / "k.bin").write_bytes(bytes(4))
    extra = "constants: {k: {file: k.bin}}" if "[k" in steps else ""
    files = rendered(tmp_path, argument=", align: 64", extra=extra, steps=steps)
    assert all(text in files[f"models/m/{file}"] for text in texts)
