# SPDX-License-Identifier: Apache-2.0
"""Run a part of the tests under other versions of Python, each in an environment build/python-VERSION.

The interpreters are python3.11 to python3.14 of PATH or of pyenv. Absent ones are reported; with
`--required`, they are an error. Warnings are errors, as in all tests.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
QUICK = ("tests/golden/test_golden.py", "tests/unit/manifest", "tests/unit/system", "tests/cli/test_cli_startup.py")


def find_python(version: str) -> str | None:
    """Return an interpreter of a version, such as 3.12; None without one."""
    found = (Path.home() / ".pyenv" / "versions").glob(f"{version}*/bin/python{version}")
    installed = sorted(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.parts[-3])])
    for candidate in (*map(str, reversed(installed)), f"python{version}"):
        try:  # a shim of pyenv exists also for versions that are not selected
            done = subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


def environment(version: str, interpreter: str) -> Path:
    """Return the Python of an environment with opwest and the requirements of the tests."""
    folder = ROOT / "build" / f"python-{version}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        uv = ROOT / ".venv" / "bin" / "uv"
        created = [uv, "venv", "--quiet", "--clear", "--python", interpreter, folder]
        subprocess.run(created, check=True, stderr=subprocess.PIPE, text=True)
        install = [uv, "pip", "install", "--quiet", "--no-config", "--python", folder]
        subprocess.run([*install, "-e", f"{ROOT}[test,bundle]"], check=True, stderr=subprocess.PIPE, text=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def run(version: str, interpreter: str, tests: Sequence[str], jobs: str) -> tuple[int, str]:
    """Run the tests under one version; return the exit code and the output."""
    begin = time.monotonic()
    try:
        python = environment(version, interpreter)
    except subprocess.CalledProcessError as error:
        return 1, f"== Python {version}: no environment, exit code {error.returncode} of {error.cmd[0]}\n{error.stderr}"
    command = [python, "-m", "pytest", "-q", "-n", jobs, "--dist", "loadfile", "-p", "no:cacheprovider", "--tier=all"]
    done = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    last = f"== Python {version}: {time.monotonic() - begin:.0f} s, exit code {done.returncode}"
    return done.returncode, f"== Python {version}\n{done.stdout}{done.stderr}{last}"


def main() -> int:
    """Run the tests under all versions at the same time; return the exit code."""
    parser = argparse.ArgumentParser(description="Run a part of the tests under other versions of Python.")
    parser.add_argument("--versions", nargs="*", default=VERSIONS, metavar="X.Y")
    parser.add_argument("--path", action="store_true", help="only print the first interpreter that is found")
    parser.add_argument("--required", action="store_true", help="fail if an interpreter is absent")
    parser.add_argument("--jobs", default="2", metavar="N", help="processes of pytest (default: 2)")
    parser.add_argument("tests", nargs="*", default=QUICK, help="tests instead of the quick ones")
    options = parser.parse_args()
    found = {version: interpreter for version in options.versions if (interpreter := find_python(version))}
    if options.path:
        if not found:
            print(f"error: no Python {', '.join(options.versions)} in PATH or ~/.pyenv/versions", file=sys.stderr)
            return 1
        print(next(iter(found.values())))
        return 0
    failed = []
    for version in options.versions:
        if version not in found:
            print(f"== Python {version}: SKIPPED, no interpreter in PATH or ~/.pyenv/versions", flush=True)
            failed += [version] if options.required else []
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(run, version, found[version], options.tests, options.jobs) for version in found]
        for version, done in zip(found, running, strict=True):
            code, output = done.result()
            print(output, flush=True)
            failed += [version] if code else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
