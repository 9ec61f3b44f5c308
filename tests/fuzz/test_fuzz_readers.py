# SPDX-License-Identifier: Apache-2.0
"""Short runs of the fuzzers of `make fuzz` with a fixed seed, and every stored failing input."""

import hashlib
from pathlib import Path

import pytest
from fuzz_engine import Failure, attempt, fuzz, stored
from fuzz_readers import Reader, readers
from requirements_support import need

RUNS = {"bitcode": 4, "manifest": 60, "template": 80}
STORED = {name: content for name, content in stored().items() if not name.startswith("device/")}


def found(name: str) -> Reader:
    """Return a reader; skip a test without its package."""
    need(*filter(None, [readers()[name].needs]))
    return readers()[name]


@pytest.mark.parametrize("name", sorted(readers()))
def test_short_fuzzing_run(name: str, tmp_path: Path) -> None:
    runs = RUNS.get(name, 150)
    *failures, count = fuzz(found(name), tmp_path, seed=7, runs=runs)
    assert not failures, failures[0].trace if isinstance(failures[0], Failure) else failures
    assert count == runs


@pytest.mark.parametrize("stored_name", STORED)
def test_stored_regressions_of_readers(stored_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = found(stored_name.partition("/")[0].replace("_", " "))
    monkeypatch.chdir(tmp_path)
    result = attempt(reader, reader.reading(tmp_path), STORED[stored_name])
    assert isinstance(result, str), result.trace


def test_seeds_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds must be valid: mutations of invalid inputs reach little code."""
    good = {"elf": "x86-64", "archive": "ObjectFile 3", "npy": "int16 2", "manifest": "rendered", "csource": "3 0 1"}
    good["NPU payload"] = "ethos-u55-128 CONV STOP"
    for name, sign in good.items():
        (tmp_path / name).mkdir()
        reader = readers()[name]
        read = reader.reading(tmp_path / name)
        outcomes = [attempt(reader, read, seed) for seed in reader.inputs()]
        assert any(isinstance(o, str) and o.startswith(sign) for o in outcomes), (name, outcomes)
        monkeypatch.chdir("/")


def _broken(content: bytes) -> str:
    if b"\xff" in content and len(content) > 2:
        raise ValueError("broken")
    return "fine"


def test_failure_is_found_and_minimised(tmp_path: Path) -> None:
    reader = Reader("made up", lambda: [b"some text that is right"], lambda _folder: _broken)
    failure, count = fuzz(reader, tmp_path, seed=1, runs=3_000)
    assert isinstance(failure, Failure) and count == 3_000
    assert failure.key == "ValueError in test_fuzz_readers.py:_broken"
    assert len(failure.content) == 3 and b"\xff" in failure.content
    assert failure.name == f"made_up/{hashlib.sha256(failure.content).hexdigest()[:12]}"
