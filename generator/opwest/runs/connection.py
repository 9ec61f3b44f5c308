# SPDX-License-Identifier: Apache-2.0
"""Build an image, start or flash it, and connect to it: for `opwest run --board` and `opwest call`."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import statistics
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base import commands, timing
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import end_group, group
from opwest.render.boards import board_file
from opwest.runs.build_folder import ignore_builds
from opwest.runs.compile import installed_runtime
from opwest.runs.link import Link, LinkError, ModelError, Served
from opwest.runs.options import ImageOptions
from opwest.runs.places import Place, Serial, Udp, wireless_place
from opwest.runs.ports import check_device, choose_device, is_present, need_serial, wait_for_device
from opwest.runs.preflight import Tools, examine_build, find_workspace_of_build
from opwest.runs.profile import is_profiled
from opwest.runs.progress import StageProgress
from opwest.runs.services import write_services
from opwest.runs.session import find_model
from opwest.runs.west import Build, find_west

_DEVICE = re.compile(r"(?:connected to pseudotty: |redirected to )(/dev/\S+)")
"""The line with which native_sim and QEMU report the pseudo terminal of a UART."""
_LINES = 12


class RunningImage:
    """The process group of an emulator or simulator; a context manager that ends the group on exit."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._last: deque[str] = deque(maxlen=_LINES)
        self._device: str | None = None
        timing.started(command)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            **group(),
        )
        # Read until the end of the output: an emulator blocks when the pipe is full.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> RunningImage:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes of the group."""
        end_group(self._process)
        self._reader.join(3)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match = _DEVICE.search(line)
            if match and self._device is None:
                self._device = match[1]
            if line.strip():
                self._last.append(line.rstrip())

    def device(self, seconds: float) -> str:
        """Wait for the path of the image's pseudo terminal. Raises LinkError on exit of the image or on a timeout."""
        end = time.monotonic() + seconds
        while self._device is None:
            if self._process.poll() is not None:
                self._reader.join(1)
                if self._device is None:
                    raise LinkError(
                        f"the image exited during start-up with code {self._process.returncode}:\n{self.output()}"
                    )
                break
            if time.monotonic() > end:
                raise LinkError(
                    f"the image reported no serial device within {seconds:g} s; its output:\n{self.output()}"
                )
            time.sleep(0.02)
        return self._device

    def ended(self, seconds: float) -> bool:
        """Return whether the image exits within `seconds`; its device disappears shortly before."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(seconds)
        return True

    def output(self) -> str:
        """Return the last lines of the image's output."""
        return "\n".join(f"  {line}" for line in list(self._last)) or "  (none)"


_INSTALL = commands.pip_install("smpclient[serial]")
_ENDING = 1.0
"""Seconds to wait for an image to exit after its device disappeared."""


def need_smpclient() -> None:
    """Raise LinkError without the packages for SMP; the shell requires only pyserial."""
    if importlib.util.find_spec("smpclient") is None or importlib.util.find_spec("serial") is None:
        raise LinkError(
            "missing Python packages: smpclient and pyserial are required to connect to a board", f"run {_INSTALL}"
        )


@contextlib.contextmanager
def link_errors(progress: StageProgress) -> Iterator[None]:
    """Raise OpwestError for an error of the image, of the connection to it, or of the system."""
    try:
        yield
    except LinkError as error:
        progress.end()
        raise error.for_user from error
    except OSError as error:
        progress.end()
        raise fail(f"{error.filename}: {error.strerror}") from error


def prepare(
    options: ImageOptions,
    record: Mapping[str, Any] | None,
    progress: StageProgress,
    faults: Diagnostics,
    *,
    bundles: bool = False,
) -> Build:
    """Return the new build, or the existing one with --no-build. Raises OpwestError with all that a build lacks."""
    place = wireless_place(options)
    needs_smp = place is not None or not options.board.startswith("native_")
    if not bundles and needs_smp:
        need_smpclient()
    is_remote = options.serial is not None or place is not None
    is_used = not (options.no_build and options.no_flash and is_remote)
    workspace = find_workspace_of_build(options.zephyr_base, is_used=is_used)
    project = options.directory.resolve()
    requested = {"profile": is_profiled(options), "check": options.check_steps, "call": options.operator is not None}
    modes = tuple(mode for mode, is_set in requested.items() if is_set)
    last = modes[-1:] if place is None else (*modes[-1:], "udp" if isinstance(place, Udp) else "ble")
    name = "_".join(["bundle" if bundles else "run", board_file(options.board), *last])
    folder: Path = (options.build_dir or options.directory / "build" / name).resolve()
    for path in (project, folder):
        if " " in str(path):
            raise LinkError(f"path with a space: '{path}', which Zephyr does not support")
    runtime = installed_runtime(options.directory)
    tools, given = Tools(workspace, find_west(workspace) or "west", {}), cmake_options(options)
    if not options.no_build:
        is_started = not options.no_flash and options.serial is None
        tools = examine_build(
            *(options.board, workspace, project, given, progress, faults), is_started=is_started, needs_smp=needs_smp
        )
    elif is_used and find_west(workspace) is None:
        raise LinkError(
            f"missing program for Zephyr in '{workspace.base}': west", f"run {commands.pip_install('west')}"
        )
    if place is None:
        need_serial()
    build = Build(
        *(workspace, tools.west, project, options.board, folder, progress, runtime),
        *(modes, bundles, place, given, tuple(options.snippet), tools.variables),
    )
    if not options.no_build:
        if options.build_dir is None:
            ignore_builds(folder.parent)
        if record is not None:
            write_services(build.services, project, record)
        build.build()
    configuration = build.configuration()
    if not configuration and not options.no_flash:
        raise LinkError(f"no build in '{build.folder}'", "omit --no-build")
    needed = {build.service: "does not accept bundles" if bundles else "has no opwest service"}
    needed |= {option: f"does not {purpose}" for option, purpose in build.options.items()}
    for option, fault in needed.items() if configuration else ():
        if configuration.get(option) != "y":
            text = f"the image in '{build.folder}' {fault} ({option})"
            raise LinkError(text, f"omit --no-build, or build with -D{option}=y")
    return build


def cmake_options(options: ImageOptions) -> tuple[str, ...]:
    """Return the given options of CMake, with that of shields."""
    shields = ("-DSHIELD=" + ";".join(options.shield),) if options.shield else ()
    return (*shields, *options.cmake)


@contextlib.contextmanager
def connected(options: ImageOptions, build: Build, progress: StageProgress) -> Iterator[Link]:
    """Start or flash the image, and yield a connection to it."""
    with running(options, build, progress) as image:
        link: Link
        if image.has_shell:
            from opwest.runs.shell import ShellLink

            link = ShellLink(str(image.place), options.timeout)
        else:
            from opwest.runs.smp import DEFAULT_GROUP, SmpLink

            group = int(image.configuration.get("CONFIG_OPWEST_SERVICE_SMP_GROUP", DEFAULT_GROUP))
            link = SmpLink(image.place, options.timeout, group)
        try:
            progress.show(f"waiting for the image on {link.device}")
            yield link
        finally:
            link.disconnect()


@dataclass(frozen=True)
class Running:
    """An image that runs: its configuration, and where this host reaches it."""

    configuration: Mapping[str, str]
    place: Place
    has_shell: bool
    """Whether a host uses its shell, as it does at the pseudo terminal of a program of this machine."""
    started: bool
    """Whether the image ends with the command."""


@contextlib.contextmanager
def running(options: ImageOptions, build: Build, progress: StageProgress) -> Iterator[Running]:
    """Start or flash the image, and yield it; a LinkError of the caller reports the output of an image that ended."""
    configuration = build.configuration()
    native = configuration.get("CONFIG_ARCH_POSIX") == "y" if configuration else build.board.startswith("native_")
    is_simulated = native or build.is_emulated
    if is_simulated and options.serial is None and not (options.no_flash and build.place):
        for name in ("baud", "no_flash"):
            if name in options.given:
                raise LinkError(f"--{name.replace('_', '-')} has no effect: board '{build.board}' is simulated")
        progress.show(f"starting {build.board}")
        with RunningImage(build.run_command(), build.workspace.top, build.environment) as image:
            place = build.place or Serial(image.device(options.timeout))
            try:
                yield Running(configuration, place, has_shell=native and build.place is None, started=True)
            except LinkError as error:
                if not isinstance(error, ModelError) and image.ended(_ENDING):
                    raise LinkError(f"{error.message}\n{image.output()}", error.hint) from error
                raise
        return
    if build.place is not None:
        if not options.no_flash:
            build.flash()
        yield Running(configuration, build.place, has_shell=False, started=False)
        return
    device = choose_device(options.serial)
    if options.no_flash or native:
        check_device(device)
    else:
        if is_present(device):
            check_device(device)
        build.flash()
        wait_for_device(device, options.timeout)
        check_device(device)
    yield Running(configuration, Serial(device, options.baud), has_shell=native, started=False)


def served_model(link: Link, model: Mapping[str, Any] | None, option: str | None) -> Served:
    """Return a model of the image by its record, by the option, or the only one."""
    models = link.describe()
    name = model["name"] if model is not None else option
    if name is None:
        if len(models) != 1:
            names = ", ".join(served.name for served in models) or "none"
            raise LinkError(f"the image must have exactly one model, found: {names}", "select one with --model NAME")
        return models[0]
    return find_model(models, name, link.device)


def clock_of(options: ImageOptions, build: Build) -> str:
    """Return the clock of the latency: 'board', 'simulated' or 'emulated'."""
    if build.configuration().get("CONFIG_ARCH_POSIX") == "y":
        return "simulated"
    return "emulated" if build.is_emulated and options.serial is None and not options.no_flash else "board"


def latency_lines(nanoseconds: Sequence[int], clock: str) -> list[str]:
    """Return text lines with the latency of a run, or with the median and range of several."""
    if clock == "simulated" and not any(nanoseconds):
        return ["latency: unknown (code takes no simulated time on native_sim; --profile measures host time)"]
    text = f"latency: {_time(statistics.median(nanoseconds))}"
    if len(nanoseconds) > 1:
        low, high = min(nanoseconds), max(nanoseconds)
        text += f" (median of {len(nanoseconds)} runs, {_time(low)} to {_time(high)})"
    remark = {
        "simulated": ["  simulated time: it includes waiting, but no code execution"],
        "emulated": ["  emulated time: it differs from the time on the board"],
    }
    return [text + ", without the transfers", *remark.get(clock, [])]


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"
