# SPDX-License-Identifier: Apache-2.0
"""The shapes of arguments that declare none, from the files of the constants that steps pass for them."""

from __future__ import annotations

from opwest.manifest.arrays import ArrayError, read_array
from opwest.manifest.located import Mapping
from opwest.model.context import Context
from opwest.model.repeats import listed_steps

Shape = tuple[int, ...]


def constant_shapes(context: Context) -> dict[tuple[str, str], Shape]:
    """Return the shapes of constants by operator and argument, for arguments without a shape.

    The shape is that of the first step that passes a constant; other steps are compared with it like any tensor.
    """
    found: dict[tuple[str, str], Shape] = {}
    operators, constants = context.section("operators"), context.section("constants")
    for step, _ in listed_steps(context):
        entry = operators.get(step["call"])
        if entry is None:
            continue
        arguments = [a for a in context.items("args", entry) if a.get("direction") != "scratch"]
        for argument, given in zip(arguments, step["args"], strict=False):
            key = step["call"], argument["name"]
            if _needs_shape(argument) and key not in found and isinstance(given, str) and given in constants:
                shape = _shape(context, given, constants[given])
                if shape is not None:
                    found[key] = shape
    return found


def _needs_shape(argument: Mapping) -> bool:
    return "shape" not in argument and not argument.get("scalar") and argument.get("direction", "in") == "in"


def _shape(context: Context, name: str, entry: Mapping) -> Shape | None:
    """Return the shape of a constant; None for raw files without one, and files with errors, reported elsewhere."""
    if "shape" in entry:
        return tuple(entry["shape"])
    try:
        array = read_array(context.folder / entry["file"], entry.get("key", name), key_given="key" in entry)
    except (ArrayError, ValueError):  # null bytes in the path
        return None
    return array.shape if array.shape and 0 not in array.shape else None
