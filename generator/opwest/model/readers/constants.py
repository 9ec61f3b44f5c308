# SPDX-License-Identifier: Apache-2.0
"""Resolve constant tensors, and other contents of files."""

from __future__ import annotations

from typing import Any

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import counted
from opwest.manifest.arrays import Array, ArrayError, read_array
from opwest.manifest.located import Mapping
from opwest.manifest.yaml_reader import describe
from opwest.model.inputs.context import Context, tensor_info
from opwest.model.readers.steps import listed_steps
from opwest.model.types.c_names import check_name
from opwest.model.types.dtypes import (
    DTYPES,
    DType,
    TensorType,
    converted,
    elements_of,
    is_finite,
    numbers_of,
    rounding_note,
)
from opwest.model.types.model import DEFAULT_ALIGNMENT, Argument, Binding, Constant


def bind_number(faults: Diagnostics, argument: Argument, value: Any, place: Location) -> Binding | None:
    """Return the binding of a scalar argument; report a value outside the range of its type."""
    dtype = argument.type.dtype
    value = int(value) if isinstance(value, bool) else value
    fits = is_finite(value, dtype) if dtype.is_float else _in_range(dtype, value)
    if not fits:
        faults.error(f"argument {argument.name!r} is {describe(value)}", place, expected=_range_words(dtype))
        return None
    return Binding("scalar", argument.name, float(value) if dtype.is_float else value)


def element(faults: Diagnostics, what: str, dtype: DType, value: Any, place: Location) -> bytes | None:
    """Return a number as an element, little-endian; report a value outside the range of the type.

    Floating-point numbers are rounded to the nearest element, also of types that C holds as their bits.
    """
    import numpy as np  # slow to import, and most manifests contain no such number

    value = int(value) if isinstance(value, bool) else value
    is_float = dtype.kind == "float"
    held = None
    if is_float and is_finite(value, DTYPES["float64"]):
        number = np.array(float(value), np.float64)
        with np.errstate(over="ignore"):
            conversion = (number.astype(dtype.numpy), 0) if dtype.numpy == dtype.name else elements_of(number, dtype)
        held = conversion[0] if conversion and np.isfinite(numbers_of(conversion[0], dtype)) else None
    elif not is_float and _in_range(dtype, value):
        held = np.array(value).astype(dtype.numpy)
    if held is None:
        words = f"a finite number in the range of {dtype.name}" if is_float else _range_words(dtype)
        faults.error(f"{what} is {describe(value)}", place, expected=words)
        return None
    return held.astype(held.dtype.newbyteorder("<")).tobytes()


def _in_range(dtype: DType, value: Any) -> bool:
    least, greatest = _range(dtype)
    return isinstance(value, int) and least <= value <= greatest


def _range(dtype: DType) -> tuple[int, int]:
    if dtype.minimum is None or dtype.maximum is None:
        return 0, (1 << 8 * dtype.size) - 1  # its bits
    return dtype.minimum, dtype.maximum


def _range_words(dtype: DType) -> str:
    if dtype.is_float:
        return f"a finite number in the range of {dtype.name}"
    least, greatest = _range(dtype)
    what = f"{dtype.bits} as" if dtype.bits else f"a value of {dtype.name}:"
    return f"{what} a whole number from {least} to {greatest}"


def constants(context: Context, required: dict[str, TensorType]) -> dict[str, Constant]:
    """Return the constants by name. `required` contains the types that the steps require, for raw files."""
    section = context.section("constants")
    resolved = {}
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("constant", name, at, context.faults)
        read = read_content(context, f"constant {name!r}", name, entry, entry, required.get(name))
        if read is not None:
            type_, content = read
            align = max(entry.get("align", 1), type_.dtype.size, DEFAULT_ALIGNMENT)
            info = tensor_info(context, entry, type_)
            resolved[name] = Constant(name, type_, content, align, info, entry.get("pool"), at)
    return resolved


def read_content(
    context: Context, what: str, key: str, entry: Mapping, declared: Mapping, required: TensorType | None
) -> tuple[TensorType, bytes] | None:
    """Return the type and the content, little-endian, in C order, of `file` in an entry; report an unusable file.

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
    dtype = DTYPES.get(declared.get("dtype", ""))
    if dtype is not None:
        array = as_declared(context, what, dtype, array, where)
    type_ = _type(context, what, entry, declared, array, required)
    return None if type_ is None else (type_, array.content)


def as_declared(context: Context, what: str, dtype: DType, array: Array, where: Location) -> Array:
    """Return an array as elements of a dtype, with a note about rounded values; unchanged if it cannot be converted."""
    conversion = converted(array, dtype)
    if conversion is None:
        return array
    elements, rounded = conversion
    if rounded:
        context.faults.note(f"{what}: {rounding_note(rounded, dtype)}", where)
    return elements


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
            f"{what} has {counted(len(array.content), 'byte')}, {type_} requires {type_.size}",
            where,
            expected=f"{counted(type_.size, 'byte')}",
            hint="check dtype and shape against the file",
        )
        return None
    return type_


Shape = tuple[int, ...]


def constant_shapes(context: Context) -> dict[tuple[str, str], Shape]:
    """Return the shapes of constants by operator and argument, for arguments without a shape.

    The shape is that of the first step that passes a constant; other steps are compared with it like any tensor.
    """
    shapes: dict[tuple[str, str], Shape] = {}
    operators, constants = context.section("operators"), context.section("constants")
    for step, _ in listed_steps(context):
        entry = operators.get(step["call"])
        if entry is None:
            continue
        given_args = context.items("args", entry)
        arguments = [a for a in given_args if a.get("direction") != "scratch" and "nulls" not in a]
        for argument, given in zip(arguments, step["args"], strict=False):
            key = step["call"], argument["name"]
            needs_shape = (
                "shape" not in argument and not argument.get("scalar") and argument.get("direction", "in") == "in"
            )
            if needs_shape and key not in shapes and isinstance(given, str) and given in constants:
                shape = _shape(context, given, constants[given])
                if shape is not None:
                    shapes[key] = shape
    return shapes


def _shape(context: Context, name: str, entry: Mapping) -> Shape | None:
    """Return the shape of a constant; None for raw files without one, and files with errors, reported elsewhere."""
    if "shape" in entry:
        return tuple(entry["shape"])
    try:
        array = read_array(context.folder / entry["file"], entry.get("key", name), key_given="key" in entry)
    except (ArrayError, ValueError):  # null bytes in the path
        return None
    return array.shape if array.shape and 0 not in array.shape else None
