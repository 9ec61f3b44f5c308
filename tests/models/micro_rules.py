# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's rules where LiteRT has no kernel, in Python integers: int8 and int16 LSTMs, int8 SVDF and CUMSUM.

Sources: tflite-micro's kernels/lstm_eval.h (LstmStep), lstm_eval.cc, lstm_eval_common.cc, svdf_common.cc
(EvalIntegerSvdf), cumsum.cc, and the functions of TFLite that they call: internal/common.cc, in internal/reference:
cumsum.h, and in integer_ops: fully_connected.h, mul.h, logistic.h, tanh.h.
"""

import itertools
import math

import numpy as np
from models.campaigns import graph_of


def multiplier_of(real):
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    return (fixed // 2, shift + 1) if fixed == 2**31 else (fixed, shift)


def scaled_32(value, real):
    fixed, shift = multiplier_of(real)
    if shift > 0:
        value <<= shift
    high = (value * fixed + (1 << 30)) >> 31
    places = max(-shift, 0)
    rest = high & ((1 << places) - 1)
    return (high >> places) + (rest > (((1 << places) - 1) >> 1) + (high < 0))


def scaled_64(value, real):
    fixed, shift = multiplier_of(real)
    reduced = (fixed + (1 << 15)) >> 16 if fixed < 0x7FFF0000 else 0x7FFF
    return (value * reduced + (1 << (14 - shift))) >> (15 - shift)


def clamp(value, low=-32768, high=32767):
    return max(low, min(high, value))


def sigmoid_table():
    """Return the table of internal/common.h: 1 / (1 + exp(-i / 24)) in 1/65536, raised by half of the chord's error."""
    table = []
    for i in range(256):
        value = 1 / (1 + math.exp(-i / 24))
        second = value * (1 - value) * (1 - 2 * value)
        table.append(math.floor(65536 * (value - second / (16 * 24**2)) + 0.5))
    return [*table[:255], 65535]


TABLE = sigmoid_table()


def logistic(value):
    """Return the function for the multiplier 0 and the shift 0, which stand for a multiplier of 3."""
    value *= 3
    size = abs(value)
    index, rest = size >> 9, size & 511
    result = 0x7FFF << 10 if index >= 255 else (TABLE[index] << 9) + rest * (TABLE[index + 1] - TABLE[index])
    return (result + (1 << 9) if value >= 0 else (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh(value, power):
    shift = 12 + power
    value = (value * 3 + (1 << (-shift - 1))) >> -shift if shift < 0 else value * (3 << shift)
    size = abs(value)
    index, rest = size >> 8, size & 255
    result = 0xFFFF << 8 if index >= 255 else (TABLE[index] << 8) + rest * (TABLE[index + 1] - TABLE[index])
    return (result - (1 << 23) + (1 << 7) if value >= 0 else -result + (1 << 23) + (1 << 7) - 1) >> 8


def micro_lstm(content, cases, resolver, steps):
    node = graph_of(content).nodes[0]
    data, last, cells = node.inputs[0], node.inputs[18], node.inputs[19]
    is_word, is_time_major = data.dtype == "int16", node.options["time_major"]
    scale = scaled_64 if is_word else scaled_32
    limits = (-32768, 32767) if is_word else (-128, 127)
    cell_scale = float(cells.quantization.scale)
    power, unit = round(math.log2(cell_scale)), 2.0**-15
    clip = clamp(int(node.options["cell_clip"] / cell_scale)) if node.options["cell_clip"] > 0 else None
    batch = data.shape[1 if is_time_major else 0]
    count = node.inputs[2].shape[0]
    h = [[last.quantization.zero] * count for _ in range(batch)]
    c = [[0] * count for _ in range(batch)]

    def product(row, tensor, source, i, bias):
        weights, zero = tensor.content[i], source.quantization.zero
        total = sum(int(w) * (int(x) - zero) for w, x in zip(weights, row, strict=True)) + bias
        real = float(np.float32(source.quantization.scale) * np.float32(tensor.quantization.scale)) / 2.0**-12
        return clamp(scale(total, real))

    def gate(g, x, old, i):
        first = product(x, node.inputs[1 + g], data, i, int(node.inputs[12 + g].content[i]))
        second = product(old, node.inputs[5 + g], last, i, 0)
        total = clamp(first + second)
        return tanh(total, -12) if g == 2 else logistic(total)

    def step(x, b):
        old, new = h[b], []
        for i in range(count):
            enter, forget, fresh, leave = (gate(g, x, old, i) for g in range(4))
            kept = clamp(scaled_32(forget * c[b][i], unit * cell_scale / cell_scale))
            added = clamp(scaled_32(enter * fresh, unit * unit / cell_scale))
            c[b][i] = clamp(kept + added)
            if clip is not None:
                c[b][i] = clamp(c[b][i], -clip, clip)
            result = scaled_32(tanh(c[b][i], power) * leave, unit * unit / float(last.quantization.scale))
            new.append(clamp(result + last.quantization.zero, *limits))
        h[b] = new
        return new

    results = []
    for [case] in cases:
        found = np.zeros((*case.shape[:2], count), case.dtype)
        for b in range(batch):
            for t in range(case.shape[0 if is_time_major else 1]):
                at = (t, b) if is_time_major else (b, t)
                found[at] = step(case[at], b)
        results.append([found])
    return results


def micro_svdf(content, cases, resolver, steps):
    node = graph_of(content).nodes[0]
    data, feature, time, bias, state = node.inputs
    rank, (filters, memory), (batch, length) = node.options["rank"], time.shape, data.shape
    zero, state_zero, target = data.quantization.zero, state.quantization.zero, node.output.quantization
    first = np.float32(data.quantization.scale) * np.float32(feature.quantization.scale)
    first = float(first / np.float32(state.quantization.scale))
    second = np.float32(state.quantization.scale) * np.float32(time.quantization.scale)
    second = float(second / np.float32(target.scale))
    kept = [state_zero] * (batch * filters * memory)
    results = []
    for [case] in cases:
        kept = [*kept[1:], kept[-1]]
        for b, f in np.ndindex(batch, filters):
            dot = sum(int(feature.content[f, k]) * (int(case[b, k]) - zero) for k in range(length))
            value = clamp(scaled_32(dot, first), -128, 127) + state_zero
            kept[(b * filters + f) * memory + memory - 1] = (value + 128) % 256 - 128
        found = np.zeros((batch, filters // rank), np.int8)
        for b, u in np.ndindex(batch, filters // rank):
            total = int(bias.content[u])
            for f in range(u * rank, (u + 1) * rank):
                at = (b * filters + f) * memory
                total += sum(int(time.content[f, k]) * (kept[at + k] - state_zero) for k in range(memory))
            found[b, u] = clamp(scaled_32(total, second) + target.zero, -128, 127)
        results.append([found])
    return results


def micro_running_sum(content, cases, resolver):
    node = graph_of(content).nodes[0]
    source, target = node.input(0).quantization, node.output.quantization
    axis = int(node.input(1).content) % len(node.input(0).shape)
    by = 2 * source.scale / ((1 << 20) * target.scale)
    results = []
    for [data] in cases:
        found = np.zeros_like(data)
        others = [range(n) if i != axis else range(1) for i, n in enumerate(data.shape)]
        for start in itertools.product(*others):
            total = scaled_32(-source.zero * (1 << 20), 0.5)
            order = range(data.shape[axis])
            for place in reversed(order) if node.options["reverse"] else order:
                at = (*start[:axis], place, *start[axis + 1 :])
                added = scaled_32((int(data[at]) - source.zero) * (1 << 20), 0.5)
                before, total = total, (total + added + 2**31) % 2**32 - 2**31
                raw = scaled_32(before if node.options["exclusive"] else total, by) + target.zero
                found[at] = clamp(raw, -128, 127)
        results.append([found])
    return results
