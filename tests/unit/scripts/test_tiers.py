# SPDX-License-Identifier: Apache-2.0
"""The rules of tests/requirements_support.py and the bounds of scripts/check_coverage.py."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requirements_support
from requirements_support import HOST, Tier, how_to_install, need

ROOT = Path(__file__).resolve().parents[3]
SKIPPED, FAILED = pytest.skip.Exception, pytest.fail.Exception


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No programs are installed, CI is not set, and the session runs all tests."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(Tier, "name", "all")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("OPWEST_TESTS_WITHOUT", raising=False)


def test_missing_program_skips_with_its_install_command() -> None:
    with pytest.raises(SKIPPED, match=r"^clang is not installed: apt-get install clang$"):
        need("clang")


@pytest.mark.parametrize("name", ["clang", "arm-none-eabi-objdump", "gcc -m32", "clang runtime"])
def test_missing_package_fails_in_ci(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements_support.fault_of_compiler.cache_clear()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(FAILED, match=rf"^{name} is not installed. CI has to install it: apt-get install "):
        need(name)
    requirements_support.fault_of_compiler.cache_clear()


def test_missing_module_fails_in_ci_unless_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(requirements_support.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(FAILED, match="pip install llvmlite"):
        need("llvmlite")
    monkeypatch.setenv("OPWEST_TESTS_WITHOUT", "llvmlite serial")
    with pytest.raises(SKIPPED, match=r"^llvmlite is left out on purpose$"):
        need("llvmlite")


def test_make_test_defers_tests_that_need_more_than_a_c_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tier, "name", "host")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(SKIPPED, match=r"^left to `make test-rest`: needs clang$"):
        need("clang")
    with pytest.raises(FAILED, match="apt-get install gcc"):
        need("gcc")


def test_names_without_a_package_are_rejected() -> None:
    assert all(how_to_install(name) for name in HOST - {"coverage", "hypothesis"})
    with pytest.raises(ValueError, match="does not name the package of 'klang'"):
        need("klang")


def test_only_requirements_support_skips_tests() -> None:
    words = re.compile(r"pytest\.(skip|importorskip)\(|mark\.(skip|skipif|xfail)\b")
    own = (Path(__file__), Path(requirements_support.__file__))
    sources = [path for path in (ROOT / "tests").rglob("*.py") if path not in own]
    assert len(sources) > 100
    assert [path.name for path in sources if words.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("lines", "fault"), [(96, ""), (95, "95.0 % of the lines are reached, expected at least 96 %")]
)
def test_bounds_of_coverage(lines: int, fault: str, tmp_path: Path) -> None:
    counts = {"summary": {"num_statements": 100, "covered_lines": lines}}
    (tmp_path / "coverage.json").write_text(json.dumps({"files": {"generator/opwest/plan/a.py": counts}}))
    command = [sys.executable, ROOT / "scripts" / "check_coverage.py", tmp_path / "coverage.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (int(bool(fault)), "")
    errors = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert errors == ([f"error: {fault}"] if fault else [])
    assert f"all                  100{lines:>8.1f}%\n" in done.stdout
