# SPDX-License-Identifier: Apache-2.0
"""A sample of the operators for boards: few files of many operators each, sequences of inputs, results of LiteRT."""

import json
from dataclasses import dataclass

import numpy as np
from models.bounds import bound_of, distances
from models.campaigns import cases_of, graph_of
from models.executor import interpreted
from models.layers import KINDS as LAYERS
from models.layers import byte_lstm, float_lstm
from models.made import Model
from models.oracle import litert
from models.signal_chains import CHAINS, VALID, chain
from models.signal_models import digest
from models.signal_oracle import RESULTS
from models.test_arithmetic import activation, binary, shifted
from models.test_control import condition, loop, variables
from models.test_moves import KINDS as MOVES
from models.test_moves import Limited
from models.test_pools import normalisation, pool
from models.test_products import hybrid_layer, product, some_zeros, transposed
from models.test_recurrent import svdf
from models.test_reductions import few_values, greatest, position, reduction, running_sum
from models.test_unary import positive_cases, unary

RUNS = 4
"""The length of the sequences."""
INTEGERS = ("layers", "elements", "movement", "sound")
"""The files of integers alone."""
SOUNDS = 12
"""The frames of a sequence of sound."""
LEAST, MOST = 4, 0.7
"""The least number of distinct values of each result in a sequence, and the greatest share of one of them."""


@dataclass(frozen=True)
class Part:
    """One operator of the sample: after its name, whatever else distinguishes it; the bound of its float results."""

    kind: str
    build: object
    cases: object = cases_of
    bound: float = 0.0


def _part(kind, make, *rest, **options):
    """Return a part whose builder takes the generator, the kind in some families, and the dtype."""
    bound = bound_of(options.pop("bounded", kind.split()[0]))
    return Part(kind, lambda random: make(random, *rest), bound=bound, **options)


def _unary(kind, dtype, **options):
    return Part(f"{kind} {dtype}", lambda random: unary(kind, random, dtype), bound=bound_of(kind), **options)


def _binary(kind, dtype, factor=2.0):
    return Part(f"{kind} {dtype}", lambda random: binary(kind, random, dtype, factor))


def _normalised(kind, dtype):
    return _part(f"{kind} {dtype}", normalisation, kind, dtype, dtype)


def _move(kind, dtype):
    make, _ = MOVES[kind]
    limited = Limited()
    return Part(f"{kind} {dtype}", lambda random: limited.build(make, random, dtype), cases=limited.cases)


def _floor_mod(random):
    model = Model()
    return model.ending_with("FLOOR_MOD", [model.input("int64", (3, 5)) for _ in range(2)], ("int64",))


def _odd(graph, random):
    return [[array | 1 for array in case] for case in cases_of(graph, random)]


def groups():
    weighted = [(kind, dtype) for kind in LAYERS for dtype in ("int8", "uint8", "int16")]
    return {
        "layers": [_part(f"{kind} {dtype}", LAYERS[kind], dtype) for kind, dtype in weighted]
        + [
            _part("TRANSPOSE_CONV int8", transposed, "int8"),
            _part("BATCH_MATMUL int8", product, "int8", "int8"),
            _part("AVERAGE_POOL_2D int8", pool, "AVERAGE_POOL_2D", "int8"),
            _part("MAX_POOL_2D uint8", pool, "MAX_POOL_2D", "uint8"),
        ],
        "elements": [
            _binary("ADD", "int8"),
            _binary("MUL", "uint8", 5.0),
            Part("SUB int16", lambda random: shifted("SUB", random, {"pot_scale_int16": True, **activation(random)})),
            _binary("MAXIMUM", "int8"),
            _unary("TANH", "int16"),
            _unary("LOGISTIC", "int8"),
            _unary("GELU", "int8"),
            _unary("LEAKY_RELU", "int16"),
            _unary("HARD_SWISH", "uint8"),
            *(_normalised("SOFTMAX", dtype) for dtype in ("int8", "int16")),
            _binary("MUL", "int64"),
            Part("FLOOR_MOD int64", _floor_mod, cases=_odd),
            _part("CUMSUM int64", running_sum, "int64"),
            _part("MEAN int8", reduction, "MEAN", "int8"),
            _part("SUM int64", reduction, "SUM", "int64"),
            _part("ARG_MAX int8", position, "ARG_MAX", "int8", "int64", cases=few_values),
            _part("TOPK_V2 int16", greatest, "int16", cases=few_values),
        ],
        "movement": [
            _move(kind, dtype)
            for kind, dtype in {
                **dict.fromkeys(("TRANSPOSE", "STRIDED_SLICE", "PAD", "RESIZE_BILINEAR"), "int8"),
                **dict.fromkeys(("CONCATENATION", "MIRROR_PAD"), "uint8"),
                **dict.fromkeys(("SPLIT", "GATHER", "SPACE_TO_BATCH_ND"), "int16"),
            }.items()
        ],
        "floats": [
            _part("CONV_2D float32", LAYERS["CONV_2D"], "float32"),
            *(_normalised(kind, "float32") for kind in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")),
            *(_unary(kind, "float32") for kind in ("TANH", "LOGISTIC", "EXP", "GELU", "SIN", "COS")),
            *(_unary(kind, "float32", cases=positive_cases) for kind in ("LOG", "RSQRT")),
        ],
        "hybrid": [
            _part(f"{kind} hybrid", hybrid_layer, kind, bounded=f"{kind} hybrid", cases=some_zeros)
            for kind in ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")
        ],
        "recurrent": [
            _part("SVDF int8", svdf, "int8"),
            _part("SVDF float32", svdf, "float32"),
            _part("UNIDIRECTIONAL_SEQUENCE_LSTM float32", float_lstm),
            _part("UNIDIRECTIONAL_SEQUENCE_LSTM int8", byte_lstm),
        ],
        "variables": [_part("VAR_HANDLE float32", variables)],
        "branch": [_part("IF float32", condition)],
        "loop": [_part("WHILE float32", loop)],
    }


@dataclass(frozen=True)
class Sampled:
    """A file with a sequence of inputs, the results of LiteRT, and the operator and bound of each result."""

    name: str
    content: bytes
    inputs: list
    outputs: list
    kinds: list
    bounds: list

    def check(self, found, where):
        """Compare the results of all runs: integers exactly, float32 within the bound of the operator.

        Return the operator and the greatest difference of each result.
        """
        rows = []
        for number, (kind, bound) in enumerate(zip(self.kinds, self.bounds, strict=True)):
            rows.append((kind, 0.0))
            for run, (wanted, results) in enumerate(zip(self.outputs, found, strict=True)):
                difference = float(distances(wanted[number], results[number]).max())
                at = f"{where}: {self.name}, {kind}, run {run}: {difference}"
                assert difference <= (bound if wanted[number].dtype.kind == "f" else 0), at
                rows[-1] = (kind, max(rows[-1][1], difference))
        return rows


def sample(name, parts, seed=11):
    random, models, cases = np.random.default_rng(seed), [], []
    kinds, bounds = [], []
    for part in parts:
        model, given, results = _varied(part, random)
        models.append(model)
        cases.append(given)
        kinds += [part.kind] * results
        bounds += [part.bound] * results
    content = _joined(models).build()
    inputs = [[array for case in run for array in case] for run in zip(*cases, strict=True)]
    return Sampled(name, content, inputs, litert(content, inputs, steps=True), kinds, bounds)


def _varied(part, random):
    """Return a model whose results are neither all saturated nor few, its sequence and the number of its results."""
    for _ in range(100):
        model = part.build(random)
        content = model.build()
        found = list(part.cases(graph_of(content), random))
        cases = [found[number % len(found)] for number in range(RUNS)]
        results = list(zip(*litert(content, cases, steps=True), strict=True))
        counts = [np.unique(np.stack(one), return_counts=True)[1] for one in results]
        if all(len(one) >= LEAST and one.max() <= MOST * one.sum() for one in counts):
            return model, cases, len(results)
    raise AssertionError(f"{part.kind}: no model with results of {LEAST} values in 100")


def _joined(models):
    """Return one model of the operators of all; only a model that is alone can have several subgraphs."""
    if len(models) == 1:
        return models[0]
    whole = Model()
    for number, model in enumerate(models):
        [graph] = model.subgraphs
        for tensor in graph.tensors:
            tensor.name = f"part{number}_{tensor.name}"
        for one, other in zip(vars(whole.graph).values(), vars(graph).values(), strict=True):
            one.extend(other)
    return whole


def signals():
    """Return chains of signal operators, which LiteRT does not have: results are recorded ones of tflite-micro."""
    chains = ("sound to scores", "sound to sound, int16")
    models = [CHAINS[name][0](*CHAINS[name][1:]) for name in chains]
    recorded, kinds, outputs = json.loads(RESULTS.read_text()), [], []
    for name in chains:
        content, cases = chain(name)
        graph, state = graph_of(content), {}
        found = [interpreted(graph, case, state) for case in cases]
        assert digest(found[VALID:]) == recorded[name], name
        kinds += [name] * len(found[0])
        outputs.append(found)
    inputs = [[array for name in chains for array in chain(name)[1][run]] for run in range(SOUNDS)]
    results = [[array for found in outputs for array in found[run]] for run in range(SOUNDS)]
    return Sampled("sound", _joined(models).build(), inputs, results, kinds, [0.0] * len(kinds))


def samples():
    return [*(sample(name, parts) for name, parts in groups().items()), signals()]
