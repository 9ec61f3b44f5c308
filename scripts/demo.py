# SPDX-License-Identifier: Apache-2.0
"""`make demo`: the digits example from C operators to classified images, here and, where there is one, under Zephyr."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = Path("examples", "digits")  # every command runs in ROOT
APPLICATION = Path("build", "digits")
BUILD = Path("build", "zephyr")
ACCURACY = re.compile(r"accuracy: \d+\.\d\d %")
SECONDS_TO_RUN = 60


@dataclass(frozen=True)
class Workspace:
    """A Zephyr workspace: its kernel, its west, its version."""

    base: Path
    west: str
    version: tuple[int, int]


def main() -> int:
    """Run the steps; the last lines are the accuracy and what to try next."""
    opwest = [sys.executable, "-m", "opwest"]
    step("compiling the operators", [sys.executable, str(EXAMPLE / "compile_operators.py")], show=True)
    step(
        "generating the application",
        [*opwest, "generate", str(EXAMPLE / "manifest.yaml"), "-o", str(APPLICATION)],
        show=True,
    )
    accuracy = last_accuracy(step("running it on this machine", [*opwest, "run", str(APPLICATION), "--host"]))
    print(f"   {accuracy}")
    workspace = find_workspace()
    if workspace is not None:
        on_zephyr = under_zephyr(workspace)
        if on_zephyr != accuracy:
            raise SystemExit(f"error: native_sim says {on_zephyr!r}, this machine {accuracy!r}")
        print(f"   {on_zephyr}")
    print(accuracy)
    show_next(workspace)
    return 0


def step(title: str, command: list[str], *, show: bool = False, env: dict[str, str] | None = None) -> str:
    """Run one command with its time shown; its output appears when asked for, or when it fails."""
    print(f"== {title}", flush=True)
    begin = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if show or done.returncode != 0:
        print("".join(f"   {line}\n" for line in done.stdout.splitlines()), end="")
    if done.returncode != 0:
        raise SystemExit(f"error: {title} failed: {' '.join(command)}")
    print(f"   done in {time.monotonic() - begin:.1f} s", flush=True)
    return done.stdout


def last_accuracy(output: str) -> str:
    """Return the accuracy that the application printed."""
    found = ACCURACY.findall(output)
    if not found:
        raise SystemExit(f"error: the application printed no accuracy:\n{output}")
    return str(found[-1])


def find_workspace() -> Workspace | None:
    """Return the Zephyr workspace of ZEPHYR_BASE or ~/zephyrproject; say why there is none."""
    base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
    version = base / "VERSION"
    if not version.is_file():
        print(f"== no Zephyr workspace ({base} is not there, ZEPHYR_BASE is not set): that part is left out")
        return None
    numbers = dict(re.findall(r"(\w+)\s*=\s*(\d+)", version.read_text()))
    west = find_west(base)
    missing = [tool for tool in ("cmake", "ninja", "dtc") if shutil.which(tool) is None]
    if west is None or missing:
        lacking = ", ".join([*missing, *([] if west else ["west"])])
        print(f"== Zephyr is at {base}, but {lacking} is not installed: that part is left out")
        return None
    return Workspace(base, west, (int(numbers["VERSION_MAJOR"]), int(numbers["VERSION_MINOR"])))


def find_west(base: Path) -> str | None:
    """Return the west of the workspace's own Python; ours must not be used, it lacks Zephyr's packages."""
    own = Path(sys.executable).parent
    candidates = [base.parent / ".venv" / "bin" / "west"]
    candidates += [Path(folder) / "west" for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return next((str(c) for c in candidates if c.is_file() and c.parent.resolve() != own.resolve()), None)


def under_zephyr(workspace: Workspace) -> str:
    """Build the application for the simulator, run it, and return the accuracy that it printed."""
    board = "native_sim/native/64" if workspace.version >= (3, 7) else "native_posix_64"
    env = {
        **os.environ,
        "ZEPHYR_BASE": str(workspace.base),
        "PATH": f"{Path(workspace.west).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "ZEPHYR_TOOLCHAIN_VARIANT": os.environ.get("ZEPHYR_TOOLCHAIN_VARIANT", "host"),
    }
    env.pop("VIRTUAL_ENV", None)
    print(f"== Zephyr {workspace.version[0]}.{workspace.version[1]} at {workspace.base}")
    step(f"building for {board} (about 20 s)", build_command(workspace.west, board), env=env)
    return run_image(ROOT / BUILD / "zephyr" / "zephyr.exe")


def build_command(west: str, board: str) -> list[str]:
    """Return the west command that builds the application."""
    return [west, "build", "-p", "auto", "-b", board, "-d", str(BUILD), str(APPLICATION)]


def run_image(image: Path) -> str:
    """Start the simulator and return its accuracy line; the image never ends by itself."""
    print("== running it on native_sim", flush=True)
    process = subprocess.Popen([image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    deadline = time.monotonic() + SECONDS_TO_RUN
    seen: list[str] = []
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        while time.monotonic() < deadline:
            line = process.stdout.readline()
            if not line:
                time.sleep(0.05)
                continue
            seen.append(line)
            if ACCURACY.search(line):
                return last_accuracy(line)
    finally:
        process.kill()
        process.wait()
    raise SystemExit(f"error: no accuracy within {SECONDS_TO_RUN} s; the image printed:\n{''.join(seen)}")


def show_next(workspace: Workspace | None) -> None:
    """Print commands to go on with."""
    print("next, for example:")
    print("   .venv/bin/opwest check examples/digits/manifest.yaml")
    print("   .venv/bin/opwest inspect examples/digits/objects/*/*")
    if workspace is not None:
        print("   west build -p -b qemu_cortex_m3 -d build/qemu build/digits && west build -d build/qemu -t run")
    else:
        print("   west build -b native_sim/native/64 build/digits     (in a Zephyr workspace)")


if __name__ == "__main__":
    sys.exit(main())
