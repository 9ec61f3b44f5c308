# SPDX-License-Identifier: Apache-2.0
"""docs/contributing/licences.md is current, and the script that writes it reports packages without a licence."""

import sys
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))
import licence_names  # noqa: E402
import licences  # noqa: E402
from opwest.bundles.signing import PACKAGE  # noqa: E402

LOCK = """one==2 ; python_full_version < '3.12' \\
    --hash=sha256:00
    # via opwest (pyproject.toml)
one==3 ; python_full_version >= '3.12' \\
    --hash=sha256:00
    # via
    #   -c requirements/all.txt
    #   opwest (pyproject.toml)
A.Part==1 \\
    --hash=sha256:00
    # via one
extra==1 \\
    --hash=sha256:00
    # via opwest (pyproject.toml)
"""


def test_page_is_current(monkeypatch, capsys) -> None:
    """Packages that are not installed keep their licence, so this runs in every environment."""
    monkeypatch.setattr(sys, "argv", ["licences.py", "--check"])
    assert licences.main() == 0, f"run scripts/licences.py: {capsys.readouterr().err}"


def test_page_has_every_dependency_and_marks_copyleft() -> None:
    rows = [line.split(" | ") for line in licences.PAGE.read_text(encoding="utf-8").splitlines() if " | " in line]
    found = {row[0].removeprefix("| "): row[1:] for row in rows}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = {*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)}
    for name in map(licences.normal, direct):
        assert name == "opwest" or found[name][0] not in ("", "None"), name
    assert found["hypothesis"][:2] == ["MPL-2.0", "yes"] and found["arpy"][:2] == ["BSD-2-Clause", ""]


def test_lock_is_read_for_the_python_of_the_page() -> None:
    found = licences.locked(LOCK)
    assert {name: (one.version, set(one.parents)) for name, one in found.items()} == {
        "one": ("2", {"opwest"}),
        "a-part": ("1", {"one"}),
        "extra": ("1", {"opwest"}),
    }
    assert licences.closure(["one"], found) == {"one", "a-part"}
    with pytest.raises(licences.PageError, match=r"requirements/all\.txt lacks lost: run 'make lock'"):
        licences.closure(["lost"], found)


def test_unknown_licences_are_errors() -> None:
    found = licences.locked(LOCK)
    page = "| one | MIT |  | x |\n| a-part | ISC |  | x |\n"
    assert licences.licences(["one", "a-part"], found, page) == {"one": "MIT", "a-part": "ISC"}
    with pytest.raises(licences.PageError, match=r"extra: unknown licence: install requirements/all\.txt"):
        licences.licences(["one", "extra"], found, page)


def test_new_dependencies_need_a_use() -> None:
    project = {"dependencies": ["one>=1"], "optional-dependencies": {}}
    with pytest.raises(licences.PageError, match=r"the use of each dependency of pyproject\.toml: .*\bone\b"):
        licences.tables(project, licences.locked(LOCK), "")


BSD = "Redistribution and use in source\n * Redistributions in binary form must reproduce\n"


@pytest.mark.parametrize(
    ("fields", "text", "expected"),
    [
        ("License-Expression: MIT AND (apache-2.0 or bsd-3-clause)", "", "MIT AND (Apache-2.0 OR BSD-3-Clause)"),
        ("License: Apache 2.0\nClassifier: License :: OSI Approved :: MIT License", "", "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)", "", "MPL-2.0"),
        ("Classifier: License :: OSI Approved :: BSD License", BSD, "BSD-2-Clause"),
        ("License: BSD", BSD + "Neither the name of X nor\n# may be used to endorse or promote", "BSD-3-Clause"),
        ("License: BSD", "# SPDX-License-Identifier:   BSD-3-Clause\n", "BSD-3-Clause"),
        ("License: BSD", BSD + "x" * 900 + "the name of X may be used to endorse or promote", "BSD-2-Clause"),
        ("License: see LICENSE", "Apache License,\n  Version 2.0\n ... This is free and unencumbered", "Apache-2.0"),
        ("License: BSD", "all rights reserved", None),
        ("", "", None),
    ],
)
def test_licence_of_a_package(tmp_path: Path, fields: str, text: str, expected: str | None) -> None:
    """The text is that of its licence, or of a module with a tag."""
    folder = tmp_path / "one-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: one\nVersion: 1\n{fields}\n")
    file = "one.py" if text.startswith("#") else "one-1.dist-info/LICENSE"
    (tmp_path / file).write_text(text)
    (folder / "RECORD").write_text(f"one-1.dist-info/METADATA,,\n{file},,\n")
    assert licence_names.licence(Distribution.at(folder)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("MIT", False), ("MPL-2.0 AND MIT", True), ("MIT AND (ISC OR GPL-2.0-only)", True), ("LLGPL", False)],
)
def test_copyleft(expression: str, expected: bool) -> None:
    assert licence_names.has_copyleft(expression) is expected


def test_package_in_the_error_of_signatures_is_that_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["bundle"] == [PACKAGE]
