# SPDX-License-Identifier: Apache-2.0
"""The passes for all processors: they join convolutions and int8 sums, and remove channels that nothing needs.

A sum that is computed with its convolution needs no tensor between them. A channel is removed if its value is constant,
or if no layer reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.ir.labels import of_both
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise, Elementwise, Pool
from opwest.compiler.ir.program import FUSED_SUMS, UNUSED_CHANNELS, Operation, Program, Value
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier, Requantisation, Rounding


def fuse_sums(program: Program) -> Program:
    """Return a program with one operation for a convolution and its only reader, a sum of tensors of equal shapes."""
    writers = {value: operation for operation in program.operations for value in operation.results}
    readers = program.readers
    order = {operation: place for place, operation in enumerate(program.operations)}
    removed: set[Operation] = set()
    operations = list(program.operations)
    for place, operation in enumerate(program.operations):
        if not isinstance(operation, Elementwise) or not isinstance(operation.function, AddQuantised):
            continue
        numbers = [
            number
            for number, value in enumerate(operation.inputs)
            if _can_fuse(writers.get(value), operation, value, readers)
        ]
        if not numbers:
            continue
        # The later convolution: the other operand is complete then.
        which = max(numbers, key=lambda number: order[writers[operation.inputs[number]]])
        layer = writers[operation.inputs[which]]
        assert isinstance(layer, Convolution)
        removed.add(layer)
        operands = (*layer.inputs, operation.inputs[1 - which])
        fields = {**vars(layer), "label": of_both(layer.label, operation.label), "inputs": operands}
        fields |= {"results": operation.results, "function": operation.function, "place": which}
        operations[place] = ConvolutionSum(**fields)
    if not removed:
        return program
    return program.derived(FUSED_SUMS, operations=[operation for operation in operations if operation not in removed])


def _can_fuse(
    writer: Operation | None, reader: Elementwise, value: Value, readers: dict[Value, list[Operation]]
) -> bool:
    if type(writer) is not Convolution or writer.groups != 1 or value.role != "intermediate" or value.root is not None:
        return False
    values = (*writer.inputs, *reader.inputs, *reader.results)
    is_plain = all(operand.dtype == "int8" for operand in values) and len({*reader.inputs}) == 2
    shapes = {operand.shape for operand in (*reader.inputs, *reader.results)}
    return is_plain and len(shapes) == 1 and len(value.shape) == 4 and readers[value] == [reader]


Layer = TypeVar("Layer", bound=Convolution | Depthwise)
QUARTER = Multiplier(1 << 30, -1)


def without_constant_channels(layer: Layer) -> Layer:
    """Return a layer whose channels with constant results have weights of 0, and the result as bias."""
    finish, dtype = layer.finish, layer.inputs[0].dtype
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT or layer.weight_zero:
        return layer
    results = layer.results[0].shape[-1]
    if len(finish.multipliers) != results or max(multiplier.shift for multiplier in finish.multipliers) > 0:
        return layer
    flat = by_channel(layer).astype(np.int64)
    bias = np.zeros(results, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    least, greatest = (limit - layer.zero for limit in RANGES[dtype])
    lows = bias + np.minimum(flat * least, flat * greatest).sum(axis=1)
    highs = bias + np.maximum(flat * least, flat * greatest).sum(axis=1)
    fits = (lows >= -(1 << 31)) & (highs < 1 << 31) if dtype != "int16" else np.abs(lows) + np.abs(highs) < 1 << 40
    first = finish.apply(lows)
    constant = fits & (first == finish.apply(highs))
    if not constant.any():
        return layer
    changed = layer.weights.copy()
    changed[_of_channels(layer, constant)] = 0
    sums = np.where(constant, 4 * (first - finish.zero), bias)
    multipliers = [QUARTER if is_one else by for is_one, by in zip(constant, finish.multipliers, strict=True)]
    ending = dataclasses.replace(finish, multipliers=tuple(multipliers))
    given: dict[str, Any] = {"weights": changed, "bias": sums, "finish": ending}
    return dataclasses.replace(layer, **given)


UNIT = 4
"""The number of remaining channels is a multiple of this where the model's was: kernels read words."""
INTEGERS = ("int8", "uint8", "int16")


def remove_unused_channels(program: Program) -> Program:
    """Return a program without channels that are constant or that no layer reads."""
    folded = program.derived(UNUSED_CHANNELS, operations=_folded(program.operations))
    kept = _kept(folded)
    if kept:
        _select(folded, kept)
    changed = kept or any(
        operation is not other for operation, other in zip(program.operations, folded.operations, strict=True)
    )
    return folded if changed else program


def _folded(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations in which constant channels of data are parts of biases."""
    constants: dict[Value, tuple[Any, Any]] = {}
    """For results [n,h,w,c]: whether each channel is constant, and its value."""
    made = list(operations)
    for place, operation in enumerate(operations):
        if not _is_integer(operation):
            continue
        mask, values = np.zeros(0, bool), np.zeros(0, np.int64)
        if _shows_channels(operation, _whole(operation.inputs[0])):
            mask, values = constants.get(_whole(operation.inputs[0]), (mask, values))
        result = operation.results[0]
        if isinstance(operation, Pool):
            if mask.any():
                low, high = operation.low, operation.high
                constants[result] = mask, np.clip(values, low, high) if None not in (low, high) else values
            continue
        assert isinstance(operation, Convolution | Depthwise)
        layer = without_constant_channels(_with_folded(operation, mask, values) if mask.any() else operation)
        made[place] = layer
        assert isinstance(layer.finish, Requantisation)
        weights = by_channel(layer)
        bias = np.zeros(len(weights), np.int64) if layer.bias is None else layer.bias.astype(np.int64)
        still = ~weights.any(axis=1)
        if still.any():
            constants[result] = still, layer.finish.apply(bias)
    return made


def _is_integer(operation: Operation) -> bool:
    """Whether an operation is a layer that can lose channels."""
    if not isinstance(operation, Convolution | Depthwise | Pool) or operation.inputs[0].dtype not in INTEGERS:
        return False
    if isinstance(operation, Pool):
        return operation.kind in ("average", "maximum")
    is_plain = isinstance(operation.finish, Requantisation) and operation.weight_zero == 0
    return is_plain and (isinstance(operation, Depthwise) or operation.groups == 1)


def _whole(value: Value) -> Value:
    """Return the value that a view of all elements shows."""
    while value.root is not None and value.root.size == value.size:
        value = value.root
    return value


def _shows_channels(operation: Operation, value: Value) -> bool:
    """Whether the channels of a value are those that an operation reads, for a convolution also several times."""
    depth, channels = operation.inputs[0].shape[-1], value.shape[-1]
    return depth % channels == 0 if isinstance(operation, Convolution) else depth == channels


def by_channel(operation: Convolution | Depthwise) -> Any:
    """Return the weights [o, ...]."""
    if isinstance(operation, Depthwise):
        return operation.weights.reshape(-1, operation.weights.shape[2]).T
    return operation.weights.reshape(len(operation.weights), -1)


def _of_channels(operation: Convolution | Depthwise, channels: Any) -> Any:
    """Return the index of the weights of some channels of the result."""
    return (..., channels) if isinstance(operation, Depthwise) else channels


def _with_folded(operation: Convolution | Depthwise, mask: Any, values: Any) -> Convolution | Depthwise:
    """Return a layer that does not read constant channels of its data."""
    offsets = np.where(mask, values - operation.zero, 0)
    data = operation.inputs[0]
    image = data.shape[1:3] if len(data.shape) == 4 else (1, 1)
    if operation.window.is_padded((image[0], image[1])):
        # Elements of the padding have the zero point.
        mask = mask & (offsets == 0)
        offsets = np.zeros_like(offsets)
    weights = operation.weights.astype(np.int64)
    changed = operation.weights.copy()
    if isinstance(operation, Depthwise):
        multiplier = weights.shape[2] // len(mask)
        total = (weights * np.repeat(offsets, multiplier)).sum(axis=(0, 1))
        changed[..., np.repeat(mask, multiplier)] = 0
    else:
        # A fully connected layer over several pixels has the channels last.
        total = (weights.reshape(len(weights), -1, len(mask)) * offsets).sum(axis=(1, 2))
        changed.reshape(len(weights), -1, len(mask))[..., mask] = 0
    bias = total + (0 if operation.bias is None else operation.bias.astype(np.int64))
    if operation.inputs[0].dtype != "int16" and np.abs(bias).max() >= 1 << 31:
        return operation
    return dataclasses.replace(operation, weights=changed, bias=bias)


def _kept(program: Program) -> dict[Value, Any]:
    """Return the indices of the channels that remain in each value that loses some."""
    readers = program.readers
    fixed = {value.base for value in (*program.inputs, *program.outputs, *program.states)} | program.new_contents
    needed: dict[Value, Any] = {}
    for operation in reversed(program.operations):
        result = operation.results[0]
        if not _is_integer(operation) or result in fixed or result.root is not None or len(result.shape) != 4:
            continue
        mask = np.zeros(result.shape[3], bool)
        for reader in readers.get(result, ()):
            mask |= _read(reader, result, needed)
        needed[result] = _rounded(mask)
    kept: dict[Value, Any] = {}
    for operation in program.operations:
        result = operation.results[0]
        if result not in needed:
            continue
        if isinstance(operation, Convolution):
            kept[result] = needed[result]
        else:
            # A channel of the result for each channel of the data.
            data = _whole(operation.inputs[0])
            whole = np.ones(data.shape[-1], bool)
            multiplier = result.shape[3] // data.shape[-1]
            kept[result] = np.repeat(kept.get(data, whole), multiplier)
    return {value: np.flatnonzero(mask) for value, mask in kept.items() if not mask.all()}


def _read(reader: Operation, value: Value, needed: dict[Value, Any]) -> Any:
    """Return whether an operation reads each channel of a value."""
    channels = value.shape[3]
    whole = np.ones(channels, bool)
    is_whole = _is_integer(reader) and _whole(reader.inputs[0]) is value and _shows_channels(reader, value)
    if not is_whole:
        return whole
    result = reader.results[0]
    rows = needed.get(result, np.ones(result.shape[-1], bool))
    if isinstance(reader, Pool):
        return rows
    if isinstance(reader, Depthwise):
        # A depthwise layer keeps each channel of its result that is read, also one that does not depend on its data.
        return rows.reshape(channels, -1).any(axis=1)
    assert isinstance(reader, Convolution)
    return reader.weights[rows].reshape(-1, channels).any(axis=0)


def _rounded(mask: Any) -> Any:
    """Return a mask with more channels: at least one, and whole units."""
    unit = UNIT if len(mask) % UNIT == 0 else 1
    missing = max(unit, -(-int(mask.sum()) // unit) * unit) - int(mask.sum())
    rounded = mask.copy()
    rounded[np.flatnonzero(~mask)[:missing]] = True
    return rounded


def _select(program: Program, kept: dict[Value, Any]) -> None:
    """Replace values and operations of a program by those with fewer channels."""
    program.tensors, program.channels = dict(program.tensors), dict(program.channels)
    values: dict[Value, Value] = {}
    for value, channels in kept.items():
        values[value] = dataclasses.replace(value, shape=(*value.shape[:3], len(channels)))
        if value in program.tensors:
            program.tensors[values[value]] = program.tensors.pop(value)
            program.channels[values[value]] = channels

    def new(value: Value) -> Value:
        if value in values:
            return values[value]
        whole = _whole(value)
        if whole in kept and whole is not value:
            share = len(kept[whole]) / whole.shape[3]
            shape = (*value.shape[:-1], round(value.shape[-1] * share))
            values[value] = dataclasses.replace(value, shape=shape, root=values[whole], offset=0)
            program.tensors.pop(value, None)
            return values[value]
        return value

    for place, operation in enumerate(program.operations):
        inputs, results = tuple(map(new, operation.inputs)), tuple(map(new, operation.results))
        if inputs == operation.inputs and results == operation.results:
            continue
        source, result = operation.inputs[0], operation.results[0]
        changed: dict[str, Any] = {"inputs": inputs, "results": results}
        if isinstance(operation, Convolution | Depthwise):
            rows = kept.get(result, np.arange(result.shape[-1]))
            columns = kept.get(_whole(source))
            weights = operation.weights[_of_channels(operation, rows)]
            if columns is not None and isinstance(operation, Convolution):
                channels = _whole(source).shape[3]
                shape = (len(rows), *weights.shape[1:3], -1)
                weights = weights.reshape(len(rows), -1, channels)[..., columns].reshape(shape)
            changed["weights"] = weights
            changed["bias"] = None if operation.bias is None else operation.bias[rows]
            finish = operation.finish
            assert isinstance(finish, Requantisation)
            numbers = {"multipliers": finish.multipliers, "scales": finish.scales, "biases": finish.biases}
            given: dict[str, Any] = {
                name: tuple(some[row] for row in rows) for name, some in numbers.items() if len(some) > 1
            }
            changed["finish"] = dataclasses.replace(finish, **given)
        program.operations[place] = dataclasses.replace(operation, **changed)


Pass = Callable[[Program], Program]
PASSES: tuple[Pass, ...] = (remove_unused_channels, fuse_sums)
"""The passes for all processors, in order."""


def with_passes(program: Program, passes: Sequence[Pass] = PASSES) -> Program:
    """Return the program after some passes."""
    for pass_ in passes:
        program = pass_(program)
    return program
