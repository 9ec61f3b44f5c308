# SPDX-License-Identifier: Apache-2.0
"""Memory that calls by TVM's conventions need besides the declared arguments, and checks of these arguments."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Location
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, size_in_bytes
from opwest.model.types.conventions import Convention, WorkspaceNeed
from opwest.model.types.dtypes import DTYPES, MAX_TENSOR_BYTES, TensorType
from opwest.model.types.model import DEFAULT_ALIGNMENT, Argument

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
            f"the workspace of operator {operator!r} has {size} bytes",
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
        quantization=None,
        location=at,
        supplied="workspace" if what == "workspace" else "arrays",
    )
