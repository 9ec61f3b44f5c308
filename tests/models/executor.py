# SPDX-License-Identifier: Apache-2.0
"""Run emitted programs on this machine: many in one C file, each call in order, without a plan.

Each program is verified, and each result is that of the numpy interpreter of programs too.
"""

import ctypes
import subprocess

import numpy as np
import pytest
from campaign import SANITIZED_LEVEL
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.execution.run import run_program
from opwest.compiler.graph.check import check_graph
from opwest.compiler.ir.verify import verify
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.passes import with_passes
from opwest.compiler.output.emit import emit_program, source_of
from opwest.compiler.reference.run import outputs_of, run_graph
from requirements_support import need

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror")
DEFINED = ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")
"""Undefined behaviour ends the process with a message."""
FLAGS = (*WARNINGS, *DEFINED, SANITIZED_LEVEL, "-ffp-contract=off", "-fPIC")


def equal(one, other):
    """Whether two results are equal: integers are, float32 numbers within 1e-4 of the greatest one."""
    if one.dtype.kind != "f":
        return np.array_equal(one.reshape(-1), other.reshape(-1))
    finite = np.abs(one[np.isfinite(one)], dtype=np.float64)
    limit = 1e-4 * max(1.0, float(finite.max(initial=0.0)))
    return np.allclose(one.reshape(-1), other.reshape(-1), 1e-3, limit, equal_nan=True)


def checked(graph, *fold):
    """Return a graph without faults, whose shapes are known."""
    check_graph(graph, "made", faults := Diagnostics(), *fold)
    assert not faults.has_errors, "\n".join(map(str, faults))
    return graph


def interpreted(graph, inputs, states=None):
    return outputs_of(graph, run_graph(graph, inputs, states))


def program_of(graph):
    return with_passes(lower_graph(graph, "made", Diagnostics()))


def joined(emitted):
    """Return the C file of several programs, as that of one model, and the symbols of their functions."""
    symbols = {}
    for one in emitted:
        for step in one.steps:
            symbols.setdefault(step.function, step.symbol)
    return source_of(symbols, "made by a test"), symbols


class Library:
    def __init__(self, programs, folder, flags=(), kernels="portable"):
        need("cc")
        self.emitted = []
        self.programs = programs
        for number, program in enumerate(programs):
            for one in program.history:
                verify(one)
            self.emitted.append(emit_program(program, "made by a test", kernels, prefix=f"p{number}_"))
        text, self.symbols = joined(self.emitted)
        source, code, library = (folder / f"library.{end}" for end in ("c", "o", "so"))
        source.write_text(text)
        for words in (
            (*FLAGS, *flags, "-c", source, "-o", code),
            (*DEFINED, "-shared", code, *flags, "-lm", "-o", library),
        ):
            done = subprocess.run(["cc", *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[:4000]
        self.code = ctypes.CDLL(str(library))

    def run(self, number, inputs, state=None):
        """Return the outputs of a program; `state` maps states to arrays, and is updated. OSError: a status."""
        program = self.programs[number]
        before = {value: array.copy() for value, array in (state or {}).items()}
        try:
            outputs = self._run(number, inputs, state)
        except OSError:
            with pytest.raises(ValueError):
                run_program(program, inputs, before)
            raise
        for compiled, executed in zip(outputs, run_program(program, inputs, before), strict=True):
            assert equal(executed, compiled), f"program {number}: numpy has {executed}, the emitted C {compiled}"
        return outputs

    def _run(self, number, inputs, state):
        program, emitted = self.programs[number], self.emitted[number]
        memory = dict(zip(program.inputs, (np.array(a, order="C") for a in inputs), strict=True))
        state = {} if state is None else state
        for value in program.states:
            if value not in state:
                state[value] = np.zeros(value.shape, value.dtype) if value.content is None else value.content.copy()
            memory[value] = state[value]
        for step in emitted.steps:
            arguments = iter(step.arguments)
            pointers, kept = [], []
            for one in step.function.parameters:
                if one.direction == "scratch":
                    array = np.full(one.elements, 77).astype(one.dtype)
                else:
                    array = self._memory(next(arguments), memory)
                kept.append(array)
                pointers.append(ctypes.c_void_p(array.ctypes.data))
            status = getattr(self.code, self.symbols[step.function])(*pointers)
            if step.function.has_status and status:
                raise OSError(-status, step.symbol)
        for value in program.states:
            if value.next is not None:
                state[value] = self._memory(value.next, memory).reshape(value.shape).copy()
        return [memory[value] for value in program.outputs]

    def _memory(self, value, memory):
        if value.root is not None:
            whole = self._memory(value.base, memory).reshape(-1)
            rows = value.size // value.shape[-1] if value.pitch else 1
            return whole[value.offset : value.offset + (rows - 1) * value.pitch + value.size // rows]
        if value not in memory:
            content = np.full(value.shape, 85, value.dtype) if value.content is None else value.content
            memory[value] = np.array(content, order="C")
        return memory[value]
