# SPDX-License-Identifier: Apache-2.0
"""Random models of one operator, of those that Vela gives to an Ethos-U55.

What Vela 5.2 compiles to a wrong command stream is left out, since whatever executes it gives other results: 1x1
convolutions with groups and several images, limits of uint8 for transposed copies that it makes as int8 (TRANSPOSE,
depthwise convolutions with a multiplier), operands of five dimensions that are repeated, products of matrices with
unequal batches, MIRROR_PAD of channels, REDUCE_MAX and SUM over some axes, tables of EXP that overflow. So is what has
another meaning than LiteRT's: `pot_scale_int16`, which Vela ignores.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ai_edge_litert.interpreter import Interpreter, OpResolverType
from models.campaigns import cases_of
from models.layers import convolution, dense, depthwise
from models.made import Model
from models.test_arithmetic import activation, binary
from models.test_conversion import scale_of
from models.test_moves import KINDS as MOVES
from models.test_moves import Limited
from models.test_pools import normalisation, pool
from models.test_products import product, transposed
from models.test_reductions import reduction
from models.test_unary import positive_cases, unary

BYTES = ("int8", "uint8")
NUMBERS = (*BYTES, "int16")


@dataclass(frozen=True)
class Configuration:
    """One operator and dtype. `build`: numpy generator to made.Model; `cases`: (graph, generator) to inputs."""

    name: str
    build: Callable[[Any], Model]
    cases: Callable[[Any, Any], Any] = cases_of


def configurations() -> dict[str, Configuration]:
    rows = [
        *_rows("CONV_2D", NUMBERS, convolution, _has_no_groups_of_images),
        *_rows("DEPTHWISE_CONV_2D", NUMBERS, depthwise, _has_no_multiplier_of_uint8),
        *_rows("FULLY_CONNECTED", NUMBERS, dense),
        *_rows("TRANSPOSE_CONV", NUMBERS, transposed),
        *_rows("BATCH_MATMUL", ("int8",), lambda random, dtype: product(random, dtype, dtype), _has_equal_batches),
        *_kinds(("AVERAGE_POOL_2D", "MAX_POOL_2D"), NUMBERS, pool),
        *_kinds(("ADD", "SUB", "MUL"), NUMBERS, _binary, _is_flat),
        *_kinds(("MINIMUM", "MAXIMUM"), NUMBERS, _extreme, _is_flat),
        *_kinds(("SQUARED_DIFFERENCE",), ("int8",), _binary, _is_flat),
        *_rows("MEAN", NUMBERS, lambda random, dtype: reduction(random, "MEAN", dtype)),
        *_rows("SOFTMAX", ("int8", "int16"), lambda random, dtype: normalisation(random, "SOFTMAX", dtype, dtype)),
        *(row for kind, dtypes in _UNARY.items() for row in _kinds((kind,), dtypes, _unary)),
        *(replace(row, cases=positive_cases) for row in _kinds(("LOG", "RSQRT"), ("int8",), _unary)),
        *_rows("QUANTIZE", NUMBERS, _requantised),
    ]
    for kind in _MOVES:
        make, dtypes = MOVES[kind]
        accepts = _pads_no_channels if kind == "MIRROR_PAD" else _any
        for dtype in NUMBERS:
            if dtype in dtypes and (kind, dtype) != ("TRANSPOSE", "uint8"):
                limited = Limited()
                build = functools.partial(limited.build, _known(make, accepts))
                rows += [replace(row, cases=limited.cases) for row in _rows(kind, (dtype,), build)]
    return {row.name: row for row in rows}


_UNARY = {
    "ABS": ("int8", "int16"),
    "EXP": ("int16",),
    "GELU": ("int8",),
    **dict.fromkeys(("HARD_SWISH", "LOGISTIC", "TANH", "RELU_N1_TO_1"), BYTES),
    **dict.fromkeys(("LEAKY_RELU", "RELU", "RELU6"), NUMBERS),
}
_MOVES = (
    *("CONCATENATION", "EXPAND_DIMS", "MIRROR_PAD", "PACK", "PAD", "PADV2", "RESIZE_BILINEAR"),
    *("RESIZE_NEAREST_NEIGHBOR", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE"),
    "UNPACK",
)


def _any(_model: Model) -> bool:
    return True


def _rows(name: str, dtypes: Any, build: Any, accepts: Any = _any) -> list[Configuration]:
    """Return the configurations of the models that a function accepts."""
    known = _known(build, accepts)
    return [Configuration(f"{name} {dtype}", functools.partial(known, dtype=dtype)) for dtype in dtypes]


def _kinds(kinds: Any, dtypes: Any, build: Any, accepts: Any = _any) -> list[Configuration]:
    """Return the rows of a family whose function takes the kind."""
    builds = {kind: lambda random, dtype, kind=kind: build(random, kind, dtype) for kind in kinds}
    return [row for kind in kinds for row in _rows(kind, dtypes, builds[kind], accepts)]


def _known(build: Any, accepts: Callable[[Model], bool]) -> Any:
    """Return a builder of the models that a function accepts."""

    def again(random: Any, dtype: str) -> Model:
        for _ in range(100):
            model = build(random, dtype)
            if accepts(model):
                return model
        raise AssertionError("no model in 100 is one that Vela compiles")

    return again


def _has_no_groups_of_images(model: Model) -> bool:
    data, weights = model.graph.tensors[:2]
    return data.shape[0] == 1 or data.shape[3] == weights.shape[3]


def _has_no_multiplier_of_uint8(model: Model) -> bool:
    data, weights = model.graph.tensors[:2]
    return data.dtype != "uint8" or data.shape[3] == weights.shape[3]


def _has_equal_batches(model: Model) -> bool:
    one, other = [tensor.shape for tensor in model.graph.tensors[:2]]
    return len(one) == len(other) <= 3 and one[:-2] == other[:-2]


def _is_flat(model: Model) -> bool:
    return max(len(tensor.shape) for tensor in model.graph.tensors) <= 4


def _pads_no_channels(model: Model) -> bool:
    amounts = model.graph.tensors[1].content
    return amounts is not None and len(amounts) in (3, 4) and not amounts[-1].any() and not amounts[:-3].any()


def _binary(random: Any, kind: str, dtype: str) -> Model:
    options = {} if kind == "SQUARED_DIFFERENCE" else activation(random)
    if dtype == "int16" and kind != "MUL":
        options["pot_scale_int16"] = False
    return binary(kind, random, dtype, {"MUL": 5.0, "SQUARED_DIFFERENCE": 9.0}.get(kind, 2.0), **options)


def _unary(random: Any, kind: str, dtype: str) -> Model:
    return unary(kind, random, dtype)


def _extreme(random: Any, kind: str, dtype: str) -> Model:
    """Vela takes these where all tensors have one scale."""
    model = binary(kind, random, dtype)
    first, *others = [one for one in model.graph.tensors if one.scale is not None]
    for one in others:
        one.scale, one.zero = first.scale, first.zero
    return model


def _requantised(random: Any, dtype: str) -> Model:
    model = Model()
    shape = tuple(int(n) for n in random.integers(1, 9, int(random.integers(1, 5))))
    data = model.input(dtype, shape, *scale_of(random, dtype))
    model.output(model.operator("QUANTIZE", [data], (dtype, *scale_of(random, dtype))))
    return model


def with_shapes(model: Model) -> bytes:
    """Return the file of a model with the shapes that LiteRT infers: Vela reads them."""
    interpreter = Interpreter(
        model_content=model.build(), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    shapes = {one["index"]: tuple(int(n) for n in one["shape"]) for one in interpreter.get_tensor_details()}
    for index, tensor in enumerate(model.graph.tensors):
        if tensor.content is None and tensor.raw is None:
            tensor.shape = shapes[index]
    return model.build()
