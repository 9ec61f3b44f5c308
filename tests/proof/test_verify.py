# SPDX-License-Identifier: Apache-2.0
"""The verifier of programs: each rule has programs that break it, with the message."""

import dataclasses

import numpy as np
import pytest
from opwest.compiler.execution.run import run_program
from opwest.compiler.graph.types import Tensor
from opwest.compiler.ir.elements import Arithmetic
from opwest.compiler.ir.movement import RESULT, Axis, Move, Region
from opwest.compiler.ir.operations import Clamp, Convolution, Copy, Elementwise, MatrixProduct, Reduce
from opwest.compiler.ir.program import Program, Value, extent_of, rows_of
from opwest.compiler.ir.verify import RULES, Broken, verify
from opwest.compiler.semantics.windows import Window

SHAPE = (1, 2, 3, 4)


def value(name, role="intermediate", shape=SHAPE, **keys):
    return Value(name, role, "float32", shape, **keys)


def right():
    """Return a program with a convolution, a sum, and a concatenation that a layer writes in place."""
    x, y = value("x", "input"), value("y", "output", (1, 2, 3, 8))
    a, part = value("a"), value("part", root=y, offset=4, pitch=8)
    first = value("first", root=y, pitch=8)
    weights = np.ones((4, 1, 1, 4), np.float32)
    window = Window((1, 1), (1, 1), (1, 1), (0, 0), (2, 3))
    layer = Convolution("0 (CONV_2D)", (x,), (a,), window, 1, weights, np.zeros(4, np.float32), 0, 0, Clamp(None, None))
    total = Elementwise("1 (ADD)", (a, x), (part,), Arithmetic("+"))
    copied = Move("2 (CONCATENATION)", (a,), (first,), (Region(0, (Axis(6, 4, 8), Axis(4, 1, 1))),))
    return Program([x], [y], [], [layer, total, copied], {a: Tensor("a", "float32", SHAPE)})


def changed(number, **keys):
    program = right()
    program.operations[number] = dataclasses.replace(program.operations[number], **keys)
    return program


def without(number):
    program = right()
    del program.operations[number]
    return program


def with_copy(source, result):
    program = right()
    program.operations.append(Copy("3 (COPY)", (source(program),), (result(program),)))
    return program


def outside(program):
    return value("v", shape=(7, 1, 1, 8), root=program.outputs[0])


def cases():
    yield without(0), "'a' is read before it is written"
    yield without(2), "output 'y' has elements that nothing writes"
    yield changed(2, results=(value("first", root=right().outputs[0], pitch=8),)), "output 'y' has elements"
    yield with_copy(lambda p: p.inputs[0], lambda p: p.operations[0].results[0]), "'a' is written twice"
    yield with_copy(lambda p: p.operations[0].results[0], lambda p: p.inputs[0]), "'x', input, is written"
    yield with_copy(outside, lambda p: value("b", shape=(56,))), "view 'v' is not inside of 'y'"
    nested = with_copy(lambda p: value("v", root=p.operations[1].results[0]), lambda p: value("b"))
    yield nested, "'v' is a view of a view"
    narrow = Value("b", "intermediate", "int8", SHAPE)
    view = with_copy(lambda p: dataclasses.replace(narrow, name="v", root=p.inputs[0]), lambda p: narrow)
    yield view, "'v' is a view in another dtype"
    yield with_copy(lambda p: value("k", "constant"), lambda p: value("b")), "'k' has no content"
    yield with_copy(lambda p: p.inputs[0], lambda p: value("b", shape=(0, 4))), "'b' has the shape [0, 4]"
    yield with_copy(lambda p: p.inputs[0], lambda p: value("b", pitch=9)), "'b' has a pitch, and is no view"
    program = right()
    program.outputs.append(program.inputs[0])
    yield program, "'x' has the role input, not output"
    yield changed(0, weights=np.ones((4, 1, 1, 3), np.float32)), "weights [4, 1, 1, 3] for data [1, 2, 3, 4]"
    yield changed(0, weights=np.ones((4, 3, 1, 4), np.float32)), "the window is not that of the weights"
    yield changed(0, bias=np.ones(3, np.float32)), "4 results, and another number of biases"
    yield changed(0, window=Window((1, 1), (1, 1), (1, 1), (0, 0), (2, 2))), "the result has another shape"
    program = right()
    narrow = value("n", "constant", (3,), content=np.ones(3, np.float32))
    program.operations[1] = dataclasses.replace(program.operations[1], inputs=(program.inputs[0], narrow))
    yield program, "operands [1, 2, 3, 4], [3] for a result [1, 2, 3, 4]"
    rows = (Axis(6, 4, 8), Axis(4, 1, 1))
    for regions, message in (
        ([Region(0, (Axis(5, 4, 8), Axis(4, 1, 1)))], "the regions leave elements of the result"),
        ([Region(0, rows, 1)], "a region outside of 'a'"),
        ([Region(0, rows, 0, 40)], "a region outside of the result"),
        ([Region(0, (Axis(6, 4, 8), Axis(5, 0, 1)), 0, -1)], "a region outside of the result"),
        ([Region(1, rows)], "a region of an operand that does not exist"),
        ([Region(RESULT, rows)], "a region reads elements of the result too early"),
        ([Region(0, rows), Region(0, (Axis(1, 1, 1),), 0, 5)], "a region writes between the rows of the result"),
    ):
        yield changed(2, regions=tuple(regions)), message
    program = right()
    program.tensors[program.operations[0].results[0]] = Tensor("a", "float32", (1, 2, 3, 5))
    yield program, "'a' has not the shape of tensor 'a'"
    x = right().inputs[0]
    product = MatrixProduct("0", (x, x), (value("y", "output"),), (False, False), (0, 0), Clamp(None, None))
    yield Program([x], [product.results[0]], [], [product]), "a product of [1, 2, 3, 4] and [1, 2, 3, 4]"
    reduced = Reduce("0", (x,), (value("y", "output", (1, 2)),), "sum", (1, 2), 0, None)
    yield Program([x], [reduced.results[0]], [], [reduced]), "the result has another shape"


CASES = list(cases())


def test_a_right_program():
    program = right()
    verify(program)
    x = np.arange(24, dtype=np.float32).reshape(SHAPE)
    [found] = run_program(program, [x])
    assert np.array_equal(found[..., 4:], x.sum(axis=-1, keepdims=True) + x)
    assert np.array_equal(found[..., :4], np.broadcast_to(x.sum(axis=-1, keepdims=True), SHAPE))


@pytest.mark.parametrize(("program", "message"), CASES, ids=[message for _, message in CASES])
def test_broken_programs(program, message):
    with pytest.raises(Broken) as caught:
        verify(program)
    assert message in caught.value.reason


def test_each_rule_is_broken_by_a_program():
    broken = set()
    for program, _ in CASES:
        for rule, check in RULES.items():
            try:
                check(program)
            except Broken:
                broken.add(rule)
            except Exception:
                continue  # another rule comes before
    assert broken == {*RULES}


def test_rows_with_a_pitch():
    one = value("v", shape=(2, 3, 4), root=value("r", shape=(100,)), pitch=7)
    memory = np.arange(100, dtype=np.float32)
    rows = rows_of(memory, one)
    assert extent_of(one) == 5 * 7 + 4
    assert np.array_equal(rows, np.arange(6).reshape(2, 3, 1) * 7 + np.arange(4))
    rows[...] = -1
    assert (memory == -1).sum() == 24


def test_rows_outside_of_the_memory():
    one = value("v", shape=(2, 3, 4), root=value("r", shape=(38,)), pitch=7)
    with pytest.raises(ValueError, match="38 elements of memory for the 39 of 'v'"):
        rows_of(np.zeros(38, np.float32), one)
