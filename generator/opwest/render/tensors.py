# SPDX-License-Identifier: Apache-2.0
"""Rows for inputs and outputs that several files use: titles, macros, buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Interface, Model, Quantization
from opwest.model.types.sections import Device, Devicetree
from opwest.plan.problem import round_up
from opwest.render.literals import c_comment, c_float, c_string

_FLOAT32 = DTYPES["float32"]


def interface_rows(model: Model) -> list[dict[str, Any]]:
    """Return a row for every input, then for every output."""
    names = CNames(model.name)
    rows = []
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        for tensor in tensors:
            macro = names.tensor_macro(role, tensor.name)
            padded = padded_elements(model, tensor)
            rows.append(
                {
                    "name": tensor.name,
                    "member": member_name(tensor.name),
                    "role": role,
                    "macro": macro,
                    "heading": f"{role.capitalize()} {tensor.name}",
                    "title": title(role, tensor, padded),
                    "c_type": tensor.type.dtype.c_type,
                    "dtype": tensor.type.dtype.name,
                    "shape": list(tensor.type.shape),
                    "size": tensor.type.size,
                    "align": max(tensor.align, tensor.type.dtype.size),
                    "buffer": f"{model.name}_{role}_{tensor.name}",
                    "placed": tensor.placed,
                    "labels": list(tensor.labels),
                    "reached": names.reaches(tensor.name) if not tensor.placed and tensor.agents - {"cpu"} else None,
                    "macros": _macros(macro, tensor, padded),
                    "elements": f"{macro}_{'PADDED' if padded > tensor.type.elements else 'ELEMENTS'}",
                }
            )
    return rows


def external_rows(rows: Sequence[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    """Return the rows of a role whose memory the caller provides."""
    return [row for row in rows if row["role"] == role and not row["placed"]]


def external_line(model: Model, tensor: Interface) -> int | None:
    """Return the cache line in bytes of a caller's buffer that a device accesses without the cache.

    The memory of the buffer is unknown: assume the pool with the longest cache lines.
    """
    incoherent = {device.name for device in model.devices if not device.coherent}
    if tensor.placed or not tensor.agents & incoherent:
        return None
    return max((pool.cache_line for pool in model.pools if pool.cache_line), default=None)


def padded_elements(model: Model, tensor: Interface) -> int:
    """Return the size of a buffer in bytes: a multiple of the cache line, so that it shares no line."""
    line = external_line(model, tensor) or 1
    return round_up(tensor.type.size, line) // tensor.type.dtype.size


def title(role: str, tensor: Interface, padded: int = 0) -> str:
    """Return a one-line description of a tensor."""
    text = f"{role.capitalize()} {tensor.name}: {tensor.type}, {tensor.type.size} bytes"
    if tensor.placed:
        text += ", in the workspace"
    if padded > tensor.type.elements:
        text += f", in a buffer of {padded} elements: whole cache lines"
    if tensor.info.quantization:
        text += f", {quantization_words(tensor.info.quantization)}"
    if tensor.description:
        text += f". {tensor.description}"
    return c_comment(text)


def quantization_words(quantization: Quantization) -> str:
    """Return the meaning of quantised values in words."""
    if quantization.axis is not None:
        return f"quantized along axis {quantization.axis}"
    return f"real = {quantization.scales[0]:g} * (value - {quantization.zero_points[0]})"


def _macros(macro: str, tensor: Interface, padded: int) -> list[dict[str, str]]:
    """Return the macros of one tensor: name and value."""
    rows = [
        (f"{macro}_DTYPE", tensor.type.dtype.code),
        (f"{macro}_ELEMENTS", f"{tensor.type.elements}U"),
        (f"{macro}_SIZE", f"{tensor.type.size}U"),
        (f"{macro}_ALIGN", f"{max(tensor.align, tensor.type.dtype.size)}U"),
        (f"{macro}_RANK", f"{len(tensor.type.shape)}U"),
        *((f"{macro}_DIM_{i}", f"{n}U") for i, n in enumerate(tensor.type.shape)),
        *([(f"{macro}_PADDED", f"{padded}U")] if padded > tensor.type.elements else []),
    ]
    quantization = tensor.info.quantization
    if quantization and quantization.axis is None:
        rows.append((f"{macro}_SCALE", c_float(quantization.scales[0], _FLOAT32)))
        zero = quantization.zero_points[0]
        rows.append((f"{macro}_ZERO_POINT", f"({zero})" if zero < 0 else str(zero)))
    return [{"name": name, "value": value} for name, value in rows]


def initialisers(rows: list[dict[str, Any]], *, role: str) -> str:
    """Return the initialiser list of a struct <model>_inputs or <model>_outputs: the caller's buffers by name."""
    given = [f".{t['member']} = {t['buffer']}" for t in external_rows(rows, role)]
    return ", ".join(given) or ".reserved = 0"


def devicetree_node(tree: Devicetree) -> str:
    """Return the devicetree.h expression of a node: names in lower case with _ for every other character."""
    token = "".join(c if c.isalnum() else "_" for c in tree.value.lower())
    return f"DT_INST({tree.index}, {token})" if tree.kind == "compatible" else f"DT_{tree.kind.upper()}({token})"


def where_fault(model: Model, item: Device | Devicetree, message: str) -> str:
    """Return a C string for a build error that names the manifest's line of an item."""
    return c_string(f"{manifest_name(model)}:{item.location.line}: {message}")


def manifest_name(model: Model) -> str:
    """Return the manifest's file name without its directory: output must not depend on the directory."""
    return model.manifest.replace("\\", "/").rsplit("/", 1)[-1]


def heading(model: Model) -> dict[str, str]:
    """Return the values of the first comment in every file of a model."""
    return {"model": model.name, "manifest": manifest_name(model)}


def type_row(name: str, type_: TensorType) -> dict[str, Any]:
    """Return the name and the type of a tensor as JSON values; `size` in bytes."""
    return {"name": name, "dtype": type_.dtype.name, "shape": list(type_.shape), "size": type_.size}
