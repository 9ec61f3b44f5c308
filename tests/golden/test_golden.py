# SPDX-License-Identifier: Apache-2.0
"""The complete emitted trees of several manifests. `make golden` stores them."""

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import projects
import pytest
from golden_store import compared_form, expected, rewrite
from golden_support import GOLDEN, copy_project, emitted
from golden_trees import compared
from opwest.base.diagnostics import Diagnostics

_MAX_DIFF = 200


def differences(stored, actual):
    """Return a text per file that is missing, additional or different."""
    found = [f"missing: {name}" for name in sorted(stored.keys() - actual.keys())]
    found += [f"additional: {name}" for name in sorted(actual.keys() - stored.keys())]
    for name in sorted(stored.keys() & actual.keys()):
        if stored[name] != actual[name]:
            found.append(f"different: {name}\n{_diff(name, stored[name], actual[name])}")
    return found


def _diff(name, stored, actual):
    texts = [
        f"{file.text}\n({file.form}, owner: {file.owner})\n".splitlines(keepends=True) for file in (stored, actual)
    ]
    lines = list(difflib.unified_diff(*texts, f"expected/{name}", f"actual/{name}"))
    return "".join(lines[:_MAX_DIFF] + [f"… {len(lines) - _MAX_DIFF} lines more"] * (len(lines) > _MAX_DIFF))


def test_emitted_tree_is_the_expected_one(tree, request):
    name, emission = tree
    files = compared(emission)
    if request.config.getoption("--rewrite"):
        rewrite(name, files)
    found = differences(expected(name), compared_form(name, files))
    assert not found, "\n".join([f"{name} differs; if that is meant: make golden", *found])


def test_no_absolute_path_and_no_date(tree, tmp_path_factory):
    _, emission = tree
    forbidden = [str(tmp_path_factory.getbasetemp()), str(Path.home()), str(GOLDEN.parents[1])]
    date = re.compile(r"20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]|\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}\b")
    for path, content in of_models(emission).items():
        text = content.decode("utf-8", errors="replace")
        assert not [word for word in forbidden if word in text], path
        assert not date.search(text), path


def test_text_files_are_well_formed(tree):
    """UTF-8, one newline at the end, no carriage return, no trailing space, no unrendered template."""
    _, emission = tree
    sources = {path.name for path in emission.source.rglob("*")}
    for path, content in of_models(emission).items():
        if path.endswith((".bin", ".o")) or Path(path).name in sources:
            continue
        text = content.decode("utf-8")
        assert text.endswith("\n") and not text.endswith("\n\n"), path
        assert "\r" not in text, path
        assert "{{" not in text and "{%" not in text, path
        assert not [line for line in text.splitlines() if line != line.rstrip()], path
        assert "\n\n\n" not in text, path


def test_every_emitted_source_has_a_licence_line(tree):
    _, emission = tree
    for path, content in of_models(emission).items():
        if path.endswith((".c", ".h", ".S", ".yml", ".yaml", ".conf", "Kconfig", "CMakeLists.txt")):
            assert b"SPDX-License-Identifier: Apache-2.0" in content.splitlines()[0], path


def of_models(emission):
    """Return the emitted files without the copies of the runtime, which has tests of its own."""
    return {path: content for path, content in emission.files.items() if not path.startswith("modules/opwest/")}


@pytest.mark.parametrize("name", ["asynchronous", "tvmgen", "variants", "vectors"])
def test_output_does_not_depend_on_the_place(name, emission, tmp_path, monkeypatch):
    """The same manifest in another directory, relative to another current directory, gives the same bytes.

    The projects have every writer: devices with programs and overlays, two models, variants, vectors.
    """
    elsewhere = tmp_path / "a much longer, other folder" / "ü"
    manifests = copy_project(name, elsewhere)
    monkeypatch.chdir(elsewhere.parent)
    relative = [path.relative_to(elsewhere.parent) for path in manifests]
    projects.generate(relative, Path("app"), vendored=True, faults=Diagnostics())
    assert emitted(elsewhere.parent / "app") == emission(name).files


@pytest.mark.parametrize("name", ["many_kinds", "targets"])
def test_output_does_not_depend_on_the_hash_seed(name, emission, tmp_path):
    """A process with another seed, locale and time zone gives the same bytes."""
    manifests = copy_project(name, tmp_path / "source")
    seed = "4242" if os.environ.get("PYTHONHASHSEED") != "4242" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "opwest", "generate", *map(str, manifests), "-o", str(tmp_path / "app")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert emitted(tmp_path / "app") == emission(name).files


def test_order_of_manifests_is_kept(emission, tmp_path):
    """Two models in reverse order: the directories of the models do not change."""
    manifests = copy_project("several", tmp_path / "source")
    projects.generate(manifests[::-1], tmp_path / "app", faults=Diagnostics())
    trees = [emission("several").files, emitted(tmp_path / "app")]
    models = [{p: c for p, c in tree.items() if p.startswith("models/")} for tree in trees]
    assert models[0] == models[1] and models[0]
