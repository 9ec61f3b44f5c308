# SPDX-License-Identifier: Apache-2.0
"""Resolve constant tensors, and other contents of files."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.arrays import Array, ArrayError, read_array
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, quantization
from opwest.model.readers.steps import listed_steps
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.elements import converted, rounding_note
from opwest.model.types.identifiers import check_name
from opwest.model.types.model import DEFAULT_ALIGNMENT, Constant


@dataclass(frozen=True)
class Content:
    """The content of a tensor: little-endian, in C order."""

    type: TensorType
    content: bytes


def constants(context: Context, required: dict[str, TensorType]) -> dict[str, Constant]:
    """Return the constants by name. `required` contains the types that the steps require, for raw files."""
    section = context.section("constants")
    found = {}
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("constant", name, at, context.faults)
        read = read_content(context, f"constant {name!r}", name, entry, entry, required.get(name))
        if read is not None:
            align = max(entry.get("align", 1), read.type.dtype.size, DEFAULT_ALIGNMENT)
            quantized = quantization(context, entry, read.type)
            found[name] = Constant(name, read.type, read.content, align, quantized, entry.get("pool"), at)
    return found


def read_content(
    context: Context, what: str, key: str, entry: Mapping, declared: Mapping, required: TensorType | None
) -> Content | None:
    """Return the content of `file` in an entry; report a file that cannot be read or has another type.

    `key` is the default name in an archive; `declared` can contain dtype and shape; `required` is the type of a raw
    file that they do not specify.
    """
    where = entry.value_location("file")
    path = context.regular_file(entry["file"], where, "a .npy, .npz or raw file")
    if path is None:
        return None
    try:
        array = read_array(path, entry.get("key", key), key_given="key" in entry)
    except ArrayError as error:
        place = entry.value_location("key") if "key" in entry else where
        context.faults.error(f"{what}: {error.message}", place, expected=error.expected, hint=error.hint)
        return None
    array = _as_declared(context, what, entry, declared, array)
    type_ = _type(context, what, entry, declared, array, required)
    return None if type_ is None else Content(type_, array.content)


def _as_declared(context: Context, what: str, entry: Mapping, declared: Mapping, array: Array) -> Array:
    """Return the content of a file as elements of the declared dtype, if it can be converted."""
    dtype = DTYPES.get(declared.get("dtype", ""))
    found = converted(array, dtype) if dtype is not None else None
    if dtype is None or found is None:
        return array
    as_declared, rounded = found
    if rounded:
        context.faults.note(f"{what}: {rounding_note(rounded, dtype)}", entry.value_location("file"))
    return as_declared


def _type(
    context: Context, what: str, entry: Mapping, declared: Mapping, array: Array, required: TensorType | None
) -> TensorType | None:
    """Return the type of a file's content, from the file, the manifest and its use; report differences."""
    faults = context.faults
    where = entry.value_location("file")
    dtype = declared.get("dtype", array.dtype or (required.dtype.name if required else None))
    shape = declared.get("shape", array.shape if array.shape is not None else required.shape if required else None)
    if dtype is None or shape is None:
        faults.error(f"raw {what} has no type", where, expected="dtype and shape")
        return None
    if dtype not in DTYPES:
        faults.error(f"{what} has dtype {dtype}", where, expected=", ".join(DTYPES))
        return None
    type_ = TensorType(DTYPES[dtype], tuple(shape))
    if array.dtype is not None and array.dtype != dtype:
        faults.error(
            f"dtype mismatch: the file of {what} has {array.dtype}, the manifest {dtype}",
            declared.value_location("dtype"),
            expected=array.dtype,
        )
        return None
    if array.shape is not None and array.shape != type_.shape:
        faults.error(
            f"shape mismatch: the file of {what} has {list(array.shape)}, the manifest {list(type_.shape)}",
            declared.value_location("shape"),
            expected=str(list(array.shape)),
        )
        return None
    if 0 in type_.shape:
        faults.error(
            f"{what} is empty (shape {list(type_.shape)})",
            where,
            expected="at least one element",
        )
        return None
    if len(array.content) != type_.size:
        faults.error(
            f"{what} has {len(array.content)} bytes, {type_} requires {type_.size}",
            where,
            expected=f"{type_.size} bytes",
            hint="check dtype and shape against the file",
        )
        return None
    return type_


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
