# SPDX-License-Identifier: Apache-2.0
"""The table of the variants that an import chose, from the rows of its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opwest.base.result import table_lines

_FLASH = (
    "flash, estimated: constants and code of the layer before it is linked; code of layers that were not measured is "
    "that of typical ones; 'opwest report --firmware' shows the linked bytes"
)


def choices_text(choices: Iterable[Mapping[str, Any]], *, all_variants: bool) -> str:
    """Return the tables of all models. `all_variants`: below each layer its other variants."""
    return "\n".join(line for model in choices for line in _lines(model, all_variants=all_variants))


def _lines(choices: Mapping[str, Any], *, all_variants: bool) -> Iterator[str]:
    for processor in choices["processors"]:
        yield from _table(processor, all_variants=all_variants)
    if choices["portable"]:
        yield f"{', '.join(choices['portable'])}: the portable operators"
    others = choices["others"]
    memory, limit, stripes = (others[key] for key in ("ram_bytes", "limit_bytes", "stripes"))
    if choices["processors"] or limit is not None or stripes:
        beyond = ", more than --max-ram" if limit is not None and memory > limit else ""
        layers = f"; layers {'; '.join(stripes)}" if stripes else ""
        yield f"all other processors: portable C, {memory:,} bytes of RAM, the arena of the base{beyond}{layers}"
    if choices["processors"]:
        yield _FLASH
    if choices["remark"]:
        yield choices["remark"]


def _table(choice: Mapping[str, Any], *, all_variants: bool) -> Iterator[str]:
    rows = [("layer", "variant", "cycles", "flash", "scratch", "why")]
    for item in choice["layers"]:
        rows.append(_row(item["layer"], item))
        rows += [_row("", other) for other in item["others"] if all_variants]
    rows.append(_row("all", {**choice, "variant": "", "reason": ""}))
    if choice["cycles_without_stalls"] is not None:
        rows.append(("without wait states", "", f"{choice['cycles_without_stalls']:,}", "", "", ""))
    yield f"{choice['processor']} ({choice['source']}; flash and scratch memory in bytes)"
    yield from (f"  {line}" for line in table_lines(rows, range(2, 5)))
    arena = f"the arena of variant {choice['processor']}"
    yield f"  {choice['ram_bytes']:,} bytes of RAM, {arena}: tensors between layers, and scratch memory"
    if choice["gap"]:
        yield f"  at most {choice['gap']:.2%} above the least cycles"


def _row(label: str, item: Mapping[str, Any]) -> tuple[str, str, str, str, str, str]:
    numbers = (f"{item[key]:,}" for key in ("cycles", "flash_bytes", "scratch_bytes"))
    cycles, flash, scratch = numbers
    return label, item["variant"], cycles, flash, scratch, item["reason"]
