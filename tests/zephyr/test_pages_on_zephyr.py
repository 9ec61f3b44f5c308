# SPDX-License-Identifier: Apache-2.0
"""The commands of the documentation that need a Zephyr workspace, page by page, after those that do not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from requirements_support import need, skip_here
from zephyr_support import ROOT, Workspace

sys.path.insert(0, str(ROOT / "tests" / "docs"))  # the pages as programs

from pages import run
from preparations import PREPARATIONS
from test_pages import environment, name_of, need_tools, runnable

pytestmark = pytest.mark.zephyr


SAMPLE = ("README", "threads")


@pytest.mark.parametrize(
    "page",
    [page for page in runnable(zephyr=True) if sized(page.stem in SAMPLE, True)],
    ids=name_of,
)
def test_commands_of_a_page(
    workspace: Workspace,
    opwest: Callable[..., subprocess.CompletedProcess[str]],
    digits: Path,
    page: Path,
    tmp_path: Path,
) -> None:
    need_tools(page)
    need("smpclient")
    if not (workspace.base.parent / "modules/lib/zcbor").is_dir():
        skip_here("the workspace has no zcbor: west update zcbor")
    folder = tmp_path / "page"
    folder.mkdir()
    PREPARATIONS.get(page.name, lambda _: None)(folder)
    if page.name == "running-on-boards.md":  # it uses the application of the example
        (folder / "app").symlink_to(digits)
        np.save(folder / "image.npy", np.zeros((1, 8, 8, 1), np.int8))
        opwest("run", digits, "--host", "--input", f"image={folder / 'image.npy'}", "--output-dir", folder)
    # Small images: a workspace with the module picolibc compiles all of it, a thousand files, for every one.
    (tmp_path / "small.conf").write_text("CONFIG_MINIMAL_LIBC=y\n")
    own = environment(tmp_path)
    path = own["PATH"].partition(os.pathsep)[0]
    env = workspace.environment("mps2/an385")
    env |= {"PATH": f"{path}{os.pathsep}{env['PATH']}", "EXTRA_CONF_FILE": str(tmp_path / "small.conf")}
    if page.name == "writing-drivers.md":  # the workspace has no project opwest
        env["EXTRA_ZEPHYR_MODULES"] = str(ROOT)
        command = [workspace.west, "twister", "--help"]
        if subprocess.run(command, cwd=workspace.base.parent, env=env, capture_output=True, check=False).returncode:
            skip_here("west twister does not start: the workspace lacks scripts/requirements-build-test.txt")
    assert run(page, folder, env, zephyr=True) > 0
