# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect`: objects, archives, C sources and LLVM IR, each judged alone, and images with their models."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics, Location, nearest, printable
from opwest.base.result import Result, table_lines
from opwest.bundles.explanation import as_json as bundle_json
from opwest.bundles.explanation import as_text as bundle_text
from opwest.bundles.format import is_bundle, read_bundle
from opwest.model.checks.exportability import ObjectRow
from opwest.model.inputs.targets import make_target
from opwest.model.types.builds import Target, is_ir
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.images import NOTE_SECTION, image_json, image_text, is_image, read_image
from opwest.objects.inspect import inspect_object, read_file
from opwest.objects.magic import ELF
from opwest.objects.report import Requirement, as_json, as_text
from opwest.objects.targets import named_targets

_KEYS = ("object", "kind", "target", "exportable", "code", "constant", "state_text", "stack_text")
_HEAD = (*_KEYS[:6], "state", "operators' stack")
_MAX_NAME_LENGTH = 80


def _cell(value: object) -> str:
    """Return a value as text; a long path is shortened to its end."""
    text = "-" if value is None else printable(str(value))
    return text if len(text) <= _MAX_NAME_LENGTH else "…" + text[1 - _MAX_NAME_LENGTH :]


def table(rows: Sequence[ObjectRow], most: int = 24) -> str:
    """Return the rows as a table; stack is the largest frame of the object's operators, in bytes."""
    if len(rows) > most:
        rows = sorted(rows, key=lambda row: not row.reasons)  # rejected objects first, so that they are shown
    shown = [[_cell(getattr(row, key)) for key in _KEYS] for row in rows[:most]]
    lines = table_lines([_HEAD, *shown], ())
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more: --json shows all")
    return "\n".join(f"  {line}" for line in lines)


def inspect(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print the facts about each file; report every unusable file."""
    target = None
    if options.target is not None:
        if options.target not in named_targets():
            faults.error(
                f"unknown target {options.target!r}",
                hint=f"{nearest(options.target, named_targets())} (`opwest targets` lists all)",
            )
            return Result("", None)
        target = make_target(options.target, named_targets()[options.target])
    texts, values = [], []
    for path in options.files:
        describe = _bundle if is_bundle(path) else _ir if is_ir(path) else _object
        try:
            text, value = describe(path, target, options.libc, faults)
        except ObjectError as error:
            _report(path, error, faults)
            continue
        texts.append(text)
        values.append(value)
    return Result("\n\n".join(texts), values or None)


def _report(path: Path, error: ObjectError, faults: Diagnostics) -> None:
    faults.error(error.message, Location(str(path)), expected=error.expected, hint=error.hint)


def _requirement(target: Target | None, libc: str | None, compiled_for: str | None = None) -> Requirement:
    if target is None:
        return Requirement(None, libc)
    return Requirement(target, "host" if target.host else libc, compiled_for)


def _object(path: Path, target: Target | None, libc: str | None, faults: Diagnostics) -> tuple[str, dict[str, Any]]:
    """Return the description of an object, an archive, a C source or an image. Raises ObjectError."""
    image = _image(path, faults, targeted=target is not None)
    if image is not None:
        return image
    item = inspect_object(path)
    requirement = _requirement(target, libc)
    return as_text(str(path), item, requirement), as_json(str(path), item, requirement)


def _image(path: Path, faults: Diagnostics, *, targeted: bool) -> tuple[str, dict[str, Any]] | None:
    """Return the description of an image with models, None for another file; report a program without models."""
    content = read_file(path)
    if not content.startswith(ELF):
        return None
    elf = parse_elf(content)
    if not is_image(elf):
        return None
    if targeted:
        faults.error("--target has no effect on a linked image", Location(str(path)))
    try:
        image = read_image(elf)
    except ObjectError as error:
        if elf.find(NOTE_SECTION) is not None:
            raise
        _report(path, error, faults)
        return None  # the program is also judged as an object
    return image_text(str(path), elf, image), image_json(str(path), elf, image)


def _bundle(path: Path, target: Target | None, _: str | None, faults: Diagnostics) -> tuple[str, dict[str, Any]]:
    """Return the description of a bundle. Raises OpwestError for a damaged one."""
    if target is not None:
        faults.error("--target has no effect on a bundle", Location(str(path)))
    bundle = read_bundle(path)
    return bundle_text(str(path), bundle), bundle_json(str(path), bundle)


def _ir(path: Path, target: Target | None, libc: str | None, _: Diagnostics) -> tuple[str, dict[str, Any]]:
    """Return the description of LLVM IR. Raises ObjectError."""
    from opwest.model.inputs.ir import inspect_ir, uncompiled_as_json, uncompiled_as_text

    ir = inspect_ir(path, target)
    if ir.item is None:
        return uncompiled_as_text(str(path), ir), uncompiled_as_json(str(path), ir)
    requirement = _requirement(ir.target, libc, ir.target.name)
    return as_text(str(path), ir.item, requirement), as_json(str(path), ir.item, requirement)
