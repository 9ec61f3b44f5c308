# SPDX-License-Identifier: Apache-2.0
"""The quantisation of an exported program of PyTorch (.pt2) by PT2E of torchao: a QDQ graph that stays int8.

torch loads the file, in this process only: files are as trusted as Python code. The quantiser annotates each node with
the scales of calibration.py; inputs and outputs stay float32. Source: torchao/quantization/pt2e.
"""

from __future__ import annotations

import copy
import functools
import io
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.system import pip_command
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault, require_packages
from opwest.quantisation import flow
from opwest.quantisation.calibration import Collector, ranges_of
from opwest.quantisation.flow import Loss, Outputs
from opwest.quantisation.layers import CASES
from opwest.quantisation.measure import ratio_db, relative, squares
from opwest.quantisation.pt2_graph import (
    is_float,
    parts_of,
    rule_of,
    runner,
    scales_of,
    values_of,
)
from opwest.quantisation.request import Layer, Made, Options
from opwest.quantisation.samples import Samples, read_samples


def quantise(path: Path, content: bytes, options: Options, progress: Progress) -> Made:
    """Return a quantised file and what it loses. Raises OpwestError."""
    install = pip_command(["torch", "torchao"])
    progress("loading torch")
    python_warnings.simplefilter("ignore")
    require_packages([("torch", "torch"), ("torchao", "torchao")], "quantised .pt2 files", install)
    program = _loaded(content, str(path))
    _check_float(program, str(path))
    inputs, outputs = _ports(program, str(path))
    samples = read_samples(options, inputs, outputs)
    backend = _Backend(program, samples, inputs, outputs, str(path))
    return flow.run(backend, len(content), samples, options, str(path), progress)


def _loaded(content: bytes, place: str) -> Any:
    """Return the exported program. Raises OpwestError."""
    import torch

    torch.set_num_threads(1)  # one order of float sums
    try:
        return torch.export.load(io.BytesIO(content))
    except Exception as error:  # of any part of torch
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        hint = f"write it with torch.export.save, by torch {torch.__version__} or an older one"
        raise fault(f"torch cannot load the program: {text}", place, hint=hint) from None


def _check_float(program: Any, place: str) -> None:
    """Raise OpwestError for programs that are quantised, or have state."""
    for node in program.graph.nodes:
        if "quantized_decomposed" in str(node.target) or "torchao." in str(node.target):
            text = f"the model is quantised already: it has the operator {node.target}"
            raise fault(text, place, "a float32 model", "quantise the float model that it was made from")
    if program.graph_signature.buffers_to_mutate:
        hint = "quantise a form of the model without state"
        raise fault("the model has state (buffers), which is not quantised", place, "a model without state", hint)


def _ports(program: Any, place: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the inputs and outputs of a program: a symbolic first dimension is 1. Raises OpwestError."""
    nodes = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    sides = []
    for names in (signature.user_inputs, signature.user_outputs):
        ports = []
        for name in names:
            value = nodes[name].meta.get("val") if isinstance(name, str) and name in nodes else None
            if value is None:
                raise fault(f"the input or output {name!r} is no tensor", place, "tensors only")
            shape = [size if isinstance(size, int) else None for size in value.shape]
            if shape[:1] == [None]:
                shape[0] = 1
            if None in shape:
                raise fault(f"{name!r} has the shape {list(value.shape)}", place, hint="export it with fixed shapes")
            ports.append({"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": shape})
        sides.append(ports)
    return sides[0], sides[1]


class _Backend(flow.Backend[str]):
    """An exported program: layers are names of nodes after batch normalisations are a part of convolutions."""

    format = "pt2"
    keep = "float"
    remarks: Sequence[str] = ()

    def __init__(
        self,
        program: Any,
        samples: Samples,
        inputs: Sequence[Mapping[str, Any]],
        outputs: Sequence[Mapping[str, Any]],
        place: str,
    ) -> None:
        import torch

        self.torch, self.program, self.place = torch, program, place
        self.cases = [tuple(torch.from_numpy(np.array(array)) for array in case) for case in samples.cases]
        self.module = _fused(program)
        self._add_values()
        self.nodes = list(self.module.graph.nodes)
        self.parts = parts_of(self.nodes)
        if not self.parts.layers:
            raise fault("no operator has an integer form", place)
        last = next(node for node in self.nodes if node.op == "output")
        ends = last.all_input_nodes
        self.is_classifier = len(ends) == 1 and "softmax" in str(ends[0].target)
        self._collector: Collector[str] = Collector(len(self.cases))
        self._ranges_of = functools.cache(lambda method: ranges_of(self._collector.statistics(), method))
        self._scales_of = functools.lru_cache(maxsize=4)(self._scales)

    def _add_values(self) -> None:
        """Set the dtype of each node: the fusion makes new ones."""
        _, values = values_of(self.torch, runner(self.torch, self.module, {}, ()), self.cases[0])
        for node in self.module.graph.nodes:
            value = values.get(node.name)
            if isinstance(value, self.torch.Tensor):
                node.meta["val"] = value

    def calibrate(self) -> Outputs:
        """Run the float module."""
        run = runner(self.torch, self.module, {}, ())
        outputs = []
        for case in self.cases:
            found, values = values_of(self.torch, run, case)
            outputs.append([array.numpy().copy() for array in found])
            for node in self.nodes:
                if is_float(node) and node.op != "get_attr":
                    self._collector.add(node.name, values[node.name].detach().numpy().reshape(-1))
        return outputs

    def _scales(self, method: str, kept: frozenset[str]) -> Any:
        return scales_of(self.parts, kept, self._ranges_of(method))

    def outputs(self, method: str, kept: frozenset[str], most: int | None) -> Outputs:
        """Run the module with rounded values."""
        run = runner(self.torch, self.module, *self._scales_of(method, kept))
        return [[array.numpy().copy() for array in values_of(self.torch, run, case)[0]] for case in self.cases[:most]]

    def losses(self, method: str, kept: frozenset[str]) -> Mapping[str, Loss]:
        """Return the loss of each layer."""
        cases = self.cases[:CASES]
        floats = [values_of(self.torch, runner(self.torch, self.module, {}, ()), case) for case in cases]
        run = runner(self.torch, self.module, *self._scales_of(method, kept))
        whole = [values_of(self.torch, run, case) for case in cases]
        found = {}
        for name, nodes in self.parts.layers.items():
            others = frozenset(self.parts.layers) - {name}
            run = runner(self.torch, self.module, *self._scales(method, others))
            alone = [values_of(self.torch, run, case) for case in cases]
            result = nodes[-1].name
            sums = np.zeros(6)
            for one, both, wanted in zip(alone, whole, floats, strict=True):
                sums[0:2] += _squares([one[1][result]], [wanted[1][result]])
                sums[2:4] += _squares([both[1][result]], [wanted[1][result]])
                sums[4:6] += _squares(one[0], wanted[0])
            found[name] = Loss(ratio_db(*sums[0:2]), ratio_db(*sums[2:4]), relative(*sums[4:6]))
        return found

    def can_keep(self, layer: str) -> bool:
        """Every layer can remain float32."""
        return True

    def rows(self, losses: Mapping[str, Loss], method: str, kept: frozenset[str]) -> tuple[Layer, ...]:
        """Return the layers in the order of the program."""
        scales, _ = self._scales_of(method, kept)
        rows = []
        for name, loss in losses.items():
            last = self.parts.layers[name][-1]
            scale = scales.get(last)
            numbers = (None, None) if scale is None else (scale.scale, scale.zero)
            precision = "float" if name in kept else "int8"
            losses_of_layer = (loss.own_db, loss.total_db, loss.output_error)
            rows.append(Layer(name, last.name, precision, *losses_of_layer, numbers[0], numbers[1], kept=name in kept))
        return tuple(rows)

    def warnings(self) -> Sequence[str]:
        """Return a warning about operators without an integer form."""
        others = (node for node in self.nodes if node.op == "call_function" and is_float(node))
        kinds = sorted({str(node.target) for node in others if rule_of(node) is None})
        return [f"no integer form, computed in float32: {', '.join(kinds)}"] if kinds else []

    def content(self, method: str, kept: frozenset[str]) -> bytes:
        """Return the program that PT2E makes."""
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        from opwest.quantisation.pt2_annotations import annotator

        scales, quantised = self._scales_of(method, kept)
        named = {node.name: scale for node, scale in scales.items()}
        with self.torch.no_grad():
            prepared = prepare_pt2e(self.program.module(), annotator(named, {node.name for node in quantised}))
            prepared(*self.cases[0])
            converted = _without_unused(convert_pt2e(prepared, fold_quantize=True))
            program = self.torch.export.export(converted, self.cases[0])
        stream = io.BytesIO()
        self.torch.export.save(program, stream)
        return stream.getvalue()


def _fused(program: Any) -> Any:
    """Return the module of a program whose batch normalisations are in the convolutions before them."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    from opwest.quantisation.pt2_annotations import capture

    quantizer = capture()
    prepare_pt2e(program.module(), quantizer)
    return copy.deepcopy(quantizer.module)


def _without_unused(module: Any) -> Any:
    """Return a module without parameters that its graph does not read: the float32 weights."""
    used = {str(node.target) for node in module.graph.nodes if node.op == "get_attr"}
    for name, _ in list(module.named_parameters()):
        if name not in used:
            owner, _, own = name.rpartition(".")
            delattr(module.get_submodule(owner), own)
    return module


def _squares(found: Sequence[Any], wanted: Sequence[Any]) -> tuple[float, float]:
    """Return the sums of squared differences and of squared values of tensors."""
    return squares((one.numpy(), other.numpy()) for one, other in zip(found, wanted, strict=True))
