# SPDX-License-Identifier: Apache-2.0
"""The hooks of .pre-commit-hooks.yaml, run as pre-commit runs them: the entry, the arguments and the chosen files."""

import contextlib
import os
import re
import shlex
import shutil

import pytest
import yaml
from in_process import opwest
from test_workflows import ROOT

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


@pytest.fixture
def commit(tmp_path):
    """Return a function that runs a hook in a repository with two models; `args` are those of the user."""
    for name in ("one", "two"):
        shutil.copytree(ROOT / "tests/golden/minimal", tmp_path / name)
    (tmp_path / "other.yaml").write_text("a: 1\n")

    def run(hook, *args):
        entry, own, *words = [*shlex.split(HOOKS[hook]["entry"]), *args]
        assert entry == "opwest"
        with contextlib.chdir(tmp_path):
            if HOOKS[hook].get("pass_filenames", True):
                found = (os.path.relpath(path) for path in sorted(tmp_path.rglob("*")) if path.is_file())
                words += [name for name in found if re.search(HOOKS[hook]["files"], name)]
            return opwest(own, *words)

    return run


def test_form():
    """What pre-commit requires of a hook, and the language that installs opwest."""
    assert HOOKS.keys() == {"opwest-check", "opwest-update-check"}
    assert all({"id", "name", "entry", "language"} <= hook.keys() for hook in HOOKS.values())
    assert all(hook["language"] == "python" for hook in HOOKS.values())
    pattern = HOOKS["opwest-check"]["files"]
    assert all(re.search(pattern, name) for name in ("manifest.yaml", "a/manifest.yml", "a/manifest_ir.yaml"))
    assert not any(re.search(pattern, name) for name in ("a/xmanifest.yaml", "manifest.yaml.orig", "manifest/a.yaml"))


def test_each_manifest_is_checked_alone(commit, tmp_path):
    assert commit("opwest-check") == (0, "", ""), "both models have the same name"
    for name in ("one", "two"):
        manifest = tmp_path / name / "manifest.yaml"
        manifest.write_text(manifest.read_text().replace("call: negate", f"call: {name}"))
    done = commit("opwest-check")
    assert done.returncode == 1 and done.stdout == ""
    assert all(
        re.search(rf"^{name}/manifest.yaml:16:\d+: error: .*'{name}'", done.stderr, re.M) for name in ("one", "two")
    )


def test_projects_are_compared(commit, tmp_path):
    assert opwest("generate", tmp_path / "one/manifest.yaml", "-o", tmp_path / "app").returncode == 0
    assert commit("opwest-update-check", "app") == (0, "app: unchanged\n", "")
    source = tmp_path / "one/negate.c"
    source.write_text(source.read_text() + "/* More. */\n")
    done = commit("opwest-update-check", "app")
    assert done.returncode == 1 and "app/models/minimal/objects/any/negate.c: replace" in done.stdout
