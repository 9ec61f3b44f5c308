# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host`: the emitted code on this machine, fed with arrays or with the application's own main()."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.cli.commands import Result
from opwest.diagnostics import Diagnostics, nearest
from opwest.host.compile import HostCompiler, build_program, fail
from opwest.render.templates import render
from opwest.write.project import read_record

HOOKS = ("operator", "ready", "activate", "open", "close", "deactivate", "sync", "cache")
"""enum opwest_hook of the runtime."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


def run_on_host(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Build and run; with inputs return the outputs, without any let the application print what it prints."""
    project: Path = options.directory
    record = read_record(project) if project.is_dir() else None
    if record is None:
        raise fail(
            "this is not a folder that opwest generated",
            project,
            hint="opwest generate MANIFEST -o DIR makes one",
        )
    if (project / ".opwest" / "journal.json").exists():
        raise fail(
            "a run of opwest was interrupted here and the project is half written",
            project,
            hint="run `opwest generate` again",
        )
    if options.model is not None:
        _model(options, project, record)  # an unknown name is a fault, whatever else is asked for
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        compiler = HostCompiler(Path(work), options.bits)
        if options.input or options.output_dir:
            return _run_model(options, project, record, compiler, Path(work), faults)
        return _run_application(options, project, record, compiler, Path(work))


def _run_application(
    options: argparse.Namespace, project: Path, record: dict[str, Any], compiler: HostCompiler, work: Path
) -> Result:
    sources = sorted((project / "src").glob("*.c")) + sorted((project / "src").glob("*.S"))
    if not sources:
        raise fail("there is no source in src/", project, hint="give --input to run the model without an application")
    program = work / "application"
    build_program(project, record, compiler, sources, program)
    done = subprocess.run(
        [program], check=False, stdout=subprocess.PIPE if options.json else None, text=True, errors="replace"
    )
    sys.stdout.flush()
    if done.returncode != 0:
        raise fail(_ended(done.returncode), project)
    return Result("", {"returncode": 0, "stdout": done.stdout})


def _ended(returncode: int) -> str:
    if returncode < 0:
        import signal

        return f"the program was ended by {signal.Signals(-returncode).name}"
    return f"the program returned {returncode}"


def _run_model(
    options: argparse.Namespace,
    project: Path,
    record: dict[str, Any],
    compiler: HostCompiler,
    work: Path,
    faults: Diagnostics,
) -> Result:
    import numpy as np

    model = _model(options, project, record)
    inputs = [t for t in model["tensors"] if t["role"] == "input"]
    outputs = [t for t in model["tensors"] if t["role"] == "output"]
    arrays = _read_inputs(options.input, inputs, faults)
    harness = work / "host_main.c"
    rows = [{**t, "position": i + 1, "buffer": _buffer(t)} for i, t in enumerate([*inputs, *outputs])]
    harness.write_bytes(
        render(
            "host/main.c",
            model=model["name"],
            macro=model["macro"],
            tensors=rows,
            inputs=", ".join(t["buffer"] for t in inputs if not t["placed"]) or "0",
            outputs=", ".join(t["buffer"] for t in outputs if not t["placed"]) or "0",
        )
    )
    program = work / "harness"
    build_program(project, {**record, "models": [model]}, compiler, [harness], program)
    paths = [work / f"{row['role']}_{row['name']}.bin" for row in rows]
    for tensor, path in zip(inputs, paths, strict=False):
        path.write_bytes(arrays[tensor["name"]].tobytes())
    done = subprocess.run([program, *paths], check=False, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise _failure(project, model, done)
    lines, values = [], {}
    if options.output_dir:
        _make_folder(options.output_dir)
    for tensor, path in zip(outputs, paths[len(inputs) :], strict=True):
        array = np.frombuffer(path.read_bytes(), dtype=tensor["dtype"]).reshape(tensor["shape"])
        values[tensor["name"]] = array.tolist()
        lines.append(
            f"{tensor['name']}: {tensor['dtype']} {tensor['shape']}: {np.array2string(array.reshape(-1), threshold=8)}"
        )
        if options.output_dir:
            np.save(options.output_dir / f"{tensor['name']}.npy", array)
            lines.append(f"  written to {options.output_dir / tensor['name']}.npy")
    return Result("\n".join(lines), {"model": model["name"], "outputs": values})


def _buffer(tensor: dict[str, Any]) -> str:
    """Return the C expression of a tensor's memory in the harness."""
    name: str = tensor["buffer"]
    return f"workspace.{tensor['role']}.{tensor['name']}" if tensor["placed"] else name


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        raise fail(f"the outputs can't be written here: {error.strerror}", path) from error


def _model(options: argparse.Namespace, project: Path, record: dict[str, Any]) -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {model["name"]: model for model in record["models"]}
    if options.model is None:
        if len(models) > 1:
            raise fail(f"there are several models: {', '.join(models)}", project, expected="--model NAME")
        return next(iter(models.values()))
    if options.model not in models:
        raise fail(f"there is no model {options.model!r}", project, hint=nearest(options.model, models))
    return models[options.model]


def _read_inputs(given: list[str], inputs: list[dict[str, Any]], faults: Diagnostics) -> dict[str, Array]:
    """Return the arrays by input name; report every one that is missing, unknown, or of another type."""
    import numpy as np

    known = {t["name"]: t for t in inputs}
    arrays: dict[str, Array] = {}
    for text in given:
        name, separator, file = text.partition("=")
        if not separator or not file:
            faults.error(f"--input {text!r} is not of the form NAME=FILE.npy")
        elif name not in known:
            faults.error(f"there is no input {name!r}", hint=nearest(name, known))
        elif name in arrays:
            faults.error(f"input {name!r} is given twice")
        else:
            try:
                array = np.load(file, allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                faults.error(f"input {name!r}: {file} can't be read: {error}", expected="a file written by numpy.save")
                arrays[name] = np.zeros(0, np.int8)
                continue
            tensor = known[name]
            arrays[name] = array
            if (
                not isinstance(array, np.ndarray)
                or array.dtype.name != tensor["dtype"]
                or list(array.shape) != tensor["shape"]
            ):
                seen = f"{array.dtype.name} {list(array.shape)}" if isinstance(array, np.ndarray) else "an .npz file"
                faults.error(f"input {name!r}: {file} holds {seen}", expected=f"{tensor['dtype']} {tensor['shape']}")
                continue
            arrays[name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    for name in known:
        if name not in arrays:
            faults.error(f"input {name!r} is not given", expected=f"--input {name}=FILE.npy")
    faults.raise_if_errors()
    return arrays


def _failure(project: Path, model: dict[str, Any], done: subprocess.CompletedProcess[str]) -> Exception:
    """Return the error for a harness that failed: code 3 comes with what `run` returned, the step and its code."""
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    if done.returncode == 3:
        rc, step, code, hook, device = (int(word) for word in last.split())
        names, devices = model["steps"], model["devices"]
        where = f" in step {step} ({names[step]})" if step < len(names) else ""
        if hook:
            where += f": {HOOKS[hook]} of device {devices[device]} returned {code}"
        elif where:
            where += f", whose operator returned {code}"
        return fail(f"{model['name']}_run returned {rc} ({os.strerror(-rc)}){where}", project)
    return fail(f"{_ended(done.returncode)} {last}".strip(), project)
