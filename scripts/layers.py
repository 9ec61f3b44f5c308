# SPDX-License-Identifier: Apache-2.0
"""Check the layers of opwest: imports, access to files, and the table in ARCHITECTURE.md, all from layers.toml.

`--write` brings the table up to date.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- layers: begin, made by scripts/layers.py -->\n", "<!-- layers: end -->\n"
_READS = frozenset("read_bytes read_text iterdir glob rglob listdir scandir walk".split())
_WRITES = frozenset(
    """write_bytes write_text mkdir makedirs mkdtemp unlink rename replace rmdir rmtree touch symlink_to hardlink_to
    copyfile copytree TemporaryDirectory NamedTemporaryFile fsync""".split()
)
_MODULES_OF_FILES = frozenset("os shutil tempfile".split())
"""Modules whose functions of ambiguous names (`replace`, `rename`) are about files; those of text are not."""


def configuration() -> dict[str, Any]:
    """Return layers.toml."""
    return tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))


def table(packages: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of ARCHITECTURE.md: a row for each package, from the top to the bottom."""
    rows = ["| package | responsible for | independent of | files |", "|---|---|---|---|"]
    for name, entry in packages.items():
        shown = f"`{name}`" if name.endswith(".py") else f"`{name}/`"
        rows.append(
            f"| {shown} | {entry['responsible_for']} | {entry['independent_of'] or '–'} | {entry['files'] or '–'} |"
        )
    return "".join(f"{row}\n" for row in rows)


def with_table(text: str, rows: str) -> str:
    """Return the text of ARCHITECTURE.md with other rows between the marks. Raises ValueError without the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"ARCHITECTURE.md lacks the lines {BEGIN.strip()!r} and {END.strip()!r}")
    return before + begin + rows + end + after


def undescribed(configured: Mapping[str, Any]) -> list[str]:
    """Return the packages of the contract that [packages] does not describe, and those that only it names."""
    contract = configured["tool"]["importlinter"]["contracts"][0]
    layered = {name.strip() for layer in contract["layers"] for name in layer.split("|")} - {"__main__"}
    described = {name.split("/")[0].removesuffix(".py") for name in configured["packages"]}
    return sorted(layered ^ described)


def file_faults(package: Path, packages: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the calls that read or write files where layers.toml does not allow it."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).as_posix()
        allowed = next((e["files"] for n, e in packages.items() if inside == n or inside.startswith(f"{n}/")), "")
        if inside in ("__init__.py", "__main__.py"):
            allowed = ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                kind = _access(node)
                if kind is not None and allowed != "writes" and not (allowed == kind == "reads"):
                    yield f"{package.name}/{inside}:{node.lineno}: {ast.unparse(node.func)}() {kind[:-1]}s files"


def _access(call: ast.Call) -> str | None:
    """Return "reads" or "writes" where a call is known to access files."""
    function = call.func
    if isinstance(function, ast.Name):
        return "reads" if function.id == "open" else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr == "open":  # without arguments it is a method of something else
        return "reads" if call.args or call.keywords else None
    if function.attr in _READS:
        return "reads"
    if function.attr in ("replace", "rename") and owner not in _MODULES_OF_FILES:
        return None
    return "writes" if function.attr in _WRITES else None


def lint(folder: Path) -> tuple[int, str]:
    """Run import-linter on the package `opwest` in a folder; return its exit code and what it printed."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(
        [*command, "--config", str(ROOT / "layers.toml"), "--no-cache"],
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Check everything; return 1 where something is wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help="write the table in ARCHITECTURE.md")
    given = options.parse_args()
    configured = configuration()
    place = ROOT / "ARCHITECTURE.md"
    text = place.read_text(encoding="utf-8")
    wanted = with_table(text, table(configured["packages"]))
    faults = [
        f"layers.toml: {name!r} is in only one of the contract and [packages]" for name in undescribed(configured)
    ]
    if given.write:
        place.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        faults.append("ARCHITECTURE.md: the table differs from layers.toml; run python scripts/layers.py --write")
    faults += file_faults(ROOT / "generator" / "opwest", configured["packages"])
    status, printed = lint(ROOT / "generator")
    if status != 0:
        faults.append(printed)
    print("\n".join(faults) or "layers: imports, files and table are as layers.toml says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
