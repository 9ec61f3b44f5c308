# SPDX-License-Identifier: Apache-2.0
"""AGENTS.md and the skill: their form, and that files, targets and options exist; a Zephyr test runs the commands."""

import contextlib
import io
import re
import shlex

import pytest
import yaml
from opwest.cli.main import main
from pages import ROOT, blocks

AGENTS, SKILL = ROOT / "AGENTS.md", ROOT / "skills" / "opwest" / "SKILL.md"
PAGES = [AGENTS, SKILL]


def test_front_matter_of_the_skill():
    """The form of https://agentskills.io/specification."""
    head = yaml.safe_load(SKILL.read_text(encoding="utf-8").split("---\n")[1])
    assert head.keys() == {"name", "description", "license"} and head["name"] == SKILL.parent.name
    assert 50 < len(head["description"]) <= 1024 and ".tflite" in head["description"]
    assert len(SKILL.read_text(encoding="utf-8").splitlines()) < 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([\w/.-]+)(?:#[\w-]+)?\)", text):
        assert (page.parent / link).exists(), link
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*re.findall(r"^make ([\w-]+)", text, re.MULTILINE), *re.findall(r"`make ([\w-]+)", text)} <= {*targets}
    for path in re.findall(r"(?:generator|tests|scripts|docs|schemas|requirements)/[\w/.-]+", text):
        assert (ROOT / path.replace("COMMAND", "check").rstrip(".")).exists(), path


def test_options_exist():
    """Those of the commands between the lines, which no test runs."""
    commands = re.findall(r"`(opwest [a-z-]+ [^`]+)`", SKILL.read_text(encoding="utf-8"))
    assert len(commands) > 7
    for command in commands:
        _, name, *words = shlex.split(command)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            main([name, *(["tflite"] if name == "import" else []), "--help"])
        assert all(word in shown.getvalue() for word in words if word.startswith("-")), command


def test_blocks_are_run_or_have_a_reason():
    assert {block.mark for block in blocks(SKILL) if block.language == "sh"} == {"", "zephyr"}
    assert all(block.marked("not run") for block in blocks(AGENTS))
