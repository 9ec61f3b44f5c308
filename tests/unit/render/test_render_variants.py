# SPDX-License-Identifier: Apache-2.0
"""The selection of variants: the files of each, options that only one requires, and the record."""

from __future__ import annotations

import re

from golden_support import copy_project, generate_project
from opwest.cli.main import main
from opwest.write.writer import read_record

MODEL = "models/adder"


def test_sizes_differ_and_headers_have_one_name(tmp_path) -> None:
    app = generate_project("variants", tmp_path)
    found = {}
    for name in ("", "/variants/mla", "/variants/dsp", "/variants/mve"):
        text = (app / f"{MODEL}{name}/include/adder.h").read_text()
        found[name.rpartition("/")[2]] = re.findall(r"#define (ADDER_POOL_\w+_SIZE) (\w+)", text)
    assert found == {
        "": [],
        "mla": [],
        "dsp": [("ADDER_POOL_FAST_SIZE", "96U")],
        "mve": [("ADDER_POOL_SRAM_SIZE", "256U")],
    }


def test_options_of_one_variant_are_not_in_the_configuration(tmp_path) -> None:
    app = generate_project("variants", tmp_path)
    assert "CONFIG_CRC" not in (app / "prj.conf").read_text() + (app / "tests/adder/prj.conf").read_text()
    text = (app / f"{MODEL}/Kconfig").read_text()
    sections = {section.split("\n")[0]: section for section in text.split("\nconfig ")[1:]}
    assert [name for name, section in sections.items() if "imply CRC" in section] == ["OPWEST_MODEL_ADDER_VARIANT_DSP"]
    assert "CONFIG_CRC" in (app / f"{MODEL}/variants/dsp/model.cmake").read_text()


def test_an_option_of_all_variants_is_in_the_configuration(tmp_path) -> None:
    (manifest,) = copy_project("variants", tmp_path / "source")
    text = manifest.read_text()
    externals = "externals:\n  - {symbol: crc32_ieee, from: Zephyr, kconfig: CONFIG_CRC}\n"
    manifest.write_text(text.replace("constants:\n", f"{externals}constants:\n", 1))
    assert main(["generate", str(manifest), "-o", str(tmp_path / "app")]) == 0
    assert "CONFIG_CRC=y" in (tmp_path / "app/prj.conf").read_text()
    assert "imply CRC" not in (tmp_path / f"app/{MODEL}/Kconfig").read_text()


def test_the_record_has_the_inputs_of_all_variants(tmp_path) -> None:
    app = generate_project("variants", tmp_path)
    (record,) = read_record(app)["models"]
    assert set(record["inputs"]) == {
        "manifest.yaml",
        "constants.npz",
        *(f"operators/{name}.c" for name in ("base", "mla", "dsp", "mve")),
    }
    assert [variant["variant"] for variant in record["variants"]] == ["mla", "dsp", "mve"]


def test_buffers_of_main_are_aligned_for_all_variants(tmp_path) -> None:
    main_c = (generate_project("variants", tmp_path) / "src/main.c").read_text()
    assert "OPWEST_ALIGNED(16) static int32_t adder_input_x" in main_c


def test_regeneration_removes_a_variant(tmp_path) -> None:
    app = generate_project("variants", tmp_path)
    manifest = tmp_path / "source/manifest.yaml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("  mve:\n")])
    assert main(["update", str(app)]) == 0
    assert (app / f"{MODEL}/variants/dsp").is_dir()
    assert not (app / f"{MODEL}/variants/mve").exists()
    assert "mve" not in (app / f"{MODEL}/model.cmake").read_text()


def test_check_and_plan_show_variants(tmp_path, capsys) -> None:
    (manifest,) = copy_project("variants", tmp_path / "source")
    assert main(["check", str(manifest)]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("adder")] == [
        "adder: 1 operator, 1 step",
        "adder, variant mla: 1 operator, 1 step",
        "adder, variant dsp: 2 operators, 2 steps",
        "adder, variant mve: 1 operator, 1 step",
    ]
    assert main(["plan", str(manifest), "--variant", "dsp"]) == 0
    assert "adder, variant dsp: planner search\n  pool fast: 2 buffers" in capsys.readouterr().out
    assert main(["plan", str(manifest), "--variant", "dps"]) == 1
    assert "unknown variant 'dps'\n  hint: did you mean 'dsp'?" in capsys.readouterr().err
