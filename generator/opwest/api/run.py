# SPDX-License-Identifier: Apache-2.0
"""`opwest.run`: run a generated application on this machine or on a board."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.api.calls import AnyPath, CallResult, Progress, Words, api_function, check_choices, path_of, words_of
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.runs.arrays import Source
from opwest.runs.compare import Tolerance
from opwest.runs.options import BAUD, TIMEOUT, RunOptions
from opwest.runs.places import Udp, udp_place
from opwest.runs.progress import progress_to
from opwest.runs.results import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    AnyArray = NDArray[Any] | AnyPath

Arrays = Mapping[str, "AnyArray"] | Sequence[Source]
"""Arrays by the names of tensors: numpy arrays, or paths of .npy files."""
AnyTolerance = float | tuple[float, float]
"""The absolute error, or the absolute and the relative error."""


@dataclass(frozen=True, eq=False)
class RunResult(CallResult, Run):
    """What a run gave. A difference beyond the tolerance is no error: `passed` is False."""


HOST_ONLY = ("bits", "sanitize", "cmsis_nn", "dataset", "labels")
"""The options of a run on this machine."""
BOARD_ONLY = (
    *("check_steps", "serial", "udp", "ble", "baud", "timeout", "build_dir", "no_build", "no_flash"),
    *("shield", "snippet", "cmake", "zephyr_base"),
)
"""The options of a run on a board."""


@api_function
def run(
    faults: Diagnostics,
    directory: AnyPath,
    *,
    host: bool = False,
    board: str | None = None,
    model: str | None = None,
    inputs: Arrays = (),
    streams: Arrays = (),
    output_dir: AnyPath | None = None,
    repeat: int | None = None,
    profile: bool = False,
    output_profile: AnyPath | None = None,
    references: Arrays = (),
    tolerance: AnyTolerance | Mapping[str | None, AnyTolerance] | None = None,
    bits: int | None = None,
    sanitize: bool = False,
    cmsis_nn: AnyPath | None = None,
    dataset: Arrays = (),
    labels: AnyArray | Mapping[str, AnyArray] | Source | None = None,
    check_steps: bool = False,
    serial: str | None = None,
    udp: str | Udp | None = None,
    ble: str | None = None,
    baud: int | None = None,
    timeout: float | None = None,
    build_dir: AnyPath | None = None,
    no_build: bool = False,
    no_flash: bool = False,
    shield: Words = (),
    snippet: Words = (),
    cmake: Words = (),
    zephyr_base: AnyPath | None = None,
    capture: bool = True,
    progress: Progress | None = None,
) -> RunResult:
    """Run a model of an application on arrays: on this machine, or with `board` under Zephyr.

    `inputs` has an array for each input; `streams` has frames as first dimension, one run each in one workspace;
    `dataset` has cases, one run each without state. `references` are compared within `tolerance`, for all outputs or
    by name. Without arrays, this machine runs the application's main(); `stdout` of the result is its output, unless
    `capture` is False.
    """
    check_choices(faults, ("bits", bits, (None, 32, 64)))
    options = RunOptions(
        Path(directory),
        board or "",
        serial,
        _udp(udp, faults),
        ble,
        BAUD if baud is None else baud,
        TIMEOUT if timeout is None else timeout,
        path_of(build_dir),
        no_build,
        no_flash,
        path_of(zephyr_base),
        words_of(shield),
        words_of(snippet),
        words_of(cmake),
        frozenset(name for name, value in (("baud", baud), ("no_flash", no_flash)) if value),
        check_steps,
        profile,
        path_of(output_profile),
        progress=progress_to(progress),
        model=model,
        inputs=sources_of(inputs),
        streams=sources_of(streams),
        references=sources_of(references),
        tolerance=_tolerances(tolerance, faults),
        output_dir=path_of(output_dir),
        repeat=1 if repeat is None else repeat,
        bits=bits,
        sanitize=sanitize,
        cmsis_nn=path_of(cmsis_nn),
        dataset=sources_of(dataset),
        labels=_labels(labels),
        capture=capture,
    )
    given = {name: value for name, value in (("baud", baud), ("timeout", timeout)) if value is not None}
    if host and board is not None:
        faults.error("--host excludes --board")
    _check(options, {**vars_of(options), "baud": None, "timeout": None, **given}, repeat, faults)
    faults.raise_if_errors()
    _check_application(options.directory, faults)
    if options.board:
        from opwest.runs.board import run_on_board

        done = run_on_board(options, faults)
    else:
        from opwest.runs.host import run_on_host

        done = run_on_host(options, faults)
    return RunResult(**vars_of(done))


def _check_application(directory: Path, faults: Diagnostics) -> None:
    """Report an incomplete application; note one that is older than its manifest."""
    from opwest.runs.current import check_files, note_changes
    from opwest.runs.project_data import project_record

    record = project_record(directory)
    if record is None:  # an application that opwest did not generate can run on a board
        return
    check_files(directory, faults)
    faults.raise_if_errors()
    note_changes(directory, record, faults)


def vars_of(value: object) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without copies."""
    return dict(vars(value))


def sources_of(arrays: Arrays) -> Sequence[Source]:
    """Return the arrays of the user by the names of tensors."""
    if not isinstance(arrays, (Mapping, list, tuple)):
        raise fail(f"the arrays are of the type {type(arrays).__name__}", expected="arrays by name: {'x': array}")
    if not isinstance(arrays, Mapping):
        return arrays
    return [_source(name, value) for name, value in arrays.items()]


def _source(name: str, value: AnyArray) -> Source:
    if isinstance(value, (str, PathLike)):
        return Source(name, file=str(Path(value)))
    import numpy as np

    return Source(name, np.asarray(value))


def _labels(labels: AnyArray | Mapping[str, AnyArray] | Source | None) -> Source | None:
    """Return the classes of cases, with the name of the output if it is given."""
    if labels is None or isinstance(labels, Source):
        return labels
    if isinstance(labels, Mapping):
        ((name, value),) = labels.items()
        return _source(name, value)
    return _source("", labels)


def _tolerances(
    given: AnyTolerance | Mapping[str | None, AnyTolerance] | None, faults: Diagnostics
) -> dict[str | None, Tolerance]:
    """Return the tolerances by tensor; None: of all others."""
    if given is None:
        return {}
    tolerances: dict[str | None, Tolerance] = {}
    for name, value in (given if isinstance(given, Mapping) else {None: given}).items():
        absolute, relative = value if isinstance(value, tuple) and len(value) == 2 else (value, 0.0)
        numbers = (absolute, relative)
        if not all(isinstance(number, Real) and math.isfinite(number) and number >= 0 for number in numbers):
            faults.error(
                f"invalid tolerance {value!r}", expected="a number of at least 0, or a pair: absolute, relative"
            )
            continue
        tolerances[name] = Tolerance(float(absolute), float(relative))
    return tolerances


def _check(options: RunOptions, given: Mapping[str, Any], repeat: int | None, faults: Diagnostics) -> None:
    """Report options that have no effect with the others. `given`: values by name, as the user gave them."""
    host = not options.board
    for name in BOARD_ONLY if host else HOST_ONLY:
        compares = name == "cmsis_nn" and options.check_steps  # with a run on this machine
        if given[name] and not compares:
            if name == "cmake":
                faults.error("options of CMake require --board")
                continue
            flag = f"--{name.replace('_', '-')}"
            faults.error(f"{flag} requires --board" if host else f"{flag} cannot be used with --board")
    for label, number in (("repeat", repeat), ("baud", given["baud"]), ("timeout", given["timeout"])):
        if number is not None and number <= 0:
            faults.error(f"invalid {label} {number}", expected="a number above 0")
    if options.tolerance and not options.references and not options.check_steps:
        faults.error("--tolerance requires --reference" + ("" if host else " or --check-steps"))
    if options.labels is not None and not options.dataset:
        faults.error("--labels requires --dataset")
    if options.dataset:
        for option, runs in (("stream", options.streams), ("repeat", repeat)):
            if runs:
                faults.error(f"--dataset excludes --{option}", hint="the cases define the number of runs")
    if options.streams and repeat:
        faults.error("--stream excludes --repeat", hint="the frames define the number of runs")
    if host:
        from opwest.runs.host import runs_model

        for name, value in (("model", options.model), ("repeat", repeat)):
            if value is not None and not runs_model(options):
                faults.error(
                    f"--{name} has no effect on the application's main()",
                    hint="--input, --stream, --reference, --output-dir and --profile run a model without main()",
                )
        return
    check_connection(options.board, given, faults)
    if options.check_steps:
        if options.cmsis_nn is not None and options.references:
            faults.error("--cmsis-nn has no effect with --reference: the model does not run on this machine")
        excluded: tuple[tuple[str, object], ...] = (
            ("stream", options.streams),
            ("output-dir", options.output_dir),
            ("repeat", repeat),
            ("profile", options.profile),
            ("output-profile", options.output_profile),
        )
        for name, other in excluded:
            if other:
                faults.error(f"--check-steps excludes --{name}")


def _udp(given: str | Udp | None, faults: Diagnostics) -> Udp | None:
    try:
        return udp_place(given) if isinstance(given, str) else given
    except ValueError as error:
        faults.error(f"invalid --udp {error}")
        return None


PLACES = ("serial", "udp", "ble")
"""The options that name the place of an image."""
_CMAKE = re.compile(r"-D([\w+.-]+)(?::[A-Z]+)?=.*", re.DOTALL)
_SET = ("BOARD", "OPWEST_RUNTIME", "OPWEST_SERVICES", "QEMU_PTY", "SHIELD", "SNIPPET")


def check_connection(board: str, given: Mapping[str, Any], faults: Diagnostics) -> None:
    """Report options of the connection that have no effect with the others."""
    places = [name for name in PLACES if given[name] is not None]
    where = next(iter(places), None)
    for other in places[1:]:
        faults.error(f"--{other} excludes --{where}")
    if given["no_build"] and given["no_flash"] and where and given["zephyr_base"] is not None:
        faults.error(f"--zephyr-base has no effect with --no-build, --no-flash and --{where}: Zephyr is not used")
    if given["no_build"]:
        for name in ("shield", "snippet"):
            if given[name]:
                faults.error(f"--{name} has no effect with --no-build")
        if given["cmake"]:
            faults.error("options of CMake have no effect with --no-build")
    _check_cmake(given["cmake"], faults)
    if where in ("udp", "ble") and given["baud"] is not None:
        faults.error(f"--baud has no effect with --{where}")
    elif board.startswith("native_") and given["baud"] is not None:
        faults.error(f"--baud has no effect on board '{board}'")
    if board.startswith("native_"):
        if given["ble"] is not None:
            faults.error(f"--ble has no effect on board '{board}'")
        if given["no_flash"] and where is None:  # with a place, the image runs already
            faults.error(f"--no-flash has no effect on board '{board}' without --serial or --udp")


def _check_cmake(words: Sequence[str], faults: Diagnostics) -> None:
    """Report words that are no options of CMake, and options that the command sets."""
    for word in words:
        match = _CMAKE.fullmatch(word)
        if match is None:
            faults.error(f"'{word}' after -- is no option of CMake", expected="-DNAME=VALUE, such as -DCONFIG_FPU=y")
        elif match[1] in _SET:
            hint = {"BOARD": "--board B", "SHIELD": "--shield S", "SNIPPET": "--snippet S"}.get(match[1])
            faults.error(f"-D{match[1]} cannot be given: the command sets it", expected=hint)
