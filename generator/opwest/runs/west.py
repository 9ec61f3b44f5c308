# SPDX-License-Identifier: Apache-2.0
"""Build and flash with the west of a workspace; the files of the application stay unchanged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from opwest.base import commands, timing
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import cmake_option, spelled
from opwest.runs.digest import causes, end_of, is_overflow
from opwest.runs.link import LinkError
from opwest.runs.places import REQUIRED, Udp, Wireless
from opwest.runs.progress import StageProgress
from opwest.zephyr.emulators import QEMU_MACHINES
from opwest.zephyr.workspace import Workspace

_COUNT = re.compile(rb"\[\d+/\d+\] ")
"""A step of ninja, with the status of `_logged`."""
_MODES = {
    "profile": ("CONFIG_OPWEST_PROFILE", "measure steps"),
    "check": ("CONFIG_OPWEST_CHECK_STEPS", "stop after steps"),
    "call": ("CONFIG_OPWEST_SERVICE_CALL", "call single operators"),
}
"""The option of the runtime for each mode of an image, and its purpose."""
_CONFIGURED = "-- Build files have been written to"
_OVERLAYS, _ROOTS = "EXTRA_DTC_OVERLAY_FILE", "SNIPPET_ROOT"
"""Lists that the user and the command extend."""
_UARTS = ("zephyr,shell-uart", "zephyr,console")


class SpaceError(LinkError):
    """An image that is larger than a memory of the board."""


def find_west(workspace: Workspace) -> str | None:
    """Return the west of the workspace, else one in PATH.

    The one of opwest's own Python is the last choice: this Python may lack Zephyr's packages.
    """
    own = Path(sys.executable).parent.resolve()
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    name = "west.exe" if commands.IS_WINDOWS else "west"
    wests = [folder / name for folder in (workspace.top / ".venv" / commands.SCRIPTS, *folders, own)]
    existing = [west for west in wests if west.is_file() and os.access(west, os.X_OK)]
    return next((str(west) for west in sorted(existing, key=lambda west: west.parent.resolve() == own)), None)


def configuration_of(folder: Path) -> dict[str, str]:
    """Return the Kconfig symbols of a build directory with their CONFIG_ prefix; empty without a build."""
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", _text(folder / "zephyr" / ".config"), re.MULTILINE))


def _text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class Build:
    """A build directory of one application for one board."""

    workspace: Workspace
    west: str
    application: Path
    board: str
    folder: Path
    progress: StageProgress
    runtime: Path
    """The installed runtime, for files that the application's copy does not have."""
    modes: tuple[str, ...] = ()
    """Keys of `_MODES`, in their order: what the image does besides runs of its models."""
    bundles: bool = False
    """Whether the image accepts bundles, instead of running its models for a host."""
    place: Wireless | None = None
    """Where a host reaches the image, if not at a serial device."""
    given: tuple[str, ...] = ()
    """Options of CMake, each with -D: those of the user."""
    snippets: tuple[str, ...] = ()
    """Snippets of the user."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that select a compiler."""
    emulator: tuple[str, ...] = ()
    """The command that runs the image in QEMU, in place of that of the build."""

    @property
    def service(self) -> str:
        """The option of the service that the image needs."""
        return "CONFIG_OPWEST_BUNDLE_SERVICE" if self.bundles else "CONFIG_OPWEST_SERVICE"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of west, with the workspace's Python instead of opwest's."""
        env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
        env["ZEPHYR_BASE"] = str(self.workspace.base)
        env["PATH"] = f"{Path(self.west).parent}{os.pathsep}{env.get('PATH', '')}"
        if self.board.startswith("native_") and "ZEPHYR_SDK_INSTALL_DIR" not in env:
            env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "host")
        return {**env, **self.variables}

    @property
    def options(self) -> dict[str, str]:
        """The options of the runtime that the image needs besides the service, each with its purpose."""
        own = dict(_MODES[mode] for mode in self.modes)
        return own if self.place is None else own | dict([REQUIRED[type(self.place)][:2]])

    def _snippets(self, *, has_shell: bool) -> tuple[str, ...]:
        """Return the snippets of the image; those of the user follow, so that their values win."""
        service = "opwest-bundle-service" if self.bundles else "opwest-service"
        udp = ("opwest-udp",) if isinstance(self.place, Udp) else ()
        return (service + ("-shell" if has_shell else ""), *udp, *self.snippets)

    @property
    def log(self) -> Path:
        """The file with the output of west."""
        return self.folder.with_name(self.folder.name + ".log")

    @property
    def services(self) -> Path:
        """The directory for sources of the service that the application does not have."""
        return self.folder.with_name(self.folder.name + ".services")

    def configuration(self) -> dict[str, str]:
        """Return the Kconfig symbols of the build with their CONFIG_ prefix; empty without a build."""
        return configuration_of(self.folder)

    def build(self) -> None:
        """Build the image with the opwest service."""
        self.log.unlink(missing_ok=True)
        words = ["-b", self.board, "-d", str(self.folder), str(self.application), "--no-sysbuild"]
        stamp = self.folder / "opwest-run.json"
        options = self._cmake_options(has_shell=False)
        command = json.dumps([*words, *options, *self.given, *self.variables.values()]).encode()
        is_configured = stamp.is_file() and stamp.read_bytes() == command
        if is_configured and (self.folder / "build.ninja").exists():
            self.progress.show(f"building for {self.board} (log: {self.log})")
            self._run(["build", "-d", str(self.folder)], "the build failed")
            return
        self.progress.show(f"configuring for {self.board} (log: {self.log})")
        # CMake keeps options, shields and snippets of an earlier call in its cache.
        pristine = "always" if (self.folder / "CMakeCache.txt").exists() else "auto"
        self._configure(pristine, words, options)
        configured = 1
        if self._has_shell():
            options = self._cmake_options(has_shell=True)
            self._configure("always", words, options)
            configured = 2
        self._check_service()
        uart = self._missing_uart()
        # Without an overlay the configuration is complete: with options, west would configure again.
        build_words = ["build", "-d", str(self.folder)]
        if uart is not None:
            overlay = self.folder / "opwest-service.overlay"
            overlay.write_text(f"/ {{\n\tchosen {{\n\t\tzephyr,uart-mcumgr = {uart};\n\t}};\n}};\n", encoding="utf-8")
            build_words = ["build", "-p", "auto", *words, "--", *options, self._joined(_OVERLAYS, overlay)]
        self.progress.show(f"building for {self.board}")
        configured += 0 if uart is None else 1
        try:
            self._run(build_words, "the build failed")
        finally:
            # An error of the compiler or linker does not change the configuration.
            if _text(self.log).count(_CONFIGURED) >= configured:
                stamp.write_bytes(command)

    def _configure(self, pristine: str, words: list[str], options: list[str]) -> None:
        given = ["--cmake-only", "--", *options, self._joined(_OVERLAYS)]
        self._run(["build", "-p", pristine, *words, *given], "cannot configure the build")

    def _has_shell(self) -> bool:
        """Whether SMP cannot use the UART of the configuration alone: it has a shell, or the driver is Arm's."""
        configuration = self.configuration()
        names = ("CONFIG_SHELL_BACKEND_SERIAL", "CONFIG_DT_HAS_ARM_CMSDK_UART_ENABLED")
        has_uart = configuration.get("CONFIG_MCUMGR_TRANSPORT_UART") == "y"
        return has_uart and any(configuration.get(name) == "y" for name in names)

    def _cmake_options(self, *, has_shell: bool) -> list[str]:
        """Return the options of CMake, those of the user last, without the overlays."""
        options = [cmake_option("OPWEST_RUNTIME", self.runtime), cmake_option("OPWEST_SERVICES", self.services)]
        options += [self._joined(_ROOTS, self.runtime), "-DSNIPPET=" + ";".join(self._snippets(has_shell=has_shell))]
        options += ["-DQEMU_PTY=ON"]
        options += [f"-D{_MODES[mode][0]}=y" for mode in self.modes]
        if isinstance(self.place, Udp):
            options += ["-DCONFIG_MCUMGR_TRANSPORT_UDP_PORT=" + str(self.place.port)]
        joined = tuple(f"-D{name}=" for name in (_OVERLAYS, _ROOTS))
        return options + [option for option in self.given if not option.startswith(joined)]

    def _joined(self, name: str, *own: Path) -> str:
        """Return the option with the paths of the user and `own`, which follow them."""
        values = [option.partition("=")[2] for option in self.given if option.startswith(f"-D{name}=")]
        return f"-D{name}=" + ";".join([*values, *map(spelled, own)])

    def compiler(self) -> str | None:
        """Return the C compiler of the build; None without a build."""
        match = re.search(r"^CMAKE_C_COMPILER:\w+=(.+)$", _text(self.folder / "CMakeCache.txt"), re.MULTILINE)
        return match[1] if match else None

    def flash(self) -> None:
        """Write the image to the board and start it."""
        self.progress.show(f"flashing {self.board} (log: {self.log})")
        self._run(["flash", "-d", str(self.folder)], "cannot flash the board")

    @property
    def is_emulated(self) -> bool:
        """Whether QEMU runs the image."""
        return self.board in QEMU_MACHINES or self.configuration().get("CONFIG_QEMU_TARGET") == "y"

    def run_command(self) -> list[str]:
        """Return the command that runs the image on this machine. Raises LinkError without QEMU."""
        if self.emulator:
            return list(self.emulator)
        if self.board in QEMU_MACHINES:
            emulator = shutil.which("qemu-system-arm")
            if emulator is None:
                raise LinkError(f"qemu-system-arm not found, which runs images for '{self.board}'", "install QEMU")
            image = str(self.folder / "zephyr" / "zephyr.elf")
            machine = ["-M", QEMU_MACHINES[self.board], "-display", "none", "-monitor", "none"]
            return [emulator, *machine, "-serial", "pty", "-kernel", image]
        return [self.west, "build", "-d", str(self.folder), "-t", "run"]

    def _check_service(self) -> None:
        """Raise LinkError if the configuration lacks the service."""
        config = self.configuration()
        if config.get(self.service) != "y":
            needed = "CONFIG_OPWEST_BUNDLE" if self.bundles else "CONFIG_OPWEST"
            raise LinkError(
                f"{self.service} is not set in the configuration for '{self.board}': it depends on "
                f"{needed} and CONFIG_MULTITHREADING"
            )
        smp = "CONFIG_OPWEST_BUNDLE_SMP" if self.bundles else "CONFIG_OPWEST_SERVICE_SMP"
        if (config.get("CONFIG_ARCH_POSIX") != "y" or self.place is not None) and config.get(smp) != "y":
            text = "module 'zcbor' not found in the workspace; MCUmgr, which the service uses, depends on it"
            raise LinkError(text, self.workspace.ways_to_install(["zcbor"])["zcbor"])
        required = None if self.place is None else REQUIRED[type(self.place)]
        if required is not None and config.get(required.option) != "y":
            text = f"{required.option} is not set in the configuration for '{self.board}': the image does not "
            raise LinkError(text + required.purpose, required.hint)

    def _missing_uart(self) -> str | None:
        """Return the UART that SMP shares with the console; None if the devicetree chooses a UART for SMP."""
        if self.configuration().get("CONFIG_MCUMGR_TRANSPORT_UART") != "y":
            return None
        tree = (self.folder / "zephyr" / "zephyr.dts").read_text(encoding="utf-8", errors="replace")
        match = re.search(r"\bchosen \{(.*?)\n\t\};", tree, re.DOTALL)
        text = re.sub(r"/\*.*?\*/", "", match[1]) if match else ""
        chosen = dict(re.findall(r"^\s*(zephyr,[\w-]+)\s*=\s*(&\w+|\"[^\"]*\");", text, re.MULTILINE))
        if "zephyr,uart-mcumgr" in chosen:
            return None
        for name in _UARTS:
            if name in chosen:
                return str(chosen[name])
        message = f"the devicetree of '{self.board}' has no chosen UART for SMP"
        raise LinkError(message, "add one in an overlay: / { chosen { zephyr,uart-mcumgr = &uart0; }; };")

    def _run(self, words: list[str], failure: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            begin = log.tell()
            returncode = self._logged([self.west, *words], log)
        if returncode != 0:
            with self.log.open(encoding="utf-8", errors="replace") as text:
                text.seek(begin)
                output = text.read()
            kind, found = SpaceError if is_overflow(output) else LinkError, causes(output, self.application)
            what = f"{failure} (west {words[0]}, exit code {returncode})"
            what += "" if found else f":\n{end_of(output)}"
            raise kind(what, f"complete log: {self.log}", found)

    def _logged(self, command: list[str], log: BinaryIO) -> int:
        """Run a command with its output in `log`, show ninja's counts of steps, and return its exit code."""
        with (
            timing.command(command),
            subprocess.Popen(
                command,
                cwd=self.workspace.top,
                env={**self.environment, "NINJA_STATUS": "[%f/%t] "},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as running,
        ):
            assert running.stdout is not None
            try:
                for line in running.stdout:
                    log.write(line)
                    log.flush()
                    if _COUNT.match(line):
                        self.progress.status(line.decode(errors="replace").rstrip())
            except BaseException:
                running.kill()
                raise
            self.progress.end()
        return running.returncode
