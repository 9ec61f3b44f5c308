# SPDX-License-Identifier: Apache-2.0
"""The stages of the import of a Relax module: lower, extract the steps, lower the operators, run a reference, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress, silent
from opwest.compiler.faults import fault
from opwest.compiler.folder import refuse_occupied, write_folder
from opwest.compiler.names import ObjectFile
from opwest.compiler.output.checked import checked
from opwest.frontends.tvm.read import Source, require_tvm


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = None
    """The model's name; None: `model`."""
    targets: Sequence[str] = ()
    """Named targets to compile objects for; none: C, compiled with the application."""
    vectors: int = 8
    """The number of golden vectors."""
    progress: Progress = silent


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    model: str
    files: tuple[str, ...]
    operators: int
    steps: int
    constant_bytes: int


def import_module(
    module: Any,
    folder: Path,
    options: Options | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Imported:
    """Import a Relax IRModule whose function `main` is the model. Raises OpwestError before anything is written.

    `inputs` and `outputs` name its parameters and results; without them the parameters keep their names.
    """
    from opwest.frontends.tvm.steps import channels_first, check_static, main_function

    require_tvm()
    options = options or Options()
    refuse_occupied(folder)
    check_static(module)
    parameters = [str(parameter.name) for parameter in main_function(module).params]
    return _convert(Source(channels_first(module), tuple(inputs or parameters), tuple(outputs or ())), folder, options)


def _convert(source: Source, folder: Path, options: Options) -> Imported:
    import numpy as np
    import tvm

    from opwest.compiler.folder import npz
    from opwest.compiler.output.source import c_file
    from opwest.frontends.tvm.codegen import c_source, functions_of, lower_operators, object_file, tvm_target
    from opwest.frontends.tvm.manifest import manifest_text, name_tensors
    from opwest.frontends.tvm.steps import extract_steps, lower_graph
    from opwest.frontends.tvm.vectors import make_vectors

    progress = options.progress
    progress("lowering the graph")
    generic = tvm.target.Target("c")
    module = lower_graph(source, generic)
    steps = extract_steps(module)
    if not steps.steps:
        raise fault("the model has no operators")
    functions = functions_of(module, steps)
    files: dict[str, bytes] = {}
    objects = []
    origin = f"Imported from a Relax module with TVM {tvm.__version__}."
    operators = None
    targets: list[str | None] = [*options.targets] or [None]
    for name in targets:
        target = generic if name is None else tvm_target(name)
        suffix = "" if name is None else f" for {name}"
        operators = lower_operators(functions, target, progress, suffix)
        file = "operators.c" if name is None else f"objects/{name}/operators.o"
        if name is None:
            writes = {step.function: step.writes for step in steps.steps}
            files[file] = c_file(c_source(operators, writes, f"{origin} You can edit it."))
        else:
            files[file] = object_file(operators, target)
        objects.append(ObjectFile(file, name))
    assert operators is not None
    names = name_tensors(steps, source)
    vectors = None
    if options.vectors:
        progress(f"running a reference on {options.vectors} inputs")
        vectors = make_vectors(source, steps, options.vectors)
    model = options.model or "model"
    if steps.constants:
        files["constants.npz"] = npz({names[t]: t.content for t in steps.constants})
    if vectors is not None:
        cases = [(steps.inputs, vectors.inputs), (steps.outputs, vectors.outputs)]
        files["vectors.npz"] = npz(
            {names[t]: np.stack([case[i] for case in c]) for tensors, c in cases for i, t in enumerate(tensors)}
        )
    text = manifest_text(model, steps, names, operators.scratch, objects, vectors, origin)
    files["manifest.yaml"] = text.encode()
    progress(f"writing {folder}")
    write_folder(folder, files, lambda draft: checked(draft, ["manifest.yaml"], ""))
    return Imported(
        folder,
        model,
        tuple(sorted(files)),
        len(functions),
        len(steps.steps),
        sum(t.content.nbytes for t in steps.constants),
    )
