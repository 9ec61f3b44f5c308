# SPDX-License-Identifier: Apache-2.0
"""The commands of the documentation that need a Zephyr workspace, page by page, after those that do not."""

import os
import subprocess
import sys

import numpy as np
import pytest
from campaign import sized
from requirements_support import skip_here
from zephyr_support import ROOT, need_smp

sys.path.insert(0, str(ROOT / "tests" / "docs"))  # the pages as programs

from pages import PAGES, blocks, run
from preparations import PREPARATIONS
from test_pages import environment, name_of, need_tools

pytestmark = pytest.mark.zephyr


SAMPLE = ("README", "threads")
RUNNABLE = [
    page for page in PAGES if any(block.is_run and block.marked("zephyr") is not None for block in blocks(page))
]


@pytest.mark.parametrize("page", [page for page in RUNNABLE if sized(page.stem in SAMPLE, True)], ids=name_of)
def test_commands_of_a_page(workspace, opwest, digits, page, tmp_path):
    need_tools(page)
    need_smp(workspace)
    folder = tmp_path / "page"
    folder.mkdir()
    PREPARATIONS.get(page.name, lambda _: None)(folder)
    if page.name == "running-on-boards.md":  # it uses the application of the example
        (folder / "app").symlink_to(digits)
        np.save(folder / "image.npy", np.zeros((1, 8, 8, 1), np.int8))
        opwest("run", digits, "--host", "--input", f"image={folder / 'image.npy'}", "--output-dir", folder)
    own = environment(tmp_path)
    path = own["PATH"].partition(os.pathsep)[0]
    env = workspace.environment("mps2/an385")
    small = workspace.opwest_environment("mps2/an385")["EXTRA_CONF_FILE"]
    env |= {"PATH": f"{path}{os.pathsep}{env['PATH']}", "EXTRA_CONF_FILE": small}
    if page.name == "writing-drivers.md":  # the workspace has no project opwest
        env["EXTRA_ZEPHYR_MODULES"] = str(ROOT)
        command = [workspace.west, "twister", "--help"]
        if subprocess.run(command, cwd=workspace.base.parent, env=env, capture_output=True, check=False).returncode:
            skip_here("west twister does not start: the workspace lacks scripts/requirements-build-test.txt")
    assert run(page, folder, env, zephyr=True) > 0
