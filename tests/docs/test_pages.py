# SPDX-License-Identifier: Apache-2.0
"""The commands of every page are run, here or by a test that the page names, or the page contains a reason."""

import os
import sys
from pathlib import Path

import pytest
from pages import COMMANDS, PAGES, ROOT, blocks, run
from preparations import PREPARATIONS
from requirements_support import need, need_x86_64

TOOLS = ("arm-none-eabi-gcc", "gcc")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_commands_is_run_or_has_a_reason(page: Path) -> None:
    for block in blocks(page):
        if block.language not in COMMANDS:
            continue
        place = f"{page.name}:{block.line}"
        why, by = block.marked("not run"), block.marked("run by")
        assert why is None or len(why) > 10, f"{place}: a reason why it is not run is required"
        assert by is None or (ROOT / by).is_file(), f"{place}: {by} is not a test"
        assert not block.mark or block.mark.split(":")[0].split()[0] in ("zephyr", "exit", "not", "run", "file"), place
        assert block.language == "sh" or block.text.startswith("$ "), f"{place}: a console block begins with a command"


RUNNABLE = [page for page in PAGES if any(block.is_run and block.marked("zephyr") is None for block in blocks(page))]


def environment(tmp_path: Path) -> dict[str, str]:
    """Return variables whose PATH begins with the `opwest` and `python3` of the tests."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("opwest", '-m opwest "$@"'), ("python3", '"$@"')):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {text}\n')
        (tools / name).chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k not in ("ZEPHYR_BASE", "ZEPHYR_TOOLCHAIN_VARIANT")}
    return env | {"PATH": f"{tools}{os.pathsep}{env['PATH']}"}


def need_tools(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if any(block.is_run and "opwest bundle" in block.text for block in blocks(page)):
        need("cryptography", "openssl", "arm-none-eabi-gcc")
    need(*(tool for tool in TOOLS if f"\n{tool} " in text))
    if "x86-64" in text and "\ngcc " in text:
        need_x86_64()


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_commands_of_a_page(page: Path, tmp_path: Path) -> None:
    """All commands except those that need a Zephyr workspace, which tests/zephyr/test_pages_on_zephyr.py runs."""
    need_tools(page)
    folder = tmp_path / "page"
    folder.mkdir()
    PREPARATIONS.get(page.name, lambda _: None)(folder)
    assert run(page, folder, environment(tmp_path), zephyr=False) > 0
