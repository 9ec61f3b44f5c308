# SPDX-License-Identifier: Apache-2.0
"""Measurements: opwest's own table, tuning.json, and files of users, tuning.yaml. Read, check, merge, write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.processors import class_of
from opwest.compiler.selection.costs import STALLS, TERMS, Table
from opwest.manifest.located import Items
from opwest.manifest.located import Mapping as Located
from opwest.manifest.yaml_reader import describe, read_yaml
from opwest.objects.flash import flash_of_source
from opwest.objects.targets import measured_cores
from opwest.project.disk import system_faults

DEFAULTS = Path(__file__).resolve().parent / "tuning.json"
"""opwest's own table, which scripts/default_tuning.py writes. Each import reads it: YAML takes 80 times as long."""
VERSION = 1
KERNELS = 3
"""The version of the emitted operators. It changes with the cost of a variant; then files must be measured again."""
COEFFICIENTS = (*TERMS, "code", *STALLS)
"""The keys of an estimate."""
_AGAIN = "measure again with opwest tune"
_NOTE = (
    "# Written by `opwest tune`. `measured` is the source of the cycles of a core. Those of qemu-system-... are",
    "# counted instructions in a model, not of silicon; those of a board are of its counter.",
)


@dataclass(frozen=True, eq=False)
class Tables:
    """Measurements by core."""

    cores: Mapping[str, Table]
    classes: Mapping[str, str]
    """By class of processors: the core whose costs decide, instead of that of `processors.py`."""

    def of(self, core: str) -> Table:
        """Return the measurements of a core."""
        return self.cores.get(core, Table(core, {}, {}))


def read_tables(paths: Iterable[Path] = ()) -> Tables:
    """Return opwest's own measurements, replaced by those of further files. Raises OpwestError with all faults."""
    return merged([_tables(json.loads(DEFAULTS.read_bytes())), *(read_file(path) for path in paths)])


def read_file(path: Path) -> Tables:
    """Return the measurements of one file. Raises OpwestError with all faults."""
    faults = Diagnostics()
    with system_faults(path, "cannot read the table of measurements"):
        text = path.read_bytes()
    root = read_yaml(text, str(path), faults)
    if root is not None:
        faults.sources[str(path)] = text
        _Checker(faults).root(root)
    faults.raise_if_errors()
    assert root is not None
    return _tables(root)


def merged(tables: Iterable[Tables]) -> Tables:
    """Return the entries of all. Those of later ones take precedence."""
    cores: dict[str, Table] = {}
    classes: dict[str, str] = {}
    for some in tables:
        for core, table in some.cores.items():
            cores[core] = cores[core].replaced_by(table) if core in cores else table
        classes.update(some.classes)
    return Tables(cores, classes)


def text_of(tables: Tables) -> str:
    """Return the text of a file."""
    return "\n".join([*_NOTE, *_lines(tables)])


def default_text(tables: Tables) -> str:
    """Return the text of opwest's own table: JSON with a line for each kind and each layer."""
    cores = {}
    for core, table in sorted(tables.cores.items()):
        estimates = {
            kind: {
                name: {
                    term: _short(terms[term]) for term in COEFFICIENTS if _short(terms.get(term, 0)) or term == "code"
                }
                for name, terms in sorted(variants.items())
            }
            for kind, variants in sorted(table.estimates.items())
        }
        layers = {key: dict(sorted(variants.items())) for key, variants in sorted(table.layers.items())}
        functions = dict(sorted(table.functions.items()))
        parts: dict[str, Mapping[str, Any]] = {"functions": functions, "estimates": estimates, "layers": layers}
        rows = [
            f'  "measured": {json.dumps(table.measured)}',
            *(_rows(name, part) for name, part in parts.items() if part),
        ]
        cores[core] = f" {json.dumps(core)}: {{\n" + ",\n".join(rows) + "\n }"
    return f'{{"version": {VERSION}, "kernels": {KERNELS}, "cores": {{\n' + ",\n".join(cores.values()) + "\n}}\n"


def _rows(name: str, part: Mapping[str, Any]) -> str:
    lines = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items())
    return f"  {json.dumps(name)}: {{\n{lines}\n  }}"


def _short(number: float) -> float:
    """Return a number with three digits, an integer from 100 on."""
    return round(number) if number >= 100 else float(f"{number:.3g}")


def _tables(content: Mapping[str, Any]) -> Tables:
    cores = {}
    for core, entries in content.get("cores", {}).items():
        layers = {
            key: {name: tuple(measured) for name, measured in variants.items()}
            for key, variants in entries.get("layers", {}).items()
        }
        functions = entries.get("functions", {})
        cores[core] = Table(
            core, layers, entries.get("estimates", {}), entries.get("measured", ""), functions=functions
        )
    return Tables(cores, content.get("classes", {}))


def _lines(tables: Tables) -> Iterator[str]:
    yield f"version: {VERSION}"
    yield f"kernels: {KERNELS}"
    if tables.classes:
        yield "classes:  # the core whose costs decide for a class of processors"
        yield from (f"  {name}: {core}" for name, core in sorted(tables.classes.items()))
    yield "cores:"
    for core, table in sorted(tables.cores.items()):
        yield f"  {core}:"
        if table.measured:
            yield f"    measured: {json.dumps(table.measured)}"
        if table.functions:
            yield "    functions:  # bytes of code of libraries, with what each function calls"
            yield from (f"      {name}: {size}" for name, size in sorted(table.functions.items()))
        if table.estimates:
            yield "    estimates:"
        for kind, variants in sorted(table.estimates.items()):
            yield f"      {json.dumps(kind)}:"
            for name, terms in sorted(variants.items()):
                inner = ", ".join(f"{term}: {round(terms[term], 3)}" for term in COEFFICIENTS if term in terms)
                yield f"        {name}: {{{inner}}}"
        yield "    layers:"
        for key, measured in sorted(table.layers.items()):
            yield f"      {json.dumps(key)}:"
            yield "        {" + ", ".join(f"{name}: {list(cost)}" for name, cost in sorted(measured.items())) + "}"
    yield ""


class _Checker:
    """The checks of a file."""

    def __init__(self, faults: Diagnostics) -> None:
        self.faults = faults

    def root(self, root: Located) -> None:
        for key, wanted in (("version", VERSION), ("kernels", KERNELS)):
            if root.get(key) != wanted or isinstance(root.get(key), bool):
                what = f"unsupported '{key}': {describe(root[key])}" if key in root else f"missing key '{key}'"
                self.faults.error(what, root.value_location(key), expected=f"{key}: {wanted}", hint=_AGAIN)
        self.keys(root, ("version", "kernels", "classes", "cores"))
        for name, core in self.items(root, "classes"):
            classes = {core: class_of(core) for core in measured_cores()}
            of_class = [core for core, known in classes.items() if known == name]
            if core not in of_class:
                expected = f"one of: {', '.join(of_class or sorted(set(classes.values())))}"
                what = f"invalid core {describe(core)} of class {name!r}" if of_class else f"unknown class {name!r}"
                self.faults.error(what, root["classes"].key_location(name), expected=expected)
        for core, entries in self.items(root, "cores"):
            if core not in measured_cores():
                place = root["cores"].key_location(core)
                self.faults.error(f"unknown core {core!r}", place, expected=f"one of: {', '.join(measured_cores())}")
            elif self.is_mapping(entries, root["cores"].value_location(core), f"core {core!r}"):
                self.core(entries)

    def core(self, entries: Located) -> None:
        self.keys(entries, ("measured", "functions", "estimates", "layers"))
        if not isinstance(entries.get("measured", ""), str):
            self.faults.error(
                f"invalid 'measured': {describe(entries['measured'])}",
                entries.value_location("measured"),
                expected="a text",
            )
        else:
            try:
                flash_of_source(entries.get("measured", ""))
            except ValueError as error:
                self.faults.error(f"invalid flash in 'measured': {error}", entries.value_location("measured"))
        for name, size in self.items(entries, "functions"):
            self.number(size, entries["functions"].value_location(name), f"bytes of code of {name!r}", int)
        for kind, variants in self.items(entries, "estimates"):
            for name, terms in self.items(entries["estimates"], kind):
                place = variants.value_location(name)
                if self.is_mapping(terms, place, f"the estimate of {name!r}"):
                    self.keys(terms, COEFFICIENTS)
                    if "code" not in terms:
                        self.faults.error("missing key 'code'", terms.location, expected="a number, at least 0")
                    for term in set(terms) & set(COEFFICIENTS):
                        self.number(terms[term], terms.value_location(term), f"'{term}'", float)
        for key, variants in self.items(entries, "layers"):
            for name, pair in self.items(entries["layers"], key):
                place = variants.value_location(name)
                if not isinstance(pair, Items) or len(pair) not in (2, 3):
                    expected = "[CYCLES, BYTES of code] or [CYCLES, BYTES of code, STALLS of flash]"
                    self.faults.error(f"invalid cost of {name!r}: {describe(pair)}", place, expected=expected)
                    continue
                for number, what in enumerate(("cycles", "bytes of code", "stalls of flash")[: len(pair)]):
                    self.number(pair[number], pair.item_location(number), what, int)

    def items(self, owner: Located, key: str) -> list[tuple[str, Any]]:
        """Return the entries of a mapping below a key; none with a fault."""
        entries = owner.get(key)
        if entries is None and key not in owner:
            return []
        self.is_mapping(entries, owner.value_location(key), f"'{key}'")
        return list(entries.items()) if isinstance(entries, Located) else []

    def is_mapping(self, value: Any, place: Location, what: str) -> bool:
        if not isinstance(value, Located):
            self.faults.error(f"invalid {what}: {describe(value)}", place, expected="a mapping")
        return isinstance(value, Located)

    def keys(self, owner: Located, known: Iterable[str]) -> None:
        for key in owner:
            if key not in known:
                self.faults.error(f"unknown key {key!r}", owner.key_location(key), hint=nearest(key, known))

    def number(self, value: Any, place: Location, what: str, kind: type) -> None:
        allowed = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed) or not 0 <= value < 1 << 62:
            expected = "an integer, at least 0" if kind is int else "a number, at least 0"
            self.faults.error(f"invalid {what}: {describe(value)}", place, expected=expected)
