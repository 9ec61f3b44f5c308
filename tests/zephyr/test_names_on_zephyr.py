# SPDX-License-Identifier: Apache-2.0
"""Names of macros of Zephyr, CMSIS and C libraries, in an application that includes their headers."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import names_project
import pytest
from cover import configured
from gallery import Program, output
from zephyr_support import BACK_ENDS, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]


def write(folder: Path) -> list[Path]:
    """Write the model and main.c; return the manifest."""
    manifest = names_project.write(folder)
    text = manifest.read_text()
    assert "application: {sources: [main.c]}\n" in text
    manifest.write_text(text.replace("application: {sources: [main.c]}\n", ""))
    return [manifest]


ROWS = [row for row in BACK_ENDS if row[1] == "c"]
PROGRAM = Program("names", write, ROWS)


@configured("board, back_end", ROWS)
def test_model_with_names_of_macros(workspace: Workspace, opwest: Opwest, board: str, back_end: str) -> None:
    assert names_project.EXPECTED in output(workspace, opwest, board, back_end, PROGRAM)
