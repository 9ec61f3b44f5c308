# SPDX-License-Identifier: Apache-2.0
"""Names of each length: every emitted file compiles as C, and every header as C++; Zephyr's headers are stubs."""

import subprocess

import pytest
from c_support import STRICT, includes, portable_sources, read_record
from campaign import sized
from golden_support import generate_quickly
from opwest.board.services import write_services
from opwest.cli.main import main
from opwest.diagnostics import Diagnostics
from opwest.model.identifiers import MOST_CHARACTERS
from opwest.pipeline import run
from opwest.request import Request
from requirements_support import need_compiler
from test_compile_emitted import STUBS
from test_compile_suites import ZTEST

KINDS = {
    "model": "model", "operator": "add", "argument": "x", "input": "first", "output": "last", "tensor": "middle",
    "view": "part", "state": "past", "constant": "weight", "pool": "fast", "device": "npu", "label": "cat",
}  # fmt: skip
"""The names of a manifest by kind, as they are short."""
LENGTHS = sized(
    {"model": (1, 40, 52, 55, 57, 59, 70, MOST_CHARACTERS), "all": (1, 17, 53, 56, 58, 99)},
    dict.fromkeys((*KINDS, "all"), (1, 2, 17, 40, *range(52, 60), 62, 70, 99, 127, MOST_CHARACTERS)),
)
"""By kind: lines are broken near column 100."""


def named(length, kinds):
    """Return the names: those of some kinds have a length."""
    names = dict(KINDS)
    for number, kind in enumerate(kinds):
        letter = "abcdefghijkl"[number]
        names[kind] = (letter + "_long_name" * 20)[: length - 1] + letter if length > 1 else letter
    return names


def write(folder, names):
    """Write a manifest with a step on a device, a view, a state, a constant in a pool, labels."""
    n = names
    folder.mkdir(parents=True)
    (folder / "operators.c").write_text(
        "#include <stdint.h>\nstruct device;\n"
        "void add(const int8_t *x, const int8_t *y, int8_t *z, const struct device *npu)\n"
        "{\n\tz[0] = (int8_t)(x[0] + y[0]);\n\t(void)npu;\n}\n"
    )
    (folder / "data.bin").write_bytes(b"\1\2\3\4")
    tensor = "{dtype: int8, shape: [4]}"
    lines = [
        "version: 1",
        f"model: {n['model']}",
        "compat: tvmgen",
        "boards: [native_sim/native/64]",
        "objects: [{files: [operators.c]}]",
        f"memory: {{sram: {{}}, {n['pool']}: {{align: 16}}}}",
        f"devices: {{{n['device']}: {{devicetree: {{nodelabel: npu0}}, driver: none}}}}",
        f"constants: {{{n['constant']}: {{dtype: int8, shape: [4], file: data.bin, pool: {n['pool']}}}}}",
        "operators:",
        f"  {n['operator']}:",
        "    {symbol: add, returns: void, device: {}, args: [",
        f"    {{name: {n['argument']}, dtype: int8, shape: [4]}}, {{name: yy, dtype: int8, shape: [4]}},",
        "    {name: zz, dtype: int8, shape: [4], direction: out}]}",
        "run:",
        f"  inputs: {{{n['input']}: {tensor}}}",
        f"  outputs: {{{n['output']}: {{dtype: int8, shape: [4], labels: [{n['label']}, two, three, four]}}}}",
        f"  state: {{{n['state']}: {{dtype: int8, shape: [4], next: {n['tensor']}}}}}",
        "  tensors:",
        f"    {n['tensor']}: {{pool: sram}}",
        "    whole: {dtype: int8, shape: [8]}",
        f"    {n['view']}: {{view_of: whole, shape: [4]}}",
        "    rest: {view_of: whole, offset: 4, shape: [4]}",
        "  steps:",
        f"    - {{call: {n['operator']}, args: [{n['input']}, {n['constant']}, {n['view']}], device: {n['device']}}}",
        f"    - {{call: {n['operator']}, args: [{n['input']}, {n['view']}, rest], device: {n['device']}}}",
        f"    - {{call: {n['operator']}, args: [{n['view']}, {n['state']}, {n['tensor']}], device: {n['device']}}}",
        f"    - {{call: {n['operator']}, args: [rest, {n['tensor']}, {n['output']}], device: {n['device']}}}",
    ]
    path = folder / "manifest.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("kind", LENGTHS)
def test_names_of_each_length_compile(kind, tmp_path):
    need_compiler("gcc")
    kinds = list(KINDS) if kind == "all" else [kind]
    for length in LENGTHS[kind]:
        path = write(tmp_path / f"source{length}", named(length, kinds))
        app = generate_quickly([path], tmp_path / f"app{length}")
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        run_compiler("gcc", flags, app, [*portable_sources(app), *sorted((app / "models").rglob("*_tvmgen.c"))])
        compile_for_zephyr(app, tmp_path / f"zephyr{length}")
        headers = sorted((app / "models").rglob("include/*.h"))
        headers = [one for one in headers if not one.name.endswith("_devicetree.h")]
        assert headers
        run_compiler("g++", ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc++"], app, headers)


def compile_for_zephyr(app, work):
    """Compile the macros of a board, run, the service and the suite of each model against stubs."""
    work.mkdir()
    record = read_record(app)
    write_services(work / "services", app, record)
    sources = sorted((work / "services").glob("*.c"))
    for model in record["models"]:
        name, macro = model["name"], model["macro"]
        main = work / "main.c"
        main.write_text(
            f"#include <{name}_devicetree.h>\n{macro}_WORKSPACE_DEFINE(own_memory);\n"
            f"const struct {name}_devices own_devices = {macro}_DEVICES_DT_INIT;\n"
            f"{macro}_RUNNER_DEFINE(own_runner, 2048, 5);\n"
        )
        folder = app / "models" / name
        sources += [main, folder / "src" / f"{name}_run.c", *sorted((folder / "tests").glob("*.c"))]
    flags = [flag for flag in STRICT if flag not in ("-Wpedantic", "-Wundef", "-Wmissing-variable-declarations")]
    options = ["-D__ZEPHYR__=1", "-DCONFIG_OPWEST_RUNNER=1", "-DCONFIG_BOARD_NATIVE_SIM_NATIVE_64=1", f"-I{STUBS}"]
    run_compiler("gcc", [*flags, *options, f"-I{ZTEST}", "-fsyntax-only"], app, sources)


def run_compiler(compiler, flags, app, sources):
    words = [compiler, *flags, *includes(app), *map(str, sources)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "label"])
def test_longer_names_are_refused(kind, tmp_path):
    length = MOST_CHARACTERS + 1
    names = named(MOST_CHARACTERS, [])
    names[kind] = "n" * length
    faults = Diagnostics()
    run(Request((write(tmp_path / "source", names),)), faults, "plan")
    messages = [(one.message, one.expected) for one in faults if f"has {length} characters" in one.message]
    assert messages, [one.message for one in faults]
    message, expected = messages[0]
    assert f"name '{'n' * 30}...' has {length} characters" in message
    assert expected == f"at most {MOST_CHARACTERS}"


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_5000_characters_are_refused(kind, tmp_path, capsys):
    """YAML has no such keys: the reader of YAML refuses them. Labels are texts of any length."""
    names = named(MOST_CHARACTERS, [])
    names[kind] = "n" * 5000
    path = write(tmp_path / "source", names)
    code = main(["check", str(path)])
    text = capsys.readouterr().err
    if kind == "label":
        assert code == 0, text
        return
    assert code == 1
    assert f"{path}:" in text and ": error: " in text and "Traceback" not in text
