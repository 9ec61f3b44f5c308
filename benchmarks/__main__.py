# SPDX-License-Identifier: Apache-2.0
"""`make bench`: run every benchmark of this directory in turn, and write one table of all figures.

Each script has the option `--json FILE` and writes an object with `command` and `rows`: name, value, unit, note. A
figure that a script cannot measure is a row with the reason. Writes bench.md and bench.json; exit code 1 if a limit is
not met or a script failed.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import cell

HERE = Path(__file__).parent
ORDER = (
    "generation",
    "registry_lookup",
    "run_overhead",
    "metadata_size",
    "planner",
    "imported_models",
    "int8_models",
    "budgets",
)
SECONDS = 3600
"""Time limit of one script."""

Row = dict[str, Any]


def scripts(folder: Path, only: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the benchmarks: the listed ones in order, then all other scripts."""
    found = {path.stem: path for path in sorted(folder.glob("*.py")) if path.name != "__main__.py"}
    others = [name for name, path in found.items() if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")]
    names = [*ORDER, *(name for name in others if name not in ORDER)]
    return [(name, found.get(name, folder / f"{name}.py")) for name in names if not only or name in only]


def measure(name: str, script: Path, out: Path, seconds: float = SECONDS) -> tuple[list[Row], bool]:
    """Run one script; return its rows, and whether it succeeded."""
    command = f"python {script.parent.name}/{script.name}"
    if not script.is_file():
        return [_why(name, command, "no such script")], True
    result = out / f"{name}.json"
    result.unlink(missing_ok=True)
    print(f"== {name}", flush=True)
    begin = time.monotonic()
    try:
        done = subprocess.run([sys.executable, script, "--json", result], check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return [_why(name, command, f"timeout after {seconds:g} s")], False
    print(f"== {name}: {time.monotonic() - begin:.0f} s\n", flush=True)
    if not result.is_file():
        return [_why(name, command, f"the script failed with exit code {done.returncode}: see its output")], False
    content = json.loads(result.read_text(encoding="utf-8"))
    return [{"benchmark": name, "command": command, **row} for row in content["rows"]], done.returncode == 0


def _why(name: str, command: str, reason: str) -> Row:
    return {"benchmark": name, "name": "not measured", "value": None, "unit": "", "command": command, "note": reason}


def markdown(rows: Sequence[Row], machine: str) -> str:
    """Return the table of all figures."""
    commands = {row["benchmark"]: row["command"] for row in rows}
    lines = ["# Benchmarks", "", f"Measured on {machine}.", ""]
    lines += [f"- {name}: `{command}`" for name, command in commands.items()]
    lines += ["", "| benchmark | figure | value | unit | of |", "|---|---|--:|---|---|"]
    for row in rows:
        value = "-" if row["value"] is None else cell(row["value"])
        texts = [row["benchmark"], row["name"], value, row["unit"], row["note"]]
        lines.append("| " + " | ".join(str(text).replace("|", "\\|") for text in texts) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all benchmarks and write the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=HERE.parent / "build" / "bench", metavar="DIR")
    options.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these scripts")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    failed = []
    for name, script in scripts(HERE, given.only):
        found, well = measure(name, script, given.out)
        rows += found
        failed += [] if well else [name]
    machine = f"{platform.machine()}, Python {platform.python_version()}, {platform.system()}"
    (given.out / "bench.md").write_text(markdown(rows, machine), encoding="utf-8")
    (given.out / "bench.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")
    print(f"== {len(rows)} figures in {given.out / 'bench.md'} and bench.json")
    if failed:
        print(f"== a limit is not met, or the script failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
