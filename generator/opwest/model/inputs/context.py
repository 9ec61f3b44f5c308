# SPDX-License-Identifier: Apache-2.0
"""The state shared by all parts of resolution: the manifest, its directory, the diagnostics."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import is_portable, spelled
from opwest.base.result import counted
from opwest.manifest.located import Items, Mapping
from opwest.manifest.yaml_reader import describe
from opwest.model.types.builds import ANY_TARGET, Examined, Variant, kind_of
from opwest.model.types.dtypes import DTYPES, MAX_TENSOR_BYTES, TensorType, is_finite
from opwest.model.types.model import Quantization, TensorInfo
from opwest.model.types.sections import Devicetree

_NO_INFO = TensorInfo()
FLT_MIN = 1.17549435e-38
"""The smallest normal float32 (ISO C 5.2.4.2.2)."""


@dataclass(frozen=True)
class Context:
    """One manifest, or a variant of it, being resolved."""

    manifest: Mapping
    folder: Path
    faults: Diagnostics
    variant: Variant | None = None
    """The variant of the model; None for the base."""
    devices_elsewhere: frozenset[str] = frozenset()
    """The devices of steps of the base or of a variant: their list is common to all."""
    incomplete: bool = False
    """Whether steps contain unknown values: any tensor can be the one that they write."""
    files: set[str] = field(default_factory=set)
    """The files that the manifest names or its sources include, relative to its directory.

    For a missing file, its directory: the build runs again when the file is created.
    """
    untyped: set[Location] = field(default_factory=set)
    """Arguments with a reported missing shape; their types are not checked further."""
    examined: list[Examined] = field(default_factory=list)
    """All examined objects, in manifest order."""

    @property
    def seen(self) -> tuple[tuple[Examined, ...], tuple[Path, ...]]:
        """The examined objects, and the paths of `files` in order."""
        return tuple(self.examined), tuple(self.folder / name for name in sorted(self.files))

    def examine(self, name: str, target: str | None, kind: str | None = None) -> Examined:
        """Add and return the record of an object."""
        noted = Examined(name, kind or kind_of(name), target or ANY_TARGET, self.faults)
        self.examined.append(noted)
        return noted

    def duplicate(self, what: str, at: Location, first: Location, expected: str) -> None:
        """Report a second definition of `what`."""
        hint = f"first defined at line {first.line}"
        self.faults.error(f"duplicate {what}", at, expected=expected, hint=hint)

    @property
    def run(self) -> Mapping:
        """The section `run`."""
        return self.section("run")

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

    def missing(self, name: str) -> None:
        """Record a missing file as an input of the build."""
        place = PurePosixPath(name).parent
        while place.parent != place and not os.path.isdir(self.folder / place):  # noqa: PTH112 - it never raises
            place = place.parent
        self.files.add(spelled(place))

    def file(self, name: str, location: Location) -> Path | None:
        """Return the path of a file named in the manifest; report a path outside the directory."""
        expected = "a path inside the manifest's directory"
        if "\0" in name:
            self.faults.error(f"path {name!r} contains a NUL character", location, expected=expected)
            return None
        if not is_portable(name):
            self.faults.error(
                f"path {name!r} is not a relative path with forward slashes",
                location,
                expected=expected,
                hint="for example objects/conv.o",
            )
            return None
        try:
            path = (self.folder / name).resolve()
            looped = path.is_symlink()  # from Python 3.13 on
        except RuntimeError:  # before
            looped = True
        except OSError as error:
            self.faults.error(f"cannot resolve path {name!r}: {error.strerror}", location, expected=expected)
            return None
        if looped:
            self.faults.error(f"path {name!r} is a loop of symbolic links", location, expected=expected)
            return None
        if not path.is_relative_to(self.folder.resolve()):
            self.faults.error(
                f"path {name!r} is outside the manifest's directory",
                location,
                expected=expected,
                hint="copy the file into the manifest's directory",
            )
            return None
        self.files.add(spelled(PurePosixPath(name)))
        return self.folder / name

    def regular_file(self, name: str, location: Location, expected: str, hint: str | None = None) -> Path | None:
        """Return the path of an existing file; report an invalid path and any other kind of file.

        `hint` is for directories.
        """
        path = self.file(name, location)
        if path is None:
            return None
        reason = fault_of_file(path)
        if reason is None:
            return path
        self.faults.error(
            f"cannot read {name!r}: {reason}",
            location,
            expected=expected,
            hint=hint if reason == IS_A_DIRECTORY else path_suggestions.hint_for(path, name),
        )
        return None


@dataclass(frozen=True)
class IrFile:
    """A file of LLVM IR with its keys in the manifest."""

    name: str
    path: Path
    location: Location
    entry: Mapping


IS_A_DIRECTORY = os.strerror(errno.EISDIR)


def fault_of_file(path: Path) -> str | None:
    """Return the reason why a path cannot be read as a regular file, in the words of the system; None if it can."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    if stat.S_ISDIR(mode):
        return IS_A_DIRECTORY
    return None if stat.S_ISREG(mode) else "not a regular file"


def located_items(items: Items) -> list[tuple[Any, Location]]:
    """Return the items of a list with their locations."""
    file = items.file
    return [(item, Location(file, *place)) for item, place in zip(items, items.items_at, strict=True)]


def tensor_type(context: Context, entry: Mapping) -> TensorType:
    """Return the type of an entry with `dtype` and `shape`; report one larger than the limit, and a small pitch."""
    pitch = pitch_of(context, entry) if "pitch" in entry else 0
    type_ = _tensor_type(entry["dtype"], tuple(entry.get("shape", ())), pitch)
    if type_.size > MAX_TENSOR_BYTES:
        context.faults.error(
            f"tensor type {type_} has {counted(type_.size, 'byte')}",
            entry.value_location("shape"),
            expected=f"at most {MAX_TENSOR_BYTES} bytes",
        )
    return type_


@lru_cache(maxsize=1024)
def _tensor_type(dtype: str, shape: tuple[int, ...], pitch: int) -> TensorType:
    """Return the type; the tensors of a model have few."""
    return TensorType(DTYPES[dtype], shape, pitch)


def pitch_of(context: Context, entry: Mapping) -> int:
    """Return the pitch of an entry with a shape, 0 for none; report one that is smaller than a row."""
    pitch: int = entry.get("pitch", 0)
    shape = entry.get("shape", ())
    if pitch and (not shape or pitch < shape[-1]):
        row = f"rows of {shape[-1]} elements" if shape else "no dimension"
        context.faults.error(
            f"a pitch of {pitch} for {row}",
            entry.value_location("pitch"),
            expected=f"at least {shape[-1]}" if shape else "a shape with dimensions",
            hint="the pitch counts the elements from the start of one row, the last dimension, to the next",
        )
        return 0
    return pitch


def size_in_bytes(value: float | str) -> int:
    """Return a size of the manifest (512, `64KiB`) in bytes."""
    if not isinstance(value, str):
        return int(value)
    for suffix, factor in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)):
        if value.endswith(suffix):
            return int(value.removesuffix(suffix)) * factor
    raise ValueError(f"invalid size {value!r}")


def devicetree(context: Context, entry: Mapping, location: Location) -> Devicetree | None:
    """Return the reference to a devicetree node; report a reference with no or several kinds of names."""
    ways = [key for key in ("nodelabel", "alias", "chosen", "compatible") if key in entry]
    if len(ways) != 1:
        seen = f"specified by {' and '.join(ways)}" if ways else "not specified"
        context.faults.error(
            f"the devicetree node is {seen}",
            location,
            expected="exactly one of nodelabel, alias, chosen, compatible",
        )
        return None
    if "index" in entry and ways[0] != "compatible":
        context.faults.error(
            f"'index' is invalid with {ways[0]!r}",
            entry.key_location("index"),
            expected="'index' with 'compatible' only",
        )
        return None
    return Devicetree(ways[0], entry[ways[0]], entry.get("index", 0), location)


def tensor_info(context: Context, entry: Mapping, type_: TensorType) -> TensorInfo:
    """Return the properties that an entry declares for the elements of a tensor; report contradictions."""
    if "quantization" not in entry:
        return _NO_INFO
    return TensorInfo(quantization=_quantization(context, entry, type_))


def _quantization(context: Context, entry: Mapping, type_: TensorType) -> Quantization | None:
    given = entry["quantization"]
    scales = tuple(given["scale"]) if isinstance(given["scale"], list) else (given["scale"],)
    zeros = given.get("zero_point", 0)
    zero_points = tuple(zeros) if isinstance(zeros, list) else (zeros,)
    axis = given.get("axis")
    for scale in scales:
        if not is_finite(scale, DTYPES["float32"]) or scale < FLT_MIN:
            context.faults.error(
                f"the scale is {describe(scale)}",
                given.value_location("scale"),
                expected=f"a positive float32: {FLT_MIN:g} to 3.40282e+38",
            )
            return None
    many = len(scales) > 1 or len(zero_points) > 1
    if many and axis is None:
        context.faults.error(
            "several scales or zero points require 'axis'",
            entry.value_location("quantization"),
            expected="axis: the dimension along which they vary",
        )
        return None
    if axis is not None:
        if axis >= len(type_.shape):
            context.faults.error(
                f"axis {axis} is out of range for shape {list(type_.shape)}",
                given.value_location("axis"),
                expected=f"0 to {len(type_.shape) - 1}" if len(type_.shape) > 1 else "0" if type_.shape else "no axis",
            )
            return None
        length = type_.shape[axis]
        for what, key, values in (("scales", "scale", scales), ("zero points", "zero_point", zero_points)):
            if len(values) not in (1, length):
                context.faults.error(
                    f"{len(values)} {what} for {counted(length, 'slice')} along axis {axis}",
                    given.value_location(key),
                    expected=f"1 or {length}",
                )
                return None
    dtype = type_.dtype
    # The zero point of a floating-point tensor is 0; the metadata stores 32 bits.
    low, high = max(dtype.minimum or 0, -(1 << 31)), min(dtype.maximum or 0, (1 << 31) - 1)
    for value in zero_points:
        if not low <= value <= high:
            context.faults.error(
                f"the zero point of a tensor of dtype {dtype.name} is {describe(value)}",
                given.value_location("zero_point"),
                expected=f"{low} to {high}" if high else "0",
            )
            return None
    return Quantization(tuple(float(s) for s in scales), zero_points, axis)
