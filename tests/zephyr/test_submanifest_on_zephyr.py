# SPDX-License-Identifier: Apache-2.0
"""The submanifest of the page for Zephyr's documentation, in a workspace whose remote is this repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need, skip_here
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
PAGE = ROOT / "docs" / "contributing" / "zephyr-external-module.rst"
PLACE = "modules/lib/opwest"
MANIFEST = """version: 1
model: one
objects: [{files: [copy.c]}]
operators:
  copy:
    args:
      - {name: a, dtype: int8, shape: [4]}
      - {name: b, dtype: int8, shape: [4], direction: out}
run:
  inputs: {a: {dtype: int8, shape: [4]}}
  outputs: {b: {dtype: int8, shape: [4]}}
  steps: [{call: copy, args: [a, b]}]
"""
SOURCE = "#include <stdint.h>\nint32_t copy(const int8_t a[4], int8_t b[4])\n{\n\tb[0] = a[3];\n\treturn 0;\n}\n"


def snapshot(folder: Path) -> Path:
    """Return a repository with one commit on `main`: the files of this one, without those that git ignores."""
    need("git")
    if not (ROOT / ".git").exists():
        skip_here("not a git checkout")
    remote = folder / "remote.git"
    identity = {
        f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    env = {**os.environ, **identity, "GIT_DIR": str(remote), "GIT_WORK_TREE": str(ROOT)}
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "All files"]):
        subprocess.run(["git", *words], env=env, cwd=ROOT, check=True, capture_output=True)
    return remote


def linked(source: Path, target: Path, *own: str) -> None:
    """Make a directory with links to the content of another one, without the entries `own`."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.name not in own:
            (target / path.name).symlink_to(path)


@pytest.fixture
def top(workspace, tmp_path):
    """A workspace like the one of the tests, which opwest is not a part of, with the page's submanifest."""
    top, zephyr = tmp_path / "workspace", workspace.base
    linked(zephyr, top / "zephyr", "scripts", "submanifests")
    # west rejects commands outside of their project.
    linked(zephyr / "scripts", top / "zephyr" / "scripts", "west-commands.yml", "west_commands")
    shutil.copy(zephyr / "scripts" / "west-commands.yml", top / "zephyr" / "scripts")
    shutil.copytree(zephyr / "scripts" / "west_commands", top / "zephyr" / "scripts" / "west_commands")
    for group in (zephyr.parent / "modules").iterdir():
        linked(group, top / "modules" / group.name)
    (top / ".west").mkdir()
    (top / ".west" / "config").write_text("[manifest]\npath = zephyr\nfile = west.yml\n[zephyr]\nbase = zephyr\n")
    block = re.search(r"code-block:: yaml\n\n((?:   .*\n)+)", PAGE.read_text(encoding="utf-8"))
    assert block is not None
    text = re.sub(r"^   ", "", block[1], flags=re.MULTILINE)
    assert text.count("URL_OF_THIS_REPOSITORY") == 1
    (top / "zephyr" / "submanifests").mkdir()
    file = top / "zephyr" / "submanifests" / "opwest.yaml"
    file.write_text(text.replace("URL_OF_THIS_REPOSITORY", snapshot(tmp_path).as_uri()))
    return top


@configured(board="native_sim/native/64")
def test_module_of_the_submanifest(top, tmp_path):
    """The west of this Python, which has opwest's packages, lists and fetches the project; a build uses it."""
    need("west")
    own = Workspace(top / "zephyr", str(Path(sys.executable).parent / "west"), tmp_path)

    def west(*words):
        env = {**own.environment("native_sim"), "GIT_ALLOW_PROTOCOL": "file"}
        return subprocess.run([own.west, *words], cwd=top, env=env, check=True, capture_output=True, text=True).stdout

    assert west("list", "-f", "{name} {path} {revision}", "opwest") == f"opwest {PLACE} main\n"
    west("update", "opwest")
    assert (top / PLACE / "zephyr" / "module.yml").is_file()
    assert "usage: west opwest" in west("opwest", "--help")

    app = tmp_path / "hello_world"
    shutil.copytree(top / "zephyr" / "samples" / "hello_world", app)
    (app / "manifest.yaml").write_text(MANIFEST)
    (app / "copy.c").write_text(SOURCE)
    (app / "prj.conf").write_text("CONFIG_OPWEST=y\n")
    with (app / "CMakeLists.txt").open("a") as file:
        file.write("opwest_add_model(one MANIFEST ${CMAKE_CURRENT_SOURCE_DIR}/manifest.yaml)\n")
        file.write("target_link_libraries(app PRIVATE one)\n")
    main = app / "src" / "main.c"
    main.write_text("#include <one.h>\n" + main.read_text())
    code, built = own.try_build(app, "native_sim/native/64", target="app")
    assert code == 0, built.log[-3000:]
    assert f'"opwest":"{top / PLACE}"' in (built.folder / "zephyr_modules.txt").read_text()
