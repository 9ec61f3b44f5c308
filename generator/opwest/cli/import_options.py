# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest import`."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opwest.cli import commands
from opwest.cli.other_options import add_output
from opwest.cli.run_options import count
from opwest.compiler.request import KERNELS, LIBRARIES, OBJECTIVES, ROUNDINGS, UNLIMITED
from opwest.frontends.vela.compile import KERNELS as VELA_KERNELS

KINDS = ("tflite", "onnx", "tvm", "mlf", "vela")
"""The kinds of imports."""
_WITH_VALUES = frozenset(
    "-o --output --model --vectors --signature --compare --kernels --rounding --operator --optimize --max-flash "
    "--max-ram --prefer --with --tuning --io --place --pool --color --npu --npu-config --system-config --memory-mode "
    "--board".split()
)
"""Options whose value is no model."""


def with_kind(words: Sequence[str]) -> list[str]:
    """Return the words of a command line; `opwest import MODEL` gets the kind that the file requires."""
    given = list(words)
    files = [word for before, word in itertools.pairwise(given) if before not in _WITH_VALUES]
    if given[:1] != ["import"] or any(word in (*KINDS, "-h", "--help") for word in files):
        return given
    found = next((_kind(Path(word)) for word in files if Path(word).exists()), None)
    if found is None:
        found = next((word.rpartition(".")[2] for word in files if word.endswith((".tflite", ".onnx"))), None)
    return given if found is None else ["import", found, *given[1:]]


def _kind(path: Path) -> str:
    """Return the kind of an existing model: by its content, and for other files than TFLite's by its name."""
    if path.is_dir() or path.suffix == ".tar":
        return "mlf"
    if path.suffix == ".npz" or path.name.endswith("_vela.tflite"):
        return "vela"
    try:
        with path.open("rb") as stream:
            is_tflite = stream.read(8)[4:] == b"TFL3"
    except OSError:  # the import reports it
        is_tflite = path.suffix != ".onnx"
    return "tflite" if is_tflite or path.suffix == ".tflite" else "onnx"


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the kinds of imports with their options."""
    kinds = command.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    for kind, name in (("tflite", "TFLite"), ("onnx", "ONNX")):
        _add_trained(kinds, kind, name)
    _add_tvm(kinds)
    _add_mlf(kinds)
    _add_vela(kinds)


def _add_trained(kinds: Any, kind: str, name: str) -> None:
    one = kinds.add_parser(
        kind, help=f"import a trained model in {name}'s format", description=commands.import_trained.__doc__
    )
    one.add_argument("file", metavar="MODEL", type=Path, help=f"a .{kind} file")
    one.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="output directory: new or empty")
    one.add_argument("--model", metavar="NAME", help="name of the model (default: name of the file)")
    one.add_argument(
        "--vectors", metavar="N", type=_vector_count, default=8, help="number of golden vectors (default: 8)"
    )
    one.add_argument("--signature", metavar="NAME", help="signature to import (default: all, a model for each)")
    one.add_argument(
        "--compare",
        metavar="N",
        type=count,
        default=0,
        help="run N inputs through the format's runtime and the emitted C; report the first operator that differs",
    )
    one.add_argument(
        "--kernels",
        choices=KERNELS,
        default=KERNELS[0],
        help="auto: variants for classes of processors, chosen by measured costs (default); portable: C for every "
        "processor; cmsis-nn: call CMSIS-NN where the results are equal, with scratch memory for every Cortex-M; "
        "cmsis-nn-none, -dsp, -mve: for processors with these instructions",
    )
    one.add_argument(
        "--optimize",
        choices=OBJECTIVES,
        default=OBJECTIVES[0],
        help="what variants are chosen for: the least cycles (default), the least flash, or the least memory",
    )
    one.add_argument(
        "--max-flash",
        metavar="SIZE",
        type=_limit,
        help="bytes of constants and operators, such as 200KiB: the fastest variants within it; none: no limit "
        "(default for speed: the constants of portable operators and 36 KiB, with convolutions 76 KiB)",
    )
    one.add_argument(
        "--max-ram",
        metavar="SIZE",
        type=size,
        help="bytes of tensors between layers and scratch memory, such as 32KiB: the best variants within it",
    )
    one.add_argument(
        "--prefer",
        metavar="VARIANT",
        action="append",
        default=[],
        help="choose a variant for each layer to which it applies, such as dsp-halves; repeatable",
    )
    one.add_argument(
        "--with",
        dest="libraries",
        choices=LIBRARIES,
        action="append",
        default=[],
        help="cmsis-nn: its functions are candidates for each layer whose results are equal, beside the variants of "
        "opwest; images of processors for which one is chosen need Zephyr's modules cmsis-nn and cmsis-dsp",
    )
    one.add_argument(
        "--tuning",
        metavar="FILE",
        action="append",
        default=[],
        help="a table of measurements of 'opwest tune', in addition to opwest's own; repeatable",
    )
    one.add_argument(
        "--io",
        choices=("caller", "workspace"),
        default="caller",
        help="the memory of inputs and outputs: the caller's buffers (default), or planned in the workspace, where "
        "other tensors reuse it",
    )
    one.add_argument(
        "--place",
        metavar="LAYERS=POOL",
        action="append",
        default=[],
        help="constants of layers, such as 2,4=sram, are copied to a pool when the model is opened; repeatable",
    )
    _add_pools(one, "a pool for --place besides 'sram': the memory region of a board in devicetree; repeatable")
    one.add_argument(
        "--rounding",
        choices=ROUNDINGS,
        default=ROUNDINGS[0],
        help="int8 fully connected layers round once as in TFLite (default), or twice as in CMSIS-NN",
    )
    one.add_argument(
        "--operator",
        metavar="NAME=FILE.yaml",
        action="append",
        default=[],
        help="operator of the user for the operators NAME of the model, from a snippet of a manifest; repeatable",
    )
    one.add_argument(
        "--no-optimisations",
        action="store_false",
        dest="optimisations",
        help="one operation for each operator: no simplification, no passes, no stripes (default: all of them)",
    )
    one.add_argument(
        "--float-io", action="store_true", help="quantised inputs and outputs become float32 (default: unchanged)"
    )
    one.add_argument(
        "--dequantise-weights",
        action="store_true",
        help="int8 weights of layers with float32 data become float32 (default: they remain int8)",
    )
    if kind == "tflite":
        _add_npu(one)
    if kind == "onnx":
        text = "round quantised operators as onnxruntime does (default: TFLite's fixed-point rule)"
        one.add_argument("--exact", action="store_true", help=text)
    add_output(one)
    one.set_defaults(function=commands.import_trained)


def _add_npu(one: argparse.ArgumentParser) -> None:
    """Add the options of a model that Vela compiles."""
    npu = one.add_argument_group("for an Ethos-U NPU")
    npu.add_argument("--npu", metavar="NAME", help="compile with Vela for an NPU, such as ethos-u55-128")
    npu.add_argument("--npu-config", metavar="FILE", help="Vela's --config: a file with system configurations")
    npu.add_argument("--system-config", metavar="NAME", help="Vela's --system-config")
    _add_memory_mode(npu)
    _add_boards(npu)


def _add_pools(one: argparse.ArgumentParser, text: str) -> None:
    one.add_argument("--pool", metavar="NAME=BOARD:NODELABEL", action="append", default=[], help=text)


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
    _add_pools(vela, "memory region of a board for arena, fast (scratch memory) or weights (a copy); repeatable")
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
