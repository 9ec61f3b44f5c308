# SPDX-License-Identifier: Apache-2.0
"""Emitted identifiers: clashes are faults with a position, and accepted names compile."""

import itertools
import json

import projects
import pytest
import yaml
from c_support import STRICT, compile_all, includes, portable_sources
from golden_support import generate_quickly
from opwest.diagnostics import Diagnostics, OpwestError
from requirements_support import need_compiler

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
    """Write a manifest with these names and return it."""
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
    """Return the messages of `check`."""
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
        ({"x": "data", "y": "data"}, "is declared both as output and as input"),
        ({"model": "errno"}, "hides a header"),
        ({"model": "String"}, "hides a header"),
        ({"model": "soc"}, "hides a header"),
        ({"model": "fs"}, "is a prefix of names in Zephyr"),
        ({"model": "config"}, "is a prefix of names in Zephyr"),
        ({"model": "opwest_x"}, "begins with 'opwest', the prefix of the runtime"),
        ({"pool": "status"}, "is reserved for a member of the workspace"),
        ({"pool": "opened"}, "is reserved for a member of the workspace"),
        ({"model": "int"}, "is a keyword of C"),
        ({"operator": "class"}, "is a keyword of C++"),
        ({"y": "__y"}, "is reserved"),
        ({"between": "a-b"}, "is not a C identifier"),
        ({"pool": "_Pool"}, "is reserved"),
    ],
)
def test_clashes_and_bad_names_are_faults(names, message, tmp_path):
    messages = faults_of(manifest(tmp_path, **names))
    assert [text for text in messages if message in text], messages


def test_inputs_that_differ_in_case_only(tmp_path):
    path = manifest(tmp_path)
    text = path.read_text().replace(
        "inputs: {x: {dtype: int8, shape: [1]}}", "inputs: {x: {dtype: int8, shape: [1]}, X: {dtype: int8, shape: [1]}}"
    )
    path.write_text(text)
    assert [message for message in faults_of(path) if "both map to the C identifier 'M_INPUT_X'" in message]


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ({"model": "a"}, {"model": "a"}, "duplicate model 'a'"),
        ({"model": "a"}, {"model": "A"}, "differ only in case"),
        ({"model": "a", "symbol": "open"}, {"model": "a_"}, "both map to the C identifier 'a__open'"),
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


def test_clash_with_the_table_of_operators(tmp_path):
    pair = [manifest(tmp_path / "1", model="a", symbol="operators"), manifest(tmp_path / "2", model="a_")]
    assert faults_of(*pair)


def test_two_models_with_equal_names_inside(tmp_path):
    same = {"symbol": "op", "operator": "on", "x": "image", "constant": "weight"}
    compiles(tmp_path, *[manifest(tmp_path / model, model=model, **same) for model in ("left", "right")])


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
