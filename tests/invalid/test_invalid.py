# SPDX-License-Identifier: Apache-2.0
"""One invalid input for every check.

A case is `<group>/<name>.yaml` with the output of `opwest check` for it, `<name>.expected`.
`<name>.second.yaml` is checked in the same call, as the second model of one application. Files that
a case names as `files/...` are made by workshop.py. `pytest tests/invalid --rewrite` writes the
expected outputs; review the diff before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opwest.cli.main import main
from workshop import Workshop

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.rglob("*.yaml") if not path.name.endswith(".second.yaml"))

# Inputs with several faults; all others have one fault and one error.
SEVERAL = {
    "shape/unknown_keys_in_several_places": 4,
    "objects/effects_of_source": 3,
    "shape/misspelt_keys_beside_other_faults": 5,
    "targets/values_of_another_machine": 5,
    "devices/keys_without_driver": 5,
    "shape/faults_below_one_key": 2,
    "shape/faults_of_many_kinds": 9,
    "shape/marks_left_of_a_draft": 2,
    "shape/faults_below_one_quantization": 2,
    "shape/faults_of_the_application": 2,
    "state/repeat_over_another_dimension": 2,
    "state/repeat_too_often": 3,
    "state/initial_out_of_range": 3,
    "state/initial_file": 2,
    "state/view_of_itself": 2,
    "objects/flag_of_other_files": 2,
    "state/view_with_pool": 2,
    "state/view_of_unknown": 2,
    "state/view_too_long": 2,
    "devices/npu_program_outside_of_region": 4,
}


def case_name(path: Path) -> str:
    """Return `group/name`."""
    return path.relative_to(HERE).with_suffix("").as_posix()


def prepare(case: Path, workshop: Workshop) -> list[str]:
    """Copy the manifests of a case to the workshop's directory, with the files they name; return their names."""
    manifests = [case, second] if (second := case.with_suffix(".second.yaml")).exists() else [case]
    for manifest in manifests:
        content = manifest.read_bytes()
        (workshop.folder / manifest.name).write_bytes(content)
        for name in re.findall(rb"files/([\w./]+)", content):
            workshop.make(name.decode())
    return [manifest.name for manifest in manifests]


def compare(expected: Path, printed: str, rewrite: bool) -> None:
    """Compare the output with the expected output, or write it."""
    if rewrite:
        expected.write_text(printed, encoding="utf-8")
    assert expected.exists(), f"{expected} is missing: run `pytest {HERE} --rewrite` and review the diff"
    expected_text = expected.read_text(encoding="utf-8")
    assert expected_text, f"{expected} is empty"
    assert printed == expected_text


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_invalid_input(
    case: Path,
    workshop: Workshop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    manifests = prepare(case, workshop)
    monkeypatch.chdir(workshop.folder)

    status = main(["check", *manifests])

    out, printed = capsys.readouterr()
    assert status == 1
    # The table of all objects that were read, and no other output.
    assert out == "" or "objects\n\n  object " in out
    assert str(workshop.folder) not in printed + out, "a message depends on the path of the project"
    assert printed.count(": error: ") == SEVERAL.get(case_name(case), 1)
    compare(case.with_suffix(".expected"), printed, request.config.getoption("--rewrite"))

    output = tmp_path / "app"
    assert main(["generate", *manifests, "-o", str(output)]) == 1
    assert capsys.readouterr() == ("", printed), "generate and check report different faults"
    assert not output.exists()


def test_every_expected_output_has_its_input() -> None:
    assert {path.with_suffix(".yaml") for path in HERE.rglob("*.expected")} <= set(CASES)


def test_every_second_manifest_has_a_case() -> None:
    seconds = list(HERE.rglob("*.second.yaml"))
    assert {path.with_name(path.name.replace(".second.", ".")) for path in seconds} <= set(CASES)
