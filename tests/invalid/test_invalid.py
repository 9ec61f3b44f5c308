# SPDX-License-Identifier: Apache-2.0
"""The cases of the tables: `opwest check` and `opwest generate` print their errors; together they reach every error.

invalid_cases.py describes the tables. Files that a case names as `files/...` are made by workshop.py.
"""

import contextlib
import re

import pytest
from invalid_cases import BASES, CASES
from opwest.cli.main import main
from requirements_support import need
from tracing import untraced

pytestmark = pytest.mark.usefixtures("read_once")
OUTPUT = "app"


def prepare(manifests: dict[str, bytes], workshop):
    """Write manifests into the workshop's directory, with the files they name; return their names."""
    for name, content in manifests.items():
        (workshop.folder / name).write_bytes(content)
        for file in re.findall(rb"files/([\w./]+)", content):
            workshop.make(file.decode())
    return list(manifests)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_invalid_input(case, workshop, reached, monkeypatch, capsys, request):
    manifests = prepare(case.manifests(), workshop)
    monkeypatch.chdir(workshop.folder)

    status = main(["check", *manifests])
    reached.cases.add(case.id)

    out, printed = capsys.readouterr()
    assert status == 1, f"{case.place}: the manifest is valid"
    # The table of all objects that were read, and no other output.
    assert out == "" or "objects\n\n  object " in out
    assert str(workshop.folder) not in printed + out, "a message depends on the path of the project"
    if request.config.getoption("--rewrite"):
        case = case.rewrite(printed)
    found, declared, expected = printed.count(": error: "), case.errors, case.printed()
    if not case.expected:
        pytest.fail(f"{case.place}: no expected output: run `pytest tests/invalid --rewrite` and review the diff")
    assert found == declared, (
        f"{case.place}: {found} errors, the first line of the case declares {declared}:\n{printed}"
    )
    assert printed == expected, f"{case.place}: other output; if that is meant: pytest tests/invalid --rewrite"

    with untraced() if len(reached.cases) > 1 else contextlib.nullcontext():  # it reaches what check reaches
        assert main(["generate", *manifests, "-o", OUTPUT]) == 1
    assert capsys.readouterr() == ("", printed), f"{case.place}: generate and check report different faults"
    assert not (workshop.folder / OUTPUT).exists()


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.id)
def test_base_is_valid(base, workshop, monkeypatch, capsys):
    monkeypatch.chdir(workshop.folder)
    assert main(["check", *prepare({"base.yaml": base.text.encode()}, workshop)]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "signatures not verified" not in line] == []


def test_every_error_is_reached(workshop, reached, monkeypatch, capsys):
    """Every error of reading, resolving and planning is one of the errors that the cases show."""
    need("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "clang")
    monkeypatch.chdir(workshop.folder)
    for case in CASES:
        if case.id not in reached.cases:  # it is not among the selected tests
            # A case without its compiler is skipped, and a crash fails its own test: all others count.
            with contextlib.suppress(Exception, pytest.skip.Exception):
                main(["check", *prepare(case.manifests(), workshop)])
    capsys.readouterr()
    missing = reached.missing()
    assert not missing, "\n".join(missing)
