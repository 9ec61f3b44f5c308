# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation as programs: fenced blocks run in order in one directory; shown output is compared.

A comment before a block selects its kind: `<!-- file: NAME -->` writes it, `<!-- zephyr -->` needs a workspace,
`<!-- exit 1 -->` must fail, `<!-- not run: REASON -->` cannot be run here, `<!-- run by: TEST -->` is run by that
test. Each line of `sh` blocks must succeed; for `console` blocks the output is compared too: `…` matches any text.
"""

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from in_process import opwest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]
COMMANDS = ("sh", "console")
SECONDS = 900


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its first line, the comment and the last `##` heading before it."""

    language: str
    text: str
    line: int
    mark: str
    section: str

    def marked(self, key: str) -> str | None:
        """Return the text after `key` in the comment; None without `key`."""
        found = self.mark == key or self.mark.startswith((f"{key}:", f"{key} "))
        return self.mark[len(key) :].lstrip(": ") if found else None

    @property
    def is_run(self) -> bool:
        """Whether the block contains commands that are run here."""
        return self.language in COMMANDS and self.marked("not run") is None and self.marked("run by") is None

    def commands(self) -> Iterator[tuple[str, str | None]]:
        """Yield each command and the output shown below it; None if it is not compared."""
        if self.language == "sh":
            yield from ((line, None) for line in self.text.splitlines() if line.strip() and not line.startswith("#"))
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    pattern = r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$"
    return [
        Block(
            m["language"], m["text"], text.count("\n", 0, m.start("text")), m["mark"] or "", _section(text, m.start())
        )
        for m in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    ]


def _section(text: str, end: int) -> str:
    return (re.findall(r"^## (.*)$", text[:end], re.MULTILINE) or [""])[-1]


def block(page: Path, language: str, containing: str = "") -> str:
    """Return the first block of a page with a language and a text."""
    return next(one.text for one in blocks(page) if one.language == language and containing in one.text)


def run(page: Path, folder: Path, env: Mapping[str, str], *, zephyr: bool) -> int:
    """Run a page's blocks in `folder`; return the number of commands. `zephyr`: also those that need a workspace."""
    ran = 0
    variables = dict(env)
    for block in blocks(page):
        name = block.marked("file")
        if name is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text, encoding="utf-8")
        if not block.is_run or (block.marked("zephyr") is not None and not zephyr):
            continue
        for command, shown in block.commands():
            exported = re.fullmatch(r"export ((?:\w+=\S+\s*)+)(?:#.*)?", command)
            if exported:
                variables |= dict(word.split("=", 1) for word in exported[1].split())
                continue
            code, printed = (_in_shell if zephyr else _run)(command, folder, variables)
            place = f"{page.name}:{block.line}: {command}\n{printed[-4000:]}"
            assert code == int(block.marked("exit") or 0), place
            assert shown is None or matches(shown, printed), f"{place}\n-- but the page shows:\n{shown}"
            ran += 1
    return ran


def _in_shell(command: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    words = ["bash", "-euo", "pipefail", "-c", command]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    form = {"text": True, "errors": "replace"}
    done = subprocess.run(words, cwd=folder, env=variables, timeout=SECONDS, check=False, **streams, **form)
    return done.returncode, done.stdout


def _run(command: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a command in a shell; in this process if it is only a command of opwest."""
    if not command.startswith("opwest ") or re.search(r"[|&;<>$`*?(){}\n]", command):
        return _in_shell(command, folder, variables)
    with mock.patch.dict(os.environ, variables, clear=True), contextlib.chdir(folder):
        done = opwest(*shlex.split(command, comments=True)[1:])
    return done.returncode, done.stderr + done.stdout


def matches(shown: str, printed: str) -> bool:
    """Whether an output matches: `…` on a line of its own matches any lines, elsewhere any text of one line."""
    pattern = ""
    for line in shown.rstrip("\n").split("\n"):
        pattern += r"(?:.*\n)*?" if line == "…" else "[^\n]*?".join(map(_words, line.split("…"))) + "[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def _words(text: str) -> str:
    """Return a pattern for a text with columns of any width."""
    return r"[ \t]+".join(re.escape(word) for word in re.split(r"[ \t]+", text))
