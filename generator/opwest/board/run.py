# SPDX-License-Identifier: Apache-2.0
"""`opwest run --board`: build, start or flash, connect, run the model, and report the results."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from opwest.board.compare import difference
from opwest.board.image import RunningImage
from opwest.board.link import Link, LinkError, ModelError, Served
from opwest.board.ports import check_device, choose_device, wait_for_device
from opwest.board.progress import Progress, make_progress
from opwest.board.services import write_services
from opwest.board.session import Outcome, check_tensors, find_model, run_model
from opwest.board.west import Build, find_west, missing_tools
from opwest.diagnostics import Diagnostic, Diagnostics, OpwestError
from opwest.host.compile import fail
from opwest.host.profile import keep_profile
from opwest.host.project_data import (
    choose_model,
    keep_outputs,
    make_folder,
    project_record,
    read_inputs,
    read_references,
    tensors_of,
)
from opwest.host.runtime import installed_runtime
from opwest.render.boards import board_file
from opwest.result import Result
from opwest.zephyr.checks import check_board
from opwest.zephyr.workspace import Workspace, fault_of_base, find_workspace

_INSTALL = "pip install 'smpclient[serial]'"
_ENDING = 1.0
"""Seconds to wait for an image to exit after its device disappeared."""


def run_on_board(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Run a model under Zephyr; return its outputs, its latency and the errors against references."""
    project: Path = options.directory
    record = project_record(project)
    if record is None and not (project / "CMakeLists.txt").is_file():
        raise fail(
            "not an application: no CMakeLists.txt found",
            project,
            hint="generate one with 'opwest generate MANIFEST -o DIR'",
        )
    model = choose_model(options.model, project, record) if record else None
    arrays = _Arrays(options, faults)
    if model is not None:  # report faults of the arrays before the build
        arrays.read(model["tensors"])
    if options.output_dir:
        make_folder(options.output_dir)
    progress = make_progress(quiet=options.json)
    try:
        if not options.board.startswith("native_"):
            _need_smpclient()
        build = _prepare(options, record, progress, faults)
        with _connected(options, build, progress) as link:
            progress.show(f"waiting for the image on {link.device}")
            served = _served(link, model, options.model)
            if model is not None:
                check_tensors(served, model["tensors"], link.device)
            else:
                arrays.read([asdict(tensor) for tensor in served.tensors])
            outcome = run_model(
                link, served, arrays.inputs, repeat=options.repeat, progress=progress, profile=_profiled(options)
            )
            device = link.device
    except LinkError as error:
        progress.end()
        raise OpwestError([Diagnostic("error", error.message, hint=error.hint)]) from error
    except OSError as error:
        progress.end()
        raise OpwestError([Diagnostic("error", f"{error.filename}: {error.strerror}")]) from error
    devices = model["devices"] if model is not None else ()
    return _result(options, build, served, device, outcome, arrays, devices)


def _profiled(options: argparse.Namespace) -> bool:
    return options.profile or options.output_profile is not None


class _Arrays:
    """The input and reference arrays of the command line."""

    def __init__(self, options: argparse.Namespace, faults: Diagnostics) -> None:
        self._options = options
        self._faults = faults
        self.inputs: dict[str, Any] = {}
        self.references: dict[str, Any] = {}

    def read(self, tensors: Sequence[Mapping[str, Any]]) -> None:
        """Read all arrays. Raises OpwestError with every fault."""
        model = {"tensors": tensors}
        self.inputs = read_inputs(self._options.input, tensors_of(model, "input"), self._faults)
        self.references = read_references(self._options.reference, tensors_of(model, "output"), self._faults)
        self._faults.raise_if_errors()


def _need_smpclient() -> None:
    if importlib.util.find_spec("smpclient") is None or importlib.util.find_spec("serial") is None:
        raise LinkError(
            "missing Python packages: smpclient and pyserial are required to connect to a board", f"run {_INSTALL}"
        )


def _prepare(
    options: argparse.Namespace, record: Mapping[str, Any] | None, progress: Progress, faults: Diagnostics
) -> Build:
    """Return the new build, or the existing one with --no-build."""
    workspace, west = _find_tools(options)
    project = options.directory.resolve()
    name = f"run_{board_file(options.board)}{'_profile' if _profiled(options) else ''}"
    folder: Path = (options.build_dir or options.directory / "build" / name).resolve()
    for path in (project, folder):
        if " " in str(path):
            raise LinkError(f"path with a space: '{path}', which Zephyr does not support")
    runtime = installed_runtime(options.directory)
    build = Build(workspace, west, project, options.board, folder, progress, runtime, profile=_profiled(options))
    if not options.no_build:
        if record is not None:
            write_services(build.services, project, record)
        _check_board(options.board, workspace, project, faults)
        build.build()
    configuration = build.configuration()
    if not configuration and not options.no_flash:
        raise LinkError(f"no build in '{build.folder}'", "omit --no-build")
    if configuration and configuration.get("CONFIG_OPWEST_SERVICE") != "y":
        raise LinkError(
            f"the image in '{build.folder}' has no opwest service (CONFIG_OPWEST_SERVICE)",
            "omit --no-build, or build with -DCONFIG_OPWEST_SERVICE=y",
        )
    if configuration and build.profile and configuration.get("CONFIG_OPWEST_PROFILE") != "y":
        raise LinkError(
            f"the image in '{build.folder}' does not measure steps (CONFIG_OPWEST_PROFILE)",
            "omit --no-build, or build with -DCONFIG_OPWEST_PROFILE=y",
        )
    return build


def _check_board(board: str, workspace: Workspace, project: Path, faults: Diagnostics) -> None:
    """Raise OpwestError if the workspace lacks the board, unless the application sets a BOARD_ROOT."""
    with contextlib.suppress(OSError):
        if "BOARD_ROOT" in (project / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace"):
            return
    check_board(board, replace(workspace, roots=(project,)), faults)
    faults.raise_if_errors()


def _find_tools(options: argparse.Namespace) -> tuple[Workspace, str]:
    """Return the workspace and its west."""
    wrong = fault_of_base() if options.zephyr_base is None else None
    if wrong is not None:
        raise LinkError(wrong, "correct or unset ZEPHYR_BASE, or give --zephyr-base")
    workspace = find_workspace(options.zephyr_base) or Workspace(Path.home() / "zephyrproject" / "zephyr")
    west = find_west(workspace)
    if options.no_build and options.no_flash and options.serial:
        return workspace, west or "west"  # neither is needed
    if workspace.version is None:
        if options.zephyr_base is not None:
            raise LinkError(f"'{options.zephyr_base}' is not a Zephyr tree: missing file 'VERSION'")
        raise LinkError("no Zephyr workspace found", "set ZEPHYR_BASE, run in the workspace, or give --zephyr-base")
    missing = [*([] if west else ["west"]), *missing_tools()]
    if west is None or missing:
        hint = None if west else "run pip install west"
        raise LinkError(f"missing tools for Zephyr in '{workspace.base}': {', '.join(missing)}", hint)
    return workspace, west


@contextlib.contextmanager
def _connected(options: argparse.Namespace, build: Build, progress: Progress) -> Iterator[Link]:
    """Start or flash the image, and yield a connection to it."""
    configuration = build.configuration()
    native = configuration.get("CONFIG_ARCH_POSIX") == "y" if configuration else build.board.startswith("native_")
    simulated = native or configuration.get("CONFIG_QEMU_TARGET") == "y"
    if simulated and options.serial is None:
        progress.show(f"starting {build.board}")
        with RunningImage(build.run_command(), build.workspace.top, build.environment) as image:
            device = image.device(options.timeout)
            with _linked(options, configuration, device, native=native) as link:
                try:
                    yield link
                except LinkError as error:
                    if not isinstance(error, ModelError) and image.ended(_ENDING):
                        raise LinkError(f"{error.message}\n{image.output()}", error.hint) from error
                    raise
        return
    _need_smpclient()
    device = choose_device(options.serial)
    if options.no_flash or native:
        check_device(device)
    else:
        if Path(device).exists():
            check_device(device)
        build.flash()
        wait_for_device(device, options.timeout)
        check_device(device)
    with _linked(options, configuration, device, native=native) as link:
        yield link


@contextlib.contextmanager
def _linked(
    options: argparse.Namespace, configuration: Mapping[str, str], device: str, *, native: bool
) -> Iterator[Link]:
    link: Link
    if native:
        from opwest.board.shell_link import ShellLink

        link = ShellLink(device, options.timeout)
    else:
        from opwest.board.smp_link import DEFAULT_GROUP, SmpLink

        group = int(configuration.get("CONFIG_OPWEST_SERVICE_SMP_GROUP", DEFAULT_GROUP))
        link = SmpLink(device, options.baud, options.timeout, group)
    try:
        yield link
    finally:
        link.disconnect()


def _served(link: Link, model: Mapping[str, Any] | None, option: str | None) -> Served:
    models = link.describe()
    name = model["name"] if model is not None else option
    if name is None:
        if len(models) != 1:
            names = ", ".join(one.name for one in models) or "none"
            raise LinkError(f"the image must have exactly one model, found: {names}", "select one with --model NAME")
        return models[0]
    return find_model(models, name, link.device)


def _result(
    options: argparse.Namespace,
    build: Build,
    served: Served,
    device: str,
    outcome: Outcome,
    arrays: _Arrays,
    devices: Sequence[str],
) -> Result:
    configuration = build.configuration()
    lines = [f"{served.name} on {build.board}, {device}"]
    lines += keep_outputs(outcome.outputs, {t.name: t.dtype for t in served.tensors}, options.output_dir)
    errors = {name: difference(outcome.outputs[name], reference) for name, reference in arrays.references.items()}
    lines += [f"{name}: {error.as_text()}" for name, error in errors.items()]
    clock = _clock(options, configuration)
    lines += _latency(outcome.nanoseconds, clock)
    extra: dict[str, Any] = {}
    if outcome.profile is not None:
        host = configuration.get("CONFIG_OPWEST_PROFILE_CLOCK_HOST") == "y"
        profile = outcome.profile.labelled(served.name, build.board, "host" if host else clock, devices)
        lines += keep_profile(profile, options.output_profile)
        extra["profile"] = profile.as_json()
    return Result(
        "\n".join(lines),
        {
            "model": served.name,
            "board": build.board,
            "device": device,
            "build": str(build.folder),
            "outputs": {name: array.tolist() for name, array in outcome.outputs.items()},
            "errors": {name: error.as_json() for name, error in errors.items()},
            "latency_ns": list(outcome.nanoseconds),
            "clock": clock,
            **extra,
        },
    )


def _clock(options: argparse.Namespace, configuration: Mapping[str, str]) -> str:
    """Return the clock of the latency: 'board', 'simulated' or 'emulated'."""
    if configuration.get("CONFIG_ARCH_POSIX") == "y":
        return "simulated"
    return "emulated" if configuration.get("CONFIG_QEMU_TARGET") == "y" and options.serial is None else "board"


def _latency(nanoseconds: Sequence[int], clock: str) -> list[str]:
    """Return text lines with the latency of a run, or with the median and range of several."""
    if clock == "simulated" and not any(nanoseconds):
        return ["latency: unknown (code takes no simulated time on native_sim)"]
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
