# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch: exported, decomposed, quantised, and their results. Runs in the environment of PyTorch."""

import copy

import numpy as np
import torch
from draws import Many
from quantisers import QUANTISERS
from torch import fx
from torch.export.graph_signature import OutputKind
from torch.utils._pytree import tree_map
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

DECOMPOSITIONS = torch.export.default_decompositions()
CASES = 2
CALIBRATIONS = 4


def exported(module, inputs, decomposed=False):
    program = torch.export.export(module, tuple(inputs))
    return program.run_decompositions(dict(DECOMPOSITIONS)) if decomposed else program


def quantised(module, cases, quantiser, decomposed=False):
    """Return the program of a module that a quantiser of PT2E has quantised with the inputs `cases`."""
    # The module that checks the inputs is not an operator: ExecuTorch's passes refuse it.
    traced = torch.export.export(module, tuple(cases[0])).module(check_guards=False)
    prepared = prepare_pt2e(traced, QUANTISERS[quantiser]())
    for one in cases:
        prepared(*one)
    with torch.no_grad():
        return exported(convert_pt2e(prepared), cases[0], decomposed)


class Rounded(fx.Interpreter):
    """A program whose operators compute in float64; each result is rounded once to float32."""

    def call_function(self, target, args, kwargs):
        name = str(target)
        if not name.startswith("aten.") or name.split(".")[1].endswith("_"):
            return super().call_function(target, args, kwargs)
        found = super().call_function(target, tree_map(self._wide, args), tree_map(self._wide, kwargs))
        return tree_map(self._narrow, found)

    @staticmethod
    def _wide(one):
        return one.double() if isinstance(one, torch.Tensor) and one.dtype == torch.float32 else one

    @staticmethod
    def _narrow(one):
        return one.float() if isinstance(one, torch.Tensor) and one.dtype == torch.float64 else one


def results_of(program, cases, *, rounded=False):
    """Return the results of each case, one after another: buffers keep what a case has written.

    `rounded`: of operators that add exactly. torch's float32 sums depend on the vectors of the processor, and decide
    to which integer a quantisation rounds at a tie, such as the mean of 16 integers.
    """
    module = copy.deepcopy(program).module()
    results = []
    with torch.no_grad():
        for case in cases:
            inputs = [one.clone() for one in case]
            found = Rounded(module).run(*inputs) if rounded else module(*inputs)
            found = found if isinstance(found, (tuple, list)) else [found]
            results.append([one.clone() for one in found])
    return results


def targets_of(program):
    """Return the names of the operators of ATen in a program, without the overloads."""
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return sorted({name.split(".")[1] if name.startswith("aten.") else name for name in called})


def quantised_results(program):
    """Return whether each result of a program is that of a dequantisation."""
    user = {one.arg.name for one in program.graph_signature.output_specs if one.kind == OutputKind.USER_OUTPUT}
    [last] = [node for node in program.graph.nodes if node.op == "output"]
    return ["dequantize" in str(node.target) for node in last.args[0] if node.name in user]


def written(folder, name, program, cases):
    """Write a program, the inputs of its cases and torch's results; return the row of the index."""
    torch.export.save(program, folder / f"{name}.pt2")
    results = results_of(program, cases)
    arrays, quantised = {}, quantised_results(program)
    for number, outputs in enumerate(results_of(program, cases, rounded=True) if any(quantised) else []):
        arrays |= {f"z{number}_{i}": one.numpy() for i, one in enumerate(outputs)}
    for number, (inputs, outputs) in enumerate(zip(cases, results, strict=True)):
        arrays |= {f"x{number}_{i}": one.numpy() for i, one in enumerate(inputs)}
        arrays |= {f"y{number}_{i}": one.numpy() for i, one in enumerate(outputs)}
    np.savez(folder / f"{name}.npz", **arrays)
    row = {"name": name, "cases": len(cases), "inputs": len(cases[0]), "outputs": len(results[0])}
    return row | {"quantised": quantised, "targets": targets_of(program)}


def configurations(row, numbers):
    """Return the functions of an operator with the draws of their inputs, each by its number alone."""
    made = []
    for number in numbers:
        random = np.random.default_rng([*map(ord, row.name), number])
        torch.manual_seed(number)
        made.append((*row.make(random), random))
    return made


def write_operator(folder, row, numbers, *, decomposed=False, quantiser=None):
    """Write one program of several configurations of an operator; return the row of the index.

    Configurations that the quantiser itself does not accept are left out.
    """
    made = configurations(row, numbers)
    try:
        program, cases = _program(made, decomposed, quantiser)
    except Exception:
        if quantiser is None or len(numbers) == 1:
            raise
        made = [one for one in made if _is_accepted(one, quantiser)]
        program, cases = _program(made, decomposed, quantiser)
    form = (quantiser or "float") + ("-decomposed" if decomposed else "")
    found = written(folder, f"{row.name}-{form}", program, cases[:CASES])
    return found | {"operator": row.name, "bound": row.bound, "form": form, "configurations": len(made),
                    "wanted": row.overload}  # fmt: skip


def _program(made, decomposed, quantiser):
    """Return the program of several configurations, and the inputs of its cases."""
    module = Many([(function, len(draws)) for function, draws, _ in made]).eval()
    count = CALIBRATIONS if quantiser else CASES
    cases = [[draw(random) for _, draws, random in made for draw in draws] for _ in range(count)]
    with torch.no_grad():
        if quantiser:
            return quantised(module, cases, quantiser, decomposed), cases
        return exported(module, cases[0], decomposed), cases


def _is_accepted(one, quantiser):
    try:
        _program([one], False, quantiser)
    except Exception:
        return False
    return True
