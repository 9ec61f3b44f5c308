# SPDX-License-Identifier: Apache-2.0
"""scripts/pythons.py: the choice of interpreters, and environments that cannot be made."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def pythons(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import pythons

    return pythons


def test_the_newest_interpreter_of_pyenv_is_chosen(
    pythons: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for patch in ("3.12.9", "3.12.10"):
        program = tmp_path / ".pyenv" / "versions" / patch / "bin" / "python3.12"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert pythons.find_python("3.12") == str(program)
    assert pythons.find_python("9.9") is None


def test_environment_that_fails_is_reported(
    pythons: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(version: str, interpreter: str) -> Path:
        raise subprocess.CalledProcessError(7, ["pip", version, interpreter])

    monkeypatch.setattr(pythons, "environment", fails)
    monkeypatch.setattr(pythons, "find_python", lambda version: None if version == "9.9" else "python3")
    monkeypatch.setattr("sys.argv", ["pythons.py", "--versions", "3.12", "9.9"])
    assert pythons.main() == 1
    assert capsys.readouterr().out == (
        "== Python 3.12: no environment, exit code 7 of pip\n"
        "== Python 9.9: SKIPPED, no interpreter in PATH or ~/.pyenv/versions\n"
    )
