# SPDX-License-Identifier: Apache-2.0
"""What every part of resolving needs: the manifest, its folder, and the list of faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from opwest.diagnostics import Diagnostics, Location
from opwest.manifest.located import Items, Mapping
from opwest.model.dtypes import DTYPES, MAX_TENSOR_BYTES, TensorType, is_finite
from opwest.model.model import Devicetree, Quantization

FLT_MIN = 1.17549435e-38
"""The smallest normal float32 (ISO C 5.2.4.2.2)."""


@dataclass(frozen=True)
class Context:
    """One manifest being resolved."""

    manifest: Mapping
    folder: Path
    faults: Diagnostics
    files: set[str] = field(default_factory=set)
    """Every file that the manifest names, relative to its folder."""
    untyped: set[Location] = field(default_factory=set)
    """Arguments whose missing shape was reported: nothing more is said of their type."""

    def section(self, key: str, parent: Mapping | None = None) -> Mapping:
        """Return the mapping at `key`, an empty one where it is absent."""
        owner = self.manifest if parent is None else parent
        value = owner.get(key)
        return value if isinstance(value, Mapping) else Mapping(owner.file, owner.start)

    def items(self, key: str, parent: Mapping | None = None) -> Items:
        """Return the list at `key`, an empty one where it is absent."""
        owner = self.manifest if parent is None else parent
        value = owner.get(key)
        return value if isinstance(value, Items) else Items(owner.file, owner.start)

    def file(self, name: str, location: Location) -> Path | None:
        """Return the path of a file named in the manifest; report one that leaves the folder."""
        expected = "a path inside the manifest's folder"
        if PurePosixPath(name).is_absolute() or PureWindowsPath(name).is_absolute() or "\\" in name or "\0" in name:
            self.faults.error(
                f"path {name!r} is not relative with forward slashes",
                location,
                expected=expected,
                hint="for example objects/conv.o",
            )
            return None
        try:
            path = (self.folder / name).resolve()
        except (OSError, RuntimeError) as error:
            self.faults.error(f"path {name!r} can't be followed: {error}", location, expected=expected)
            return None
        if not path.is_relative_to(self.folder.resolve()):
            self.faults.error(
                f"path {name!r} leaves the manifest's folder",
                location,
                expected=expected,
                hint="copy the file beside the manifest",
            )
            return None
        self.files.add(PurePosixPath(name).as_posix())
        return self.folder / name


def located_items(items: Items) -> list[tuple[Any, Location]]:
    """Return the items of a list with their places."""
    return [(item, items.item_location(index)) for index, item in enumerate(items)]


def tensor_type(context: Context, entry: Mapping) -> TensorType:
    """Return the type that an entry with `dtype` and `shape` declares; report one that no target could hold."""
    type_ = TensorType(DTYPES[entry["dtype"]], tuple(entry.get("shape", ())))
    if type_.size > MAX_TENSOR_BYTES:
        context.faults.error(
            f"a tensor of {type_} has {type_.size} bytes",
            entry.value_location("shape"),
            expected=f"at most {MAX_TENSOR_BYTES}",
        )
    return type_


def size_in_bytes(value: int | str) -> int:
    """Return the bytes that a size of the manifest stands for: 512, `64KiB`."""
    if isinstance(value, int):
        return value
    for suffix, factor in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)):
        if value.endswith(suffix):
            return int(value.removesuffix(suffix)) * factor
    raise ValueError(f"{value!r} is not a size")


def devicetree(context: Context, entry: Mapping, location: Location) -> Devicetree | None:
    """Return how a devicetree node is named; report a node named in no way or in two."""
    ways = [key for key in ("nodelabel", "alias", "chosen", "compatible") if key in entry]
    if len(ways) != 1:
        seen = " and ".join(ways) if ways else "none of them"
        context.faults.error(
            f"the devicetree node is named by {seen}",
            location,
            expected="exactly one of nodelabel, alias, chosen, compatible",
        )
        return None
    if "index" in entry and ways[0] != "compatible":
        context.faults.error(f"index goes with compatible, not with {ways[0]}", entry.key_location("index"))
        return None
    return Devicetree(ways[0], entry[ways[0]], entry.get("index", 0), location)


def quantization(context: Context, entry: Mapping, type_: TensorType) -> Quantization | None:
    """Return the quantization that an entry declares, None where there is none; report contradictions."""
    if "quantization" not in entry:
        return None
    given = entry["quantization"]
    at = entry.value_location("quantization")
    scales = tuple(given["scale"]) if isinstance(given["scale"], list) else (given["scale"],)
    zeros = given.get("zero_point", 0)
    zero_points = tuple(zeros) if isinstance(zeros, list) else (zeros,)
    axis = given.get("axis")
    for scale in scales:
        if not is_finite(scale, DTYPES["float32"]) or scale < FLT_MIN:
            context.faults.error(
                f"scale {scale:g} is not a positive float32", at, expected=f"{FLT_MIN:g} to 3.40282e+38"
            )
            return None
    many = len(scales) > 1 or len(zero_points) > 1
    if many and axis is None:
        context.faults.error(
            "there are several scales or zero points, but no axis",
            at,
            expected="axis: the dimension they belong to",
        )
        return None
    if axis is not None:
        if axis >= len(type_.shape):
            context.faults.error(
                f"axis {axis} is outside the shape {list(type_.shape)}",
                at,
                expected=f"0 to {len(type_.shape) - 1}",
            )
            return None
        length = type_.shape[axis]
        for what, values in (("scales", scales), ("zero points", zero_points)):
            if len(values) not in (1, length):
                context.faults.error(
                    f"there are {len(values)} {what} for {length} slices along axis {axis}",
                    at,
                    expected=f"1 or {length}",
                )
                return None
    dtype = type_.dtype
    for value in zero_points:
        if dtype.is_float and value == 0:
            continue
        if dtype.minimum is None or dtype.maximum is None or not dtype.minimum <= value <= dtype.maximum:
            context.faults.error(f"zero point {value} is not a value of {dtype.name}", at)
            return None
        if not -(1 << 31) <= value < 1 << 31:
            context.faults.error(f"zero point {value} is out of range", at, expected="a 32-bit value")
            return None
    return Quantization(tuple(float(s) for s in scales), zero_points, axis)
