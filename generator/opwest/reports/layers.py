# SPDX-License-Identifier: Apache-2.0
"""The layers of a model: what each step computes, by the import that made the manifest, with costs and measurements.

`opwest import` writes import.json beside the manifest, or one directory above for a file with several models. Without
it, and for steps that were edited since, a layer is what the manifest states.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.model.types.model import Model, Step
from opwest.project.request import Examination
from opwest.reports import data
from opwest.reports.files import read_limited

RECORD: Final = "import.json"
_VERSION: Final = 2
_MAX_BYTES: Final = 1 << 28
_MAX_KINDS: Final = 4
"""The kinds in the name of a layer; a block of more layers has the first ones and a number."""
_DAMAGED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True)
class _Import:
    """The part of a record for one manifest."""

    layers: Sequence[Mapping[str, Any]]
    views: tuple[str, ...]
    implementations: Mapping[str | None, Mapping[str, Any]]


def with_layers(
    models: Sequence[data.Model], examinations: Sequence[Examination], faults: Diagnostics
) -> list[data.Model]:
    """Return models with their layers, and the implementations that each report does not describe in full."""
    done = []
    for model in models:
        own = [examination for examination in examinations if examination.model.name == model.name]
        record = _read(Path(own[0].model.manifest), model.name, faults)
        found = model
        others = []
        for examination in own:
            variant = _variant(examination.model)
            if variant == model.variant:
                found = _described(model, examination, record, faults)
            else:
                others.append(_alternative(examination, record))
        done.append(replace(found, alternatives=tuple(others)))
    return done


def _variant(model: Model) -> str | None:
    return model.variant.name if model.variant else None


def _read(manifest: Path, model: str, faults: Diagnostics) -> _Import | None:
    """Return the record of a manifest; None without one, or with one of an earlier version of opwest."""
    for folder in (manifest.parent, manifest.parent.parent):
        place = folder / RECORD
        if not place.is_file():
            continue
        try:
            read = json.loads(read_limited(place, _MAX_BYTES))
            if read.get("version") != _VERSION:
                return None
            path = spelled(manifest.absolute().relative_to(folder.absolute()))
            for row in read["models"]:
                if row["manifest"] == path and row["model"] == model:
                    views = tuple(f"{view['number']} ({view['kind']})" for view in row["views"])
                    return _Import(row["layers"], views, {made["variant"]: made for made in row["implementations"]})
        except _DAMAGED as error:
            message = f"the record of the import is damaged: {error}"
            faults.warning(message, Location(str(place)), hint="import the model again; the report has no layers of it")
            return None
    return None


def _described(model: data.Model, examination: Examination, record: _Import | None, faults: Diagnostics) -> data.Model:
    """Return a model with its layers and measurements."""
    made = record.implementations.get(model.variant) if record is not None else None
    layers, cores, titles = _layers(examination, record)
    if made is not None and not cores and not titles and made["steps"]:
        at = Location(examination.model.manifest)
        faults.note("the steps are not those of the import: the report has no names and costs of its layers", at)
    layers = [
        replace(layer, times=tuple(_times(model, layer.step)), linked=linked or None)
        for layer, linked in zip(layers, _linked(model), strict=True)
    ]
    views = record.views if record is not None and titles else ()
    return replace(model, layers=tuple(layers), cores=cores, titles=titles, views=views)


def _alternative(examination: Examination, record: _Import | None) -> data.Alternative:
    layers, cores, _ = _layers(examination, record)
    model = examination.model
    return data.Alternative(
        _variant(model),
        {name: planned.size for name, planned in examination.plan.pools.items()},
        sum(len(constant.content) for constant in model.constants),
        tuple(layers),
        cores,
    )


def _layers(
    examination: Examination, record: _Import | None
) -> tuple[list[data.Layer], tuple[data.Core, ...], dict[str, str]]:
    """Return the layers, the cores with costs, and the names of tensors in the file."""
    steps = examination.plan.schedule.steps
    sizes = {constant.name: len(constant.content) for constant in examination.model.constants}
    plain = _plain_layers(steps, sizes)
    made = None if record is None else record.implementations.get(_variant(examination.model))
    if record is None or made is None:
        return plain, (), {}
    try:
        if [row["operator"] for row in made["steps"]] != [step.operator.name for step in steps]:
            return plain, (), {}
        rows = [(record.layers[row["layer"]], row) for row in made["steps"]]
        layers = [
            _imported(layer, row, computed, made["costs"]) for layer, (computed, row) in zip(plain, rows, strict=True)
        ]
        cores = tuple(data.Core(c["core"], c["source"], c["flash"], c["cycles"]) for c in made["costs"])
        return layers, cores, _titles(made["tensors"], [b.name for b in examination.model.planned])
    except _DAMAGED:
        return plain, (), {}


def _plain_layers(steps: Sequence[Step], sizes: Mapping[str, int]) -> list[data.Layer]:
    """Return the layers as the manifest states them."""
    uses = Counter(step.operator.name for step in steps)
    layers = []
    for step in steps:
        name = step.operator.name
        pairs = [
            (argument, binding)
            for argument, binding in zip(step.operator.args, step.bindings, strict=True)
            if binding.role != "scalar" and argument.direction != "scratch"
        ]
        constants = dict.fromkeys(binding.name for _, binding in pairs if binding.role == "constant")
        tensors = [(argument, binding) for argument, binding in pairs if binding.role != "constant"]
        layers.append(
            data.Layer(
                step.index,
                name if uses[name] == 1 else f"{name} #{step.index}",
                name,
                "",
                tuple(_operand(a.type, b.shown) for a, b in tensors if a.is_read),
                tuple(_operand(a.type, b.shown) for a, b in tensors if a.is_written),
                "",
                sum(sizes[constant] for constant in constants),
            )
        )
    return layers


def _operand(type_: Any, name: str) -> data.Operand:
    return data.Operand(name, type_.dtype.name, type_.shape)


def _imported(
    plain: data.Layer, row: Mapping[str, Any], computed: Mapping[str, Any], costs: Sequence[Mapping[str, Any]]
) -> data.Layer:
    """Return a layer with what the import recorded."""
    kinds = list(_kinds(computed["operators"])) or [plain.kind]
    part = f" ({computed['part']})" if computed["part"] else ""
    window = _window(computed["attributes"])
    channels = computed["outputs"][0]["shape"][-1:] if computed["attributes"].get("kernel") else []
    size = "×".join(map(str, [*computed["attributes"].get("kernel", ()), *channels]))
    shown = [kind for kind in kinds if not kind.startswith(("RELU", "Relu"))] or kinds
    names = [one["name"] for one in computed["operators"] if one["name"]]
    own = [(cost["core"], cost["steps"][plain.step]) for cost in costs]
    return replace(
        plain,
        label=" ".join(filter(None, (_joined(shown) + part, size, f"#{plain.step}"))),
        kind=_joined(kinds if len(kinds) <= _MAX_KINDS else shown) + part,
        name=names[-1] if names else "",
        inputs=tuple(_named(one) for one in computed["inputs"]),
        outputs=tuple(_named(one) for one in computed["outputs"]),
        window=window,
        macs=_optional(computed["macs"]),
        file_macs=_optional(computed["file_macs"]),
        weights=_optional(computed["weight_bytes"]),
        kernel=None if row["kernel"] is None else str(row["kernel"]),
        costs=tuple(
            data.LayerCost(
                core,
                _count(cost["cycles"]),
                str(cost["origin"]),
                _count(cost["flash_bytes"]),
                _count(cost["scratch_bytes"]),
                str(cost["reason"]),
            )
            for core, cost in own
            if cost is not None
        ),
    )


def _count(value: Any) -> int:
    """Return a count. Raises ValueError."""
    if not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def _optional(value: Any) -> int | None:
    return None if value is None else _count(value)


def _kinds(operators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the kinds of the operators of the file, with the activations that they contain."""
    for operator in operators:
        yield str(operator["kind"])
        if operator.get("activation"):
            yield str(operator["activation"])


def _joined(kinds: Sequence[str]) -> str:
    if len(kinds) <= _MAX_KINDS:
        return " + ".join(kinds)
    return f"{' + '.join(kinds[:2])} … {kinds[-1]} ({len(kinds)})"


def _window(attributes: Mapping[str, Any]) -> str:
    """Return a window in words: `3×3, stride 2×2`."""
    if not attributes.get("kernel"):
        return ""
    by = {name: "×".join(map(str, attributes.get(name, (1, 1)))) for name in ("kernel", "stride", "dilation")}
    words = [by["kernel"]]
    words += [f"{name} {by[name]}" for name in ("stride", "dilation") if by[name] != "1×1"]
    return ", ".join(words + ([f"{attributes['groups']} groups"] if attributes.get("groups") else []))


def _named(operand: Mapping[str, Any]) -> data.Operand:
    return data.Operand(str(operand["name"]), str(operand["dtype"]), tuple(map(_count, operand["shape"])))


def short(name: str) -> str:
    """Return a name in a file without those of the operators that a converter has joined with it."""
    return name.split(";")[0]


def _titles(tensors: Mapping[str, str], planned: Sequence[str]) -> dict[str, str]:
    """Return the names in the file of buffers, each once; two of the same name also have that of the manifest."""
    originals = {name: short(tensors.get(name, name)) for name in planned}
    uses = Counter(originals.values())
    return {
        name: original if uses[original] == 1 else f"{original} ({name})"
        for name, original in originals.items()
        if original != name
    }


def _times(model: data.Model, step: int) -> Iterator[data.LayerTime]:
    """Yield the duration of a step in each profile; the call that only starts a device is none."""
    for profile in model.profiles:
        means = [point.mean for point in profile.points if point.step == step and point.kind in ("step", "cache")]
        if means:
            yield data.LayerTime(profile.source, profile.where, profile.clock, profile.unit, sum(means))


def _linked(model: data.Model) -> list[dict[str, int]]:
    """Return for each step its bytes in each image: the code of its operator, and its constants.

    Those that an earlier step has, too, are counted there.
    """
    sizes: list[dict[str, int]] = [{} for _ in model.steps]
    for image in model.images:
        constants = {item.name: item.bytes for item in image.items if item.kind == "constant"}
        code = {item.name: item.bytes for item in image.items if item.kind == "code"}
        functions = {operator: name for name in code for operator in name.split(", ")}  # operators can share one
        for step, row in zip(model.steps, sizes, strict=True):
            own = [code.pop(functions.get(step.operator, ""), None)]
            own += [constants.pop(name, None) for name in step.reads]
            if found := [size for size in own if size is not None]:
                row[image.source] = sum(found)
    return sizes
