# SPDX-License-Identifier: Apache-2.0
"""The flash and RAM of a model by item, as far as its objects contain them."""

from __future__ import annotations

from typing import Any, Final

from opwest.report import data, words

MOST_ITEMS: Final = 48
"""The maximum number of items drawn; the smallest others are combined."""


def targets(model: data.Model) -> list[str]:
    """Return the targets for which the size of code is known."""
    return list(dict.fromkeys(one.target for one in model.objects if one.code is not None))


def image_items(image: data.Image) -> list[dict[str, Any]]:
    """Return the flash items of a linked image."""
    words_of = {
        "code": "code of an operator",
        "constant": "constant",
        "program": "program of a device",
        "other": "other code and data of the model",
    }
    return _largest([_item(one.name, one.kind, one.bytes, words_of.get(one.kind, one.kind)) for one in image.items])


def flash_items(model: data.Model, target: str | None) -> list[dict[str, Any]]:
    """Return the known flash items, the largest first: name, kind, bytes and description."""
    items = [
        _item(one.name, "constant", one.bytes, f"constant {words.tensor(one.dtype, one.shape)}{_users(one.operators)}")
        for one in model.constants
    ]
    items += [_item(one.name, "program", one.bytes, "program of a device") for one in model.programs]
    if target is not None:
        own = {one.symbol: one for one in model.operators if target in one.code}
        items += [_item(one.name, "code", one.code[target], f"code for {target}") for one in own.values()]
        held = [one for one in model.objects if one.target == target]
        called = sum(one.code or 0 for one in held) - sum(one.code[target] for one in own.values())
        items.append(_item("other code", "other", max(called, 0), "functions of the objects that operators call"))
        read_only = sum(one.constant or 0 for one in held)
        items.append(_item("tables", "other", read_only, "constants inside the objects"))
    return _largest(items)


def _largest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = sorted((item for item in items if item["bytes"]), key=lambda item: (-item["bytes"], item["name"]))
    if len(found) <= MOST_ITEMS:
        return found
    rest = found[MOST_ITEMS - 1 :]
    others = _item(f"{len(rest)} others", "other", sum(i["bytes"] for i in rest), "each smaller than the ones shown")
    return sorted([*found[: MOST_ITEMS - 1], others], key=lambda item: (-item["bytes"], item["name"]))


def _item(name: str, kind: str, count: int, text: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "bytes": count, "text": f"{words.counted(count, 'byte')}; {text}"}


def _users(operators: tuple[str, ...]) -> str:
    shown = ", ".join(operators[:4]) + (f" and {len(operators) - 4} more" if len(operators) > 4 else "")
    return f", read by {shown}" if operators else ""


def flash_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the flash of a model: in images, for targets, or the part known before compilation."""
    found = [_flash_row(f"{one.source} ({one.machine})", image_items(one), one.flash) for one in model.images]
    known = targets(model)
    if known or not found:
        found += [_flash_row(target, flash_items(model, target)) for target in known or (None,)]
    return found


def _flash_row(target: str | None, items: list[dict[str, Any]], whole: int | None = None) -> dict[str, Any]:
    total = sum(item["bytes"] for item in items)
    largest = max((item["bytes"] for item in items), default=1)
    return {
        "target": target,
        "items": items,
        "total": total,
        "whole": whole,
        "rows": [
            {
                **item,
                "shown": words.number(item["bytes"]),
                "share": words.percent(item["bytes"], total),
                "bar": f"{item['bytes'] / largest * 100:.2f}%",
                "what": item["text"].partition("; ")[2],
            }
            for item in items
        ],
        "kinds": list(dict.fromkeys(item["kind"] for item in items)),
    }


def ram_rows(model: data.Model) -> list[dict[str, Any]]:
    """Return the RAM items: pools, state of objects, the largest frames of operators."""
    rows = []
    for pool in model.pools:
        note = f"of {words.size(pool.limit)}" if pool.limit is not None else "no limit"
        kept = sum(one.bytes for one in model.buffers if one.pool == pool.name and one.role == "state")
        note += f"; {words.size(kept)} of them state, kept between runs" if kept else ""
        rows.append(_ram_row(f"pool {pool.name}", pool.planned, note, pool.limit))
    for target in targets(model):
        state = sum(one.state or 0 for one in model.objects if one.target == target)
        if state:
            rows.append(_ram_row("state of the objects", state, f"for {target}"))
        frames = {one.name: one.stack[target] for one in model.operators if target in one.stack}
        if frames:
            largest = max(frames, key=lambda name: (frames[name], name))
            known = (
                "" if len(frames) == len(model.operators) else f"; {len(frames)} of {len(model.operators)} are known"
            )
            rows.append(_ram_row("largest stack frame", frames[largest], f"of {largest}, for {target}{known}"))
    rows += [_ram_row("whole image", one.ram, f"of {one.source}, including Zephyr") for one in model.images if one.ram]
    return rows


def _ram_row(name: str, count: int, note: str, limit: int | None = None) -> dict[str, Any]:
    bar = f"{min(count / limit, 1) * 100:.2f}%" if limit else None
    return {"name": name, "shown": words.number(count), "note": note, "bar": bar}
