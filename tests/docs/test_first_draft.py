# SPDX-License-Identifier: Apache-2.0
"""The page about `opwest init`: its commands run, and the shown parts of the draft are current."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "first-draft.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def block(language: str) -> str:
    return next(text for name, text in BLOCKS if name == language)


def test_commands_and_draft_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "scale.c").write_text(block("c"))
    commands = [line.partition("#")[0].split() for line in block("sh").splitlines()]
    init, check = (
        subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        for command in commands
    )
    assert (init.returncode, init.stderr) == (0, "")
    draft = yaml.safe_load((tmp_path / "manifest.yaml").read_text())
    shown = yaml.safe_load(block("yaml"))
    assert {key: draft[key] for key in shown} == shown
    assert check.returncode == 1 and block("").strip() in check.stderr
