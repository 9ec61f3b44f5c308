# SPDX-License-Identifier: Apache-2.0
"""One workspace and two threads: one of them runs, the other one gets -EBUSY, and nothing else changes.

Operators are compiled with the sanitizer too, so ThreadSanitizer sees every access of both threads.
"""

import subprocess
from pathlib import Path

import pytest
from busy_project import write_manifest
from c_support import build, execute
from campaign import SANITIZED_LEVEL
from golden_support import Metadata, generate_quickly
from opwest.render.model_files import metadata_object
from requirements_support import need, need_compiler

PROGRAM = Path(__file__).parent / "programs" / "busy.c"
THREADS = ["-std=gnu11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


def generated(work: Path, metadata: Metadata, checks: str = "") -> Path:
    if metadata == "llvm":
        need("llvmlite")
    return generate_quickly([write_manifest(work, checks)], work / "app", metadata=metadata)


@pytest.fixture(scope="module", params=["c", "llvm"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with each back end."""
    need_compiler("gcc", THREADS, link=True)
    work = tmp_path_factory.mktemp("busy")
    return build(generated(work, request.param), work / "build", PROGRAM, flags=THREADS)


@pytest.mark.parametrize("case", ["held", "nested"])
def test_functions_of_a_running_workspace_change_nothing(program: Path, case: str) -> None:
    done = execute(program, case)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_two_threads_get_no_wrong_result(program: Path) -> None:
    done = execute(program, "race")
    assert (done.returncode, done.stdout) == (0, "0 of 20000 wrong\n" * 2 + "done\n"), done.stderr


@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_false_leaves_the_mark_out(tmp_path: Path, metadata: Metadata) -> None:
    need("nm", "gcc")
    for name, checks in (("with", ""), ("without", "  checks: {busy: false}\n")):
        (tmp_path / name).mkdir()
        app = generated(tmp_path / name, metadata, checks)
        folder = app / "models" / "busy"
        header = (folder / "include" / "busy.h").read_text()
        assert ("opwest_port_flag_t running;" in header) == (name == "with")
        if metadata == "c":
            code = (folder / "src" / "busy_run.c").read_text()
        else:
            code = subprocess.run(
                ["nm", folder / metadata_object("busy", "x86-64")], capture_output=True, text=True, check=True
            ).stdout
        assert ("opwest_port_take" in code) == (name == "with")
        assert "busy_run" in code
