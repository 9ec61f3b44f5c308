# SPDX-License-Identifier: Apache-2.0
"""The flash and RAM of a model by item, as far as its objects contain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from opwest.base.diagnostics import Diagnostics
from opwest.objects.facts import ObjectError
from opwest.reports import data, words
from opwest.reports.attribution import attribute
from opwest.reports.images import EXPECTED, LinkedImage, map_files

MAX_ITEMS: Final = 48
"""The maximum number of items drawn; the smallest others are combined."""


_IN_IMAGES: Final = {
    "code": "code of an operator",
    "kernel": "function that operators call",
    "table": "constants of operators' functions",
    "constant": "constant",
    "program": "program of a device",
    "other": "generated file: run, metadata, registry",
    "runtime": "runtime of opwest, shared by all models of the image",
    "library": "function of a library that only models call",
    "alignment": "padding, which the linker inserted",
}
_LEGEND: Final = {"code": "code of an operator", "kernel": "function of operators", "other": "generated, others"}
_IN_MEMORY: Final = {
    "pool": "a pool of the workspace",
    "workspace": "the structure of the workspace",
    "state": "variable of the model",
    "runtime": "variable of the runtime",
    "library": "variable of a library that only models call",
    "alignment": "padding, which the linker inserted",
    "stack": "of the image: not in the sum of the model",
}


def flash_items(model: data.Model, target: str | None) -> list[dict[str, Any]]:
    """Return the known flash items: name, kind, bytes and description."""
    items = []
    for constant in model.constants:
        readers = f", read by {words.listed(constant.operators, 4)}" if constant.operators else ""
        what = f"constant {words.tensor(constant.dtype, constant.shape)}{readers}"
        items.append(_item(constant.name, "constant", constant.bytes, what))
    items += [_item(program.name, "program", program.bytes, "program of a device") for program in model.programs]
    if target is not None:
        own = {operator.symbol: operator for operator in model.operators if target in operator.code}
        items += [_item(o.name, "code", o.code[target], f"code for {target}") for o in own.values()]
        called = model.totals("code")[target] - sum(operator.code[target] for operator in own.values())
        items.append(_item("other code", "other", max(called, 0), "functions of the objects that operators call"))
        tables = model.totals("constant").get(target, 0)
        items.append(_item("tables", "other", tables, "constants inside the objects"))
    return items


def _largest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted((item for item in items if item["bytes"]), key=lambda item: (-item["bytes"], item["name"]))
    if len(ordered) <= MAX_ITEMS:
        return ordered
    rest = ordered[MAX_ITEMS - 1 :]
    others = _item(f"{len(rest)} others", "other", sum(i["bytes"] for i in rest), "each smaller than the ones shown")
    return sorted([*ordered[: MAX_ITEMS - 1], others], key=lambda item: (-item["bytes"], item["name"]))


def _item(name: str, kind: str, count: int, text: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "bytes": count, "what": text, "text": f"{words.counted(count, 'byte')}; {text}"}


def flash_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the flash of a model: in images, for targets, or the part known before compilation."""
    rows = []
    for image in model.images:
        items = [
            _item(item.name, item.kind, item.bytes, _within(_IN_IMAGES.get(item.kind, item.kind), item))
            for item in image.items
        ]
        source = f"from symbols and {image.map}" if image.map else "from symbols only: the image has no map file"
        rows.append(_flash_row(f"{image.source} ({image.machine})", items, image.flash, source))
    if not rows:
        targets = tuple(model.totals("code"))
        rows = [_flash_row(target, flash_items(model, target)) for target in targets or (None,)]
    return rows


def _within(text: str, item: data.ImageItem) -> str:
    """Return a description with the object file."""
    if item.kind == "other" and not item.object:
        return "data of a variable in RAM, copied at the start"
    return f"{text}, in {item.object}" if item.object and item.object not in item.name else text


def _flash_row(
    target: str | None, items: list[dict[str, Any]], whole: int | None = None, source: str = ""
) -> dict[str, Any]:
    items = _largest(items)
    total = sum(item["bytes"] for item in items)
    largest = max((item["bytes"] for item in items), default=1)
    return {
        "target": target,
        "items": items,
        "total": total,
        "whole": whole,
        "source": source,
        "rows": [
            {
                **item,
                "share": words.percent(item["bytes"], total),
                "bar": f"{item['bytes'] / largest * 100:.2f}%",
            }
            for item in items
        ],
        "legend": [
            {"kind": kind, "label": _LEGEND.get(kind, kind)} for kind in dict.fromkeys(item["kind"] for item in items)
        ],
    }


def ram_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the RAM items: pools, state of objects, the largest frames of operators."""
    rows = []
    for pool in model.pools:
        note = f"of {words.size(pool.limit)}" if pool.limit is not None else "no limit"
        kept = sum(buffer.bytes for buffer in model.buffers if buffer.pool == pool.name and buffer.role == "state")
        note += f"; {words.size(kept)} of them state, kept between runs" if kept else ""
        rows.append(_ram_row(f"pool {pool.name}", pool.planned, note, pool.limit))
    states = model.totals("state")
    for target in model.totals("code"):
        if state := states.get(target):
            rows.append(_ram_row("state of the objects", state, f"for {target}"))
        frames = {operator.name: operator.stack[target] for operator in model.operators if target in operator.stack}
        if frames:
            largest = max(frames, key=lambda name: (frames[name], name))
            note = f"of {largest}, for {target}"
            if len(frames) < len(model.operators):
                note += f"; {len(frames)} of {len(model.operators)} are known"
            rows.append(_ram_row("largest stack frame", frames[largest], note))
    for image in model.images:
        for item in image.memory:
            what = _within(_IN_MEMORY.get(item.kind, item.kind), item)
            rows.append(_ram_row(item.name, item.bytes, f"{what}, in {image.source}"))
        if image.memory:
            rows.append(_ram_row("the model in the image", image.model_ram, f"of {image.source}, without stacks"))
        if image.ram:
            rows.append(_ram_row("whole image", image.ram, f"of {image.source}, including Zephyr"))
    return rows


def _ram_row(name: str, count: int, note: str, limit: int | None = None) -> dict[str, Any]:
    bar = f"{min(count / limit, 1) * 100:.2f}%" if limit else None
    return {"name": name, "bytes": count, "note": note, "bar": bar}


def add_images(models: Sequence[data.Model], images: Sequence[LinkedImage], faults: Diagnostics) -> list[data.Model]:
    """Return the models with their sizes in the images that contain them; report a damaged image."""
    found = {model.name: model for model in models}
    for image in images:
        inside = [model for model in found.values() if model.name in image.notes]
        try:
            parts = attribute(image.elf, image.link_map, inside, image.notes)
        except ObjectError as error:
            message = f"cannot read the image: {error.message}"
            faults.error(message, image.location, expected=EXPECTED, hint=error.hint)
            continue
        if image.map_path is None:
            places = " or ".join(path.name for path in map_files(image.path))
            faults.note(
                f"the image has no map file ({places}): sizes are those of symbols, without padding, "
                "libraries, and static data of files with equal names",
                image.location,
            )
        for model, part in zip(inside, parts, strict=True):
            linked = data.Image(
                source=image.source,
                machine=image.elf.machine_name,
                items=part.flash,
                flash=image.flash,
                ram=image.ram,
                float_code=image.float_code,
                memory=part.ram,
                map=image.map_path.name if image.map_path is not None else None,
            )
            found[model.name] = replace(model, images=(*model.images, linked))
    return list(found.values())
