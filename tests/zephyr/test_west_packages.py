# SPDX-License-Identifier: Apache-2.0
"""`west packages pip` of a workspace with opwest lists requirements.txt: no project is downloaded."""

import os
import subprocess
from pathlib import Path

import pytest
from requirements_support import skip_here
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
MANIFEST = """manifest:
  self: {path: manifest}
  projects:
    - {name: zephyr, url: "file:///absent/zephyr", west-commands: scripts/west-commands.yml}
    - {name: opwest, url: "file:///absent/opwest", path: modules/lib/opwest}
"""
CONFIGURATION = "[manifest]\npath = manifest\nfile = west.yml\n[zephyr]\nbase = zephyr\n"


@pytest.fixture
def topdir(workspace: Workspace, tmp_path: Path) -> Path:
    """A workspace of two projects: the Zephyr tree at hand and this repository."""
    if not (workspace.base / "scripts" / "west_commands" / "packages.py").is_file():
        skip_here(f"Zephyr {workspace.version} has no 'west packages'")
    for name, text in ((".west/config", CONFIGURATION), ("manifest/west.yml", MANIFEST)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "modules" / "lib").mkdir(parents=True)
    (tmp_path / "zephyr").symlink_to(workspace.base)
    (tmp_path / "modules" / "lib" / "opwest").symlink_to(ROOT)
    return tmp_path


@pytest.mark.parametrize("module", [None, "opwest"])
def test_requirements_of_opwest_are_listed(workspace: Workspace, topdir: Path, module: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ZEPHYR", "PYTHON"))}
    command = [workspace.west, "packages", *(["-m", module] if module else []), "pip"]
    done = subprocess.run(command, cwd=topdir, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [Path(line.removeprefix("-r ")) for line in done.stdout.splitlines()]
    assert files[-1].resolve() == ROOT / "requirements.txt"
    zephyr = [] if module else [workspace.base.resolve() / "scripts" / "requirements.txt"]
    assert [file.resolve() for file in files[:-1]] == zephyr
