# SPDX-License-Identifier: Apache-2.0
"""`opwest new-driver`: its files, names and errors. tests/conformance compiles and runs what it writes."""

import json
import re
from pathlib import Path

import pytest


def test_files_have_the_names_of_the_driver(succeed, tmp_path):
    folder = tmp_path / "place"
    done = succeed("new-driver", "my_npu", "-o", folder, "--compatible", "acme,npu-2.0", "--json")
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


def test_columns_of_c(succeed, tmp_path):
    """Lines have at most 100 columns; the backslashes of a macro are in one column."""
    succeed("new-driver", "vector_adder", "-o", tmp_path / "d")
    for path in (tmp_path / "d").rglob("*.[ch]"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line.expandtabs(8)) <= 100, f"{path.name}:{number}"
            assert not line.endswith("\\") or len(line.expandtabs(8)) == 100, f"{path.name}:{number}"


def test_defaults(succeed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = succeed("new-driver", "two_words")
    assert done.err == ""
    first, *commands = done.out.splitlines()
    assert re.fullmatch(r"two_words: driver of vnd,two-words, \d+ files written", first)
    assert "make -C two_words/tests/host OPWEST=" in commands[0] and "west build -b native_sim" in commands[1]
    runtime = Path(re.search(r"OPWEST=(\S+)", commands[0])[1])
    assert (runtime / "conformance" / "include" / "opwest" / "conformance.h").is_file()


FORM = "\n  expected: at most 32 lower-case letters, digits and single underscores, such as my_npu\n"
INVALID = ("", "My_npu", "1npu", "_npu", "npu_", "a__b", "a-b", "a/b", "../x", "é", "n" * 33)
COMPATIBLES = ("npu", "acme,", ",npu", "Acme,npu", "acme,n pu", "a,b,c", "acme,../x")
FAULTS = [
    *((name, "acme,npu", f"invalid name {name!r} of a driver{FORM}") for name in INVALID),
    *(
        (name, "acme,npu", f"the name {name!r} is reserved{FORM}  hint: choose another name\n")
        for name in ("int", "class", "opwest", "opwest_npu")
    ),
    *(
        ("npu", text, f"invalid compatible {text!r}\n  expected: VENDOR,DEVICE, such as acme,my-npu\n")
        for text in COMPATIBLES
    ),
]


@pytest.mark.parametrize(("name", "compatible", "message"), FAULTS)
def test_invalid_names(opwest, tmp_path, name, compatible, message):
    done = opwest("new-driver", name, "-o", tmp_path / "d", "--compatible", compatible)
    assert (done.code, done.err) == (1, f"opwest: error: {message}") and not (tmp_path / "d").exists()


def test_all_faults_at_once_and_no_file_is_touched(fail, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("x")
    done = fail("new-driver", "No", "-o", tmp_path / "d", "--compatible", "x", "--json")
    report = json.loads(done.out)
    assert [fault["message"] for fault in report["diagnostics"]] == [
        "the directory is not empty",
        "invalid name 'No' of a driver",
        "invalid compatible 'x'",
    ]
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["mine"]


def test_place_that_is_no_directory(fail, tmp_path):
    place = tmp_path / "file"
    place.write_text("x")
    done = fail("new-driver", "npu", "-o", place)
    assert place.read_text() == "x"
    assert done.err.startswith(f"{place}: error: not a directory\n  expected: a new or empty directory\n")
