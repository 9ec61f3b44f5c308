# SPDX-License-Identifier: Apache-2.0
"""Common parts of all run modes: the project's record and the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import fail, nearest
from opwest.base.files import is_inside
from opwest.base.result import counted
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.objects.model_files import way_of
from opwest.project.writer import read_record
from opwest.render.arguments import ENTRY
from opwest.render.tables.layout import DIRECTION
from opwest.render.variants import variant_option

GENERATE_HINT = "generate one with 'opwest generate MANIFEST -o DIR'"
UPDATE_HINT = "generate the application again: opwest update DIR"
_TENSOR = {
    **dict.fromkeys(("name", "role", "dtype", "c_type", "macro", "buffer", "elements"), str),
    **dict.fromkeys(("size", "align"), int),
    "placed": bool,
    "reached": (str, None),
    "shape": [int],
}
_BUILD = {
    "target": (str, None),
    "bits": (int, None),
    "host": [str],
    "objects": [str],
    "sources": [str],
    "rename": (str, None),
}
_OPTIONS = {"options": [{"source": str, "include_dirs": [str], "flags": [str]}]}
"""The part of a build that records of earlier versions lack."""
_LATER: dict[str, Any] = {"places": [{"line": int, "column": int}], "permits": [[str]]}
"""The parts of a build, by source, that records of earlier versions lack."""
_CHECKS: dict[str, Any] = {
    "pools": [str],
    "results": [{"name": str, "dtype": str, "size": int, "shape": [int], "buffer": int}],
    "tolerances": [{"output": str, "absolute": (int, float), "relative": (int, float)}],
    "views": [{"name": str, "dtype": str, "size": int, "shape": [int], "root": str, "offset": int}],
    "state_bytes": int,
    "stops": [{"point": int, "writes": [{"tensor": str, "step": int}]}],
    "arguments": {"size": int, "align": int, "count": int, "devices": bool},
    "operators": [
        {
            "name": str,
            "takes_device": bool,
            "devices": [str],
            "args": [
                {
                    **dict.fromkeys(("name", "dtype", "direction"), str),
                    **dict.fromkeys(("size", "offset"), int),
                    "shape": [int],
                    "scalar": bool,
                }
            ],
        }
    ],
}
"""The parts for comparisons and `opwest call`, which records of earlier versions lack."""
_MODEL = {
    **dict.fromkeys(("name", "macro", "manifest"), str),
    **dict.fromkeys(("emulated", "constants"), bool),
    "devices": [str],
    "steps": [str],
    "tensors": [_TENSOR],
    "builds": [_BUILD],
}
_VARIANT = {**_MODEL, "variant": str}
"""A variant of a model, in `variants` of its record."""
_RECORD = {"runtime": str, "metadata": str, "models": [_MODEL]}


def check_record(record: Mapping[str, Any], project: Path) -> None:
    """Raise OpwestError if a record does not have the format of opwest."""
    fault = next(_faults_of_record(record), None)
    if fault is not None:
        hint = "restore it from version control, or create it with 'opwest update DIR --manifest FILE'"
        raise fail(f"the lock is damaged: {fault}", project / ".opwest" / "lock.json", hint=hint)


def _faults_of_record(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of a record. Only the first one is exact: the checks after it rely on its absence."""
    yield from _faults(record, _RECORD, "record")
    for number, model in enumerate(record["models"]):
        yield from _faults(model.get("variants", []), [_VARIANT], f"record.models[{number}].variants")
    models = [row for model in record["models"] for row in (model, *model.get("variants", ()))]
    for number, model in enumerate(models):
        present = {key: shape for key, shape in _CHECKS.items() if key in model}
        yield from _faults(model, present, f"record.models[{number}]")
        yield from _faults_of_checks(model)
        for build in model["builds"]:
            for key, shape in _LATER.items():
                yield from _faults(build.get(key, []), shape, f"record.models[{number}].builds[].{key}")
    if not models:
        yield "record.models is empty"
    for model in models:
        for build in model["builds"]:
            if "options" in build:
                yield from _faults(build, _OPTIONS, "build")
        options = [row for build in model["builds"] for row in build.get("options", ())]
        paths = [model["name"], *([model["variant"]] if "variant" in model else [])]
        paths += (path for build in model["builds"] for path in (*build["objects"], *build["sources"]))
        paths += (path for row in options for path in row["include_dirs"])
        yield from (f"unknown dtype {t['dtype']!r}" for t in model["tensors"] if t["dtype"] not in DTYPES)
        yield from (f"invalid role {t['role']!r}" for t in model["tensors"] if t["role"] not in _ROLES)
        yield from (f"{path!r} is not a path in the project" for path in paths if not is_inside(path))
        yield from (f"invalid flag {flag!r}" for row in options for flag in row["flags"] if not flag.startswith("-"))


def _faults_of_checks(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield the references of the checks to something that the model does not have."""
    size = model["arguments"]["size"] if "arguments" in model else 0
    if not 0 <= size < _MAX_BYTES:
        yield f"the memory for arguments has {counted(size, 'byte')}"
    for operator in model.get("operators", ()):
        for device in sorted(set(operator["devices"]) - set(model["devices"])):
            yield f"unknown device {device!r} of operator {operator['name']!r}"
        if ENTRY * len(operator["args"]) > size:
            yield f"operator {operator['name']!r} has more arguments than the memory for arguments"
        for arg in operator["args"]:
            yield from _faults_of_elements(arg)
            least = 0 if arg["scalar"] else ENTRY * len(operator["args"])  # a tensor is after the table of entries
            if arg["direction"] not in DIRECTION.members or not least <= arg["offset"] <= size - arg["size"]:
                yield f"argument {arg['name']!r} of operator {operator['name']!r} is outside of its memory"
    for result in (*model.get("results", ()), *model.get("views", ())):
        yield from _faults_of_elements(result)
    for row in model.get("tolerances", ()):
        if not all(0 <= row[key] < math.inf for key in ("absolute", "relative")):
            yield f"the tolerance of {row['output']!r} is no finite number"
    whole = {t["name"]: t["size"] for t in (*model["tensors"], *model.get("results", ()))}
    for view in model.get("views", ()):
        if not 0 <= view["offset"] <= whole.get(view["root"], 0) - view["size"]:
            yield f"view {view['name']!r} is outside of {view['root']!r}"
    for stop in model.get("stops", ()):
        for write in stop["writes"]:
            if not 0 <= write["step"] < len(model["steps"]):
                yield f"unknown step {write['step']} in a stop"


def _faults_of_elements(tensor: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the dtype, the shape and the size of a tensor disagree."""
    if tensor["dtype"] not in DTYPES:
        yield f"unknown dtype {tensor['dtype']!r}"
    shape, pitch = tensor["shape"], tensor.get("pitch", 0)
    is_invalid = any(n < 1 for n in shape) or type(pitch) is not int or (pitch and (not shape or pitch < shape[-1]))
    if is_invalid or TensorType(DTYPES[tensor["dtype"]], tuple(shape), pitch).size != tensor["size"]:
        yield f"{tensor['name']!r} has {tensor['size']} bytes, {tensor['dtype']} {shape}"


_ROLES = ("input", "output")
_MAX_BYTES = 1 << 32


def _faults(value: Any, shape: Any, where: str) -> Iterator[str]:
    """Yield the deviations of a value from a shape: a type, a tuple of types, [shape of items], {key: shape}."""
    if isinstance(shape, dict) and isinstance(value, dict):
        yield from (f"{where} has no {key!r}" for key in shape if key not in value)
        for key, inner in shape.items():
            yield from _faults(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, dict):
        yield f"{where} is not an object"
    elif isinstance(shape, list) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _faults(item, shape[0], f"{where}[{number}]")
    elif isinstance(shape, list):
        yield f"{where} is not a list"
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        if not any(value is None if kind is None else type(value) is kind for kind in kinds):
            yield f"{where} is {value!r:.60}"


def project_record(project: Path) -> dict[str, Any] | None:
    """Return the record of a project, None without one. Raises OpwestError for an incomplete project."""
    record = read_record(project) if project.is_dir() else None
    if record is not None and (project / ".opwest" / "journal.json").exists():
        raise fail("incomplete project: a run of opwest was interrupted", project, hint="run 'opwest generate' again")
    if record is not None:
        check_record(record, project)
    return record


def required_record(project: Path) -> dict[str, Any]:
    """Return the record of a project. Raises OpwestError without one, or for an incomplete project."""
    record = project_record(project)
    if record is None:
        raise fail("not a directory generated by opwest", project, hint=way_of(project) or GENERATE_HINT)
    return record


def choose_model(name: str | None, project: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given model, or the only one."""
    models: dict[str, dict[str, Any]] = {model["name"]: model for model in record["models"]}
    if name is None:
        if len(models) > 1:
            raise fail(f"the project has several models: {', '.join(models)}", project, expected="--model NAME")
        return next(iter(models.values()))
    if name not in models:
        raise fail(f"unknown model {name!r}", project, hint=nearest(name, models))
    return models[name]


def selected_variant(model: dict[str, Any], configuration: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of the variant that an image with a configuration uses, that of the base without one."""
    for variant in model.get("variants", ()):
        if configuration.get(variant_option(model["name"], variant["variant"])) == "y":
            selected: dict[str, Any] = variant
            return selected
    return model


def tensors_of(model: Mapping[str, Any], role: str) -> list[dict[str, Any]]:
    """Return the inputs or the outputs of a model record."""
    return [tensor for tensor in model["tensors"] if tensor["role"] == role]
