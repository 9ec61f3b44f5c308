# SPDX-License-Identifier: Apache-2.0
"""The causes of failed builds, from output that Zephyr 4.2, CMake 3.25 and GCC 12 printed: failed_builds.txt."""

import re
from pathlib import Path

import pytest
from opwest.runs.digest import causes, end_of, is_overflow

_FILE = Path(__file__).with_name("failed_builds.txt")
_CASES = re.findall(r"^=== (.*)\n((?s:.*?))--- causes\n((?s:.*?))(?=^=== |\Z)", _FILE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "output", "expected"), _CASES, ids=[name for name, *_ in _CASES])
def test_causes(tmp_path, name, output, expected):
    (tmp_path / "prj.conf").write_text("CONFIG_A=y\n CONFIG_FPU=y\nCONFIG_FPU_SHARING=n\n")
    output = output.replace("\\e", "\x1b")
    found = "".join(f"{cause}\n" for cause in causes(output, tmp_path))
    assert found.replace(str(tmp_path), "APP") == expected
    assert is_overflow(output) == (name == "linker")


def test_output_without_a_cause():
    assert end_of("one\ntwo\n\n") == "  one\n  two"
    assert end_of("\n".join(map(str, range(20)))).splitlines() == [f"  {n}" for n in range(12, 20)]
    assert end_of("-- west: flash\nError: no ST-LINK found\nFATAL ERROR: command exited with status 1: x") == (
        "  Error: no ST-LINK found"
    )


def test_only_the_first_causes_are_shown(tmp_path):
    assert len(causes("\n".join(f"a.c:{n}:1: error: e{n}" for n in range(1, 99)), tmp_path)) == 8
