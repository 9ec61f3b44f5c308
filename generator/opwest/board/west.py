# SPDX-License-Identifier: Apache-2.0
"""Building and flashing with the west of a workspace; the application's own files are not touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from opwest.board.link import LinkError
from opwest.board.progress import Progress
from opwest.zephyr.workspace import Workspace

_FAULTS = re.compile(r"\b(error|FATAL ERROR|CMake Error|undefined reference|overflowed by|assigned the value)\b", re.I)
_NOISE = re.compile(r"^\[\d+/\d+\]|^ccache |^\s*-- |-Werror|^FATAL ERROR: command exited")
_SHOWN = 8
_UARTS = ("zephyr,shell-uart", "zephyr,console")


def find_west(workspace: Workspace) -> str | None:
    """Return the workspace's own west, else one on the path: ours last, whose Python may lack Zephyr's packages."""
    own = Path(sys.executable).parent.resolve()
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    wests = [workspace.top / ".venv" / "bin" / "west", *(folder / "west" for folder in folders), own / "west"]
    there = [west for west in wests if west.is_file() and os.access(west, os.X_OK)]
    return next((str(west) for west in sorted(there, key=lambda west: west.parent.resolve() == own)), None)


@dataclass(frozen=True)
class Build:
    """A build folder of one application for one board."""

    workspace: Workspace
    west: str
    application: Path
    board: str
    folder: Path
    progress: Progress
    runtime: Path
    """The installed runtime: what the application's copy does not have comes from there."""
    profile: bool = False
    """Whether the image measures the steps of its models."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of west: the workspace's Python, not ours."""
        env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
        env["ZEPHYR_BASE"] = str(self.workspace.base)
        env["PATH"] = f"{Path(self.west).parent}{os.pathsep}{env.get('PATH', '')}"
        if self.board.startswith("native_") and "ZEPHYR_SDK_INSTALL_DIR" not in env:
            env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "host")
        return env

    @property
    def log(self) -> Path:
        """Where the output of west goes."""
        return self.folder.with_name(self.folder.name + ".log")

    @property
    def services(self) -> Path:
        """Where the sources are that let a host run models which were generated without them."""
        return self.folder.with_name(self.folder.name + ".services")

    def configuration(self) -> dict[str, str]:
        """Return the Kconfig symbols of the build, with CONFIG_; nothing where there is no build."""
        try:
            text = (self.folder / "zephyr" / ".config").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return {}
        return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))

    def build(self) -> None:
        """Build the image with the service in it."""
        self.log.unlink(missing_ok=True)
        words = ["build", "-p", "auto", "-b", self.board, "-d", str(self.folder), str(self.application)]
        words.append("--no-sysbuild")
        stamp, made = self.folder / "opwest-run.json", [*words, *(["profile"] if self.profile else [])]
        if _read_json(stamp) == made and (self.folder / "build.ninja").exists():
            self.progress.show(f"building for {self.board} (log: {self.log})")
            self._run(["build", "-d", str(self.folder)], "the build failed")
            return
        self.progress.show(f"configuring for {self.board} (log: {self.log})")
        options = [f"-DOPWEST_RUNTIME={self.runtime}", f"-DOPWEST_SERVICES={self.services}"]
        options += ["-DCONFIG_OPWEST_SERVICE=y", "-DQEMU_PTY=ON"]
        if self.profile:
            options.append("-DCONFIG_OPWEST_PROFILE=y")
        overlays = "-DEXTRA_DTC_OVERLAY_FILE="
        self._run([*words, "--cmake-only", "--", *options, overlays], "the build could not be configured")
        self._check_service()
        uart = self._missing_uart()
        if uart is not None:
            overlay = self.folder / "opwest-service.overlay"
            overlay.write_text(f"/ {{\n\tchosen {{\n\t\tzephyr,uart-mcumgr = {uart};\n\t}};\n}};\n", encoding="utf-8")
            overlays += str(overlay)
        self.progress.show(f"building for {self.board}")
        self._run([*words, "--", *options, overlays], "the build failed")
        stamp.write_text(json.dumps(made), encoding="utf-8")

    def flash(self) -> None:
        """Write the image to the board and start it."""
        self.progress.show(f"flashing {self.board} (log: {self.log})")
        self._run(["flash", "-d", str(self.folder)], "the board could not be flashed")

    def run_command(self) -> list[str]:
        """Return the command that runs the image on this machine."""
        return [self.west, "build", "-d", str(self.folder), "-t", "run"]

    def _check_service(self) -> None:
        """Say why a configuration lacks the service."""
        config = self.configuration()
        if config.get("CONFIG_OPWEST_SERVICE") != "y":
            raise LinkError(
                f"the configuration for {self.board} has no CONFIG_OPWEST_SERVICE: it needs CONFIG_OPWEST and "
                "CONFIG_MULTITHREADING"
            )
        if config.get("CONFIG_ARCH_POSIX") != "y" and config.get("CONFIG_OPWEST_SERVICE_SMP") != "y":
            raise LinkError(
                "the module zcbor is missing from the workspace: MCUmgr, which the service uses, is built on it",
                "west update zcbor (it must be in the manifest's name-allowlist)",
            )

    def _missing_uart(self) -> str | None:
        """Return the UART that SMP can share with the console, where the devicetree chooses none for it."""
        if self.configuration().get("CONFIG_MCUMGR_TRANSPORT_UART") != "y":
            return None
        tree = (self.folder / "zephyr" / "zephyr.dts").read_text(encoding="utf-8", errors="replace")
        chosen = dict(re.findall(r"^\s*(zephyr,[\w-]+)\s*=\s*(&\w+|\"[^\"]*\");", _chosen(tree), re.MULTILINE))
        if "zephyr,uart-mcumgr" in chosen:
            return None
        for name in _UARTS:
            if name in chosen:
                return str(chosen[name])
        raise LinkError(
            f"the devicetree of {self.board} chooses no UART for SMP",
            "choose one in an overlay: / { chosen { zephyr,uart-mcumgr = &uart0; }; };",
        )

    def _run(self, words: list[str], failure: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log:
            begin = log.tell()
            done = subprocess.run(
                [self.west, *words],
                cwd=self.workspace.top,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                log.seek(begin)
                said = log.read()
            raise LinkError(
                f"{failure} (west {words[0]}, exit code {done.returncode}):\n{brief(said)}", _hint(said, self)
            )


def brief(said: str) -> str:
    """Return the lines of a log that say what is wrong, else its last ones."""
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said).splitlines() if line.strip()]
    telling = [index for index, line in enumerate(lines) if _FAULTS.search(line) and not _NOISE.search(line)]
    shown: list[str] = []
    for index in telling:
        # CMake says what it means in the line below.
        follow = 4 if lines[index].startswith("CMake Error") else 1
        shown += [line for line in lines[index : index + follow] if line not in shown]
    return "\n".join(f"  {line[:300]}" for line in (shown[:_SHOWN] if shown else lines[-_SHOWN:]))


def _hint(said: str, build: Build) -> str:
    whole = f"all of it: {build.log}"
    if "overflowed by" in said:
        return f"the service needs memory of its own, beside the application's: another workspace a model; {whole}"
    if 'Could not find a package configuration file provided by "Zephyr-sdk"' in said:
        return f"install the Zephyr SDK, or name another compiler with ZEPHYR_TOOLCHAIN_VARIANT; {whole}"
    return whole


def _chosen(tree: str) -> str:
    found = re.search(r"\bchosen \{(.*?)\n\t\};", tree, re.DOTALL)
    return re.sub(r"/\*.*?\*/", "", found[1]) if found else ""


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def missing_tools() -> list[str]:
    """Return what a build needs beside west and a compiler, and is not installed."""
    return [tool for tool in ("cmake", "ninja", "dtc") if shutil.which(tool) is None]
