# SPDX-License-Identifier: Apache-2.0
"""The runtimes of the formats, LiteRT, onnxruntime and PyTorch, in a process of their own.

Their kernels can abort or destroy memory for files that are valid: such a failure does not end the import.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from opwest.base import timing
from opwest.base.diagnostics import first_line, printable
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import limit_next_request, limit_process, signal_name
from opwest.compiler.child import ENVIRONMENT, MEMORY, SECONDS
from opwest.compiler.folder import npz

Cases = list[list[Any]]
"""Arrays by case, then by input or output."""

_PACKAGES = {"tflite": "ai-edge-litert", "onnx": "onnxruntime", "torch": "torch"}
_NAMES = {"tflite": "LiteRT", "onnx": "onnxruntime", "torch": "PyTorch"}


class UnavailableError(Exception):
    """The runtime of the format is absent, or does not run the model. The text is the reason, as a clause."""


class AbsentError(UnavailableError):
    """The runtime is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"the package {package} is not installed")
        self.package = package


class TerminatedError(UnavailableError):
    """The process of the runtime ended without an answer."""


@dataclass(frozen=True)
class Call:
    """What a runtime does with a model."""

    format: str
    """tflite, onnx or torch."""
    subgraph: int = 0
    """TFLite: another subgraph than the first one requires its signature."""
    signature: str | None = None
    """The key of the signature."""
    inputs: Sequence[str] = ()
    """The names of the inputs in the order of the cases, for signatures and ONNX. ONNX: empty for those of the file."""
    outputs: Sequence[str] = ()
    tensors: Sequence[int] = ()
    """TFLite: the tensors of the subgraph to return, by their numbers."""
    state: str = "reset"
    """TFLite, PyTorch: keep the state before each case, reset it, or make a new interpreter (new)."""


@dataclass(frozen=True)
class Found:
    """The results of a runtime, by case."""

    outputs: Cases
    tensors: list[dict[int, Any]]


def name_of(format_: str) -> str:
    """Return the name of an installed runtime, with its version. Raises UnavailableError."""
    package = _PACKAGES[format_]
    if importlib.util.find_spec(package.replace("-", "_")) is None:
        raise AbsentError(package)
    name = _NAMES[format_]
    try:
        return f"{name} {metadata.version(package)}"
    except metadata.PackageNotFoundError:  # a variant of the package, such as onnxruntime-gpu
        return name


def run(call: Call, content: bytes, cases: Cases) -> Found:
    """Run a model in a process of its own. Raises UnavailableError, TerminatedError."""
    name = name_of(call.format)
    inputs = _packed(cases)
    head = {"call": dataclasses.asdict(call), "cases": len(cases), "sizes": [len(content), len(inputs)]}
    try:
        code, answer = _run([sys.executable, "-P", "-m", __name__], [_line(head), content, inputs])
    except OSError as error:
        raise UnavailableError(f"{name} cannot be started: {error.strerror}") from None
    if code:
        by = signal_name(code)
        raise TerminatedError(f"{name} " + (f"was terminated by {by}" if by else f"failed with exit code {code}"))
    line, _, packed = answer.partition(b"\n")
    if reason := json.loads(line)["reason"]:
        raise UnavailableError(f"{name} cannot run the model: {reason}")
    arrays = _loaded(packed)
    tensors = [{tensor: arrays[f"{case}/tensor/{tensor}"] for tensor in call.tensors} for case in range(len(cases))]
    return Found(_unpacked(arrays, len(cases)), tensors)


def _run(command: list[str], request: Sequence[bytes]) -> tuple[int, bytes]:
    """Return the exit code and the answer. The process ends when its standard input does: if this one is killed."""
    environment = {**os.environ, **ENVIRONMENT}
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with (
        timing.command(command),
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, env=environment) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            try:
                process.stdin.writelines(request)  # all of it is read before anything is answered
                process.stdin.flush()
            except BrokenPipeError:  # the exit code has the reason
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            answer = process.stdout.read()
            return process.wait(), answer
        except BaseException:
            process.kill()
            raise


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _packed(cases: Cases, others: Mapping[str, Any] | None = None) -> bytes:
    arrays = {f"{case}/{number}": array for case, some in enumerate(cases) for number, array in enumerate(some)}
    return npz({**arrays, **(others or {})})


def _loaded(packed: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(packed), allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _unpacked(arrays: dict[str, Any], count: int) -> Cases:
    """Return the arrays of each case in their order."""
    names = [name.split("/") for name in arrays]
    counts = [sum(len(name) == 2 and name[0] == str(case) for name in names) for case in range(count)]
    return [[arrays[f"{case}/{number}"] for number in range(counts[case])] for case in range(count)]


def _serve() -> None:
    """Answer the request on standard input. Output of libraries is redirected to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit_process(MEMORY)
    limit_next_request(SECONDS)
    request = sys.stdin.buffer
    head = json.loads(request.readline())
    content, inputs = map(request.read, head["sizes"])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        call = Call(**head["call"])
        answer = _SERVED[call.format](call, content, _unpacked(_loaded(inputs), head["cases"]))
        named = {
            f"{case}/tensor/{tensor}": array
            for case, some in enumerate(answer.tensors)
            for tensor, array in some.items()
        }
        reason, packed = "", _packed(answer.outputs, named)
    except Exception as error:  # it can lack an operator, or refuse a file
        reason, packed = printable(first_line(error)), b""
    with answers:
        answers.writelines((_line({"reason": reason}), packed))


def _end_with_parent() -> None:
    """End this process at the end of its standard input."""
    os.read(0, 1)  # not sys.stdin: its lock would be held when Python exits
    os._exit(1)


def _litert(call: Call, content: bytes, cases: Cases) -> Found:
    runtime, results = _LiteRt(call, content), Found([], [])
    for number, case in enumerate(cases):
        if call.state == "new" and number:  # reset_all_variables() leaves resources as they are
            runtime = _LiteRt(call, content)
        elif call.state == "reset":
            runtime.interpreter.reset_all_variables()
        results.outputs.append(runtime.run(case))
        results.tensors.append({tensor: runtime.tensor(tensor) for tensor in call.tensors})
    return results


class _LiteRt:
    """LiteRT with reference kernels. The first subgraph is run by the interpreter, others by a runner of signatures.

    All tensors have memory of their own: LiteRT 2.3 otherwise lets RESHAPE and ADD share a tensor that is read later.
    """

    def __init__(self, call: Call, content: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self.interpreter = Interpreter(
            model_content=content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self._call = call
        self._runner = None
        if call.subgraph:
            if call.signature is None or not all((*call.inputs, *call.outputs)):
                raise ValueError("the signature does not name all inputs and outputs of its subgraph")
            self._runner = self.interpreter.get_signature_runner(call.signature)
        else:
            self.interpreter.allocate_tensors()

    def run(self, case: Sequence[Any]) -> list[Any]:
        """Return the outputs for the inputs of one case."""
        if self._runner is not None:
            results = self._runner(**dict(zip(self._call.inputs, case, strict=True)))
            return [np.array(results[name]) for name in self._call.outputs]
        for place, array in zip(self.interpreter.get_input_details(), case, strict=True):
            self.interpreter.set_tensor(place["index"], array)
        self.interpreter.invoke()
        return [self.tensor(detail["index"]) for detail in self.interpreter.get_output_details()]

    def tensor(self, number: int) -> Any:
        """Return the content of a tensor."""
        return self.interpreter.get_tensor(number, self._call.subgraph).copy()


def _onnxruntime(call: Call, content: bytes, cases: Cases) -> Found:
    """Run every operator as the file has it, in one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = call.inputs or [port.name for port in session.get_inputs()]
    wanted = call.outputs or None
    outputs = [list(map(np.asarray, session.run(wanted, dict(zip(names, case, strict=True))))) for case in cases]
    return Found(outputs, [])


def _torch(call: Call, content: bytes, cases: Cases) -> Found:
    """Run an exported program in one thread, its buffers in sequence or from their initial content."""
    import torch
    from torch.utils import _pytree

    for name in ("torch.ao.quantization.fx._decomposed", "torchao.quantization.pt2e.quantize_pt2e"):
        with contextlib.suppress(Exception):  # they register operators, if they are installed
            importlib.import_module(name)
    torch.set_num_threads(1)
    program = torch.export.load(io.BytesIO(content))
    try:
        module = program.module(check_guards=False)
    except TypeError:  # PyTorch before 2.9
        module = program.module()
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    found = Found([], [])
    for case in cases:
        if call.state != "keep":
            for name, buffer in module.named_buffers():
                buffer.copy_(before[name])
        given = iter(case)
        flat = [
            torch.from_numpy(np.array(next(given))) if type(argument).__name__ == "TensorArgument" else argument.value
            for argument in (spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT")
        ]
        arguments, named = _pytree.tree_unflatten(flat, program.call_spec.in_spec)
        with torch.no_grad():
            results, _ = _pytree.tree_flatten(module(*arguments, **named))
        found.outputs.append([np.array(result.detach()) for result in results if isinstance(result, torch.Tensor)])
    return found


_SERVED: dict[str, Callable[[Call, bytes, Cases], Found]] = {"tflite": _litert, "onnx": _onnxruntime, "torch": _torch}

if __name__ == "__main__":
    _serve()
