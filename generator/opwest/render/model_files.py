# SPDX-License-Identifier: Apache-2.0
"""All files of one emitted model: the directory models/<model>/."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from opwest.model.readers.tvmgen import Library
from opwest.model.types.builds import ANY_TARGET, NO_OPTIONS, CompileOptions, SourceFile, TargetBuild
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.dtypes import DType
from opwest.model.types.model import Constant, Model
from opwest.objects.rewriting import rename_symbols
from opwest.objects.tvm_symbols import CONTEXTS
from opwest.plan.memory import MemoryPlan
from opwest.render.arguments import argument_row
from opwest.render.c.bridges import render_bridges
from opwest.render.c.header import render_headers
from opwest.render.c.metadata import layout_checks, render_metadata
from opwest.render.c.run import render_internal, render_run
from opwest.render.c.stream import render_stream
from opwest.render.c.tvm import render_system_library, render_tvmgen
from opwest.render.devices import device_rows, reach_rows
from opwest.render.literals import c_comment, cmake_string, kconfig_string
from opwest.render.note import render_note
from opwest.render.tables.arrays import has_bridges
from opwest.render.tables.model import model_tables
from opwest.render.tables.tensors import used_pools
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading, interface_rows, manifest_name
from opwest.render.variants import kconfig_rows, service_file, variant_rows
from opwest.zephyr.floats import fpu_conditions

_KERNEL = re.compile(rb"\bKERNEL\b")


def model_files(
    render: Renderer,
    model: Model,
    plan: MemoryPlan,
    compiled: Mapping[tuple[str, str], bytes] | None = None,
    library: Library | None = None,
    *,
    service: bool = True,
    runner: bool = True,
    in_place: bool = False,
    variants: Sequence[Model] = (),
) -> dict[PurePosixPath, bytes]:
    """Return every file of the model, by its path inside the model's directory; of a variant, inside its own directory.

    `compiled` holds the metadata objects by model and target, None if the module is C source;
    `library` is the table in microTVM's layout if a model of the application requests it. `service` is whether the
    model's runtime supports runs from a host, `runner` whether it supports those of user threads. `in_place` is whether
    the build compiles the sources of operators where they are; otherwise the model has copies. `variants` are those of
    a base.
    """
    table = render_system_library(render, model, library) if library else None
    common = heading(model)
    files = {
        **(_module(render, model, variants) if model.variant is None else {}),
        "model.cmake": _declaration(
            render, model, variants, has_library=compiled is None and table is not None, in_c=compiled is None
        ),
        **render_headers(render, model, plan, runner=runner),
        **_devices(render, model, plan, common, in_c=compiled is None),
        "note.S": render_note(render, model, plan),
        **_objects(render, model, in_place=in_place),
        **render_tvmgen(render, model, plan),
        **render_stream(render, model, plan),
    }
    if has_drivers(model):
        content = render("models/model/src/model_devices.ld", **common, devices=device_rows(model))
        files[f"src/{model.name}_devices.ld"] = content
    if compiled is None or model.streams:
        files[f"src/{model.name}_internal.h"] = render_internal(render, model)
    if service:
        tensors = interface_rows(model)
        pools = [pool.member for pool in used_pools(model, plan)]
        content = render_service(render, model.name, manifest_name(model), tensors, pools, argument_row(model))
        files[f"src/{service_file(model.name)}"] = content
    if compiled is None:
        tables = model_tables(model, plan)
        files |= {
            f"src/{model.name}_run.c": render_run(render, model, plan, tables),
            f"src/{model.name}_metadata.c": render_metadata(render, model, tables),
            **({f"src/{model.name}_bridges.c": render_bridges(render, model)} if has_bridges(model) else {}),
            **({f"src/{model.name}_tvm_crt.c": table} if table else {}),
            **_constants(render, model, common),
        }
    else:
        for build in model.builds:
            if build.target:
                files[metadata_object(model.name, target_folder(build))] = compiled[model.name, build.target.name]
    return {PurePosixPath(path): content for path, content in files.items()}


def render_service(
    render: Renderer,
    model: str,
    manifest: str,
    tensors: Sequence[Mapping[str, Any]],
    pools: Sequence[str],
    arguments: Mapping[str, Any] | None,
) -> bytes:
    """Return the source for runs of a model from a host, from the rows of its inputs and outputs.

    `pools` are the members of the workspace that point to pools.
    `arguments` is the memory for calls of operators; None in the record of an earlier opwest.
    """
    return render(
        "models/model/src/model_service.c",
        model=model,
        manifest=manifest,
        macro=CNames(model).macro,
        tensors=[{"member": tensor["name"], **tensor} for tensor in tensors],  # an earlier opwest kept all names
        pools=pools,
        arguments=arguments,
    )


def target_folder(build: TargetBuild) -> str:
    """Return the directory of a target below objects/."""
    return build.target.name if build.target else ANY_TARGET


def metadata_object(model: str, folder: str) -> str:
    """Return the path of a compiled metadata module."""
    return f"objects/{folder}/{model}_metadata.o"


def rename_header(build: TargetBuild) -> str:
    """Return the header that renames symbols in sources, for one target."""
    return f"objects/{target_folder(build)}/rename.h"


def _module(render: Renderer, model: Model, variants: Sequence[Model]) -> dict[str, bytes]:
    """Return the files of the model as a Zephyr module."""
    names = CNames(model.name)
    every = [model, *variants]
    return {
        "zephyr/module.yml": render("models/model/zephyr/module.yml", module=names.module),
        "Kconfig": render(
            "models/model/Kconfig",
            kconfig=names.kconfig,
            title=kconfig_string(f"opwest model {model.name}"),
            full_libc=all(m.needs_full_libc for m in every),
            cpp={
                "language": all(m.cpp.language for m in every),
                "library": all(m.cpp.library for m in every),
            },
            tvm=all(m.needs_tvm for m in every),
            halide=all(m.needs_halide for m in every),
            fpu=list(dict.fromkeys(condition for m in every for condition in fpu_conditions(m))),
            manifest=manifest_name(model),
            variants=kconfig_rows(model, variants),
        ),
        "CMakeLists.txt": render("models/model/CMakeLists.txt", model=model.name, kconfig=names.kconfig),
    }


def _declaration(render: Renderer, model: Model, variants: Sequence[Model], *, has_library: bool, in_c: bool) -> bytes:
    """Return model.cmake, which lists the files of the model."""
    targets = [
        {
            "name": build.target.name,
            "kconfig": [f"{symbol}={value}" for symbol, value in build.target.kconfig],
            "host": build.target.host,
            "objects": [
                *(cmake_string(f"objects/{build.target.name}/{o.path}") for o in build.objects),
                *([] if in_c else [cmake_string(metadata_object(model.name, build.target.name))]),
            ],
        }
        for build in model.builds
        if build.target
    ]
    sources = [
        {
            "path": cmake_string(_compiled(s)),
            "place": f"{s.line}:{s.column}",
            "permits": ",".join(s.permits) or "-",
            "wrapped": s.is_wrapped,
        }
        for s in (model.builds[0].sources if model.builds else ())
        if s.compiled
    ]
    constants = [file for constant in model.constants for file in _constant_row(model, constant)["contents"]]
    constants += [f"{CNames.program(program.content)}.bin" for program in model.programs]
    return render(
        "models/model/model.cmake",
        model=model.name,
        variants=variant_rows(variants),
        manifest=cmake_string(manifest_name(model)),
        externals=[
            {"symbol": e.symbol, "provider": cmake_string(e.provider), "kconfig": option}
            for e in model.externals
            for option in e.kconfig
        ],
        targets=targets,
        sources=sources,
        options=_option_rows(model),
        full_libc=model.needs_full_libc,
        cpp=model.cpp,
        tvmgen=model.tvmgen is not None,
        streams=model.streams,
        has_drivers=has_drivers(model),
        has_devices=has_devices(model) or not in_c,
        runtime=[
            *(["src/devices.c"] if model.devices else []),
            *(["src/stream.c"] if model.streams else []),
            *(["src/halide_backend.c"] if model.needs_halide else []),
            *(["src/tvm_backend.c"] if model.needs_tvm or has_library else []),
            *(["scripts/check_operators.py"] if sources else []),
        ],
        has_bridges=has_bridges(model),
        has_library=has_library,
        tvm=model.needs_tvm,
        halide=model.needs_halide,
        in_c=in_c,
        constants=constants if in_c else [],
    )


def _compiled(source: SourceFile) -> str:
    """Return the file to compile: relative to the directory of sources, or to that of the model for a wrapper."""
    return str(source.unit if source.is_wrapped else source.path)


def _option_rows(model: Model) -> list[dict[str, Any]]:
    """Return the options of sources, a row for all sources with the same options."""
    groups: dict[CompileOptions, list[str]] = {}
    for source in model.builds[0].sources if model.builds else ():
        if source.compiled and source.options != NO_OPTIONS:
            groups.setdefault(source.options, []).append(cmake_string(_compiled(source)))
    return [
        {
            "sources": sources,
            "include_dirs": [cmake_string(str(folder)) for folder in options.include_dirs],
            "defines": [cmake_string(define) for define in options.defines],
            "flags": [cmake_string(flag) for flag in options.flags],
            "optimize": options.optimize,
        }
        for options, sources in groups.items()
    ]


def array_row(model: Model, symbol: str, name: str, dtype: DType, content: bytes) -> dict[str, Any]:
    """Return the row of an array in assembly, with its files: <name>.bin and a swapped copy if a target needs one.

    `content` is little-endian.
    """
    swapped = big_endian(model, dtype, content)
    swapped_files = {} if swapped is None else {f"{name}.be.bin": swapped}
    return {
        "symbol": symbol,
        "size": len(content),
        "file": f"{name}.bin",
        "big_endian": None if swapped is None else f"{name}.be.bin",
        "contents": {f"{name}.bin": content, **swapped_files},
    }


def _constant_row(model: Model, constant: Constant) -> dict[str, Any]:
    symbol = CNames(model.name).constant(constant.name)
    row = array_row(model, symbol, constant.name, constant.type.dtype, constant.content)
    return {**row, "align": constant.align}


def big_endian(model: Model, dtype: DType, content: bytes) -> bytes | None:
    """Return elements with their bytes swapped, None if no target of the model needs them."""
    if dtype.size == 1 or not any(b.target and b.target.endian == "big" for b in model.builds):
        return None
    return b"".join(content[i : i + dtype.size][::-1] for i in range(0, len(content), dtype.size))


def _devices(
    render: Renderer, model: Model, plan: MemoryPlan, common: dict[str, Any], *, in_c: bool
) -> dict[str, bytes]:
    if not has_devices(model) and in_c:
        return {}
    reached = reach_rows(model)
    return {
        f"src/{model.name}_devices.c": render(
            "models/model/src/model_devices.c",
            **common,
            layouts=None if in_c else layout_checks(model, plan),
            reached=reached,
            bound=sorted({board["kconfig"] for row in reached for board in row["boards"]}),
        )
    }


def has_devices(model: Model) -> bool:
    """Whether a board has properties to check: devices, or memory regions of pools."""
    return bool(model.devices) or any(pool.boards for pool in model.pools)


def has_drivers(model: Model) -> bool:
    """Whether a device comes from devicetree."""
    return any(device.handle is None for device in model.devices)


def _constants(render: Renderer, model: Model, common: dict[str, Any]) -> dict[str, bytes]:
    if not model.constants and not model.programs:
        return {}
    rows = [_constant_row(model, constant) for constant in model.constants]
    files = {f"constants/{file}": content for row in rows for file, content in row["contents"].items()}
    programs = []
    for program in model.programs:
        symbol = CNames.program(program.content)
        file = f"{symbol}.bin"
        files[f"constants/{file}"] = program.content
        programs.append({"name": c_comment(program.name), "symbol": symbol, "file": file, "size": len(program.content)})
    return {"constants.S": render("models/model/constants.S", **common, constants=rows, programs=programs), **files}


def _objects(render: Renderer, model: Model, *, in_place: bool) -> dict[str, bytes]:
    """Return the operators: objects with renamed symbols, and unchanged sources with a header of renamings."""
    names = CNames(model.name)
    files: dict[str, bytes] = {}
    for build in model.builds:
        renamed = {symbol: names.operator(symbol) for symbol in build.renames}
        for item in build.objects:
            files[f"objects/{target_folder(build)}/{item.path}"] = rename_symbols(item.content, renamed)
        for source in build.sources:
            if not in_place:
                files[str(source.place)] = source.content
            if source.is_wrapped:
                files[str(source.unit)] = render(
                    "models/model/wrapper.c",
                    manifest=manifest_name(model),
                    header=str(source.path),
                    exports=[{"symbol": symbol, "renamed": names.operator(symbol)} for symbol in source.exports],
                )
        if build.sources:
            # Every TVM source defines a context; the linker keeps one for all.
            weak = dict.fromkeys(CONTEXTS, "__attribute__((weak)) ")
            rows = [
                {
                    "symbol": symbol,
                    "renamed": weak.get(symbol, "") + name,
                    "can_be_macro": member_name(symbol) != symbol and not symbol.startswith("_"),
                }
                for symbol, name in renamed.items()
            ]
            files[rename_header(build)] = render(
                "models/model/rename.h",
                model=model.name,
                kernel=any(_KERNEL.search(source.content) for source in build.sources),
                renames=rows,
                scope=[{"symbol": name, "renamed": names.operator(name)} for name in build.scope],
            )
    return files
