# SPDX-License-Identifier: Apache-2.0
"""`opwest run` and `opwest call`: the arrays and tolerances of the command line, and the output."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.api.calls import collecting
from opwest.api.run import check_connection
from opwest.api.run import run as run_application
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result
from opwest.cli.run_options import connection_of, stages_of
from opwest.runs.arrays import Source, label_lines, loaded
from opwest.runs.options import CallOptions
from opwest.runs.profile import UNKNOWN_VARIANT
from opwest.runs.results import Outputs, Run

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TOLERANCE = re.compile(rf"(?:(?P<name>[^=]+)=)?(?P<absolute>{_NUMBER})(?:,(?P<relative>{_NUMBER}))?")


def run(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Run an application."""
    labels, _, file = (options.labels or "").rpartition("=")
    done = collecting(run_application, faults)(
        options.directory,
        host=options.host,
        board=options.board,
        model=options.model,
        inputs=sources_of(options.input, "input", faults),
        streams=sources_of(options.stream, "stream", faults),
        output_dir=options.output_dir,
        repeat=options.repeat,
        profile=options.profile,
        output_profile=options.output_profile,
        references=sources_of(options.reference, "reference", faults),
        tolerance=tolerances_of(options.tolerance, faults),
        bits=options.bits,
        sanitize=options.sanitize,
        cmsis_nn=options.cmsis_nn,
        dataset=sources_of(options.dataset, "dataset", faults),
        labels=Source(labels, file=file) if file else None,
        check_steps=options.check_steps,
        serial=options.serial,
        udp=options.udp,
        ble=options.ble,
        baud=options.baud,
        timeout=options.timeout,
        build_dir=options.build_dir,
        no_build=options.no_build,
        no_flash=options.no_flash,
        shield=options.shield,
        snippet=options.snippet,
        cmake=options.cmake,
        zephyr_base=options.zephyr_base,
        capture=options.json,
        progress=stages_of(options),
    )
    return Result("\n".join(_lines(done)), _json(done), status=int(not done.passed))


def sources_of(given: Sequence[str], option: str, faults: Diagnostics) -> list[Source]:
    """Return the arrays of options `NAME=FILE.npy` and `FILE.npz`; report invalid ones."""
    sources: list[Source] = []
    for text in given:
        name, separator, file = text.partition("=")
        if separator and name and file:
            sources.append(Source(name, file=file))
        elif separator or not text.endswith(".npz"):
            faults.error(f"invalid --{option} {text!r}", expected="NAME=FILE.npy, or FILE.npz with arrays by name")
        else:
            names = loaded(f"{option}: ", Path(text), None, "a file written by numpy.savez", faults)
            if isinstance(names, dict):
                sources += [Source(key, file=text, key=key) for key in names]
            elif names is not None:
                faults.error(f"{option}: '{text}' is an .npy file", expected=f"--{option} NAME={text}")
    return sources


def tolerances_of(given: Sequence[str], faults: Diagnostics) -> dict[str | None, float | tuple[float, float]]:
    """Return the tolerances of options `[NAME=]ABS[,REL]`; report invalid and duplicate ones."""
    tolerances: dict[str | None, float | tuple[float, float]] = {}
    for text in given:
        match = _TOLERANCE.fullmatch(text)
        values = (float(match["absolute"]), float(match["relative"] or 0)) if match else (math.inf, 0.0)
        if match is None or not all(map(math.isfinite, values)):
            faults.error(
                f"invalid --tolerance {text!r}",
                expected="[NAME=]ABSOLUTE[,RELATIVE], such as 0.001 or y=0,1e-5: finite numbers, 0 or more",
            )
        elif match["name"] in tolerances:
            name = match["name"]
            faults.error(
                f"duplicate --tolerance {text!r} for all tensors" if name is None else f"duplicate tolerance {name!r}"
            )
        else:
            tolerances[match["name"]] = values
    return tolerances


def _lines(done: Run) -> list[str]:
    """Return what is printed for people."""
    if done.model is None:
        return []
    lines = _heading(done)
    if done.check is not None:
        return [*lines, done.check.as_text()]
    for name in done.outputs:
        lines += _output_lines(done, name, done.labels.get(name, ()), frames=done.frames)
    lines += [f"{name}: {error.as_text()}" for name, error in done.differences.items()]
    lines += _latency_lines(done)
    if done.accuracy is not None:
        right = done.accuracy
        lines.append(f"accuracy of {right.output}: {right.accuracy:.2%} ({right.correct} of {right.cases})")
    if done.profile is not None:
        lines += done.profile.as_text()
        if done.profile_file is not None:
            lines.append(f"  written to {done.profile_file}")
    return lines


def _heading(done: Outputs) -> list[str]:
    return [] if done.board is None else [f"{done.model} on {done.board}, {done.connection}"]


def _output_lines(done: Outputs, name: str, labels: Sequence[str] = (), *, frames: bool = False) -> list[str]:
    import numpy as np

    array = done.outputs[name]
    shown = np.array2string(array.reshape(-1), threshold=8)
    lines = [f"{name}: {done.dtypes[name]} {list(array.shape)}: {shown}"]
    lines += label_lines(array, labels, frames=frames)
    return lines + ([f"  written to {done.files[name]}"] if name in done.files else [])


def _latency_lines(done: Outputs) -> list[str]:
    if done.board is None:
        return []
    from opwest.runs.connection import latency_lines

    return latency_lines(done.latency_ns, done.clock)


def _json(done: Run) -> dict[str, Any]:
    """Return what is printed for programs."""
    if done.model is None:
        return {"exit_code": 0, "stdout": done.stdout}
    shown: dict[str, Any] = {"model": done.model, **_board_json(done)}
    if done.check is not None:
        return {**shown, "check": done.check.as_json()}
    if done.variant != UNKNOWN_VARIANT:
        shown["variant"] = done.variant
    shown["outputs"] = {name: array.tolist() for name, array in done.outputs.items()}
    shown["errors"] = {name: error.as_json() for name, error in done.differences.items()}
    if done.board is not None:
        shown["latency_ns"] = list(done.latency_ns)
    shown["clock"] = done.clock
    if done.accuracy is not None:
        right = done.accuracy
        shown["accuracy"] = {
            "output": right.output,
            "correct": right.correct,
            "cases": right.cases,
            "accuracy": right.accuracy,
        }
    if done.profile is not None:
        shown["profile"] = done.profile.as_json()
    return shown


def _board_json(done: Outputs) -> dict[str, Any]:
    return (
        {}
        if done.board is None
        else {"board": done.board, "connection": done.connection, "build_directory": str(done.build_directory)}
    )


def call(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Call one operator on a board."""
    from opwest.runs.call import call_on_board

    check_connection(options.board, vars(options), faults)
    faults.raise_if_errors()
    names = ("directory", "board", "operator", "model", "arg", "device", "output_dir")
    done = call_on_board(
        CallOptions(
            **{name: getattr(options, name) for name in names},
            **connection_of(options),
            repeat=options.repeat or 1,
        ),
        faults,
    )
    lines = [f"{done.operator} of {done.model} on {done.board}, {done.connection}"]
    lines += [line for name in done.outputs for line in _output_lines(done, name)]
    lines += _latency_lines(done)
    return Result(
        "\n".join(lines),
        {
            "model": done.model,
            "operator": done.operator,
            **_board_json(done),
            "outputs": {name: array.tolist() for name, array in done.outputs.items()},
            "latency_ns": list(done.latency_ns),
            "clock": done.clock,
        },
    )
