# SPDX-License-Identifier: Apache-2.0
"""Random operands of elementwise operators."""

import itertools

import numpy as np
from campaign import sized
from models.campaigns import check_configurations

EACH = sized(1, 50)
"""The number of configurations of one operator and dtype."""
ACTIVATIONS = ["NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
_ZEROS = {"int8": (-128, 128), "uint8": (0, 256), "int16": (0, 1)}
OPTIMISED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
"""The resolver for operators that LiteRT's reference kernels lack."""


def quantised(random, dtype, factor=1.0):
    """Return a random scale and zero point; nothing for plain dtypes."""
    if dtype not in _ZEROS:
        return None, 0
    scale = random.uniform(0.0001, 0.001) if dtype == "int16" else random.uniform(0.01, 0.1)
    return float(np.float32(scale * factor)), int(random.integers(*_ZEROS[dtype]))


def any_shape(random, least=1, greatest=5):
    """Return a shape of a random rank."""
    return tuple(int(n) for n in random.integers(1, 5, int(random.integers(least, greatest + 1))))


def broadcast_shapes(random, count=2, greatest=5):
    """Return shapes that are equal, or broadcast in random dimensions; one operand can have fewer dimensions."""
    whole = any_shape(random, 1, greatest)
    shapes = [whole] * count
    if random.random() < 0.25:
        return shapes
    for number in range(count):
        kept = random.random(len(whole)) < 0.6
        shapes[number] = tuple(n if k else 1 for n, k in zip(whole, kept, strict=True))
    if len(whole) > 1 and random.random() < 0.5:
        which = int(random.integers(0, count))
        shapes[which] = shapes[which][int(random.integers(1, len(whole))) :]
    return shapes


def check_dtypes(build, dtypes, folder, seed, **options):
    """Compare configurations of all dtypes; `build(random, dtype)` returns a model."""
    turns = itertools.cycle(dtypes)
    check_configurations(
        lambda random: build(random, next(turns)),
        folder,
        seed=[ord(c) for c in seed],
        count=EACH * len(dtypes),
        **options,
    )


def nonzero_cases(graph, random, count=3):
    """Return random inputs without 0 in the second one, which LiteRT refuses.

    Quantised numerators are not close to 0: where LiteRT would shift a quotient by more than 31 places, its result is
    undefined.
    """
    cases = []
    for _ in range(count):
        arrays = []
        for place, tensor in enumerate(graph.inputs):
            if tensor.dtype == "float32":
                arrays.append(random.standard_normal(tensor.shape).astype(np.float32) * 4)
                continue
            limits = np.iinfo(tensor.dtype)
            array = random.integers(max(limits.min, -100000), min(limits.max, 100000) + 1, tensor.shape)
            zero = 0 if tensor.quantization is None else tensor.quantization.zero
            least = 1 if place else 0 if tensor.quantization is None else 1024 if tensor.dtype == "int16" else 65
            other = zero + least if zero + least <= limits.max else zero - least
            arrays.append(np.where(np.abs(array - zero) < least, other, array).astype(tensor.dtype))
        cases.append(arrays)
    return cases
