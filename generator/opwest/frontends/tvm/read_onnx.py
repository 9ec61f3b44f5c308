# SPDX-License-Identifier: Apache-2.0
"""Read ONNX files."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

from opwest.base.diagnostics import Diagnostic, Location, OpwestError, first_line
from opwest.frontends.tvm.fold_onnx import fold_shapes
from opwest.frontends.tvm.read import Port, Source, fault, last_line

_DIRECT = "opwest import onnx MODEL computes quantised operators in integers"
_QUANTISED = re.compile(r"QLinear|QuantizeLinear$|ConvInteger$|MatMulInteger$")


def read_onnx(path: Path, content: bytes) -> Source:
    """Return the model in an ONNX file."""
    import onnx

    place = str(path)
    try:
        model = onnx.load_model_from_string(content)
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
        onnx.checker.check_model(model)
    except Exception as error:
        raise fault(
            f"the file is damaged: cannot read it as an ONNX model ({first_line(error)})",
            place,
            hint="fetch or export the model again",
        ) from None
    constants = {one.name for one in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in constants]
    found = [*_dynamic(inputs), *_unsupported(model.graph)]
    if found:
        raise OpwestError(Diagnostic("error", text, Location(place), None, hint) for text, hint in found)
    module = _convert(fold_shapes(model), model, place)
    return Source(
        "onnx",
        place,
        model.SerializeToString(),
        module,
        tuple(Port(one.name) for one in inputs),
        tuple(Port(one.name) for one in model.graph.output),
        tuple((node.op_type, _words(number, node)) for number, node in enumerate(model.graph.node)),
    )


def _dynamic(inputs: list[Any]) -> list[tuple[str, str]]:
    found = []
    for one in inputs:
        kind = one.type.tensor_type
        if not kind.HasField("shape"):
            found.append((f"input {one.name!r} has no shape", "export the model with fixed shapes"))
            continue
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]
        if any(not dim.isdigit() or dim == "0" for dim in dims):
            text = f"input {one.name!r} has a dynamic shape, [{', '.join(dims)}]"
            hint = "set it: python -m onnxruntime.tools.make_dynamic_shape_fixed --input_name NAME --input_shape 1,..."
            found.append((text, hint))
    return found


def _unsupported(graph: Any) -> list[tuple[str, str | None]]:
    from tvm.relax.frontend.onnx import onnx_frontend

    known = {*onnx_frontend._get_convert_map(), "Constant", "If"}
    quantised: list[tuple[str, str | None]] = [
        (f"operator {_words(number, node)} is quantised, and TVM computes it in float", _DIRECT)
        for number, node in enumerate(graph.node)
        if _QUANTISED.search(node.op_type)
    ]
    if quantised:
        return quantised
    return [
        (f"operator {_words(number, node)} has no lowering in TVM", None)
        for number, node in enumerate(graph.node)
        if node.op_type not in known or (node.domain not in ("", "ai.onnx") and not node.domain.startswith("ai.onnx"))
    ]


def _words(number: int, node: Any) -> str:
    name = f" {node.name!r}" if node.name else ""
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    writes = ", ".join(repr(one) for one in node.output if one)
    return f"{number}{name} ({domain}{node.op_type}{', which writes ' + writes if writes else ''})"


def _convert(model: Any, original: Any, place: str) -> Any:
    """Return the Relax module; errors contain the operator numbers of the original."""
    from tvm.relax.frontend.onnx import from_onnx

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return from_onnx(model, keep_params_in_input=False)
    except Exception as error:
        node = _node_at(error.__traceback__)
        number = next((i for i, one in enumerate(original.graph.node) if one is node or one == node), 0)
        where = f"operator {_words(number, node)}" if node is not None else "the model"
        raise fault(f"cannot convert {where}: {last_line(error)}", place) from None


def _node_at(trace: TracebackType | None) -> Any:
    """Return the node whose conversion failed, which the error of TVM's reader does not contain."""
    node = None
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "_construct_nodes":
            node = trace.tb_frame.f_locals.get("node", node)
        trace = trace.tb_next
    return node
