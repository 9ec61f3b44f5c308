# SPDX-License-Identifier: Apache-2.0
"""Memory that calls by TVM's conventions need besides the declared arguments, and checks of these arguments."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Location
from opwest.base.result import counted
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, size_in_bytes
from opwest.model.types.conventions import Convention, WorkspaceNeed
from opwest.model.types.dtypes import DTYPES, MAX_TENSOR_BYTES, TensorType
from opwest.model.types.model import DEFAULT_ALIGNMENT, Argument, TensorInfo

_BYTE = DTYPES["uint8"]


def workspace_need(context: Context, operator: str, entry: Mapping, convention: Convention) -> WorkspaceNeed | None:
    """Return the declared `workspace` of an operator; report one that exceeds every target's memory."""
    given = entry.get("workspace")
    if given is None:
        return None
    inner = isinstance(given, Mapping)
    size = size_in_bytes(given["size"] if inner else given)
    align = given.get("align", convention.workspace_alignment) if inner else convention.workspace_alignment
    need = WorkspaceNeed(size, align)
    if need.planned > MAX_TENSOR_BYTES:
        context.faults.error(
            f"the workspace of operator {operator!r} has {counted(size, 'byte')}",
            given.value_location("size") if inner else entry.value_location("workspace"),
            expected=f"at most {MAX_TENSOR_BYTES}",
        )
    return need


def check_passing(context: Context, entry: Mapping, convention: Convention) -> None:
    """Report arguments that the convention cannot pass: scalars without a C type, and a misplaced `pointer`."""
    scalar = entry.get("scalar", False)
    if scalar and not convention.passes_scalar(DTYPES[entry["dtype"]]):
        context.faults.error(
            f"argument {entry['name']!r} is a {entry['dtype']} scalar, which {convention.name} operators cannot take",
            entry.value_location("dtype"),
            expected="float32" if convention.arrays is None else "float32, passed as a double",
        )
    if not scalar and not convention.passes_tensor(DTYPES[entry["dtype"]]):
        context.faults.error(
            f"argument {entry['name']!r} is a {entry['dtype']} tensor, which {convention.name} operators cannot take",
            entry.value_location("dtype"),
            expected="another dtype: the convention has no description of this one",
        )
    if "struct" in entry and (scalar or entry["dtype"] != _BYTE.name or convention.arrays is not None):
        what = "a scalar" if scalar else entry["dtype"] if convention.arrays is None else f"passed by {convention.name}"
        context.faults.error(
            f"argument {entry['name']!r} is struct {entry['struct']}, and {what}",
            entry.value_location("struct"),
            expected="dtype: uint8 and shape: [SIZE], in an unpacked operator",
        )
    if "pitch" in entry:
        _check_pitch(context, entry, convention)
    if entry.get("pointer") and (scalar or convention.arrays is None):
        what = "is a scalar" if scalar else f"belongs to an operator with the convention {convention.name}"
        context.faults.error(
            f"argument {entry['name']!r} {what}",
            entry.value_location("pointer"),
            expected="pointer: true for tensors of packed and ffi operators",
        )


def _check_pitch(context: Context, entry: Mapping, convention: Convention) -> None:
    """Report a pitch of an argument that is no plain result: operators read tensors whose rows follow each other."""
    what = None
    if entry.get("scalar", False) or "shape" not in entry:
        what = "has a pitch and no shape"
    elif entry.get("direction", "in") != "out" or "in_place" in entry:
        what = "has a pitch and is read" if "in_place" not in entry else "has a pitch and 'in_place'"
    elif convention.arrays is not None or convention.descriptors is not None:
        what = f"has a pitch in an operator with the convention {convention.name}"
    if what is not None:
        context.faults.error(
            f"argument {entry['name']!r} {what}",
            entry.value_location("pitch"),
            expected="'pitch' at a result (direction: out) with a shape, in an unpacked operator",
        )


def supplied_arguments(
    convention: Convention,
    args: Sequence[Argument],
    takes_device: bool,
    is_async: bool,
    workspace: WorkspaceNeed | None,
    at: Location,
) -> list[Argument]:
    """Return the memory that opwest adds to a call: the workspace, and the arrays of a launched operator.

    A launched operator returns before its work is complete, so its argument arrays cannot be on the stack.
    """
    added = []
    if workspace is not None:
        added.append(_memory("workspace", workspace.planned, workspace.align, at))
    if is_async and convention.arrays is not None:
        tensors = sum(not a.scalar and not a.pointer for a in args)
        size = convention.arrays.bytes(tensors, len(args) + takes_device)
        added.append(_memory("arrays", size, DEFAULT_ALIGNMENT, at))
    return added


def _memory(what: str, size: int, align: int, at: Location) -> Argument:
    return Argument(
        name=f"opwest_{what}",
        type=TensorType(_BYTE, (size,)),
        direction="scratch",
        scalar=False,
        align=align,
        info=TensorInfo(),
        location=at,
        supplied="workspace" if what == "workspace" else "arrays",
    )


class Coverage:
    """Disjoint ranges of bytes by tensor, in ascending order, and the rows of views with a pitch."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self._rows: dict[str, list[tuple[int, TensorType]]] = {}
        """By tensor: the first byte of a view with a pitch, and its type."""

    def add(self, tensor: str, begin: int, end: int) -> None:
        """Add the bytes from `begin` up to `end`; an empty tensor counts as written."""
        left = []
        for low, high in self._ranges.get(tensor, []):
            if high < begin or low > end:
                left.append((low, high))
            else:
                begin, end = min(begin, low), max(end, high)
        self._ranges[tensor] = sorted([*left, (begin, end)])

    def add_view(self, tensor: str, begin: int, type_: TensorType) -> None:
        """Add a view: of one with a pitch, its rows."""
        if type_.pitch:
            self._ranges.setdefault(tensor, [])
            self._rows.setdefault(tensor, []).append((begin, type_))
        else:
            self.add(tensor, begin, begin + type_.size)

    def add_whole(self, tensor: str) -> None:
        """Add a whole tensor, also one whose size is unknown because of an error."""
        self._ranges[tensor] = [(0, 1 << 62)]

    def gap(self, tensor: str, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first bytes in a range that are not written; None if all are."""
        first = self._gap(tensor, begin, end)
        if first is None or tensor not in self._rows:
            return first
        # Rows of several views together can be whole ranges.
        missing = bytearray(b"\1") * (end - begin)
        for low, high in self._ranges[tensor]:
            start, stop = max(low, begin), min(high, end)
            if start < stop:
                missing[start - begin : stop - begin] = bytes(stop - start)
        for start, type_ in self._rows[tensor]:
            item = type_.dtype.size
            for at in range(start, start + type_.shape[-1] * item):
                # The same byte of each row, from the first one in the range on.
                skipped = max(0, -(-(begin - at) // (type_.pitch * item)))
                stop = min(end, start + type_.size) - begin
                some = range(at + skipped * type_.pitch * item - begin, stop, type_.pitch * item)
                if some:
                    missing[some.start : some.stop : some.step] = bytes(len(some))
        low = missing.find(1)
        if low < 0:
            return None
        high = missing.find(0, low)
        return begin + low, end if high < 0 else begin + high

    def _gap(self, tensor: str, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first bytes that are in none of the ranges."""
        for low, high in self._ranges.get(tensor, []):
            if low <= begin and end <= high:
                return None
            if low <= begin < high:
                begin = high
            elif begin < low < end:
                return begin, low
        return begin, end

    @property
    def tensors(self) -> set[str]:
        """The tensors that are written, at least in part."""
        return set(self._ranges)

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._ranges
