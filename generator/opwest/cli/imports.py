# SPDX-License-Identifier: Apache-2.0
"""`opwest import`: convert a model or the output of another compiler to a directory with a manifest."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import Result
from opwest.compiler import request as models
from opwest.frontends.vela import request as vela
from opwest.imports import child
from opwest.model.types.c_names import MAX_CHARACTERS, fault_of_name
from opwest.model.types.dtypes import DTYPES

if TYPE_CHECKING:
    from opwest.frontends.mlf.draft import TensorOption


def import_trained(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a trained model: integer operators are exact, and written as C. TVM and TensorFlow are not required."""
    if getattr(options, "npu", None) is not None:
        return import_for_npu(options, faults)
    _check_name(options, faults)
    _check_npu_options(options, faults)
    place = Location(str(options.file))
    settings = _settings(options, faults)
    done, arrays = child.import_and_compare(options.file, options.output, settings, _progress(options))
    compared = ""
    if arrays is not None:
        from opwest.imports.comparison import DEQUANTISED, compare

        several = len(done.models) > 1
        tolerance = DEQUANTISED if options.dequantise_weights else None
        for model in done.models:
            start = f"{model}/" if several else ""
            own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
            words = compare(done.folder / start, own, place, tolerance)
            compared += f"{model}: {words}\n" if several else f"{words}\n"
    for remark in done.remarks:
        faults.note(remark, place)
    for warning in done.warnings:
        faults.warning(warning, place)
    words = "\n".join(_trained(done, model) for model in done.models)
    table = f"{done.choices}\n" if done.choices else ""
    return Result(table + compared + words, {**dataclasses.asdict(done), "folder": str(done.folder)})


_OF_NPU = ("npu_config", "system_config", "memory_mode", "board")
"""The options of a TFLite model that Vela compiles."""


def _check_npu_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options for an NPU without one."""
    for name in _OF_NPU:
        if getattr(options, name, None):
            faults.error(f"--{name.replace('_', '-')} without --npu", expected="--npu NAME, such as ethos-u55-128")
    faults.raise_if_errors()


def _settings(options: argparse.Namespace, faults: Diagnostics) -> models.Options:
    """Return the request of a command line; options that it does not contain have their defaults."""
    values: dict[str, Any] = {"format": options.kind}
    for name, option in models.options_of(options.kind).items():
        if not hasattr(options, name):
            continue
        value = getattr(options, name)
        if isinstance(option.choices, Mapping):
            value = option.choices[value]
        elif option.value == "path":
            value = [str(Path(one).absolute()) for one in value]
        elif option.value == "pair":
            value = _operators(value, faults)
        values[name] = tuple(value) if option.repeatable else value
    return models.Options(**values)


def import_for_npu(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Compile a TFLite model with Vela, and import the result."""
    defaults = _settings(argparse.Namespace(kind=options.kind), faults)
    given = _settings(options, faults)
    for name, option in models.options_of(options.kind).items():
        if not option.with_npu and getattr(given, name) != getattr(defaults, name):
            faults.error(f"{models.flag_of(name, option)} cannot be used with --npu")
    if options.kernels not in vela.KERNELS:
        faults.error(f"--kernels {options.kernels} cannot be used with --npu", expected=" or ".join(vela.KERNELS))
    return _import_vela(options, faults, options.npu)


def import_vela(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a file of Vela; Vela is not required."""
    return _import_vela(options, faults, None)


def _import_vela(options: argparse.Namespace, faults: Diagnostics, npu: str | None) -> Result:
    _check_name(options, faults)
    config = getattr(options, "npu_config", None)
    settings = vela.Options(
        options.model,
        options.kernels,
        options.pools,
        options.board,
        npu,
        None if config is None else _config(config),
        getattr(options, "system_config", None),
        options.memory_mode,
    )
    done = child.import_in_child(options.file, options.output, settings, _progress(options))
    place = Location(str(options.file))
    for remark in done.remarks:
        faults.note(remark, place)
    table = f"{done.choices}\n" if done.choices else ""
    words = _trained(done, done.models[0])
    return Result(table + words, {**dataclasses.asdict(done), "folder": str(done.folder)})


def _config(text: str) -> str:
    """Return the value of --npu-config: a path of the user, or a name in Vela's package, as Arm/vela.ini."""
    return str(Path(text).absolute()) if Path(text).exists() else text


def _operators(given: list[str], faults: Diagnostics) -> list[tuple[str, str]]:
    """Return the values of --operator."""
    operators = []
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            faults.error(f"invalid --operator {text!r}", expected="NAME=FILE.yaml, such as MyOperator=my_operator.yaml")
        operators.append((name, path))
    faults.raise_if_errors()
    return operators


def counts_text(operators: int, steps: int, constant_bytes: int) -> str:
    """Return the counts of an import in words."""
    counted = [(operators, "operator"), (steps, "step"), (constant_bytes, "byte")]
    words = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counted]
    return f"{', '.join(words)} of constants"


def _trained(done: models.Imported, model: str) -> str:
    """Return the summary of one signature."""
    folder = done.folder if len(done.models) == 1 else done.folder / model
    manifest = folder / "manifest.yaml"
    counts = counts_text(done.operators, done.steps, done.constant_bytes)
    shown = f"{manifest}: {counts}" if len(done.models) == 1 else str(manifest)
    return f"{shown}\nnext: opwest generate {manifest} -o app"


def import_mlf(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model in microTVM's Model Library Format, versions 5, 6 and 7; TVM is not required."""
    from opwest.frontends import mlf

    _check_name(options, faults)
    tensors = _tensors(options.tensor, faults)
    done = mlf.import_mlf(
        options.file,
        options.output,
        mlf.Options(options.model, options.module, options.target, tensors, options.compat),
    )
    place = Location(str(options.file))
    for remark in done.remarks:
        faults.note(remark, place)
    for warning in done.warnings:
        faults.warning(warning, place)
    manifest = done.folder / "manifest.yaml"
    counts = counts_text(done.operators, done.steps, done.constant_bytes)
    words = f"{manifest}: {counts}\nnext: opwest generate {manifest} -o app"
    if done.header is not None and options.compat is None:
        words += f"\nfor an application that includes {done.header}: import with --compat tvmgen"
    return Result(words, {**dataclasses.asdict(done), "folder": str(done.folder)})


def _check_name(options: argparse.Namespace, faults: Diagnostics) -> None:
    if options.model is not None:
        reason = fault_of_name(options.model)
        if reason is not None:
            shown = options.model if len(options.model) <= MAX_CHARACTERS else f"{options.model[:30]}..."
            faults.error(f"model name {shown!r} {reason}")
            faults.raise_if_errors()


def _tensors(given: list[str], faults: Diagnostics) -> dict[str, TensorOption]:
    """Return the values of --tensor by tensor name."""
    from opwest.frontends.mlf.draft import TensorOption

    tensors = {}
    for text in given:
        match = re.fullmatch(r"([^=]+)=(?:(\w+):)?(\d{1,9}(?:,\d{1,9})*)", text)
        if match is None or match[2] not in (None, *DTYPES):
            faults.error(
                f"invalid --tensor {text!r}",
                expected="NAME=SHAPE or NAME=DTYPE:SHAPE, such as input=1,49,10,1 or scores=int8:1,12",
                hint=f"valid dtypes: {', '.join(DTYPES)}",
            )
            continue
        tensors[match[1]] = TensorOption(match[2], tuple(int(n) for n in match[3].split(",")))
    faults.raise_if_errors()
    return tensors


def _progress(options: argparse.Namespace) -> Callable[[str], None]:
    return _no_progress if options.quiet else _print_progress


def _print_progress(text: str) -> None:
    print(f"opwest: {text}", file=sys.stderr, flush=True)


def _no_progress(text: str) -> None:
    """Print nothing."""
