# SPDX-License-Identifier: Apache-2.0
"""Convert TFLite to Relax with TVM's converter, extended by locations, a check of all operators, and folded shapes."""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.frontends.tvm.fold_tflite import folded
from opwest.frontends.tvm.read import fault, last_line


def convert_tflite(model: Any, place: str, nodes: dict[str, str]) -> Any:
    """Return the Relax module, and in `nodes` the kind of each operator; an error names the operator and its result."""
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    at: list[Any] = []

    class Converter(OperatorConverter):  # type: ignore[misc]
        """TVM's converter with the current operator."""

        def check_unsupported_ops(self) -> None:
            """Report every operator that cannot be converted."""
            found = [Diagnostic("error", text, Location(place), None, hint) for text, hint in _unsupported(self)]
            if found:
                raise OpwestError(found)

        def get_op_code_str(self, op: Any) -> str:
            """Record the current operator."""
            at[:] = [self, op]
            kind = str(super().get_op_code_str(op))
            nodes[_words(self, op)] = kind
            return kind

        def convert_op_to_relax(self) -> None:
            """Convert every operator; evaluate those that compute shapes."""
            self.known: dict[int, Any] = {}
            for kind, convert in self.convert_map.items():
                self.convert_map[kind] = functools.partial(self._convert_or_fold, kind, convert)
            self.convert_map["EXPAND_DIMS"] = self._expand_dims  # TVM 0.27 passes the axis twice
            super().convert_op_to_relax()

        def _expand_dims(self, op: Any) -> Any:
            data, axis = self.get_input_tensors(op)
            return relax.op.expand_dims(self.get_tensor_expr(data), int(self.get_tensor_value(axis).item()))

        def _convert_or_fold(self, kind: str, convert: Callable[..., Any], op: Any) -> Any:
            value = _folded(self, kind, op)
            if value is None:
                return convert(op=op)
            self.known[op.Outputs(0)] = value
            return relax.const(value)

        def has_expr(self, input_tensor_idx: int) -> bool:
            """Return False for a known tensor, so that the converter treats it as a constant of the file."""
            return input_tensor_idx not in getattr(self, "known", ()) and bool(super().has_expr(input_tensor_idx))

        def get_tensor_value(self, tensor_wrapper: Any, is_sparse: bool = False) -> Any:
            """Return a constant or a known value."""
            known = getattr(self, "known", {})
            if tensor_wrapper.tensor_idx in known:
                return known[tensor_wrapper.tensor_idx]
            return super().get_tensor_value(tensor_wrapper, is_sparse)

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return from_tflite(model, op_converter=Converter)
    except OpwestError:
        raise
    except Exception as error:
        where = f"operator {_words(*at)}" if at else "the model"
        hint = "the file may be damaged, or the operator may have an unsupported attribute" if at else None
        raise fault(f"cannot convert {where}: {last_line(error)}", place, hint=hint) from None


def _unsupported(converter: Any) -> Iterator[tuple[str, str | None]]:
    """Yield the reasons of TVM's check for each operator that cannot be converted."""
    graph = converter.subgraph
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        where = _words(converter, operator)
        try:
            kind = converter.get_op_code_str(operator)
        except Exception as error:  # a custom operator, or one that this TVM does not support
            yield f"cannot import operator {where}: {last_line(error)}", None
            continue
        if kind not in converter.convert_map:
            yield f"operator {where} has no lowering in TVM", None
            continue
        inputs, outputs = converter.get_input_tensors(operator), converter.get_output_tensors(operator)
        if any(t.qnn_params is not None for t in [*inputs, *outputs]):
            yield f"operator {where} is quantised, and TVM computes it in float", _DIRECT


def _folded(converter: Any, kind: str, operator: Any) -> Any:
    """Return the value of an operator that computes with shapes; None for others."""
    import numpy as np

    inputs = converter.get_input_tensors(operator)
    if operator.OutputsLength() != 1 or not inputs:
        return None
    if kind == "SHAPE":
        value = folded(kind, operator, [converter.get_tensor_shape(inputs[0])])
    else:
        if any(
            t.tensor_idx < 0 or converter.has_expr(t.tensor_idx) or t.tensor.Type() not in _OF_SHAPES for t in inputs
        ):
            return None
        if not any(t.tensor_idx in converter.known for t in inputs):
            return None
        value = folded(kind, operator, [np.asarray(converter.get_tensor_value(t)) for t in inputs])
    return None if value is None else np.asarray(value)


_NAMED = 3
"""The maximum number of results of an operator in a message."""
_DIRECT = "opwest import tflite MODEL computes quantised operators in integers"
_OF_SHAPES = (2, 4)
"""TFLite's tensor types for shapes: INT32 and INT64."""


def _words(converter: Any, operator: Any) -> str:
    """Return a description of an operator: its number, its kind, its results."""
    graph = converter.subgraph
    number = next((i for i in range(graph.OperatorsLength()) if graph.Operators(i)._tab.Pos == operator._tab.Pos), 0)
    code = converter.model.OperatorCodes(operator.OpcodeIndex())
    known = converter.builtin_op_code
    kind = known.get(max(code.DeprecatedBuiltinCode(), code.BuiltinCode()), f"number {code.BuiltinCode()}")
    custom = code.CustomCode()
    if custom:
        kind = f"{kind} {custom.decode(errors='replace')!r}"
    writes = [repr(graph.Tensors(i).Name().decode()) for i in indices_of(operator, "Outputs")]
    if len(writes) > _NAMED:
        writes[_NAMED:] = [f"{len(writes) - _NAMED} more"]
    return f"{number} ({kind}{', which writes ' + ', '.join(writes) if writes else ''})"


def indices_of(table: Any, what: str) -> list[int]:
    """Return the tensor indices in the field `what` of a table. Raises ValueError if there are too many."""
    count = getattr(table, f"{what}Length")()
    if count > 10_000:
        raise ValueError("an operator has too many tensors")
    return [int(getattr(table, what)(i)) for i in range(count)]
