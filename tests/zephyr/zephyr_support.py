# SPDX-License-Identifier: Apache-2.0
"""Search for a Zephyr workspace, builds with its own west, and the output of images."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opwest.objects.elf import parse_elf
from opwest.zephyr.version import board_fault
from opwest.zephyr.workspace import Workspace as Tree
from requirements_support import need, skip_here
from session_support import digest_of_files, made_once

ROOT = Path(__file__).resolve().parents[2]
BUILD_CONFIGURATION = ROOT / "tests" / "zephyr" / "build_configuration"
BUILD_SECONDS = 600
RUN_SECONDS = 60
_ONE_TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
_BUILDING = ("ZEPHYR", "Zephyr", "GNU", "CROSS_COMPILE", "CCACHE", "CMAKE_BUILD")
"""Prefixes of the variables of a build."""
BACK_ENDS = [(board, back_end) for board in ("mps2/an385", "native_sim/native/64") for back_end in ("llvm", "c")]
"""Boards with back ends, for programs that the tests on the host run with both back ends, too."""
OTHER_VERSIONS = ("3.4", "3.7", "4.1", "4.3", "4.4", "4.5")
"""Versions of Zephyr with workspaces of their own, beside the workspace that most tests use."""


def is_riscv(board: str) -> bool:
    """Return whether a board of the tests has a RISC-V processor."""
    return board.startswith("qemu_riscv")


def need_toolchain(board: str) -> None:
    """Skip the running test, or fail it in CI, without the compiler for a board."""
    if not board.startswith("native_"):
        need("riscv64-unknown-elf-gcc" if is_riscv(board) else "arm-none-eabi-gcc")


def riscv_toolchain() -> dict[str, str]:
    """Return the variables that select a distribution's compiler for RISC-V; write it once in a session."""
    scripts = str(ROOT / "scripts")
    if scripts not in sys.path:
        sys.path.append(scripts)
    from riscv_toolchain import toolchain, variables

    need("riscv64-unknown-elf-gcc")
    return variables(made_once("riscv-toolchain", toolchain))


def find_base() -> Path:
    return Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")


def find_west(base: Path) -> str | None:
    own = Path(sys.executable).parent.resolve()
    candidates = [base.parent / ".venv" / "bin" / "west"]
    candidates += [Path(folder) / "west" for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return next((str(c) for c in candidates if c.is_file() and c.parent.resolve() != own), None)


def version_of(base: Path) -> str:
    """Return the version of a tree, such as `4.1`; an empty string without a tree."""
    version = Tree(base).version
    return f"{version.major}.{version.minor}" if version else ""


@dataclass
class Built:
    """A finished build: its log, and its image."""

    log: str
    folder: Path
    board: str
    env: dict[str, str]
    west: str

    @property
    def elf(self) -> Path:
        return self.folder / "zephyr" / "zephyr.elf"

    @property
    def options(self) -> list[str]:
        """The lines of .config, such as `CONFIG_SHELL=y`."""
        return (self.folder / "zephyr" / ".config").read_text().splitlines()

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """The address and the size of each symbol of the image."""
        elf = parse_elf(self.elf.read_bytes())
        table = elf.symbol_table()
        assert table is not None
        strings = elf.strings_of(table)
        return {strings.name(symbol.name): (symbol.value, symbol.size) for symbol in elf.raw_symbols(table)}

    def again(self, target: str | None = None) -> tuple[int, str]:
        """Build the directory, or a part of it, again; return west's exit code and its output."""
        command = [self.west, "build", "-d", str(self.folder), *(("-t", target) if target else ())]
        done = subprocess.run(command, cwd=Path(self.env["ZEPHYR_BASE"]).parent, env=self.env, check=False, **_ONE_TEXT)
        return done.returncode, done.stdout

    def rebuilt(self) -> str:
        """Build the directory again, which must succeed; return the output."""
        code, log = self.again()
        assert code == 0, log[-3000:]
        return log

    def run(self, until: str) -> str:
        """Start the image and return its console output up to the end of a matching line."""
        if self.board.startswith("native_"):
            command = [str(self.folder / "zephyr" / "zephyr.exe")]
        elif self.board in ("mps2/an386", "mps2_an385"):  # no target that runs it in QEMU; built without west
            machine = re.sub("[/_]", "-", self.board)
            command = ["qemu-system-arm", "-M", machine, "-nographic", "-kernel", str(self.elf)]
        else:
            command = [self.west, "build", "-d", str(self.folder), "-t", "run"]
        return console_of(command, until, RUN_SECONDS, self.env)


def console_of(command: list[str], until: str, seconds: float, env: dict[str, str] | None = None) -> str:
    """Run a command, with its child processes, and return its output up to the end of a matching line."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, env=env, start_new_session=True, **streams)
    os.set_blocking(process.stdout.fileno(), False)
    console = b""
    deadline = time.monotonic() + seconds
    try:
        ended = False
        while time.monotonic() < deadline and not ended:
            ended = process.poll() is not None  # the tests of native_sim end; read their last output
            console += process.stdout.read() or b""
            # Zephyr's console and newlib's output each add a carriage return.
            text = re.sub(r"\r+\n", "\n", console.decode(errors="replace"))
            found = re.search(until, text, re.MULTILINE)
            # An emulated UART sends single characters: the rest of the line may follow later.
            if found and (ended or "\n" in text[max(found.end() - 1, 0) :]):
                return text
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        process.stdout.close()
    pytest.fail(f"{command}: no {until!r} within {seconds} s:\n{console.decode(errors='replace')[-6000:]}")


@dataclass
class Workspace:
    """Builds applications with the workspace's own west and Python."""

    base: Path
    west: str
    folder: Path
    count: int = field(default=0)
    images: dict[tuple[object, ...], Built] = field(default_factory=dict)
    """The builds by application and its content, board and options."""

    @property
    def version(self) -> str:
        """The version of Zephyr, such as `4.2`."""
        return version_of(self.base)

    def other(self, version: str) -> Workspace:
        """Return the workspace of another version, or this one if it has that version; skips the test without one.

        It is in ZEPHYR_3_4_BASE (of 3.4), or in ~/zephyrproject-3.4/zephyr. Its modules are those of its directory
        `modules`. Without a west of its own, it uses the west of this workspace.
        """
        if version == self.version:
            return self
        variable = f"ZEPHYR_{version.replace('.', '_')}_BASE"
        base = Path(os.environ.get(variable) or Path.home() / f"zephyrproject-{version}" / "zephyr")
        if version_of(base) != version:
            skip_here(f"ZEPHYR {version} SKIPPED: no such tree at {base}, and {variable} is not set")
        folder = self.folder / f"zephyr-{version}"
        folder.mkdir(exist_ok=True)
        west = base.parent / ".venv" / "bin" / "west"
        return Workspace(base, str(west) if west.is_file() else self.west, folder)

    def board(self, name: str) -> str:
        """Return the name of a board in this workspace's version: mps2_an385 for mps2/an385 in Zephyr 3.4."""
        version = Tree(self.base).version
        assert version is not None
        fault = board_fault(name, version)
        return fault[1] if fault else name

    def environment(self, board: str) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
        env["ZEPHYR_BASE"] = str(self.base)
        env["PATH"] = f"{Path(self.west).parent}{os.pathsep}{env['PATH']}"
        env["CCACHE_DISABLE"] = "1"  # for native_sim, whose compiler is that of the path
        # Each process of pytest-xdist builds: more compilers than processors take more processor time.
        if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
            env["CMAKE_BUILD_PARALLEL_LEVEL"] = str(max(1, (os.cpu_count() or 1) // workers))
        env["ZephyrBuildConfiguration_ROOT"] = str(BUILD_CONFIGURATION)
        if "ZEPHYR_SDK_INSTALL_DIR" not in env:
            if board.startswith("native_"):
                env["ZEPHYR_TOOLCHAIN_VARIANT"] = "host"
            elif is_riscv(board):
                env |= riscv_toolchain()
            else:
                env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
                env.setdefault("GNUARMEMB_TOOLCHAIN_PATH", "/usr")
        return env

    def opwest_environment(self, board: str) -> dict[str, str]:
        """Return the environment of opwest's commands that build: with this Python, and small images as try_build()."""
        own = self.environment(board)
        env = {**os.environ, **{k: v for k, v in own.items() if k.startswith(_BUILDING)}}
        if not board.startswith("native_"):
            small = self.folder / "small.conf"
            if not small.exists():  # a newer file lets CMake configure each build again
                small.write_text("CONFIG_MINIMAL_LIBC=y\n")
            env["EXTRA_CONF_FILE"] = str(small)
        return env

    def try_build(
        self, app: Path, board: str, *options: str, sysbuild: bool = False, target: str | None = None
    ) -> tuple[int, Built]:
        """Build and return west's exit code and the build; for sysbuild, that of the application's image.

        `target` is the part of the image to build; with an empty text, CMake only configures the build.
        """
        need_toolchain(board)
        if not board.startswith("native_") and not any("LIBC" in option for option in options):
            # A workspace with the module picolibc compiles all of it, a thousand files, for every image.
            options = (*options, "-DCONFIG_MINIMAL_LIBC=y")
        self.count += 1
        folder = self.folder / f"{app.name}-b{self.count}"
        env = self.environment(board)
        command = [self.west, "build", "-p", "-b", board, "-d", str(folder)]
        command += ["--sysbuild" if sysbuild else "--no-sysbuild"]
        command += ["-t", target] if target else ["--cmake-only"] if target == "" else []
        command += [str(app), *(("--", *options) if options else ())]
        done = subprocess.run(command, cwd=self.base.parent, env=env, timeout=BUILD_SECONDS, check=False, **_ONE_TEXT)
        return done.returncode, Built(done.stdout, folder / app.name if sysbuild else folder, board, env, self.west)

    def build(self, app: Path, board: str, *options: str, sysbuild: bool = False) -> Built:
        """Build each image once; fail the test unless the build succeeds without warnings about opwest's files."""
        key = (app, digest_of_files(app), board, options, sysbuild)
        if key in self.images:
            return self.images[key]
        code, built = self.try_build(app, board, *options, sysbuild=sysbuild)
        assert code == 0, built.log[-6000:]
        for line in built.log.splitlines():
            assert not ("warning:" in line and "opwest" in line), line
        self.images[key] = built
        return built

    def refused(self, app: Path, board: str, *options: str, target: str | None = None) -> str:
        """Build, which must fail; return the log in one line."""
        code, built = self.try_build(app, board, *options, target=target)
        assert code != 0, built.log[-3000:]
        return " ".join(built.log.split())


def need_module(workspace: Workspace, place: str) -> None:
    """Skip the test unless the workspace has a module, such as `hal/stm32`."""
    if not (workspace.base.parent / "modules" / place).is_dir():
        name = place.removeprefix("lib/").replace("/", "_")
        skip_here(f"the workspace has no {name}: west update {name}")


def need_smp(workspace: Workspace) -> None:
    """Skip the test unless host and image can use SMP."""
    need("smpclient")
    need_module(workspace, "lib/zcbor")


def need_in(workspace: Workspace, module: str) -> None:
    """Skip the test if the workspace's Python cannot import a module."""
    python = Path(workspace.west).parent / "python"
    command, path = [python, "-c", f"import {module}"], str(ROOT / "generator")
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1]
        skip_here(f"ZEPHYR TIER SKIPPED: {python} lacks what requirements.txt names: {last}")
