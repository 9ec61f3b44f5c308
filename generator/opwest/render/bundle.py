# SPDX-License-Identifier: Apache-2.0
"""The files of a bundle's image besides those of the model: descriptor, golden vectors, linker script, typed header."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import DTYPES, DType, round_to_float32
from opwest.model.types.model import Interface, Model
from opwest.plan.memory import MemoryPlan
from opwest.plan.problem import round_up
from opwest.render.c.header import pool_rows
from opwest.render.devices import device_rows
from opwest.render.literals import c_float
from opwest.render.model_files import array_row
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading, interface_rows

_DOUBLE = DTYPES["float64"]
_VECTORS_ALIGN = 16
"""The alignment of an array in the template of vectors, bytes."""
FOLDER = PurePosixPath("bundle")
"""The directory of these files in that of the model."""


class StepResult(NamedTuple):
    """The expected content of a buffer after a point of the first golden vector; little-endian, in C order."""

    point: int
    step: int
    buffer: int
    dtype: DType
    content: bytes


def interface_text(model: Model) -> str:
    """Return the text that defines the interface hash: docs/contributing/bundle-format.md."""
    lines = []
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        for tensor in tensors:
            quantization = tensor.info.quantization
            scales = [round_to_float32(scale) for scale in quantization.scales] if quantization else []
            zeros = list(quantization.zero_points) if quantization else []
            axis = -1 if quantization is None or quantization.axis is None else quantization.axis
            shape = list(tensor.type.shape)
            lines.append(f"{role} {tensor.name} {tensor.type.dtype.name} {shape} {scales} {zeros} {axis}\n")
    return "".join(lines)


def interface_hash(model: Model) -> int:
    """Return the hash of the names, types and quantisation of the inputs and outputs."""
    return int.from_bytes(hashlib.sha256(interface_text(model).encode()).digest()[:8], "little")


def render_bundle_header(render: Renderer, model: Model) -> bytes:
    """Return <model>_bundle.h, for firmware."""
    names = CNames(model.name)
    tensors = interface_rows(model)
    return render(
        "bundle/model_bundle.h",
        **heading(model),
        macro=names.macro,
        guard=f"OPWEST_MODEL_{names.macro}_BUNDLE_H_",
        interface=f"0x{interface_hash(model):016x}",
        placed=any(tensor["placed"] for tensor in tensors),
        inputs=[tensor for tensor in tensors if tensor["role"] == "input"],
        outputs=[tensor for tensor in tensors if tensor["role"] == "output"],
    )


def render_script(render: Renderer, address: int) -> bytes:
    """Return the linker script of an image at an address."""
    return render("bundle/image.ld", address=f"0x{address:x}")


def bundle_files(
    render: Renderer, model: Model, plan: MemoryPlan, cases: int, steps: Sequence[StepResult] = ()
) -> dict[PurePosixPath, bytes]:
    """Return the sources of the image, by path inside the model's directory.

    `cases` is the number of golden vectors to take from each file, `steps` the expected results of the first one.
    """
    common = heading(model)
    tensors = [_tensor_row(model, index, row) for index, row in enumerate(interface_rows(model))]
    arrays, vectors = _vectors(model, tensors, cases)
    step_arrays = [
        array_row(model, f"{model.name}_bundle_step_{index}", f"step_{index}", step.dtype, step.content)
        for index, step in enumerate(steps)
    ]
    contents = {file: content for array in (*arrays, *step_arrays) for file, content in array["contents"].items()}
    inputs = [tensor for tensor in tensors if tensor["role"] == "input"]
    source = render(
        "bundle/model_bundle.c",
        **common,
        inputs=inputs,
        outputs=[tensor for tensor in tensors if tensor["role"] == "output"],
        tensors_in=[tensor for tensor in inputs if not tensor["placed"]],
        placed=any(tensor["placed"] for tensor in tensors),
        pools=pool_rows(model, plan),
        buffers=model.checks.buffers,
        devices=device_rows(model),
        has_hooks=any(device.has_hooks for device in model.devices),
        has_state=bool(model.states),
        arrays=[*arrays, *step_arrays],
        vectors=vectors,
        steps=[
            {"symbol": array["symbol"], "point": step.point, "step": step.step, "buffer": step.buffer}
            for array, step in zip(step_arrays, steps, strict=True)
        ],
    )
    return {
        FOLDER / f"{model.name}_bundle.c": source,
        FOLDER / "vectors.S": render("models/model/tests/vectors.S", **common, arrays=[*arrays, *step_arrays]),
        **{FOLDER / "vectors" / file: content for file, content in contents.items()},
    }


def _tensor_row(model: Model, number: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of an input or output; `index` counts those of its role, `number` all."""
    tolerance = next((t for t in model.suite.tolerances if t.output == row["name"]), None)
    if row["role"] == "input":
        tolerance = None
    absolute, relative = (tolerance.absolute, tolerance.relative) if tolerance else (0.0, 0.0)
    return {
        **row,
        "number": number,
        "index": number - (0 if row["role"] == "input" else len(model.inputs)),
        "absolute": c_float(absolute, _DOUBLE),
        "relative": c_float(relative, _DOUBLE),
    }


def _vectors(
    model: Model, tensors: Sequence[dict[str, Any]], cases: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the arrays of all golden vectors, and a row for each of them."""
    types: dict[str, Interface] = {tensor.name: tensor for tensor in (*model.inputs, *model.outputs)}
    arrays, rows = [], []
    for index, given in enumerate(model.suite.vectors):
        count = min(given.count, cases)
        content = dict(given.content)
        strides = {}
        for tensor in tensors:
            name, size = tensor["name"], tensor["size"]
            stride = strides[name] = round_up(size, tensor["align"])
            padded = b"".join(content[name][i * size : (i + 1) * size].ljust(stride, b"\0") for i in range(count))
            symbol = f"{model.name}_bundle_vectors_{index}_{name}"
            arrays.append(array_row(model, symbol, f"{index}_{name}", types[name].type.dtype, padded))
        for case in range(count):
            places = {
                role: [
                    f"&{model.name}_bundle_vectors_{index}_{tensor['name']}[{case * strides[tensor['name']]}]"
                    for tensor in tensors
                    if tensor["role"] == role
                ]
                for role in ("input", "output")
            }
            name = f"vector_{index}_{case}"
            rows.append({"name": name, "inputs": places["input"], "outputs": places["output"], "resets": case == 0})
    return arrays, rows
