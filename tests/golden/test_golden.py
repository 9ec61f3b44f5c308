# SPDX-License-Identifier: Apache-2.0
"""The complete emitted tree of several manifests, byte by byte. `pytest tests/golden --rewrite` updates it."""

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import projects
import pytest
from golden_support import GOLDEN, PROJECTS, copy_project, emitted, generate_project
from opwest.diagnostics import Diagnostics

_LONGEST_DIFF = 200


def differences(expected: dict[str, bytes], actual: dict[str, bytes]) -> list[str]:
    """Return a text per file that is missing, additional or different."""
    found = [f"missing: {name}" for name in sorted(expected.keys() - actual.keys())]
    found += [f"additional: {name}" for name in sorted(actual.keys() - expected.keys())]
    for name in sorted(expected.keys() & actual.keys()):
        if expected[name] != actual[name]:
            found.append(f"different: {name}\n{_diff(name, expected[name], actual[name])}")
    return found


def _diff(name: str, expected: bytes, actual: bytes) -> str:
    try:
        texts = [content.decode().splitlines(keepends=True) for content in (expected, actual)]
    except UnicodeDecodeError:
        return f"  {len(expected)} bytes {expected[:32].hex()}, {len(actual)} bytes {actual[:32].hex()}"
    lines = list(difflib.unified_diff(*texts, f"expected/{name}", f"actual/{name}"))
    shown = lines[:_LONGEST_DIFF] + ([f"… {len(lines) - _LONGEST_DIFF} lines more"] * (len(lines) > _LONGEST_DIFF))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in shown)


def rewrite(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files` to `folder` and remove all others."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture(scope="module", params=PROJECTS)
def generated(request, tmp_path_factory):
    """Return the name of a golden project and its emitted files."""
    return request.param, emitted(generate_project(request.param, tmp_path_factory.mktemp(request.param)))


def test_emitted_tree_is_the_expected_one(generated, request):
    name, actual = generated
    folder = GOLDEN / name / "expected"
    if request.config.getoption("--rewrite"):
        rewrite(folder, actual)
    found = differences(emitted(folder), actual)
    assert not found, "\n".join([f"{name} differs; if that is meant: pytest tests/golden --rewrite", *found])


def test_no_absolute_path_and_no_date(generated, tmp_path_factory):
    _, actual = generated
    forbidden = [str(tmp_path_factory.getbasetemp()), str(Path.home()), str(GOLDEN.parents[1])]
    date = re.compile(r"20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]|\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}\b")
    for path, content in actual.items():
        text = content.decode("utf-8", errors="replace")
        assert not [word for word in forbidden if word in text], path
        assert not date.search(text), path


def test_text_files_are_well_formed(generated):
    """UTF-8, one newline at the end, no carriage return, no trailing space, no unrendered template."""
    name, actual = generated
    sources = {path.name for path in (GOLDEN / name).rglob("*") if "expected" not in path.parts}
    for path, content in actual.items():
        if path.endswith(".bin") or Path(path).name in sources:
            continue
        text = content.decode("utf-8")
        assert text.endswith("\n") and not text.endswith("\n\n"), path
        assert "\r" not in text, path
        assert "{{" not in text and "{%" not in text, path
        assert not [line for line in text.splitlines() if line != line.rstrip()], path
        assert "\n\n\n" not in text, path


def test_every_emitted_source_has_a_licence_line(generated):
    _, actual = generated
    for path, content in actual.items():
        if path.endswith((".c", ".h", ".S", ".yml", ".yaml", ".conf", "Kconfig", "CMakeLists.txt")):
            assert b"SPDX-License-Identifier: Apache-2.0" in content.splitlines()[0], path


@pytest.mark.parametrize("name", PROJECTS)
def test_output_does_not_depend_on_the_place(name, tmp_path, monkeypatch):
    """The same manifest in another directory, relative to another current directory, gives the same bytes."""
    first = emitted(generate_project(name, tmp_path / "first"))
    elsewhere = tmp_path / "a much longer, other folder" / "ü"
    manifests = copy_project(name, elsewhere)
    monkeypatch.chdir(elsewhere.parent)
    relative = [path.relative_to(elsewhere.parent) for path in manifests]
    projects.generate(relative, Path("app"), vendored=True, faults=Diagnostics())
    assert emitted(elsewhere.parent / "app") == first


@pytest.mark.parametrize("name", ["many_kinds", "targets"])
def test_output_does_not_depend_on_the_hash_seed(name, tmp_path):
    """Two processes with two seeds, two locales and two time zones give the same bytes."""
    manifests = copy_project(name, tmp_path / "source")
    trees = []
    for seed, locale, zone in (("1", "C", "UTC"), ("4242", "C.UTF-8", "Asia/Tokyo")):
        app = tmp_path / f"app{seed}"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone}
        command = [sys.executable, "-m", "opwest", "generate", *map(str, manifests), "-o", str(app)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        trees.append(emitted(app))
    assert trees[0] == trees[1]


def test_order_of_manifests_is_kept(tmp_path):
    """Two models in reverse order: the directories of the models do not change."""
    manifests = copy_project("several", tmp_path / "source")
    for folder, order in (("a", manifests), ("b", manifests[::-1])):
        projects.generate(order, tmp_path / folder, vendored=False, faults=Diagnostics())
    trees = [emitted(tmp_path / folder) for folder in ("a", "b")]
    models = [{p: c for p, c in tree.items() if p.startswith("models/")} for tree in trees]
    assert models[0] == models[1] and models[0]


def test_verify_mode_names_what_differs():
    old = {"gone.h": b"", "same.c": b"a\n", "changed.c": b"one\ntwo\n", "binary.bin": b"\xff\x00"}
    new = {"new.h": b"", "same.c": b"a\n", "changed.c": b"one\nthree\n", "binary.bin": b"\xff\x01"}
    found = differences(old, new)
    assert found[:2] == ["missing: gone.h", "additional: new.h"]
    assert found[2] == "different: binary.bin\n  2 bytes ff00, 2 bytes ff01"
    assert "--- expected/changed.c\n+++ actual/changed.c\n" in found[3]
    assert "-two\n+three\n" in found[3]


def test_rewrite_mode_removes_what_is_no_longer_emitted(tmp_path):
    rewrite(tmp_path / "expected", {"old.c": b"old\n", "both/kept.c": b"kept\n"})
    rewrite(tmp_path / "expected", {"both/kept.c": b"kept\n", "new.c": b"new\n"})
    assert emitted(tmp_path / "expected") == {"both/kept.c": b"kept\n", "new.c": b"new\n"}
