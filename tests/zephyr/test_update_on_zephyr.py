# SPDX-License-Identifier: Apache-2.0
"""Killed updates leave a project that builds: the old one, and after another call the new one."""

import hashlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from opwest.write import recover
from zephyr_support import Workspace, again

pytestmark = pytest.mark.zephyr
NATIVE = "native_sim/native/64"
KILLS = 6
OPERATOR = "#include <stdint.h>\nvoid twice(const int8_t *x, int8_t *y)\n{\n\ty[0] = (int8_t)(2 * x[0]);\n}\n"
MANIFEST = """version: 1
model: first
objects: [{files: [twice.c]}]
operators:
  twice:
    returns: void
    args: [{name: x, dtype: int8, shape: [1]}, {name: y, dtype: int8, shape: [1], direction: out}]
run:
  inputs: {x: {dtype: int8, shape: [1]}}
  outputs: {y: {dtype: int8, shape: [1]}}
  steps: [{call: twice, args: [x, y]}]
"""


def digest(folder: Path) -> str:
    """Return one hash of the names and contents of all files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(repr([(str(p.relative_to(folder)), p.read_bytes()) for p in files]).encode()).hexdigest()


def kill(app: Path, after: float) -> bool:
    """Kill -9 an update that has run for some seconds; return whether it was still running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "opwest", "update", str(app)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after)
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


@configured(board=NATIVE)
def test_old_and_updated_trees_build(
    workspace: Workspace, opwest: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "twice.c").write_text(OPERATOR)
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(MANIFEST)
    app = tmp_path / "app"
    opwest("generate", manifest, "-o", app)
    main = app / "src" / "main.c"
    main.write_text(main.read_text() + "\n/* mine */\n")
    (app / "prj.conf").write_text((app / "prj.conf").read_text() + "CONFIG_PRINTK=y\n")
    manifest.write_text(MANIFEST.replace("model: first", "model: second"))
    shutil.copytree(app, tmp_path / "expected")
    begin = time.monotonic()
    opwest("update", tmp_path / "expected")
    whole = time.monotonic() - begin
    old, new = digest(app), digest(tmp_path / "expected")

    chance = random.Random(7)
    shutil.copytree(app, tmp_path / "before")
    found = []
    while len(found) < KILLS:
        shutil.rmtree(app)
        shutil.copytree(tmp_path / "before", app)
        if kill(app, chance.uniform(0, whole)):
            recover(app)  # like every call at its start
            found.append(digest(app))
    assert set(found) <= {old, new}, "neither the old project nor the new one"
    if digest(app) == new:  # the last kill was too late to keep the old project
        shutil.rmtree(app)
        shutil.copytree(tmp_path / "before", app)
    built = workspace.build(app, NATIVE)
    assert "first: run returned 0" in built.run(r"run returned -?[0-9]+\s")

    kill(app, whole * 0.8)
    opwest("update", app)
    assert digest(app) == new
    code, log = again(workspace, built.folder, NATIVE)
    assert code == 0, log[-3000:]
    assert "second: run returned 0" in built.run(r"run returned -?[0-9]+\s")
    assert main.read_text().endswith("/* mine */\n") and "CONFIG_PRINTK=y" in (app / "prj.conf").read_text()
