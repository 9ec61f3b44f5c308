# SPDX-License-Identifier: Apache-2.0
"""Common parts of the demonstrations: timed steps, the Zephyr workspace, builds and runs of images."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opwest.base.processes import end_group, group

ROOT = Path(__file__).resolve().parents[1]
SECONDS_TO_RUN = 60


def step(title: str, command: Sequence[str], *, show: bool = False, env: dict[str, str] | None = None) -> str:
    """Run a command and print its time; print its output on request or on failure."""
    print(f"== {title}", flush=True)
    begin = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if show or done.returncode != 0:
        print("".join(f"   {line}\n" for line in done.stdout.splitlines()), end="")
    if done.returncode != 0:
        raise SystemExit(f"error: {title} failed: {' '.join(command)}")
    print(f"   done in {time.monotonic() - begin:.1f} s", flush=True)
    return done.stdout


def last_match(pattern: re.Pattern[str], output: str, what: str) -> str:
    """Return the last match of the pattern in the output of an application."""
    found = [match[0] for match in pattern.finditer(output)]
    if not found:
        raise SystemExit(f"error: the application printed no {what}:\n{output}")
    return found[-1]


@dataclass(frozen=True)
class Workspace:
    """A Zephyr workspace: its kernel, its west, its version."""

    base: Path
    west: str
    version: tuple[int, int]

    @property
    def simulator(self) -> str:
        """The native_sim board for this machine."""
        return "native_sim/native/64" if self.version >= (3, 7) else "native_posix_64"

    def environment(self, board: str) -> dict[str, str]:
        """The environment of west: the workspace's Python and, unless set, the default compilers."""
        env = {
            **os.environ,
            "ZEPHYR_BASE": str(self.base),
            "PATH": f"{Path(self.west).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        env.pop("VIRTUAL_ENV", None)
        if board.startswith("native_"):
            env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "host")
        elif "ZEPHYR_SDK_INSTALL_DIR" not in env and shutil.which("arm-none-eabi-gcc"):
            env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
            env.setdefault("GNUARMEMB_TOOLCHAIN_PATH", str(Path(shutil.which("arm-none-eabi-gcc") or "").parents[1]))
        return env


def find_workspace() -> Workspace | None:
    """Return the Zephyr workspace of ZEPHYR_BASE or ~/zephyrproject; without one, print the reason."""
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    version = base / "VERSION"
    if not version.is_file():
        print(f"== skipped: no Zephyr workspace (no {base}, ZEPHYR_BASE not set)")
        return None
    numbers = dict(re.findall(r"(\w+)\s*=\s*(\d+)", version.read_text()))
    west = find_west(base)
    missing = [tool for tool in ("cmake", "ninja", "dtc") if shutil.which(tool) is None]
    if west is None or missing:
        lacking = ", ".join([*missing, *([] if west else ["west"])])
        print(f"== skipped: Zephyr found in {base}, but {lacking} is not installed")
        return None
    return Workspace(base, west, (int(numbers["VERSION_MAJOR"]), int(numbers["VERSION_MINOR"])))


def find_west(base: Path) -> str | None:
    """Return the west of the workspace's Python; ours may lack Zephyr's packages."""
    own = Path(sys.executable).parent
    candidates = [base.parent / ".venv" / "bin" / "west"]
    candidates += [Path(folder) / "west" for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return next((str(c) for c in candidates if c.is_file() and c.parent.resolve() != own.resolve()), None)


def build_and_run(
    workspace: Workspace,
    board: str,
    application: Path,
    folder: Path,
    until: re.Pattern[str],
    options: Sequence[str] = (),
) -> str:
    """Build an application for a simulated or emulated board, run it, and return its output up to a pattern."""
    env = workspace.environment(board)
    words = [workspace.west, "build", "-p", "auto", "-b", board, "-d", str(folder), str(application)]
    words += ["--", *options] if options else []
    step(f"building for {board} with Zephyr {workspace.version[0]}.{workspace.version[1]}", words, env=env)
    print(f"== running it on {board}", flush=True)
    if board.startswith("native_"):
        return run_image([str(ROOT / folder / "zephyr" / "zephyr.exe")], until, env)
    return run_image([workspace.west, "build", "-d", str(folder), "-t", "run"], until, env)


def run_image(command: Sequence[str], until: re.Pattern[str], env: dict[str, str]) -> str:
    """Run an image until its output matches the pattern; return the output."""
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **group())
    deadline = time.monotonic() + SECONDS_TO_RUN
    seen = ""
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        while time.monotonic() < deadline:
            seen += (process.stdout.read() or b"").decode(errors="replace").replace("\r\n", "\n")
            if until.search(seen):
                return seen
            time.sleep(0.05)
    finally:
        end_group(process)  # includes the emulator, which the build tool started
        if process.stdout is not None:
            process.stdout.close()
    raise SystemExit(
        f"error: timeout after {SECONDS_TO_RUN} s waiting for the expected line; output of the image:\n{seen}"
    )
