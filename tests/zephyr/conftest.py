# SPDX-License-Identifier: Apache-2.0
"""The Zephyr tier: `west build` and `west twister`, if a workspace is found."""

import contextlib
import functools
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cover
import pytest
from opwest.cli.main import main
from requirements_support import need, skip_here
from session_support import made_once
from zephyr_support import ROOT, Workspace, find_base, find_west, need_in


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Call a test with the configurations that cover.py chooses."""
    declared: cover.Declaration | None = getattr(metafunc.function, "configurations", None)
    if declared is not None and declared.names:
        rows = cover.chosen()[f"{metafunc.module.__name__}.{metafunc.function.__name__}"]
        metafunc.parametrize(declared.names, rows, indirect=declared.indirect)


@pytest.fixture(autouse=True)
def covered_pairs(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Record the pairs of a test for the summary of the run."""
    declared: cover.Declaration | None = getattr(request.function, "configurations", None)
    if declared is not None:
        parameters = request.node.callspec.params if declared.names else {}
        pairs = declared.pairs([parameters[name] for name in declared.names])
        record_property("pairs", [sorted(map(cover.shown, pairs)), len(cover.possible(cover.declarations()))])


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
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
def with_hal(workspace: Workspace) -> Workspace:
    """A workspace with the vendor's driver, the board and its emulator."""
    needed = [
        workspace.base.parent / "modules" / "hal" / "ethos_u" / "zephyr" / "module.yml",
        workspace.base / "boards" / "arm" / "mps3" / "mps3_corstone300_an547.dts",
    ]
    missing = [str(path) for path in needed if not path.is_file()]
    need("qemu-system-arm", "arm-none-eabi-gcc")
    if missing:
        skip_here(f"ETHOS-U TESTS SKIPPED: no {', '.join(missing)} (the module: west update hal_ethos_u)")
    return workspace


@pytest.fixture(scope="session")
def workspaces(workspace: Workspace) -> Callable[[str], Workspace]:
    """The workspaces of versions of Zephyr, such as `4.1`; skips the test without that workspace."""
    return functools.cache(workspace.other)


@pytest.fixture(scope="session")
def opwest() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in this process, which saves a start of Python; return it as a completed process."""

    def run(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        assert not check or code == 0, err.getvalue()
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory, opwest: Callable[..., object]) -> Path:
    """The digits application, generated from a copy of the example, in a directory with a name that is not in ASCII."""

    def make(folder: Path) -> None:
        example = folder / "example"
        shutil.copytree(ROOT / "examples" / "digits", example, ignore=shutil.ignore_patterns("objects", "__pycache__"))
        subprocess.run([sys.executable, example / "compile_operators.py"], check=True, capture_output=True)
        opwest("generate", example / "manifest.yaml", "-o", folder / "app")

    # Each process has a copy: builds write into its directory.
    folder = tmp_path_factory.mktemp("größe")
    shutil.copytree(made_once("zephyr-digits", make), folder, dirs_exist_ok=True)
    return folder / "app"


@pytest.fixture
def packages(workspace: Workspace) -> None:
    """The workspace's Python with the packages of opwest; skips the test without them."""
    need_in(workspace, "opwest.pipeline")
