# SPDX-License-Identifier: Apache-2.0
"""`opwest new-driver`: its files, names and errors. tests/conformance compiles and runs what it writes."""

import json
import re
from pathlib import Path

import pytest


def test_files_have_the_names_of_the_driver(opwest, tmp_path):
    folder = tmp_path / "place"
    done = opwest("new-driver", "my_npu", "-o", folder, "--compatible", "acme,npu-2.0", "--json")
    assert done.code == 0
    result = json.loads(done.out)["result"]
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert result["written"] == sorted(written) and result["compatible"] == "acme,npu-2.0"
    assert {"zephyr/module.yml", "drivers/my_npu.c", "include/my_npu.h", "tests/host/Makefile"} <= written
    assert "dts/bindings/accelerator/acme,npu-2.0.yaml" in written
    texts = {path: (folder / path).read_text() for path in written}
    assert 'compatible: "acme,npu-2.0"' in texts["dts/bindings/accelerator/acme,npu-2.0.yaml"]
    assert "#define DT_DRV_COMPAT acme_npu_2_0\n" in texts["drivers/my_npu_zephyr.c"]
    assert "depends on DT_HAS_ACME_NPU_2_0_ENABLED\n" in texts["Kconfig"]
    assert "\tselect OPWEST_ACCELERATOR\n" in texts["Kconfig"]
    assert texts["dts/bindings/vendor-prefixes.txt"].startswith("acme\t")
    for path, text in texts.items():
        assert not re.search(r"\{\{|\}\}|\{%|vnd,|[ \t]$", text, re.MULTILINE), path
        assert text.endswith("\n") and not text.endswith("\n\n"), path


def test_columns_of_c(opwest, tmp_path):
    """Lines have at most 100 columns; the backslashes of a macro are in one column."""
    assert opwest("new-driver", "vector_adder", "-o", tmp_path / "d").code == 0
    for path in (tmp_path / "d").rglob("*.[ch]"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line.expandtabs(8)) <= 100, f"{path.name}:{number}"
            assert not line.endswith("\\") or len(line.expandtabs(8)) == 100, f"{path.name}:{number}"


def test_defaults(opwest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = opwest("new-driver", "two_words")
    assert done.code == 0 and done.err == ""
    first, *commands = done.out.splitlines()
    assert re.fullmatch(r"two_words: driver of vnd,two-words, \d+ files written", first)
    assert "make -C two_words/tests/host OPWEST=" in commands[0] and "west build -b native_sim" in commands[1]
    runtime = Path(re.search(r"OPWEST=(\S+)", commands[0])[1])
    assert (runtime / "conformance" / "include" / "opwest" / "conformance.h").is_file()


FORM = "expected: at most 32 lower-case letters, digits and single underscores, such as my_npu"


@pytest.mark.parametrize("name", ["", "My_npu", "1npu", "_npu", "npu_", "a__b", "a-b", "a/b", "../x", "é", "n" * 33])
def test_invalid_name(opwest, tmp_path, name):
    done = opwest("new-driver", name, "-o", tmp_path / "d")
    assert done.code == 1 and not (tmp_path / "d").exists()
    assert done.err == f"opwest: error: invalid name {name!r} of a driver\n  {FORM}\n"


@pytest.mark.parametrize("name", ["int", "class", "opwest", "opwest_npu"])
def test_reserved_name(opwest, tmp_path, name):
    done = opwest("new-driver", name, "-o", tmp_path / "d")
    assert done.code == 1 and not (tmp_path / "d").exists()
    assert done.err == f"opwest: error: the name {name!r} is reserved\n  {FORM}\n  hint: choose another name\n"


@pytest.mark.parametrize("compatible", ["npu", "acme,", ",npu", "Acme,npu", "acme,n pu", "a,b,c", "acme,../x"])
def test_invalid_compatible(opwest, tmp_path, compatible):
    done = opwest("new-driver", "npu", "-o", tmp_path / "d", "--compatible", compatible)
    assert done.code == 1 and not (tmp_path / "d").exists()
    assert (
        done.err
        == f"opwest: error: invalid compatible {compatible!r}\n  expected: VENDOR,DEVICE, such as acme,my-npu\n"
    )


def test_all_faults_at_once_and_no_file_is_touched(opwest, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("x")
    done = opwest("new-driver", "No", "-o", tmp_path / "d", "--compatible", "x", "--json")
    assert done.code == 1
    report = json.loads(done.out)
    assert [fault["message"] for fault in report["diagnostics"]] == [
        "the directory is not empty",
        "invalid name 'No' of a driver",
        "invalid compatible 'x'",
    ]
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["mine"]


def test_place_that_is_no_directory(opwest, tmp_path):
    place = tmp_path / "file"
    place.write_text("x")
    done = opwest("new-driver", "npu", "-o", place)
    assert done.code == 1 and place.read_text() == "x"
    assert done.err.startswith(f"{place}: error: not a directory\n  expected: a new or empty directory\n")
