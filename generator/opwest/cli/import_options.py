# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest import`."""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.cli import commands
from opwest.cli.arguments import Arguments, add_command, add_output, number_of
from opwest.cli.run_options import count, flash_option
from opwest.compiler.request import SIZE, UNLIMITED, Options, flag_of, options_of, size_of
from opwest.frontends.formats import FORMATS, kind_of

KINDS = (*(row.name for row in FORMATS), "tvm", "mlf", "vela")
"""The kinds of imports."""
OTHER = "other"
"""The kind of a file that no import reads: with all options, it is reported."""


def with_kind(words: Sequence[str]) -> list[str]:
    """Return the words of a command line `import MODEL` with the kind that the file requires."""
    given = list(words)
    with_values = _flags_with_values()
    files = [word for before, word in itertools.pairwise(given) if before not in with_values]
    if any(word in (*KINDS, "-h", "--help") for word in files):
        return given
    paths = sorted((Path(word) for word in files), key=lambda path: not path.exists())
    kind = next(filter(None, map(kind_of, paths)), None)
    if kind is None and any(path.exists() for path in paths):
        kind = OTHER
    return given if kind is None else ["import", kind, *given[1:]]


def import_parser() -> argparse.ArgumentParser:
    """Return a parser with the options of all trained models, for completion."""
    every = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    add_every(Arguments(every))
    return every


def add_every(arguments: Arguments) -> None:
    """Add the options of all trained models."""
    _add_files(
        arguments, "a TFLite, ONNX or PyTorch model, also as an array in C; an output of Vela; an archive of microTVM"
    )
    _add_options(arguments.target, None)
    _add_npu(arguments)
    add_output(arguments)


def _flags_with_values() -> set[str]:
    """Return the options of all kinds whose next word is a value and no model."""
    every = import_parser()
    return {flag for action in every._actions if action.nargs != 0 for flag in action.option_strings}


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the kinds of imports with their options."""
    kinds = command.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    for row in FORMATS:
        add_trained = functools.partial(_add_trained, kind=row.name)
        help = f"import a trained model in {row.title}'s format"
        add_command(kinds, row.name, help, commands.import_trained, add_trained)
    tvm = kinds.add_parser("tvm", add_help=False)
    tvm.add_argument("words", nargs=argparse.REMAINDER)
    add_output(Arguments(tvm))
    tvm.set_defaults(function=commands.import_tvm)
    other = kinds.add_parser(OTHER, add_help=False)
    add_every(Arguments(other))
    other.set_defaults(function=commands.import_other)
    add_command(kinds, "mlf", "import a model exported by microTVM", commands.import_mlf, _add_mlf)
    add_command(kinds, "vela", "import a model that Vela compiled for Ethos-U", commands.import_vela, _add_vela)


def _add_files(command: Arguments, model: str) -> None:
    """Add the model and the directory of its import. `model`: the help of the model."""
    command.path("file MODEL", model)
    command.output("DIR", "output directory: new or empty", required=True)


def _add_trained(trained: Arguments, kind: str) -> None:
    """Add the options of a format of trained models."""
    noun = next(row.noun for row in FORMATS if row.name == kind)
    _add_files(trained, f"{noun}, or a C source with one as an array")
    _add_options(trained.target, kind)
    if kind == "tflite":
        _add_npu(trained)


def _add_options(parser: argparse._ActionsContainer, kind: str | None) -> None:
    """Add the options of the request for a format of trained models, or for all."""
    types: dict[str, Any] = {"count": count, "vectors": _vector_count, "size": size, "limit": _limit}
    types["flash"] = lambda text: flash_option(text).text
    defaults = Options()
    groups: dict[str | None, argparse._ActionsContainer] = {None: parser}
    for name, option in options_of(kind).items():
        flag, default = flag_of(name, option), getattr(defaults, name)
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        group = groups[option.group]
        if option.value in ("on", "off"):
            action = "store_true" if option.value == "on" else "store_false"
            group.add_argument(flag, action=action, dest=name, help=option.help)
            continue
        if isinstance(option.choices, Mapping):
            default = next(text for text, value in option.choices.items() if value == default)
        group.add_argument(
            flag,
            dest=name,
            action="append" if option.repeatable else "store",
            default=[] if option.repeatable else default,
            type=types.get(option.value, str),
            choices=list(option.choices) or None,
            metavar=option.metavar,
            help=option.help,
        )


def _add_npu(trained: Arguments) -> None:
    """Add the options of a model that Vela compiles."""
    npu = trained.group("advanced: for an Ethos-U NPU")
    npu.value("--npu NAME", "compile with Vela for an NPU, such as ethos-u55-128")
    npu.value("--npu-config FILE", "Vela's --config: a file with system configurations")
    npu.value("--system-config NAME", "Vela's --system-config")
    _add_memory(npu)


def _add_memory(group: Arguments) -> None:
    """Add the memory mode of Vela."""
    group.value(
        "--memory-mode NAME",
        "Vela's --memory-mode: Shared_Sram, Sram_Only (weights are copied to RAM), Dedicated_Sram, or one of FILE",
    )


def _add_vela(vela: Arguments) -> None:
    _add_files(vela, "Vela's output: a .tflite file, or an .npz file of --output-format raw")
    vela.value("--model NAME", "name of the model (default: name of the file)")
    vela.value("--array NAME", options_of(None)["array"].help)
    vela.choice(
        "--kernels",
        ("auto", "portable"),
        "operators on the processor, auto: variants for classes of processors (default); portable: C for all",
        default="auto",
    )
    vela.values(
        "--pool NAME=BOARD:NODELABEL",
        "memory region of a board for arena, fast (scratch memory) or weights (a copy); repeatable",
        dest="pools",
    )
    _add_memory(vela)
    vela.values("--board BOARD", "board of the application; repeatable", dest="boards")


def _add_mlf(mlf: Arguments) -> None:
    _add_files(mlf, "tar file in Model Library Format, or its unpacked directory")
    mlf.value("--model NAME", "name of the model (default: name of the module)")
    mlf.value("--module NAME", "module to import, if the archive contains several")
    mlf.value("--target NAME", "target of compiled objects (default: detected)")
    mlf.choice(
        "--compat",
        ["tvmgen"],
        "tvmgen: microTVM's C interface tvmgen_<module>.h, for applications that were written for it",
    )
    mlf.values(
        "--tensor NAME=[DTYPE:]SHAPE",
        "shape (image=1,8,8) and dtype (out=int8:1,12) of an input or output, if not in the file; repeatable",
    )


def size(text: str) -> int:
    """Return bytes: a number, or one with KiB or MiB. Raises ArgumentTypeError."""
    return _bytes(text, SIZE)


def _limit(text: str) -> int:
    return UNLIMITED if text == "none" else _bytes(text, f"{SIZE}, or none")


def _bytes(text: str, expected: str) -> int:
    try:
        return size_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}'; expected {expected}") from None


def _vector_count(text: str) -> int:
    return number_of(text, int, "a number from 0 to 1000", 0, 1001)
