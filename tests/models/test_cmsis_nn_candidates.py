# SPDX-License-Identifier: Apache-2.0
"""`opwest import --with cmsis-nn`, and `opwest tune --cmsis-nn`: CMSIS-NN as one more candidate for each layer."""

import json
from pathlib import Path

import pytest
import yaml
from campaign import sized
from cmsis_nn_support import VARIANTS, cmsis_nn_directory, planted_table
from in_process import fail, opwest, succeed
from models.commands import CLASSES, chosen, dense
from models.test_max_ram import convolutions
from opwest.cli.import_options import with_kind
from opwest.compiler.request import Options
from opwest.compiler.selection.costs import key_of
from opwest.compiler.selection.tuning_files import read_tables
from opwest.imports.prepare import prepare, program_of
from opwest.tuning.check import check
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
PREFERRED = ["--with", "cmsis-nn", "--prefer", "cmsis-nn"]
CONVOLVE = "arm_convolve_wrapper_s8"
MODEL = convolutions


@pytest.fixture(scope="module")
def table(file):
    """CMSIS-NN is the fastest for the second of three layers on an M3 and an M55; on an M4 for none."""
    return planted_table(file, 1, ["cortex-m3", "cortex-m55"], file.parent / "planted.yaml")


def externals(part):
    return [one["symbol"] for one in part.get("externals", ())]


def test_cmsis_nn_is_chosen_where_a_table_says_so(file, table, tmp_path):
    found, manifest = chosen(file, tmp_path / "with", "--with", "cmsis-nn", "--tuning", table)
    calls = {name: {i: one for i, one in enumerate(rows) if "cmsis" in one} for name, rows in found.items()}
    assert calls == {"mla": {1: "cmsis-nn-none"}, "dsp": {}, "mve": {1: "cmsis-nn-mve"}}
    assert externals(manifest) == externals(manifest["variants"]["dsp"]) == []
    assert "application" not in manifest
    kconfig = [f"CONFIG_CMSIS_NN{part}" for part in ("", "_NNSUPPORT", "_CONVOLUTION")]
    for name in ("mla", "mve"):
        assert externals(manifest["variants"][name]) == [CONVOLVE, f"{CONVOLVE}_get_buffer_size"]
        assert manifest["variants"][name]["externals"][0]["kconfig"] == kconfig
        assert CONVOLVE in (tmp_path / "with" / name / "operators.c").read_text()
    for path in ("operators.c", "dsp/operators.c"):
        assert "arm_" not in (tmp_path / "with" / path).read_text()
    assert json.loads((tmp_path / "with/import.json").read_text())["options"]["libraries"] == ["cmsis-nn"]


def test_cmsis_nn_is_never_chosen_without_the_option(file, table, tmp_path):
    found, manifest = chosen(file, tmp_path / "without", "--tuning", table)
    assert not any(one.startswith("cmsis-nn") for rows in found.values() for one in rows)
    assert "CMSIS" not in json.dumps(manifest)


def test_a_host_needs_no_cmsis_nn(file, table, tmp_path, monkeypatch):
    monkeypatch.delenv("CMSIS_NN", raising=False)
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    chosen(file, tmp_path / "model", "--with", "cmsis-nn", "--tuning", table)
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    kconfig = (tmp_path / "app/models/m/Kconfig").read_text()
    parts = {part.split("\n")[0]: part for part in kconfig.split("config OPWEST_MODEL_")}
    assert "imply CMSIS_NN\n" in parts["M_VARIANT_MLA"] and "imply CMSIS_NN_CONVOLUTION\n" in parts["M_VARIANT_MLA"]
    assert "CMSIS_NN" not in parts["M_VARIANT_DSP"] + parts["M_BASE"] + (tmp_path / "app/prj.conf").read_text()
    readme = (tmp_path / "app/README.md").read_text()
    assert "- `cmsis-nn`: CMSIS-NN, Zephyr's module" in readme and "- `cmsis-dsp`: " in readme
    out = succeed("run", tmp_path / "app", "--host").stdout
    assert "m: run returned 0" in out


@pytest.mark.parametrize("rounding", ["tflite", "cmsis-nn"])
def test_preferred_cmsis_nn(rounding, tmp_path):
    """int8 FULLY_CONNECTED calls it only with its rounding, even where it is preferred."""
    file = dense("int8", results=40, layers=2).save(tmp_path / "m.tflite")
    found, _ = chosen(file, tmp_path / "model", *PREFERRED, "--rounding", rounding)
    for core, name in CLASSES.items():
        assert [one == VARIANTS[core] for one in found[name]] == [rounding == "cmsis-nn"] * 2


def test_values_of_options_are_no_kinds_and_no_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cmsis-nn").mkdir()
    words = ["import", "--with", "cmsis-nn", "--rounding", "tflite", "--max-ram", "9", "m.onnx"]
    assert with_kind(words) == ["import", "onnx", *words[1:]]


def test_preferred_convolutions(file, tmp_path):
    found, _ = chosen(file, tmp_path / "model", *PREFERRED)
    assert found == {name: [VARIANTS[core]] * 3 for core, name in CLASSES.items()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--with", "cmsis"], "argument --with: invalid choice: 'cmsis' (choose from"),
        (["--prefer", "cmsis-nn"], "--prefer cmsis-nn: the import does not use cmsis-nn\n  expected: --with cmsis-nn"),
        (
            ["--with", "cmsis-nn", "--kernels", "portable"],
            "--with cmsis-nn and --kernels portable: the second one chooses no variants\n  expected: one of them",
        ),
        ([*PREFERRED[:-1], "cmsis-nn-dsp"], "unknown variant 'cmsis-nn-dsp'\n  hint: variants: cmsis-nn, dsp-"),
    ],
)
def test_faults_of_options(words, message, file, tmp_path):
    code, _, err = opwest("import", file, "-o", tmp_path / "model", *words)
    assert code != 0 and message in err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("core", sized(["cortex-m55"], list(VARIANTS)))
def test_tune_measures_cmsis_nn(core, file, tmp_path):
    """A difference from the portable variant would be an error; the import then uses the measurements."""
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    root = cmsis_nn_directory()
    chosen(file, tmp_path / "model")
    out = succeed("tune", tmp_path / "model", "--core", core, "--cmsis-nn", root).stdout
    measured = yaml.safe_load((tmp_path / "model/tuning.yaml").read_text())["cores"][core]
    assert len(measured["layers"]) == 3
    assert all("portable" in costs and costs[VARIANTS[core]][0] > 1000 for costs in measured["layers"].values())
    assert 2000 < measured["functions"][CONVOLVE] < 20000
    assert measured["functions"][f"{CONVOLVE}_get_buffer_size"] < 1000
    assert VARIANTS[core] in out
    assert " -o NEW --with cmsis-nn --tuning " in out or " --with" not in out
    words = [*PREFERRED, "--tuning", tmp_path / "model/tuning.yaml"]
    out = succeed("import", file, "-o", tmp_path / "tuned", "--vectors", "0", *words).stdout
    part = out.partition(f"{CLASSES[core]} (")[2]
    cycles = [costs[VARIANTS[core]][0] for costs in measured["layers"].values()]
    assert all(f" {one:,} " in part for one in cycles)


@pytest.mark.parametrize("core", sized(["cortex-m4"], list(VARIANTS)))
def test_random_layers_in_qemu(core, tmp_path):
    """int8 and int16, also without a bias: CMSIS-NN gives the results of the portable variant."""
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    count = sized(8, 200)
    found = check(VARIANTS[core], core, count, tmp_path, cmsis_nn_directory())
    assert (found.layers, found.wrong) == (count, ())


def test_tune_without_cmsis_nn_does_not_measure_it(file, tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    chosen(file, tmp_path / "model", "--with", "cmsis-nn")
    out = succeed("tune", tmp_path / "model", "--core", "cortex-m4").stdout
    assert "cmsis-nn" not in (tmp_path / "model/tuning.yaml").read_text()
    assert VARIANTS["cortex-m4"] not in out


def test_faults_of_tune(file, table, tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "cc")
    chosen(file, tmp_path / "model", "--with", "cmsis-nn", "--tuning", table)
    err = fail("tune", tmp_path / "model", "--core", "cortex-m3", "--cmsis-nn", tmp_path).stderr
    assert f"--cmsis-nn: '{tmp_path}' is not CMSIS-NN\n  expected: a directory with Include/arm_nnfunctions.h" in err
    err = fail("tune", tmp_path / "model", "--core", "cortex-m3", "--flash", "wait_states=2,line=8,cache=0").stderr
    assert "1 (CONV_2D) calls CMSIS-NN, whose loads cannot be counted\n  hint: --cmsis-nn DIR" in err
    with (tmp_path / "model/manifest.yaml").open("a") as manifest:  # the flash of a board, for example
        manifest.write("flash: {wait_states: 2, line: 8, cache: 0}\n")
    out = succeed("tune", tmp_path / "model", "--core", "cortex-m3").stdout
    assert "not in this table without --cmsis-nn DIR, because they call CMSIS-NN: 1 (CONV_2D)" in out


def test_faults_of_functions_in_a_table(file, tmp_path):
    place = tmp_path / "t.yaml"
    place.write_text("version: 1\nkernels: 3\ncores:\n  cortex-m4:\n    functions: {arm_x: many}\n")
    err = fail("import", file, "-o", tmp_path / "model", "--tuning", place).stderr
    assert f"{place}:5:24: error: invalid bytes of code of 'arm_x': the string 'many'\n  expected: an integer" in err


def test_models_of_the_benchmark_have_no_measured_layers(monkeypatch, tmp_path):
    """benchmarks/default_speed.py: its models show the estimates of costs, not the table of measurements."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import held_out_models

    measured = {key for table in read_tables().cores.values() for key in table.layers}
    files = held_out_models.write(tmp_path, [make.__name__ for make in held_out_models.KINDS])
    assert len(files) == 12
    for file in files:
        (graph,) = prepare(file, Options(), lambda _: None).graphs
        keys = {key_of(operation) for operation in program_of(graph, Options(), str(file)).operations}
        assert keys and not keys & measured, file.stem
