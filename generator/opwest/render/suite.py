# SPDX-License-Identifier: Apache-2.0
"""The generated tests of a model.

opwest owns the suite and the golden vectors, which depend on the manifest, in the model's directory. The application
in tests/<model>/, which twister finds, is written once; then the user owns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import DTYPES, DType
from opwest.model.types.model import Model
from opwest.model.types.sections import Vectors
from opwest.plan.memory import MemoryPlan
from opwest.render.boards import board_configurations, board_file, stack_is_known, stack_reason, stack_size
from opwest.render.c.header import pool_rows
from opwest.render.devices import device_rows
from opwest.render.literals import c_float, c_string, kconfig_value
from opwest.render.model_files import array_row
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import external_rows, heading, initialisers, interface_rows
from opwest.render.variants import common_options

_DOUBLE = DTYPES["float64"]


def suite_application(
    render: Renderer,
    model: Model,
    variants: Sequence[Model],
    integration: Sequence[str],
    twister: str,
    *,
    vendored: bool,
) -> dict[str, bytes]:
    """Return the application that runs the tests, by path inside the project.

    `twister` is the name of the file that twister reads; it builds the application for `integration`.
    `vendored`: whether the project has a copy of the runtime.
    """
    template = "tests/model"
    every = [model, *variants]
    files = {
        "CMakeLists.txt": render(f"{template}/CMakeLists.txt", model=model.name, vendored=vendored),
        "prj.conf": render(
            f"{template}/prj.conf",
            kconfig=CNames(model.name).kconfig,
            floats=any(tensor.type.dtype.kind == "float" for tensor in model.outputs),
            externals=sorted(common_options(every)),
            options=sorted(f"{key}={kconfig_value(value)}" for key, value in model.application.kconfig),
            stack=stack_size(every),
            guard="CONFIG_OPWEST_STACK_GUARD" not in dict(model.application.kconfig),
            stack_reason=stack_reason(every),
        ),
        twister: render(f"{template}/testcase.yaml", model=model.name, boards=model.boards, integration=integration),
        **{f"boards/{board_file(board)}.overlay": file.content for board, file in model.application.overlays},
        **board_configurations(render, every),
    }
    return {f"tests/{model.name}/{path}": content for path, content in files.items()}


def suite_files(render: Renderer, model: Model, plan: MemoryPlan) -> dict[PurePosixPath, bytes]:
    """Return the suite and its vectors, by path inside the model's directory; of a variant, only the suite."""
    common = heading(model)
    vectors = [_vector_rows(model, index, vector) for index, vector in enumerate(model.suite.vectors)]
    arrays = [array for rows in vectors for array in rows["arrays"]]
    files = {f"{model.name}_suite.c": _suite(render, model, plan, common, vectors)}
    if arrays and model.variant is None:
        files["vectors.S"] = render("models/model/tests/vectors.S", **common, arrays=arrays)
        files |= {f"vectors/{file}": content for array in arrays for file, content in array["contents"].items()}
    return {PurePosixPath("tests") / path: content for path, content in files.items()}


def _vector_rows(model: Model, index: int, vectors: Vectors) -> dict[str, Any]:
    names = CNames(model.name)
    types = {tensor.name: tensor.type for tensor in (*model.inputs, *model.outputs)}
    inputs = {tensor.name for tensor in model.inputs}
    arrays = []
    for name, content in vectors.content:
        dtype = types[name].dtype
        row = array_row(model, names.vectors(index, name), f"{index}_{name}", dtype, content)
        member = f"{'input' if name in inputs else 'output'}_{name}"
        arrays.append({**row, "member": member, "c_type": dtype.c_type})
    return {"file": c_string(vectors.file), "count": vectors.count, "arrays": arrays}


def _suite(
    render: Renderer, model: Model, plan: MemoryPlan, common: dict[str, str], vectors: Sequence[dict[str, Any]]
) -> bytes:
    tensors = [_tensor_row(model, tensor) for tensor in interface_rows(model)]
    pools = pool_rows(model, plan)
    devices = device_rows(model)
    checked = "golden vectors, " if vectors else ""
    return render(
        "models/model/tests/model_suite.c",
        **common,
        macro=CNames(model.name).macro,
        suite=CNames(model.name).suite,
        contents=f"{checked}life cycle, argument checks",
        tensors=tensors,
        has_inputs=bool(model.inputs),
        external_inputs=external_rows(tensors, "input"),
        external_outputs=external_rows(tensors, "output"),
        inputs=initialisers(tensors, role="input"),
        outputs=initialisers(tensors, role="output"),
        reached=any(t["reached"] for t in tensors),
        state=bool(model.states),
        repeatable=model.suite.repeatable,
        vectors=vectors,
        pools=pools,
        devices=devices,
        stack=max(need.bytes for need in model.stack) if stack_is_known([model]) else None,
    )


def _tensor_row(model: Model, tensor: dict[str, Any]) -> dict[str, Any]:
    tolerance = next((t for t in model.suite.tolerances if t.output == tensor["name"]), None)
    absolute, relative = (tolerance.absolute, tolerance.relative) if tolerance else (0.0, 0.0)
    parts = ([f"{absolute:g}"] if absolute else []) + ([f"{relative:g} * |expected|"] if relative else [])
    place = f"workspace.{tensor['role']}.{tensor['member']}" if tensor["placed"] else tensor["buffer"]
    return {
        **tensor,
        "place": place,
        "space": f"{tensor['macro']}_SIZE" if tensor["placed"] else f"sizeof({place})",
        "absolute": c_float(absolute, _DOUBLE),
        "relative": c_float(relative, _DOUBLE),
        "exactly": f"within {' + '.join(parts)}" if parts else "exactly",
        **_printed(DTYPES[tensor["dtype"]], tensor["macro"]),
    }


def _printed(dtype: DType, macro: str) -> dict[str, str]:
    """Return the printf format of an element; `macro` is the prefix of the tensor's macros."""
    if dtype.bits:
        format_ = f"%.{dtype.significant}g"
        return {"format": format_} | {
            what: f"opwest_float_value({macro}_DTYPE, &{what}[first])" for what in ("got", "expected")
        }
    shown = dtype.print
    return {"format": shown.format} | {what: f"{shown.cast}{what}[first]" for what in ("got", "expected")}
