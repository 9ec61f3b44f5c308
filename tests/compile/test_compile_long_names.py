# SPDX-License-Identifier: Apache-2.0
"""Names of each length: every emitted file compiles as C, and every header as C++; Zephyr's headers are stubs."""

import pytest
from c_support import ON_ZEPHYR, includes, portable_sources, read_record, write_definitions
from c_support import run as compiler_run
from campaign import sized
from golden_support import generate_quickly
from opwest.base.diagnostics import Diagnostics
from opwest.cli.main import main
from opwest.model.types.c_names import MAX_CHARACTERS
from opwest.pipeline import run
from opwest.project.request import Request
from opwest.runs.services import write_services
from requirements_support import need_compiler
from test_compile_suites import ZTEST

KINDS = {
    "model": "model", "operator": "add", "argument": "x", "input": "first", "output": "last", "tensor": "middle",
    "view": "part", "state": "past", "constant": "weight", "pool": "fast", "device": "npu", "label": "cat",
}  # fmt: skip
"""The names of a manifest by kind, as they are short."""
LENGTHS = sized(
    {"model": (1, 40, 52, 55, 57, 59, 70, MAX_CHARACTERS), "all": (1, 17, 53, 56, 58, 99)},
    dict.fromkeys((*KINDS, "all"), (1, 2, 17, 40, *range(52, 60), 62, 70, 99, 127, MAX_CHARACTERS)),
)
"""By kind: lines are broken near column 100."""


def named(length, kinds):
    """Return the names: those of some kinds have a length."""
    names = dict(KINDS)
    for number, kind in enumerate(kinds):
        letter = "abcdefghijkl"[number]
        names[kind] = (letter + "_long_name" * 20)[: length - 1] + letter if length > 1 else letter
    return names


OPERATORS = """#include <stdint.h>
struct device;
void add(const int8_t *x, const int8_t *y, int8_t *z, const struct device *npu)
{
	z[0] = (int8_t)(x[0] + y[0]);
	(void)npu;
}
"""
MANIFEST = """version: 1
model: {model}
compat: tvmgen
boards: [native_sim/native/64]
objects: [{{files: [operators.c]}}]
memory: {{sram: {{}}, {pool}: {{align: 16}}}}
devices: {{{device}: {{devicetree: {{nodelabel: npu0}}, driver: none}}}}
constants: {{{constant}: {{dtype: int8, shape: [4], file: data.bin, pool: {pool}}}}}
operators:
  {operator}:
    {{symbol: add, returns: void, device: {{}}, args: [
    {{name: {argument}, dtype: int8, shape: [4]}}, {{name: yy, dtype: int8, shape: [4]}},
    {{name: zz, dtype: int8, shape: [4], direction: out}}]}}
run:
  inputs: {{{input}: {{dtype: int8, shape: [4]}}}}
  outputs: {{{output}: {{dtype: int8, shape: [4], labels: [{label}, two, three, four]}}}}
  state: {{{state}: {{dtype: int8, shape: [4], next: {tensor}}}}}
  tensors:
    {tensor}: {{pool: sram}}
    whole: {{dtype: int8, shape: [8]}}
    {view}: {{view_of: whole, shape: [4]}}
    rest: {{view_of: whole, offset: 4, shape: [4]}}
  steps:
    - {{call: {operator}, args: [{input}, {constant}, {view}], device: {device}}}
    - {{call: {operator}, args: [{input}, {view}, rest], device: {device}}}
    - {{call: {operator}, args: [{view}, {state}, {tensor}], device: {device}}}
    - {{call: {operator}, args: [rest, {tensor}, {output}], device: {device}}}
"""


def write(folder, names):
    """Write a manifest with a step on a device, a view, a state, a constant in a pool, labels."""
    folder.mkdir(parents=True)
    (folder / "operators.c").write_text(OPERATORS)
    (folder / "data.bin").write_bytes(b"\1\2\3\4")
    (folder / "manifest.yaml").write_text(MANIFEST.format(**names))
    return folder / "manifest.yaml"


@pytest.mark.parametrize("kind", LENGTHS)
def test_names_of_each_length_compile(kind, tmp_path):
    """Sources for a host and for Zephyr; headers in C++ too, without those that only Zephyr has."""
    need_compiler("gcc")
    kinds = list(KINDS) if kind == "all" else [kind]
    plain = ["-Wall", "-Wextra", "-Werror"]
    on_zephyr = ["-DCONFIG_OPWEST_RUNNER=1", "-DCONFIG_BOARD_NATIVE_SIM_NATIVE_64=1", f"-I{ZTEST}"]
    for length in LENGTHS[kind]:
        app = generate_quickly([write(tmp_path / f"source{length}", named(length, kinds))], tmp_path / f"app{length}")
        models, services, definitions = app / "models", tmp_path / f"services{length}", tmp_path / f"all{length}.c"
        write_definitions(app, definitions)
        write_services(services, app, read_record(app))
        sources = [definitions, *services.glob("*.c"), *models.glob("*/src/*_run.c"), *models.glob("*/tests/*.c")]
        headers = [one for one in models.rglob("include/*.h") if not one.name.endswith(("_devicetree.h", "_runner.h"))]
        for command, files in (
            (["gcc", "-std=c11", *plain], portable_sources(app)),
            (["gcc", *ON_ZEPHYR, *on_zephyr], sources),
            (["g++", "-std=c++11", *plain, "-xc++"], headers),
        ):
            assert files
            compiler_run([*command, "-fsyntax-only", *includes(app), *files], tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "label"])
def test_longer_names_are_refused(kind, tmp_path):
    length = MAX_CHARACTERS + 1
    names = named(MAX_CHARACTERS, [])
    names[kind] = "n" * length
    faults = Diagnostics()
    run(Request((write(tmp_path / "source", names),)), faults, "plan")
    first = next(one for one in faults if f"has {length} characters" in one.message)
    assert f"name '{'n' * 30}...' has {length} characters" in first.message
    assert first.expected == f"at most {MAX_CHARACTERS}"


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_5000_characters_are_refused(kind, tmp_path, capsys):
    """YAML has no such keys: the reader of YAML refuses them. Labels are texts of any length."""
    names = named(MAX_CHARACTERS, [])
    names[kind] = "n" * 5000
    path = write(tmp_path / "source", names)
    assert main(["check", str(path)]) == (kind != "label")
    text = capsys.readouterr().err
    assert kind == "label" or (f"{path}:" in text and ": error: " in text)
    assert "Traceback" not in text
