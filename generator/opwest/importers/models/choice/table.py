# SPDX-License-Identifier: Apache-2.0
"""The table of measurements, tuning.yaml: cycles and code of variants by layer, and estimates for other layers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opwest.importers.faults import fault
from opwest.importers.models.choice.geometry import key_of, kind_of, numbers_of
from opwest.importers.models.ir.program import Operation
from opwest.records import dataclass

DEFAULTS = Path(__file__).resolve().parent / "tuning.yaml"
VERSION = 1
TERMS = ("product", "result", "data", "call")
ABSENT = {"product": 12.0, "result": 40.0, "data": 10.0, "call": 400.0}
"""The estimate of a variant that nobody measured: slow, so that a measured one is preferred."""
ABSENT_CODE = 1500


@dataclass(frozen=True)
class Cost:
    """The cost of a variant."""

    cycles: float
    code: int
    """Bytes, without constants."""
    is_measured: bool


@dataclass(frozen=True, eq=False)
class Table:
    """Measurements of one core."""

    core: str
    layers: Mapping[str, Mapping[str, tuple[int, int]]]
    """By key and variant: cycles, bytes of code."""
    estimates: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By kind and variant: cycles of each of TERMS, and bytes of code."""

    def cost(self, operation: Operation, variant: str) -> Cost:
        """Return the measured cost, or an estimate."""
        found = self.layers.get(key_of(operation), {}).get(variant)
        if found is not None:
            return Cost(found[0], found[1], True)
        terms = self.estimates.get(kind_of(operation), {}).get(variant)
        numbers = numbers_of(operation)
        given: Mapping[str, float] = ABSENT if terms is None else terms
        cycles = sum(given[term] * numbers[term] for term in TERMS)
        return Cost(cycles, ABSENT_CODE if terms is None else int(terms["code"]), False)


def read_table(core: str, paths: Iterable[Path] = ()) -> Table:
    """Return the measurements of a core: opwest's own, replaced by those of further files. Raises OpwestError."""
    layers: dict[str, dict[str, tuple[int, int]]] = {}
    estimates: dict[str, dict[str, dict[str, float]]] = {}
    for path in (DEFAULTS, *paths):
        found = _read(path).get("cores", {}).get(core, {})
        for key, variants in found.get("layers", {}).items():
            layers.setdefault(key, {}).update({name: (int(one[0]), int(one[1])) for name, one in variants.items()})
        for kind, variants in found.get("estimates", {}).items():
            estimates.setdefault(kind, {}).update(variants)
    return Table(core, layers, estimates)


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise fault(
            f"cannot read the table of measurements: {error}", str(path), hint="opwest tune writes one"
        ) from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise fault("this is no table of measurements", str(path), f"version: {VERSION}", "opwest tune writes one")
    return content


def text_of(tables: Iterable[Table]) -> str:
    """Return the text of a table for files."""
    return "\n".join(
        ["# Written by `opwest tune`. Cycles of QEMU's instructions in a model, not of silicon.", *_lines(tables)]
    )


def _lines(tables: Iterable[Table]) -> Iterator[str]:
    yield f"version: {VERSION}"
    yield "cores:"
    for table in sorted(tables, key=lambda one: one.core):
        yield f"  {table.core}:"
        yield "    estimates:"
        for kind, variants in sorted(table.estimates.items()):
            yield f"      {kind}:"
            for name, terms in sorted(variants.items()):
                inner = ", ".join(f"{term}: {round(terms[term], 3)}" for term in (*TERMS, "code"))
                yield f"        {name}: {{{inner}}}"
        yield "    layers:"
        for key, measured in sorted(table.layers.items()):
            yield f"      {json.dumps(key)}:"
            yield "        {" + ", ".join(f"{name}: [{c}, {b}]" for name, (c, b) in sorted(measured.items())) + "}"
    yield ""
