# SPDX-License-Identifier: Apache-2.0
"""`opwest tune`: measurements in QEMU, tuning.yaml, and imports that use it without QEMU."""

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml
from campaign import sized
from in_process import fail, succeed
from requirements_support import need, skip_here

need("arm-none-eabi-gcc", "qemu-system-arm", "cc", "tflite")

from models.commands import CLASSES, chosen, dense  # noqa: E402
from models.made import Model  # noqa: E402
from opwest.compiler.output.emit import candidates  # noqa: E402
from opwest.objects.flash import NONE, UNKNOWN  # noqa: E402
from opwest.tuning.machines import machines  # noqa: E402
from opwest.tuning.results import Measurements, Result  # noqa: E402
from opwest.tuning.tune import tune  # noqa: E402

MODEL = dense("int8", results=40, layers=2).build


def imported(file, folder, *words):
    return succeed("import", file, "-o", folder, "--vectors", "0", *words).stdout


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def variants_of(file, core, folder, *words):
    return chosen(file, folder, *words)[0][CLASSES[core]]


@pytest.mark.parametrize("core", sized(list(CLASSES)[:1], list(CLASSES)))
def test_tune_corrects_a_wrong_table(core, file, tmp_path):
    right = variants_of(file, core, tmp_path / "model")
    assert "portable" not in right
    succeed("tune", tmp_path / "model", "--core", core)
    # In the planted table one slow variant has the least cost.
    planted = tmp_path / "planted.yaml"
    table = yaml.safe_load((tmp_path / "model/tuning.yaml").read_text())
    slow = "mla-bytes"
    [costs] = table["cores"][core]["layers"].values()  # both layers have the same shapes
    assert len(costs) > 1
    for name, cost in costs.items():
        cost[0] = 1 if name == slow else 10**9
    planted.write_text(yaml.safe_dump(table))
    assert variants_of(file, core, tmp_path / "wrong", "--tuning", planted) == [slow, slow]
    result = json.loads(succeed("tune", tmp_path / "wrong", "--core", core, "--json").stdout)["result"]
    assert [(one["before"], one["variant"]) for one in result["layers"]] == [(slow, name) for name in right]
    words = ["--tuning", planted, "--tuning", tmp_path / "wrong/tuning.yaml"]
    assert variants_of(file, core, tmp_path / "corrected", *words) == right


def test_import_with_measurements_needs_no_emulator(file, tmp_path, monkeypatch):
    imported(file, tmp_path / "model")
    succeed("tune", tmp_path / "model", "--board", "mps2/an385")
    found = []
    for name, path in (("with", os.environ["PATH"]), ("without", "/nonexistent")):
        monkeypatch.setenv("PATH", path)
        assert "fastest, measured" in imported(file, tmp_path / name, "--tuning", tmp_path / "model/tuning.yaml")
        found.append(files_of(tmp_path / name))
    assert found[0] == found[1]


def test_measurements_of_cores_are_merged(file, tmp_path):
    imported(file, tmp_path / "model")
    for core in ("cortex-m3", "cortex-m7"):
        out = succeed("tune", tmp_path / "model", "--core", core).stdout
        assert f"next: opwest import {file} -o NEW --tuning {tmp_path}/model/tuning.yaml" in out
    table = yaml.safe_load((tmp_path / "model/tuning.yaml").read_text())
    assert list(table["cores"]) == ["cortex-m3", "cortex-m7"]
    assert "arm-none-eabi-gcc" in table["cores"]["cortex-m7"]["measured"]
    # The costs of the M7 decide for the class dsp now; by default those of the M4 do.
    assert table["classes"] == {"dsp": "cortex-m7"}
    out = imported(file, tmp_path / "new", "--tuning", tmp_path / "model/tuning.yaml")
    assert "dsp (cycles of a model of a cortex-m7 with" in out
    assert "dsp (cycles of a model of a cortex-m4 with" in imported(file, tmp_path / "default")


def test_choices_are_rows_and_their_table(file, tmp_path):
    text = imported(file, tmp_path / "text", "-v")
    words = ["import", file, "-o", tmp_path / "rows", "--vectors", "0", "--json"]
    [model] = json.loads(succeed(*words).stdout)["result"]["choices"]
    assert {row["processor"] for row in model["processors"]} | {*model["portable"]} == {"mla", "dsp", "mve"}
    for row in model["processors"]:
        assert sum(one["flash_bytes"] for one in row["layers"]) == row["flash_bytes"]
        for one in (one for item in row["layers"] for one in (item, *item["others"])):
            assert re.search(rf"  {one['variant']} +{one['cycles']:,} +{one['flash_bytes']:,} ", text), one


def test_constants_in_ram_are_offered(file, tmp_path):
    imported(file, tmp_path / "model")
    flash = "wait_states=3,line=4,cache=0,data_cache=0,prefetch=no"
    words = ["tune", tmp_path / "model", "--board", "qemu_cortex_m3", "--flash", flash]
    assert f"constants in RAM (cortex-m3, flash {flash}; of a model" in succeed(*words).stdout
    offers = json.loads(succeed(*words, "--json").stdout)["result"]["constants"]
    # Without caches every load waits, and the read of code after it can begin one cycle later.
    assert offers and all(3 <= one["saved_cycles"] / one["load_count"] <= 4 for one in offers)
    imported(file, tmp_path / "placed", "--place", "1=sram")


def test_the_flash_of_boards(file, tmp_path, monkeypatch):
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject/zephyr")
    if not (base / "VERSION").is_file():
        skip_here(f"no Zephyr tree {base}")
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    words = ["import", file, "--vectors", "0", "--board", "nucleo_l4r5zi"]
    succeed(*words, "-o", tmp_path / "model")
    text = (tmp_path / "model/manifest.yaml").read_text(encoding="utf-8")
    assert "boards: [nucleo_l4r5zi]\n" in text and "flash: {wait_states: 5, line: 8, cache: 1024, data_cac" in text
    err = fail(*words, "-o", tmp_path / "two", "--board", "nucleo_h743zi").stderr
    assert "error: --board nucleo_l4r5zi, nucleo_h743zi: the boards have different flash: wait_states=4,line=32" in err
    done = succeed(*words[:-1], "mps2/an386", "-o", tmp_path / "unknown")
    assert f"note: --board mps2/an386: its flash is unknown; assumed: --flash {UNKNOWN.text}" in done.stderr
    options = json.loads((tmp_path / "unknown/import.json").read_text(encoding="utf-8"))["options"]
    assert not [name for name in options if "flash" in name]


def cycles_of(text, part):
    """Return the last rows of a table: by their name, the cycles."""
    rows = re.findall(r"^  (all|without wait states) +([\d,]+)", text[text.index(f"{part} (cycles") :], re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in rows[:2]}


def test_the_flash_of_measurements(file, tmp_path):
    """Precedence: --flash, the manifest. Measurements with different flash replace each other; only stalls differ."""
    path, source, cycles = tmp_path / "model/tuning.yaml", [], []
    slow = "wait_states=5,line=8,cache=1024,data_cache=256,prefetch=yes"
    imported(file, tmp_path / "model", "--flash", "wait_states=5,line=8,cache=1024,data_cache=256")
    assert "flash: {wait_states: 5, line: 8, cache: 1024, data_cache: 256, prefetch: true}" in (
        tmp_path / "model/manifest.yaml"
    ).read_text(encoding="utf-8")
    assert "without wait" not in succeed("tune", tmp_path / "model", "--core", "cortex-m4", "--flash", "none").stdout
    for words in ([], ["--flash", UNKNOWN.text]):
        out = succeed("tune", tmp_path / "model", "--core", "cortex-m4", *words)
        assert "without wait states" in out.stdout
        assert (f"NEW --flash {UNKNOWN.text} --tuning" in out.stdout) == bool(words)  # the import has another one
        core = yaml.safe_load(path.read_text())["cores"]["cortex-m4"]
        source.append(core["measured"])
        cycles.append(core["layers"])
    assert source[0] == f"{source[1]}, flash {slow}"
    for key, costs in cycles[1].items():
        for name, (*without, stalls) in costs.items():
            assert cycles[0][key][name][:2] == without and cycles[0][key][name][2] > stalls
    # The table of an import states the flash of its cycles; stalls of another flash are scaled.
    tuned = succeed("tune", tmp_path / "model", "--core", "cortex-m4").stdout
    shown = f"dsp (cycles of a model of a cortex-m4 with flash {slow}, from instructions counted in QEMU: not of"
    out = imported(file, tmp_path / "new", "--tuning", path, "--flash", slow)
    assert shown in out and cycles_of(tuned, "cortex-m4")["all"] == cycles_of(out, "dsp")["all"]
    wider = cycles_of(imported(file, tmp_path / "wider", "--tuning", path), "dsp")
    stalls = cycles_of(out, "dsp")["all"] - cycles_of(out, "dsp")["without wait states"]
    assert wider["all"] - wider["without wait states"] == pytest.approx(stalls / 2, abs=1)
    manifest, other = tmp_path / "model/manifest.yaml", tmp_path / "model/other/manifest.yaml"
    other.parent.mkdir()
    other.write_text(manifest.read_text().replace("line: 8", "line: 16"))
    err = fail("tune", tmp_path / "model", "--core", "cortex-m4").stderr
    assert f"error: the manifests state different flash: {manifest}: {slow}; {other}: wait_states=5,line=16" in err
    other.unlink()
    manifest.write_text(manifest.read_text().replace("cache: 1024", "cache: 1020"))
    err = fail("tune", tmp_path / "model", "--core", "cortex-m4").stderr
    assert "error: invalid 'cache' of the flash: 1020\n  expected: a multiple of the line: 8 bytes" in err


BROKEN = """\
version: 2
kernels: 1
classes: {dsp: cortex-m3, gpu: cortex-m4}
cores:
  cortex-m5: {}
  cortex-m4:
    measure: x
    estimates: {dense: {portable: {product: fast, result: 1, data: 1, call: 1}}}
    layers:
      "dense int8": {portable: [1.5, -1], dsp-bytes: 7}
"""


def test_faults_of_a_table_are_reported_together(file, tmp_path):
    (tmp_path / "t.yaml").write_text(BROKEN)
    err = fail("import", file, "-o", tmp_path / "model", "--tuning", tmp_path / "t.yaml").stderr
    place = f"{tmp_path}/t.yaml"
    for line in (
        f"{place}:1:10: error: unsupported 'version': the integer 2\n  expected: version: 1",
        f"{place}:3:11: error: invalid core the string 'cortex-m3' of class 'dsp'",
        f"{place}:3:27: error: unknown class 'gpu'\n  expected: one of: dsp, mla, mve, portable",
        f"{place}:5:3: error: unknown core 'cortex-m5'",
        f"{place}:7:5: error: unknown key 'measure'\n  hint: did you mean 'measured'?",
        f"{place}:8:45: error: invalid 'product': the string 'fast'",
        f"{place}:8:35: error: missing key 'code'",
        f"{place}:10:33: error: invalid cycles: the number 1.5\n  expected: an integer, at least 0",
        f"{place}:10:38: error: invalid bytes of code: the integer -1",
        f"{place}:10:54: error: invalid cost of 'dsp-bytes': the integer 7\n  expected: [CYCLES, BYTES of code]",
    ):
        assert line in err, err
    assert not (tmp_path / "model").exists()


HOSTILE = [
    ("[" * 5000, "nested"), ("version: 1\nversion: 1\n", "version"), ("- 1\n", "mapping"), ("", "mapping"),
    ("\x00", "printable"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), HOSTILE)
def test_hostile_tables(text, message, file, tmp_path):
    (tmp_path / "t.yaml").write_text(text)
    err = fail("import", file, "-o", tmp_path / "model", "--tuning", tmp_path / "t.yaml").stderr
    assert f"{tmp_path}/t.yaml" in err and "error: " in err and "Traceback" not in err
    assert message in err, err


OPTIONS = ['{"x": 1}', '{"given_flash": 5}']
RECORDS = ["{", "[]", '{"model": 1, "sha256": "", "options": {}}']
RECORDS += [f'{{"model": "m", "sha256": "", "options": {options}}}' for options in OPTIONS]


def test_a_directory_without_a_record(file, tmp_path):
    err = fail("tune", tmp_path, "--core", "cortex-m3").stderr
    assert f"{tmp_path}/import.json: error: cannot read the record of the import: No such file or directory" in err
    assert "expected: a directory that 'opwest import' of a trained model wrote" in err
    for text in RECORDS:
        (tmp_path / "import.json").write_text(text)
        err = fail("tune", tmp_path, "--core", "cortex-m3").stderr
        assert "error: the record of the import is damaged\n  hint: import the model again" in err


def test_another_model_is_refused(file, tmp_path):
    (tmp_path / "m.tflite").write_bytes(file.read_bytes())
    imported(tmp_path / "m.tflite", tmp_path / "model")
    dense("int8", results=41, layers=2).save(tmp_path / "m.tflite")
    err = fail("tune", tmp_path / "model", "--core", "cortex-m3").stderr
    assert "m.tflite: error: the model file is not the one that was imported\n  hint: import the model again" in err


def test_boards_and_tools(file, tmp_path, monkeypatch):
    imported(file, tmp_path / "model")
    err = fail("tune", tmp_path / "model", "--board", "none").stderr
    assert "error: --board none: its core is unknown, or QEMU has no machine for it\n  expected: --core cortex-m" in err
    assert "--core cortex-m0plus|" in err
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        err = fail("tune", tmp_path / "model", "--board", "mps2/an386").stderr
    assert "error: cannot measure: arm-none-eabi-gcc not found\n  hint: docs/tuning.md lists" in err
    imported(file, tmp_path / "portable", "--kernels", "portable")
    err = fail("tune", tmp_path / "portable", "--core", "cortex-m3").stderr
    assert "error: the import has --kernels portable: it chooses no variants" in err


def float_model(path):
    """Write float layers that call libm; powers of negative numbers set errno."""
    model = Model()
    data = model.input("float32", (1, 8, 8))
    exponent = model.constant(np.asarray(1.7, np.float32))
    for kind in ("TANH", "EXP", "GELU", "POW", "SOFTMAX"):
        data = model.operator(kind, [data, exponent] if kind == "POW" else [data], ("float32",))
    weights = [model.constant(np.ones(shape, np.float32)) for shape in [(8, 8)] * 8 + [(8,)] * 4]
    states = [model.variable("float32", (1, 8)) for _ in range(2)]
    inputs = [data, *weights[:8], None, None, None, *weights[8:], None, None, *states, *[None] * 4]
    data = model.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ("float32",), fused_activation_function="TANH", cell_clip=0.0
    )
    return model.output(data).save(path)


REMARKS = {
    "int8": ([], []),
    "io": (
        ["--float-io"],
        [r"without an FPU \(\S+\): --float-io \(QUANTIZE\)", r"import without --float-io, .* or use a core with"],
    ),
    "float": ([], [r"without an FPU \(", r"of libm take \d+% of .* on cortex-m\d+: \d", "quantise the model to int8"]),
}


@pytest.mark.parametrize("kind", REMARKS)
def test_imports_remark_on_slow_float_operations(kind, tmp_path):
    words, texts = REMARKS[kind]
    path = tmp_path / "m.tflite"
    file = float_model(path) if kind == "float" else dense("int8", layers=1).save(path)
    imported(file, tmp_path / "model", *words)
    for core in ("cortex-m3", "cortex-m4"):
        succeed("tune", tmp_path / "model", "--core", core)
    out = imported(file, tmp_path / "tuned", *words, "--tuning", tmp_path / "model/tuning.yaml")
    assert ("note: float32 operations take " in out) == bool(texts), out
    assert all(re.search(text, out) for text in texts), out


@pytest.mark.parametrize("core", sized(["cortex-m4", "rv32"], list(machines())))
def test_float_layers_that_call_libm_are_measured(core, tmp_path):
    need(machines()[core].compiler[0], machines()[core].emulator[0])
    imported(float_model(tmp_path / "m.tflite"), tmp_path / "model")
    result = json.loads(succeed("tune", tmp_path / "model", "--core", core, "--json").stdout)["result"]
    assert [one["layer"].split()[0] for one in result["layers"]] == ["0", "1", "2", "3", "4", "5"]
    # A call of libm for each of 64 elements; a layer whose image ended early has no cycles.
    assert all(
        row["cycles"] > 64 * 10 for one in result["layers"] for row in one["variants"] if row["variant"] == "portable"
    )


COMPILERS = [
    (
        'for word; do shift; [ "$word" = -lm ] || set -- "$@" "$word"; done; arm-none-eabi-gcc "$@"',
        r"arm-none-eabi-gcc: \S*operators_0\.c:\S+ undefined reference to `\w+'\n  hint: this is a defect of opwest",
    ),
    (
        'arm-none-eabi-gcc -include missing.h "$@"',
        r"arm-none-eabi-gcc: .*fatal error: missing\.h: No such file or directory\n  hint: docs/tuning\.md lists",
    ),
    ("exit 9", r"arm-none-eabi-gcc: exit code 9\n  hint: this is a defect of opwest"),
]


@pytest.mark.parametrize(("script", "message"), COMPILERS, ids=["no libm", "no header", "no output"])
def test_failures_of_the_compiler_have_one_line(script, message, tmp_path, monkeypatch):
    imported(float_model(tmp_path / "m.tflite"), tmp_path / "model")
    compiler = tmp_path / "bin/arm-none-eabi-gcc"
    compiler.parent.mkdir()
    # It must not call itself: ccache searches PATH for the compiler.
    compiler.write_text(f"#!/bin/sh\nPATH={shlex.quote(os.environ['PATH'])}\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}{os.pathsep}{os.environ['PATH']}")
    words = ["tune", tmp_path / "model", "--core", "cortex-m3"]
    err = fail(*words).stderr
    assert re.search(f"error: cannot measure: {message}", err), err
    assert "--defsym" not in err and len(err.split("error: cannot measure", 1)[1].splitlines()) == 2, err
    # The command, and what it printed.
    detailed = fail(*words, "-v").stderr
    assert "+ arm-none-eabi-gcc -mthumb" in detailed and ("`powf'" in detailed or "undefined" not in message), detailed


def test_layers_that_were_left_out_have_no_row(tmp_path):
    """A source of measurements that has no costs of the second of two different layers."""
    path = dense("int8", results=12, layers=2).save(tmp_path / "m.tflite")
    imported(path, tmp_path / "model")

    def measure(operations, *_):
        first, second = operations
        names = candidates(first, "mla")
        results = [Result(first, name, 70 + number, 9) for number, name in enumerate(names)]
        return Measurements(results, "some_board, cycle counter at 9 Hz", [second])

    done = tune(tmp_path / "model", "cortex-m3", measure, NONE, lambda _: None)
    assert [one.label[:2] for one in done.layers] == ["0 "] and [one[:2] for one in done.left_out] == ["1 "]
    assert min(done.layers[0].cycles.values()) == 70
    table = yaml.safe_load((tmp_path / "model/tuning.yaml").read_text())
    assert len(table["cores"]["cortex-m3"]["layers"]) == 1
    out = imported(path, tmp_path / "new", "--tuning", tmp_path / "model/tuning.yaml")
    source = "cycles of some_board, cycle counter at 9 Hz; of layers 1 (FULLY_CONNECTED): of a model of a cortex-m3"
    assert source in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--core", "cortex-m4", "--serial", "/dev/x"], "--serial requires --board\n  hint: --core measures in QEMU"),
        (["--board", "mps2/an385", "--baud", "9600"], "--baud requires --serial"),
        (["--board", "mps2/an385", "--timeout", "9"], "--timeout requires --serial"),
        (["--board", "mps2/an385", "--serial", "/dev/x", "--flash", "none"], "--flash excludes --serial"),
        (["--board", "mps2/an385", "--serial", "/dev/x", "--cmsis-nn", "d"], "--cmsis-nn excludes --serial"),
        (["--board", "none", "--serial", "/dev/x"], "--board none: unknown board, or no variants for its core\n  exp"),
        (["--board", "native_sim", "--serial", "/dev/x"], "--board native_sim: unknown board, or no variants for"),
    ],
)
def test_options_of_boards(words, message, tmp_path):
    err = fail("tune", tmp_path, *words).stderr
    assert f"error: {message}" in err


def test_the_measurements_of_a_board_replace_those_of_qemu(file, tmp_path):
    imported(file, tmp_path / "model")
    succeed("tune", tmp_path / "model", "--core", "cortex-m3")
    path = tmp_path / "model/tuning.yaml"
    table = yaml.safe_load(path.read_text())
    core = table["cores"]["cortex-m3"]
    emulated, layers = core["measured"], list(core["layers"])
    core["measured"] = board = "some_board, cycle counter at 64000000 Hz, arm-none-eabi-gcc 12.2.1"
    core["layers"]["a layer of the board"] = {"portable": [1, 2]}
    path.write_text(yaml.safe_dump(table))
    # The import prints the source of the cycles.
    assert f"mla (cycles of {board}; flash and scratch memory in bytes)" in imported(
        file, tmp_path / "new", "--tuning", path
    )
    succeed("tune", tmp_path / "model", "--core", "cortex-m3")
    core = yaml.safe_load(path.read_text())["cores"]["cortex-m3"]
    assert (core["measured"], list(core["layers"])) == (emulated, layers)
