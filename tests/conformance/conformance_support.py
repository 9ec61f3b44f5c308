# SPDX-License-Identifier: Apache-2.0
"""Builds of the conformance suite for drivers on a host."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from c_support import compile_all
from opwest.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "zephyr_module"
SUITE = RUNTIME / "conformance"
EXAMPLE = ROOT / "examples" / "vector_adder"
FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
    "hasty": ["-DLONG_MS=1000"],
}
SHARED = (
    *("accelerator", "accelerator_context", "device_launches", "device_ownership", "devices", "metadata"),
    *("port_host", "port_host_cache", "port_sync_host", "status"),
)
INCLUDES = [f"-I{RUNTIME / 'include'}", f"-I{SUITE / 'include'}"]
RUN_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """The results by case and device: PASS, FAIL or SKIP; the text behind it; the whole output."""

    results: dict[tuple[str, str], tuple[str, str]]
    code: int
    text: str

    def cases(self, result: str) -> set[str]:
        """Return the cases that have a result on some device."""
        return {case for (case, _), (found, _) in self.results.items() if found == result}


def cases() -> list[str]:
    return re.findall(r"^\tX\((\w+)\)", (SUITE / "src" / "cases.h").read_text(), re.MULTILINE)


def suite_sources() -> list[Path]:
    """Return the sources of the suite for a host, with those of the runtime."""
    suite = [path for path in sorted((SUITE / "src").glob("*.c")) if path.name != "runner_zephyr.c"]
    return [*suite, *(RUNTIME / "src" / f"{name}.c" for name in SHARED)]


def new_driver(folder: Path, name: str, *options: str) -> Path:
    assert main(["new-driver", name, "-o", str(folder), "--quiet", *options]) == 0
    return folder


def vector_adder(folder: Path) -> Path:
    """Return the example: a new driver with its changed files."""
    new_driver(folder, "vector_adder")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("README.md"))
    return folder


def compiled(sources: Sequence[Path], flags: list[str], folder: Path) -> list[Path]:
    return compile_all(folder, sources, "gcc", FLAGS, flags)


def linked(objects: Iterable[Path], flags: list[str], program: Path) -> Path:
    subprocess.run(["gcc", *flags, *map(str, objects), "-pthread", "-o", str(program)], check=True)
    return program


def run(program: Path, *names: str) -> Outcome:
    """Run cases; all without names."""
    done = subprocess.run([program, *names], capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    lines = re.findall(r"^(PASS|FAIL|SKIP) (\w+) on (\S+?)(?:: (.*))?$", done.stdout, re.MULTILINE)
    results = {(case, device): (result, why) for result, case, device, why in lines}
    return Outcome(results, done.returncode, done.stdout + done.stderr)


def driver_sources(driver: Path) -> list[Path]:
    """Return the sources of a driver of `opwest new-driver` for a host, with its adapter."""
    sources = [path for path in sorted((driver / "drivers").glob("*.c")) if not path.stem.endswith("_zephyr")]
    return [*sources, driver / "tests" / "conformance" / "src" / "adapter.c"]


def driver_includes(driver: Path) -> list[str]:
    places = ("include", "drivers", "tests/conformance/src")
    return [*INCLUDES, *(f"-I{driver / place}" for place in places)]
