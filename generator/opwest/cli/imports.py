# SPDX-License-Identifier: Apache-2.0
"""`opwest import`: convert a model or the output of another compiler to a directory with a manifest."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import Diagnostics, Location, fail
from opwest.base.result import Result, counted
from opwest.cli.arguments import is_verbose, option_of, progress_of
from opwest.compiler import request as models
from opwest.frontends.vela import request as vela
from opwest.imports import child
from opwest.imports.choices import choices_text
from opwest.model.types.c_names import MAX_CHARACTERS, fault_of_name
from opwest.model.types.dtypes import DTYPES
from opwest.objects.flash import UNKNOWN
from opwest.zephyr.processors import flash_of_board
from opwest.zephyr.workspace import find_workspace

if TYPE_CHECKING:
    from opwest.frontends.mlf.convert import Imported as ImportedArchive
    from opwest.frontends.mlf.draft import TensorOption
    from opwest.imports.comparison import Compared

_OF_NPU = ("npu_config", "system_config", "memory_mode")
"""The options of a TFLite model that Vela compiles."""


def import_trained(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a trained model: integer operators are exact, and written as C. TVM and TensorFlow are not required."""
    if getattr(options, "npu", None) is not None:
        return import_for_npu(options, faults)
    _check_name(options)
    for name in _OF_NPU:
        if getattr(options, name, None):
            faults.error(f"{option_of(name)} without --npu", expected="--npu NAME, such as ethos-u55-128")
    faults.raise_if_errors()
    settings = _with_flash(_settings(options, faults), faults)
    done, arrays = child.import_and_compare(options.file, options.output, settings, progress_of(options))
    several = len(done.models) > 1
    compared: dict[str, Compared] = {}
    if arrays is not None:
        from opwest.imports.comparison import DEQUANTISED, compare

        tolerance = DEQUANTISED if options.dequantise_weights else None
        for model in done.models:
            start = f"{model}/" if several else ""
            own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
            compared[model] = compare(done.folder / start, own, Location(str(options.file)), tolerance)
    words = [f"{model}: {one.as_text()}" if several else one.as_text() for model, one in compared.items()]
    written = [_written(done.folder / model) for model in done.models] if several else [_written(done.folder, done)]
    return _result([*words, *written], done, options, faults, compared)


def _settings(options: argparse.Namespace, faults: Diagnostics) -> models.Options:
    """Return the request of a command line."""
    values: dict[str, Any] = {"format": options.kind}
    for name, option in models.options_of(options.kind).items():
        value = getattr(options, name)
        if isinstance(option.choices, Mapping):
            value = option.choices[value]
        elif option.value == "path":
            value = [str(Path(path).absolute()) for path in value]
        elif option.value == "pair":
            value = _operators(value, faults)
        values[name] = tuple(value) if option.repeatable else value
    return models.Options(**values)


def _with_flash(settings: models.Options, faults: Diagnostics) -> models.Options:
    """Return a request with the flash of its boards, unless it states a flash, or none of them is known."""
    if settings.given_flash is not None or not settings.boards:
        return settings
    workspace = find_workspace(None)
    known = {board: flash_of_board(board, workspace) for board in settings.boards}
    texts = sorted({flash.text for flash in known.values() if flash is not None})
    if len(texts) > 1:
        faults.error(
            f"--board {', '.join(settings.boards)}: the boards have different flash: {'; '.join(texts)}",
            expected=f"--flash {texts[0]}, or another one for all boards",
        )
        faults.raise_if_errors()
    for board, flash in known.items():
        if flash is None:
            where = " without a Zephyr tree" if workspace is None else ""
            assumed = texts[0] if texts else UNKNOWN.text
            faults.note(f"--board {board}: its flash is unknown{where}; assumed: --flash {assumed}")
    return dataclasses.replace(settings, given_flash=texts[0]) if texts else settings


def import_for_npu(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Compile a TFLite model with Vela, and import the result."""
    defaults = models.Options(format=options.kind)
    given = _settings(options, faults)
    for name, option in models.options_of(options.kind).items():
        if not option.with_npu and getattr(given, name) != getattr(defaults, name):
            faults.error(f"{models.flag_of(name, option)} cannot be used with --npu")
    if options.kernels not in vela.KERNELS:
        faults.error(f"--kernels {options.kernels} cannot be used with --npu", expected=" or ".join(vela.KERNELS))
    return import_vela(options, faults)


def import_vela(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a file of Vela, or with --npu a model that Vela compiles."""
    _check_name(options)
    config = getattr(options, "npu_config", None)
    if config is not None and Path(config).exists():  # else a name in Vela's package, as Arm/vela.ini
        config = str(Path(config).absolute())
    settings = vela.Options(
        options.model,
        options.kernels,
        options.pools,
        options.boards,
        getattr(options, "npu", None),
        config,
        getattr(options, "system_config", None),
        options.memory_mode,
    )
    done = child.import_in_child(options.file, options.output, settings, progress_of(options))
    return _result([_written(done.folder, done)], done, options, faults)


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


def _written(folder: Path, done: models.Imported | ImportedArchive | None = None) -> str:
    """Return the manifest in a directory, the counts of an import of one model, and the next command."""
    manifest, counts = folder / "manifest.yaml", ""
    if done is not None:
        parts = [(done.operators, "operator"), (done.steps, "step"), (done.constant_bytes, "byte")]
        counts = f": {', '.join(counted(count, what) for count, what in parts)} of constants"
    return f"{manifest}{counts}\nnext: opwest generate {manifest} -o app"


def _result(
    texts: list[str],
    done: models.Imported | ImportedArchive,
    options: argparse.Namespace,
    faults: Diagnostics,
    compared: Mapping[str, Compared] = MappingProxyType({}),
) -> Result:
    """Report the remarks and the warnings of an import; return its result, with the table of the choices first."""
    place = Location(str(options.file))
    for remark in done.remarks:
        faults.note(remark, place)
    for warning in done.warnings:
        faults.warning(warning, place)
    names: Sequence[str]
    choices: Sequence[Mapping[str, Any]] = ()
    archive = None
    if isinstance(done, models.Imported):
        names, choices = done.models, done.choices
    else:
        names = (done.model,)
        archive = {key: getattr(done, key) for key in ("version", "workspace_bytes", "tvm_workspace_bytes", "header")}
    shown = {
        "directory": str(done.folder),
        "models": list(names),
        "files": list(done.files),
        "operator_count": done.operators,
        "step_count": done.steps,
        "constant_bytes": done.constant_bytes,
        "choices": list(choices),
        "comparison": [
            {
                "model": model,
                "input_count": one.inputs,
                "result_count": one.results,
                "largest_error": one.largest,
                "tolerance": one.tolerance,
            }
            for model, one in compared.items()
        ],
        "archive": archive,
    }
    tables = choices_text(choices, all_variants=is_verbose(options))
    return Result("\n".join(filter(None, (tables, *texts))), shown)


def import_mlf(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model in microTVM's Model Library Format, versions 5, 6 and 7; TVM is not required."""
    from opwest.frontends import mlf

    _check_name(options)
    tensors = _tensors(options.tensor, faults)
    done = mlf.import_mlf(
        options.file,
        options.output,
        mlf.Options(options.model, options.module, options.target, tensors, options.compat),
    )
    text = [_written(done.folder, done)]
    if done.header is not None and options.compat is None:
        text.append(f"for an application that includes {done.header}: import with --compat tvmgen")
    return _result(text, done, options, faults)


def _check_name(options: argparse.Namespace) -> None:
    reason = None if options.model is None else fault_of_name(options.model)
    if reason is not None:
        shown = options.model if len(options.model) <= MAX_CHARACTERS else f"{options.model[:30]}..."
        raise fail(f"model name {shown!r} {reason}")


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
