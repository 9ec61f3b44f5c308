# SPDX-License-Identifier: Apache-2.0
"""The application's files, which the user owns: CMake, configuration, main.c, twister's YAML files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import DTYPES
from opwest.model.types.model import Model, bases, variants_of
from opwest.objects.facts import SOURCE_SUFFIXES
from opwest.plan.memory import MemoryPlan
from opwest.render.boards import board_configurations, board_file, stack_reason, stack_size
from opwest.render.c.header import pool_rows
from opwest.render.literals import kconfig_value, yaml_string
from opwest.render.suite import suite_application
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import initialisers, interface_rows
from opwest.render.variants import common_options
from opwest.zephyr.emulators import run_command
from opwest.zephyr.version import SERVICE, TwisterFiles, cortex_m, full_libc, of_externals

Planned = tuple[Model, MemoryPlan]
DEFAULT_BOARD = "native_sim/native/64"
SIMULATED_BOARDS = ("native_", "qemu_", "mps2/", "mps3/")
"""The prefixes of boards that twister runs without hardware."""


def application_name(models: Sequence[Model]) -> str:
    """Return the name of the application: its models' names."""
    return "_".join(m.name for m in models)


def application_files(
    render: Renderer, planned: Sequence[Planned], *, vendored: bool, twister: TwisterFiles
) -> dict[str, bytes]:
    """Return the files that are written once, by path."""
    every = [model for model, _ in planned]
    models = bases(every)
    name = application_name(models)
    boards = list(dict.fromkeys(board for model in models for board in model.boards))
    own = {file.name: file.content for model in models for file in model.application.files}
    has_main = any(model.application.has_main for model in models)
    sources = {n.removeprefix("src/") for n in own if n.endswith((*SOURCE_SUFFIXES, ".S"))}
    if not has_main:
        sources.add("main.c")
    options = {key: kconfig_value(value) for m in models for key, value in m.application.kconfig}
    if any(model.application.has_cpp for model in models):
        options.setdefault("CONFIG_CPP", "y")
    configured = options.pop("CONFIG_MAIN_STACK_SIZE", None)
    files = {
        "prj.conf": render(
            "prj.conf",
            models=[{"kconfig": CNames(m.name).kconfig} for m in models],
            externals=sorted(set().union(*(common_options([m, *variants_of(m, every)]) for m in models))),
            options=[f"{key}={value}" for key, value in sorted(options.items())],
            stack=configured or stack_size(every),
            guard="CONFIG_OPWEST_STACK_GUARD" not in options,
            stack_reason="Set by the manifest" if configured else stack_reason(every),
        ),
        "README.md": _readme(render, name, planned, boards, vendored=vendored),
        twister.application: _sample(render, name, models, boards),
        **_overlays(models),
        **board_configurations(render, every),
        **own,
    }
    files["CMakeLists.txt"] = render(
        "CMakeLists.txt",
        application=name,
        models=[model.name for model in models],
        vendored=vendored,
        boards=any(path.startswith("boards/") for path in files),
        sources=sorted(sources),
    )
    for model in models:
        variants, simulated = variants_of(model, every), integration_boards(model.boards)
        files |= suite_application(render, model, variants, simulated, twister.suite, vendored=vendored)
    if not has_main:
        floats = any(t.type.dtype.is_float for model in models for t in model.outputs)
        placed = any(tensor.placed for model in models for tensor in model.inputs)
        rows = [_main_row(model, variants_of(model, every)) for model in models]
        files["src/main.c"] = render("src/main.c", models=rows, floats=floats, placed=placed)
    return files


def integration_boards(boards: Sequence[str]) -> Sequence[str]:
    """Return the boards that twister builds for in integration mode: the simulated ones, if any."""
    return [board for board in boards if board.startswith(SIMULATED_BOARDS)] or boards or [DEFAULT_BOARD]


def _overlays(models: Sequence[Model]) -> dict[str, bytes]:
    """Return the devicetree overlay of every board: those of all models joined, equal ones once."""
    overlays: dict[str, dict[bytes, None]] = {}
    for model in models:
        for board, file in model.application.overlays:
            overlays.setdefault(board, {})[file.content] = None
    return {f"boards/{board_file(board)}.overlay": b"\n".join(contents) for board, contents in overlays.items()}


def _sample(render: Renderer, name: str, models: Sequence[Model], boards: Sequence[str]) -> bytes:
    console = [line for model in models for line in model.application.console]
    if not console:
        console = [f"{model.name}: run returned 0" for model in models]
    return render(
        "sample.yaml",
        application=name,
        title=yaml_string(name),
        description=yaml_string(models[0].description or f"Application with model {name}, generated by opwest"),
        console=[yaml_string(line) for line in console],
        boards=boards,
        integration=integration_boards(boards),
    )


def _readme(render: Renderer, name: str, planned: Sequence[Planned], boards: Sequence[str], *, vendored: bool) -> bytes:
    commands = [run_command(board, "PATH_OF_THIS_DIRECTORY") for board in boards or (DEFAULT_BOARD,)]
    rows = [
        {
            "name": model.name,
            "description": model.description,
            "tensors": interface_rows(model),
            "step_count": len(model.steps),
            "stateful": model.stateful,
            "constant_size": sum(len(c.content) for c in model.constants),
            "pools": pool_rows(model, plan),
        }
        for model, plan in planned
        if not model.variant
    ]
    models = [model for model, _ in planned]
    modules = [{"name": name, "who": who} for name, who in (full_libc(models) | of_externals(models)).items()]
    return render(
        "README.md",
        application=name,
        commands=commands,
        models=rows,
        vendored=vendored,
        cortex_m=cortex_m(None),
        service=SERVICE,
        modules=modules,
    )


def _main_row(model: Model, variants: Sequence[Model]) -> dict[str, Any]:
    tensors = interface_rows(model)
    others = [interface_rows(variant) for variant in variants]
    for index, tensor in enumerate(tensors):
        tensor["align"] = max([tensor["align"], *(rows[index]["align"] for rows in others)])
        if tensor["placed"]:
            tensor["buffer"] = f"{model.name}_workspace.{tensor['role']}.{tensor['member']}"
    outputs = [t for t in tensors if t["role"] == "output"]
    return {
        "name": model.name,
        "macro": CNames(model.name).macro,
        "tensors": tensors,
        "inputs": initialisers(tensors, role="input"),
        "outputs": initialisers(tensors, role="output"),
        "results": [{**t, **_printed(t)} for t in outputs],
    }


def _printed(tensor: dict[str, Any]) -> dict[str, str]:
    """Return the printf format of an element in main.c, without floating point, which printk() lacks by default."""
    dtype = DTYPES[tensor["dtype"]]
    value = f"{dtype.print.cast}{tensor['buffer']}[i]"
    if dtype.is_float:
        return {"format": "%lld", "value": f"thousandths({value})", "unit": " (thousandths)"}
    return {"format": dtype.print.format, "value": value, "unit": f" ({dtype.bits})" if dtype.bits else ""}
