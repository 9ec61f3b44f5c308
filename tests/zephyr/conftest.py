# SPDX-License-Identifier: Apache-2.0
"""The Zephyr tier: `west build` and `west twister`, if a workspace is found."""

import functools
import shutil
import subprocess
import sys

import cover
import pytest
from digits_support import copied
from in_process import succeed
from requirements_support import need, skip_here
from session_support import made_once
from zephyr_support import Workspace, find_base, find_west, need_in, need_module, need_smp


def pytest_generate_tests(metafunc):
    """Call a test with the configurations that cover.py chooses."""
    declared = getattr(metafunc.function, "configurations", None)
    if declared is not None and declared.names:
        rows = cover.chosen()[f"{metafunc.module.__name__}.{metafunc.function.__name__}"]
        metafunc.parametrize(declared.names, rows, indirect=declared.indirect)


@pytest.fixture(autouse=True)
def covered_pairs(request, record_property):
    """Record the pairs of a test for the summary of the run."""
    declared = getattr(request.function, "configurations", None)
    if declared is not None:
        parameters = request.node.callspec.params if declared.names else {}
        pairs = declared.pairs([parameters[name] for name in declared.names])
        record_property("pairs", [sorted(map(cover.shown, pairs)), len(cover.possible(cover.declarations()))])


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    """The Zephyr workspace; skips the test without one."""
    base = find_base()
    if not (base / "VERSION").is_file():
        skip_here(f"ZEPHYR TIER SKIPPED: no workspace at {base}, and ZEPHYR_BASE is not set")
    west = find_west(base)
    need("cmake", "ninja", "dtc")
    if west is None:
        skip_here(f"ZEPHYR TIER SKIPPED: {base} is there, but west is not")
    return Workspace(base, west, tmp_path_factory.mktemp("zephyr"))


@pytest.fixture
def with_hal(workspace):
    """A workspace with the vendor's driver, and the emulator."""
    need("qemu-system-arm", "arm-none-eabi-gcc")
    need_module(workspace, "hal/ethos_u")
    return workspace


@pytest.fixture(scope="session")
def workspaces(workspace):
    """The workspaces of versions of Zephyr, such as `4.1`; skips the test without that workspace."""
    return functools.cache(workspace.other)


@pytest.fixture(scope="session")
def opwest():
    """Run the command line in this process, which saves a start of Python; check that it succeeds."""
    return succeed


@pytest.fixture(scope="session")
def on_board(workspace):
    """Run `opwest run APP --board BOARD`, or another command, in the workspace's environment; check its exit code."""

    def call(app, board, *arguments, verb="run", code=0):
        if not board.startswith("native_"):
            need_smp(workspace)
        command = [sys.executable, "-m", "opwest", verb, str(app), "--board", board, *map(str, arguments)]
        env = workspace.opwest_environment(board)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


@pytest.fixture(scope="session")
def digits(tmp_path_factory, opwest):
    """The digits application, generated from a copy of the example, in a directory with a name that is not in ASCII."""

    def make(folder):
        example = copied(folder / "example")
        subprocess.run([sys.executable, example / "compile_operators.py"], check=True, capture_output=True)
        opwest("generate", example / "manifest.yaml", "-o", folder / "app")

    # Each process has a copy: builds write into its directory.
    folder = tmp_path_factory.mktemp("größe")
    shutil.copytree(made_once("zephyr-digits", make), folder, dirs_exist_ok=True)
    return folder / "app"


@pytest.fixture
def packages(workspace):
    """The workspace's Python with the packages of opwest; skips the test without them."""
    need_in(workspace, "opwest.pipeline")
