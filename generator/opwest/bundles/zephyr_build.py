# SPDX-License-Identifier: Apache-2.0
"""A Zephyr build as the source of a bundle's compiler, options, target and variant."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opwest.base import commands
from opwest.base.diagnostics import Diagnostics, fail, nearest
from opwest.bundles.toolchain import Toolchain, command_of, compiler, linked_archives
from opwest.model.types.builds import Target, TargetBuild
from opwest.objects.targets import processors
from opwest.project.request import Examination, of_variant

_MAX_BYTES = 1 << 28
_LAUNCHERS = ("ccache", "sccache", "distcc")
_WITH_VALUE = ("-o", "-c", "-MF", "-MT", "-MQ", "-x")
"""Options whose next word is dropped with them."""
_DROPPED = (
    "-M", "-W", "-g", "-fdiagnostics", "-fcolor", "-flto", "-ffat-lto", "-fno-lto", "-fsanitize", "-fstack-protector",
    "-fPIC", "-fpic", "-fPIE", "-fpie", "-pie", "-fmacro-prefix-map", "-fdebug-prefix-map", "-ffile-prefix-map",
    "-fprofile", "--coverage", "-finstrument", "-fcallgraph", "-fstack-usage", "-save-temps", "-pipe",
)  # fmt: skip
"""Options without effect on the code, and those that an image cannot have."""
_KEPT = ("-g0", "-Wa,", "-Wp,")
_MACHINE = ("-m", "--sysroot", "--specs", "-specs", "--target", "-B", "-nostdinc")
"""Options that also select the libraries."""


def configuration(folder: Path) -> dict[str, str]:
    """Return the values of Kconfig of a build. Raises OpwestError."""
    rows = re.findall(r"^(CONFIG_\w+)=(.*)$", _read(folder / "zephyr" / ".config"), re.MULTILINE)
    return {symbol: value.strip().strip('"') for symbol, value in rows}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise fail("the file is too large", path)
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "--build is a build directory of west; with sysbuild, its directory of the application"
        raise fail(f"cannot read the file of the build: {error.strerror}", path, hint=hint) from error


def build_toolchain(folder: Path, cc: str | None, work: Path, *, is_host: bool) -> Toolchain:
    """Return the compiler of a build with the options of its application. Raises OpwestError."""
    path = folder / "compile_commands.json"
    try:
        rows = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise fail(f"cannot read the commands of the build: {error}", path) from error
    words = _command(rows)
    if words is None:
        message = "no compilation of a C source of Zephyr in the commands of the build"
        raise fail(message, path, hint="build the application first: west build")
    while words and Path(words[0]).name in _LAUNCHERS:
        words = words[1:]
    command = compiler(command_of(cc) if cc is not None else words[:1], f"the build {str(folder)!r}")
    machine, options = _options(words[1:])
    chain = Toolchain(command, tuple(machine), tuple(options), has_c_library=not is_host)
    if chain.has_c_library and linked_archives(chain, ("-lm", "-lc"), work) is None:
        return replace(chain, has_c_library=False)
    return chain


def _command(rows: Any) -> list[str] | None:
    """Return the command that compiles a source of the application; that of another C source if there is none."""
    command: list[str] | None = None
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not str(row.get("file", "")).endswith(".c"):
            continue
        text, words = row.get("command"), row.get("arguments")
        try:
            parts = commands.split(text) if isinstance(text, str) else [str(word) for word in words or []]
        except ValueError:
            continue
        if not any(word.endswith("autoconf.h") for word in parts):
            continue
        if any("app.dir" in word for word in parts):
            return parts
        command = command or parts
    return command


def _options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options that select the processor, and the other ones that an image has, too."""
    machine: list[str] = []
    options: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word in _WITH_VALUE:
            pending = pending[1:]
        elif word in ("-I", "-D", "-U", "-isystem", "-imacros", "-include", "-iquote", "-idirafter", "--param"):
            options += [word, *pending[:1]]
            pending = pending[1:]
        elif not word.startswith("-") or (word.startswith(_DROPPED) and not word.startswith(_KEPT)):
            continue
        elif word.startswith(_MACHINE):
            machine.append(word)
        else:
            options.append(word)
    return [_without_unused(word, machine) for word in machine], options


def _without_unused(word: str, machine: Sequence[str]) -> str:
    """Name the extensions of a processor with MVE that code without an FPU does not use: GCC's attributes list all."""
    soft = not any(option in machine for option in ("-mfloat-abi=hard", "-mfloat-abi=softfp"))
    known = processors().get(word.removeprefix("-mcpu="))
    return f"{word}+nomve+nofp" if soft and known is not None and known.mve else word


def choose(
    examinations: Sequence[Examination],
    values: Mapping[str, str],
    target: str | None,
    variant: str | None,
    faults: Diagnostics,
) -> tuple[Examination, TargetBuild]:
    """Return the variant and the objects that a build with a configuration uses. Raises OpwestError."""
    if variant is None:
        variants = [item.model.variant for item in examinations if item.model.variant is not None]
        matching = [choice.name for choice in variants if any(matches(t, values) for t in choice.targets)]
        if len(matching) > 1:
            faults.error(f"the build matches several variants: {', '.join(matching)}", expected="--variant NAME")
            faults.raise_if_errors()
        variant = matching[0] if matching else None
    examination = of_variant(examinations, variant, faults)[0]
    model = examination.model
    own = {build.target.name: build for build in model.builds if build.target is not None}
    if not own:
        if target is not None:
            faults.error("--target has no effect with --build: the operators are sources", model.location)
            faults.raise_if_errors()
        return examination, model.builds[0]
    if target is not None:
        if target not in own:
            faults.error(f"--target: model {model.label} has no objects for {target!r}", hint=nearest(target, own))
            faults.raise_if_errors()
        return examination, own[target]
    fitting = [build for build in own.values() if build.target is not None and matches(build.target, values)]
    if len(fitting) != 1:
        named = ", ".join(build.target.name for build in fitting if build.target is not None)
        faults.error(
            f"model {model.label} has objects for {'several targets' if named else 'no target'} of the build"
            f"{f': {named}' if named else ''}",
            model.location,
            expected="objects for one target that the configuration of the build matches",
            hint=f"its targets: {', '.join(own)}",
        )
        faults.raise_if_errors()
    return examination, fitting[0]


def matches(target: Target, values: Mapping[str, str]) -> bool:
    """Whether a configuration selects a target."""
    fits = all(values.get(symbol, "n") == value for symbol, value in target.kconfig)
    return fits and (not target.host or platform.machine() in target.host)
