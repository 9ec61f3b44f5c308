# SPDX-License-Identifier: Apache-2.0
"""Code shared by the benchmarks: tables, costs of processes, optional tools, and models of any size."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HOST_TARGETS = {
    "x86_64": "x86-64",
    "amd64": "x86-64",
    "i686": "i386",
    "aarch64": "aarch64-host",
    "arm64": "aarch64-host",
}


ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("cc", "arm-none-eabi-gcc", "qemu-system-arm")
"""Programs whose versions the figures depend on."""
_UNITS = ("s", "MiB", "KiB", "bytes", "instructions")


class SkippedError(Exception):
    """A measurement is impossible on this machine; the text is the reason."""


class ProcessError(Exception):
    """A command failed; the text contains its output."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    result.add_argument(
        "--keep",
        type=empty_directory,
        metavar="DIR",
        help="work in DIR, which is new or empty, and keep all files there (default: a temporary directory)",
    )
    return result


def empty_directory(text: str) -> Path:
    """Make a new or empty directory, and return its absolute path: builds change the working directory."""
    path = Path(text).resolve()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise argparse.ArgumentTypeError(f"'{text}' is not empty: expected a new or empty directory")
    path.mkdir(parents=True, exist_ok=True)
    return path


def positive(text: str) -> int:
    """Return a number of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


class Report:
    """Tables and verdicts, printed immediately and written as JSON at the end."""

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.tables: list[dict[str, Any]] = []
        self.limits: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        print(f"# {benchmark}\n\nCommand: `{shown_command()}`\n")

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        unit: str = "",
        *,
        is_detail: bool = False,
    ) -> None:
        """Print a Markdown table and keep it.

        `unit` applies to columns without a unit in their name ("CPU s"). Details are not stored in figures.json.
        """
        print(f"{title}\n\n{markdown_table(columns, rows)}", flush=True)
        self.tables.append(
            {
                "title": title,
                "columns": list(columns),
                "unit": unit,
                "rows": [list(row) for row in rows],
                "is_detail": is_detail,
            }
        )

    def limit(self, what: str, value: float, most: float, unit: str = "") -> None:
        """Print whether a figure is within its limit."""
        met = value <= most
        print(f"- {'met' if met else 'NOT MET'}: {what}: {value:.3f}{unit}, at most {most:g}{unit}", flush=True)
        self.limits.append({"what": what, "value": value, "most": most, "unit": unit, "met": met})

    def skip(self, what: str, reason: object) -> None:
        """Print what could not be measured."""
        print(f"skipped: {what}: {reason}\n", flush=True)
        self.skipped.append(f"{what}: {reason}")

    def figures(self) -> Iterable[dict[str, Any]]:
        """Yield every printed number as one row: name, value, unit, note."""
        for table in self.tables:
            head, *columns = table["columns"]
            for row in table["rows"]:
                for column, value in zip(columns, row[1:], strict=True):
                    if isinstance(value, int | float):
                        ends = (u for u in _UNITS if column.endswith(f" {u}") or column.startswith(f"{u} of"))
                        unit = "" if " / " in column else next(ends, table["unit"])
                        yield {"name": f"{row[0]} {head}".strip() + f": {column}", "value": value, "unit": unit,
                               "note": table["title"]}  # fmt: skip
        for limit in self.limits:
            note = f"{'met' if limit['met'] else 'NOT MET'}: at most {limit['most']:g}"
            yield {"name": limit["what"], "value": limit["value"], "unit": limit["unit"].strip(), "note": note}
        for reason in self.skipped:
            yield {"name": "skipped", "value": None, "unit": "", "note": reason}

    def finish(self, path: Path | None) -> int:
        """Write the JSON file if requested; return the exit code: 1 if a limit is not met."""
        if path is not None:
            content = {
                "benchmark": self.benchmark,
                "command": shown_command(),
                "machine": platform.machine(),
                "python": platform.python_version(),
                **provenance(),
                "tables": self.tables,
                "limits": self.limits,
                "skipped": self.skipped,
                "rows": list(self.figures()),
            }
            path.write_text(json.dumps(content, indent=2) + "\n")
        return int(any(not limit["met"] for limit in self.limits))


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; all columns but the first are figures."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True)) + " |"]
    lines.append("|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|")
    for row in cells:
        padded = [c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("| " + " | ".join(padded) + " |")
    return "\n".join(lines) + "\n"


def shown_command() -> str:
    """Return the command of this process without the paths of this machine: inputs of models, results."""
    script = Path(sys.argv[0]).resolve()
    words = ["python", str(script.relative_to(ROOT)) if script.is_relative_to(ROOT) else script.name]
    rest = iter(sys.argv[1:])
    for word in rest:
        if word in ("--json", "--keep", "--models"):
            next(rest, None)
        elif not word.startswith(("--json=", "--keep=", "--models=")):
            words.append(word)
    return shlex.join(words)


def provenance() -> dict[str, Any]:
    """Return the date (UTC), the commit of this tree, and the versions of the tools that were at hand."""
    git = shutil.which("git")
    commit = "unknown"
    if git is not None:
        words = [git, "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
        commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or commit
    versions = {}
    for tool in TOOLS:
        path = shutil.which(tool)
        if path is not None:
            first = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            numbers = re.findall(r"\b\d+\.\d+(?:\.\d+)?\b", first.partition("\n")[0])
            versions[tool] = numbers[-1] if numbers else "unknown"
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit, "tools": versions}


def cell(value: Any) -> str:
    """Return a figure in the format of tables."""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def require(*tools: str) -> None:
    """Raise SkippedError if a program is not on the path."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise SkippedError(f"{', '.join(missing)} not found")


def host_compiler() -> list[str]:
    """Return the command of the host's C compiler ($CC, default cc)."""
    words = shlex.split(os.environ.get("CC", "cc"))
    require(words[0])
    return words


def host_target() -> str:
    """Return opwest's name for objects of this machine."""
    machine = platform.machine().lower()
    if machine not in HOST_TARGETS:
        raise SkippedError(f"opwest has no target for this host's processor, {machine}")
    return HOST_TARGETS[machine]


def opwest_command() -> list[str]:
    """Return the command that runs opwest with this Python."""
    if importlib.util.find_spec("opwest") is None:
        raise SkippedError(f"{sys.executable} has no package opwest: run this with the Python of the installation")
    return [sys.executable, "-m", "opwest"]


def execute(command: Sequence[str | Path], **options: Any) -> str:
    """Run a command and return its standard output; raise ProcessError if it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, errors="replace", check=False, **options
    )
    if done.returncode != 0:
        words = shlex.join(str(word) for word in command)
        raise ProcessError(f"{words}\nreturned {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


@dataclass(frozen=True)
class Cost:
    """The cost of a process: processor time (user and system) and clock time in seconds, peak memory in KiB."""

    cpu: float
    wall: float
    peak: int


def measure(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> Cost:
    """Run a command that must succeed and return its cost."""
    words = [str(word) for word in command]
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ProcessError(f"{shlex.join(words)} returned {process.returncode}")
    peak = used.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return Cost(used.ru_utime + used.ru_stime, wall, peak)


def best(costs: Iterable[Cost]) -> Cost:
    """Return the least processor time, the median clock time and the median peak of several runs."""
    runs = list(costs)
    return Cost(
        min(run.cpu for run in runs),
        statistics.median(run.wall for run in runs),
        int(statistics.median(run.peak for run in runs)),
    )


@dataclass(frozen=True)
class Signature:
    """An argument of the operators that `write_model` makes: its kind, its element type and its elements."""

    role: str
    """data, result, or the name of a constant."""
    dtype: str
    elements: int


CHAIN = (Signature("data", "int8", 32), Signature("result", "int8", 32))
DENSE = (
    Signature("data", "int8", 32),
    Signature("weight", "int8", 64),
    Signature("bias", "int32", 8),
    Signature("result", "int8", 32),
)
"""The arguments of a convolution or a dense layer."""


def write_model(
    folder: Path,
    count: int,
    target: str,
    compiler: Sequence[str],
    *,
    model: str = "chain",
    arguments: Sequence[Signature] = CHAIN,
    name: Callable[[int], str] = "op_{:05d}".format,
    body: str = "(void)data; (void)result; return 0;",
) -> Path:
    """Write a model of `count` distinct operators, each called once, in a chain; return its manifest.

    The operators are in one object, compiled by `compiler`; each step reads the result of the previous one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [name(i) for i in range(count)]
    types = {"data": "const int8_t *data", "result": "int8_t *result"}
    parameters = ", ".join(types.get(a.role, f"const {a.dtype}_t *{a.role}") for a in arguments)
    source = folder / "operators.c"
    functions = "".join(f"int32_t {n}({parameters})\n{{\n\t{body}\n}}\n" for n in names)
    source.write_text(f"#include <stdint.h>\n{functions}")
    execute([*compiler, "-c", source, "-o", folder / "operators.o"])
    manifest = folder / "manifest.yaml"
    manifest.write_text("\n".join(_manifest_lines(folder, names, target, model, arguments)) + "\n")
    return manifest


def _manifest_lines(
    folder: Path, names: Sequence[str], target: str, model: str, arguments: Sequence[Signature]
) -> Iterable[str]:
    constants = [a for a in arguments if a.role not in ("data", "result")]
    yield from ("version: 1", f"model: {model}", "objects:", f"  - {{target: {target}, files: [operators.o]}}")
    yield "operators:"
    for name in names:
        yield f"  {name}:"
        yield "    args:"
        for a in arguments:
            direction = ", direction: out" if a.role == "result" else ""
            yield f"      - {{name: {a.role}, dtype: {a.dtype}, shape: [{a.elements}]{direction}}}"
    if constants:
        yield "constants:"
    for a in constants:
        width = int("".join(c for c in a.dtype if c.isdigit())) // 8
        for i in range(len(names)):
            # A separate file for each operator: operators do not share parameters.
            (folder / f"{a.role}_{i}.bin").write_bytes(bytes((i + k) % 251 for k in range(a.elements * width)))
            yield f"  {a.role}_{i}: {{file: {a.role}_{i}.bin, dtype: {a.dtype}, shape: [{a.elements}]}}"
    last = len(names) - 1
    yield "run:"
    for role, key in (("data", "inputs"), ("result", "outputs")):
        a = next(a for a in arguments if a.role == role)
        yield f"  {key}: {{{'x' if role == 'data' else 'y'}: {{dtype: {a.dtype}, shape: [{a.elements}]}}}}"
    yield "  steps:"
    for i, name in enumerate(names):
        bound = {"data": f"t{i - 1}" if i else "x", "result": f"t{i}" if i < last else "y"}
        given = ", ".join(bound.get(a.role, f"{a.role}_{i}") for a in arguments)
        yield f"    - {{call: {name}, args: [{given}]}}"
