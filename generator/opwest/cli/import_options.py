# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest import`."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.cli import commands
from opwest.cli.other_options import add_output
from opwest.cli.run_options import count
from opwest.compiler.request import UNLIMITED, Options, flag_of, options_of
from opwest.frontends.formats import FORMATS, format_of_file
from opwest.frontends.vela.request import KERNELS as VELA_KERNELS

KINDS = (*(row.name for row in FORMATS), "tvm", "mlf", "vela")
"""The kinds of imports."""


def with_kind(words: Sequence[str]) -> list[str]:
    """Return the words of a command line; `opwest import MODEL` gets the kind that the file requires."""
    given = list(words)
    if given[:1] != ["import"]:
        return given
    with_values = _flags_with_values()
    files = [word for before, word in itertools.pairwise(given) if before not in with_values]
    if any(word in (*KINDS, "-h", "--help") for word in files):
        return given
    kind = next((_kind(Path(word)) for word in files if Path(word).exists()), None)
    if kind is None:
        kind = next((row.name for word in files for row in FORMATS if word.endswith(row.suffix)), None)
    return given if kind is None else ["import", kind, *given[1:]]


def _flags_with_values() -> set[str]:
    """Return the options of all kinds whose next word is a value and no model."""
    every = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    _add_options(every, None)
    _add_npu(every)
    add_output(every)
    every.add_argument("-o", "--output")
    return {flag for action in every._actions if action.nargs != 0 for flag in action.option_strings}


def _kind(path: Path) -> str:
    """Return the kind of an existing model: by its content, or else by its name."""
    if path.is_dir() or path.suffix == ".tar":
        return "mlf"
    if path.suffix == ".npz" or path.name.endswith("_vela.tflite"):
        return "vela"
    return format_of_file(path).name


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the kinds of imports with their options."""
    kinds = command.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    for row in FORMATS:
        _add_trained(kinds, row.name, row.title)
    _add_tvm(kinds)
    _add_mlf(kinds)
    _add_vela(kinds)


def _add_trained(kinds: Any, kind: str, name: str) -> None:
    one = kinds.add_parser(
        kind, help=f"import a trained model in {name}'s format", description=commands.import_trained.__doc__
    )
    one.add_argument("file", metavar="MODEL", type=Path, help=f"a .{kind} file")
    one.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="output directory: new or empty")
    _add_options(one, kind)
    if kind == "tflite":
        _add_npu(one)
    add_output(one)
    one.set_defaults(function=commands.import_trained)


def _add_options(one: argparse.ArgumentParser, kind: str | None) -> None:
    """Add the options of a format of trained models, or of all."""
    types: dict[str, Any] = {"count": count, "vectors": _vector_count, "size": size, "limit": _limit}
    defaults = Options()
    for name, option in options_of(kind).items():
        flag, default = flag_of(name, option), getattr(defaults, name)
        if option.value in ("on", "off"):
            action = "store_true" if option.value == "on" else "store_false"
            one.add_argument(flag, action=action, dest=name, help=option.help)
            continue
        if isinstance(option.choices, Mapping):
            default = next(text for text, value in option.choices.items() if value == default)
        one.add_argument(
            flag,
            dest=name,
            action="append" if option.repeatable else "store",
            default=[] if option.repeatable else default,
            type=types.get(option.value, str),
            choices=list(option.choices) or None,
            metavar=option.metavar,
            help=option.help,
        )


def _add_npu(one: argparse.ArgumentParser) -> None:
    """Add the options of a model that Vela compiles."""
    npu = one.add_argument_group("for an Ethos-U NPU")
    npu.add_argument("--npu", metavar="NAME", help="compile with Vela for an NPU, such as ethos-u55-128")
    npu.add_argument("--npu-config", metavar="FILE", help="Vela's --config: a file with system configurations")
    npu.add_argument("--system-config", metavar="NAME", help="Vela's --system-config")
    _add_memory_mode(npu)
    _add_boards(npu)


def _add_memory_mode(group: Any) -> None:
    group.add_argument(
        "--memory-mode",
        metavar="NAME",
        help="Vela's --memory-mode: Shared_Sram, Sram_Only (weights are copied to RAM), Dedicated_Sram, or one of FILE",
    )


def _add_boards(group: Any) -> None:
    group.add_argument(
        "--board", metavar="BOARD", action="append", default=[], help="board of the application; repeatable"
    )


def _add_vela(kinds: Any) -> None:
    vela = kinds.add_parser(
        "vela", help="import a model that Vela compiled for Ethos-U", description=commands.import_vela.__doc__
    )
    vela.add_argument(
        "file", metavar="MODEL", type=Path, help="Vela's output: a .tflite file, or an .npz file of --output-format raw"
    )
    vela.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="output directory: new or empty")
    vela.add_argument("--model", metavar="NAME", help="name of the model (default: name of the file)")
    vela.add_argument(
        "--kernels",
        choices=VELA_KERNELS,
        default=VELA_KERNELS[0],
        help="operators on the processor, auto: variants for classes of processors (default); portable: C for all",
    )
    vela.add_argument(
        "--pool",
        dest="pools",
        metavar="NAME=BOARD:NODELABEL",
        action="append",
        default=[],
        help="memory region of a board for arena, fast (scratch memory) or weights (a copy); repeatable",
    )
    _add_memory_mode(vela)
    _add_boards(vela)
    add_output(vela)
    vela.set_defaults(function=commands.import_vela)


def _add_tvm(kinds: Any) -> None:
    tvm = kinds.add_parser("tvm", add_help=False)
    tvm.add_argument("words", nargs=argparse.REMAINDER)
    add_output(tvm)
    tvm.set_defaults(function=commands.import_tvm)


def _add_mlf(kinds: Any) -> None:
    mlf = kinds.add_parser("mlf", help="import a model exported by microTVM", description=commands.import_mlf.__doc__)
    mlf.add_argument(
        "file", metavar="MODEL", type=Path, help="tar file in Model Library Format, or its unpacked directory"
    )
    mlf.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="output directory: new or empty")
    mlf.add_argument("--model", metavar="NAME", help="name of the model (default: name of the module)")
    mlf.add_argument("--module", metavar="NAME", help="module to import, if the archive contains several")
    mlf.add_argument("--target", metavar="NAME", help="target of compiled objects (default: detected)")
    mlf.add_argument(
        "--compat",
        choices=["tvmgen"],
        help="tvmgen: microTVM's C interface tvmgen_<module>.h, for applications that were written for it",
    )
    mlf.add_argument(
        "--tensor",
        metavar="NAME=[DTYPE:]SHAPE",
        action="append",
        default=[],
        help="shape (image=1,8,8) and dtype (out=int8:1,12) of an input or output, if not in the file; repeatable",
    )
    add_output(mlf)
    mlf.set_defaults(function=commands.import_mlf)


def size(text: str) -> int:
    """Return bytes: a number, or one with KiB or MiB."""
    for unit, factor in (("KiB", 1 << 10), ("MiB", 1 << 20)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def _limit(text: str) -> int:
    return UNLIMITED if text == "none" else size(text)


def _vector_count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError("expected a number from 0 to 1000")
    return value
