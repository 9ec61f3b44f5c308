# SPDX-License-Identifier: Apache-2.0
"""`opwest import`: the options of each kind as arguments of the import, and the output."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opwest.api.calls import collecting
from opwest.api.import_model import PARAMETERS, ImportResult
from opwest.api.import_model import import_model as convert
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.result import Result, counted
from opwest.cli.arguments import is_verbose, progress_of
from opwest.compiler.request import options_of
from opwest.imports.choices import choices_text
from opwest.model.types.dtypes import DTYPES

_OF_NPU = ("npu", "npu_config", "system_config", "memory_mode")


def import_trained(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a trained model."""
    arguments = {name: getattr(options, name) for name in _OF_NPU if name in options}
    for name in options_of(options.kind):
        value = getattr(options, name)
        if name == "operators":
            value = _operators(value, faults)
        elif name == "optimisations":
            value = not value
        arguments[PARAMETERS.get(name, name)] = value
    return _import(options, faults, **arguments)


def import_vela(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a file of Vela."""
    names = ("model", "array", "kernels", "memory_mode")
    arguments = {name: getattr(options, name) for name in names}
    return _import(options, faults, pool=options.pools, board=options.boards, **arguments)


def import_other(options: argparse.Namespace, _faults: Diagnostics) -> Result:
    """Report what a file is that no import reads."""
    from opwest.frontends.read import refuse

    refuse(options.file, options.array)
    raise fail("the file changed while it was read", options.file)


def import_mlf(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model in microTVM's Model Library Format."""
    arguments = {name: getattr(options, name) for name in ("model", "module", "target", "compat")}
    return _import(options, faults, tensor=_tensors(options.tensor, faults), **arguments)


def _import(options: argparse.Namespace, faults: Diagnostics, **arguments: Any) -> Result:
    kind = options.kind
    done = collecting(convert, faults)(
        options.file, output=options.output, kind=kind, progress=progress_of(options), **arguments
    )
    several = len(done.models) > 1
    texts = [choices_text(done.choices, all_variants=is_verbose(options))]
    texts += [f"{model}: {one.as_text()}" if several else one.as_text() for model, one in done.comparisons.items()]
    texts += [_written(manifest, None if several else done) for manifest in done.manifests]
    if done.archive is not None and done.archive.header is not None and options.compat is None:
        texts.append(f"for an application that includes {done.archive.header}: import with --compat tvmgen")
    return Result("\n".join(filter(None, texts)), _json(done))


def _written(manifest: Path, done: ImportResult | None) -> str:
    """Return a manifest, the counts of an import of one model, and the next command."""
    counts = ""
    if done is not None:
        parts = [(done.operators, "operator"), (done.steps, "step"), (done.constant_bytes, "byte")]
        counts = f": {', '.join(counted(count, what) for count, what in parts)} of constants"
    return f"{manifest}{counts}\nnext: opwest generate {manifest} -o app"


def _json(done: ImportResult) -> dict[str, Any]:
    comparison = [
        {
            "model": model,
            "input_count": one.inputs,
            "result_count": one.results,
            "largest_error": one.largest,
            "tolerance": one.tolerance,
        }
        for model, one in done.comparisons.items()
    ]
    return {
        "directory": str(done.directory),
        "models": list(done.models),
        "files": list(done.files),
        "operator_count": done.operators,
        "step_count": done.steps,
        "constant_bytes": done.constant_bytes,
        "choices": list(done.choices),
        "layers": list(done.layers),
        "comparison": comparison,
        "archive": None if done.archive is None else asdict(done.archive),
    }


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


def _tensors(given: list[str], faults: Diagnostics) -> dict[str, tuple[str | None, tuple[int, ...]]]:
    """Return the values of --tensor by tensor name."""
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
        tensors[match[1]] = (match[2], tuple(int(n) for n in match[3].split(",")))
    faults.raise_if_errors()
    return tensors
