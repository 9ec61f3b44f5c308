# SPDX-License-Identifier: Apache-2.0
"""The request and the result of an import. The command line and import.json are derived from its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.flash import FORM, UNKNOWN, Flash, flash_of_text

KERNELS = ("auto", "portable", "rvv", "cmsis-nn", "cmsis-nn-none", "cmsis-nn-dsp", "cmsis-nn-mve")
"""The variants of operators; auto: those with the least cost on each class of processors."""
PORTABLE = KERNELS[1]
LIBRARIES = ("cmsis-nn",)
"""Libraries whose functions can be candidates beside the variants of operators."""
OBJECTIVES = ("speed", "flash", "ram")
_ADVANCED, _VARIANTS, _MEMORY, _ARITHMETIC, _CHECKS = (
    "advanced",
    "advanced: choice of variants",
    "advanced: memory",
    "advanced: arithmetic",
    "advanced: checks",
)
"""Groups of options in the help, after the most frequent ones."""
UNLIMITED = 1 << 62
"""The value of `max_flash` without a limit."""
ROUNDINGS = ("tflite", "cmsis-nn")


@dataclass(frozen=True)
class Option:
    """An option of `opwest import` for trained models."""

    help: str
    metavar: str | None = None
    value: Literal["text", "count", "vectors", "size", "limit", "pair", "path", "flash", "on", "off"] = "text"
    """The form of its value. limit: a size, or none. flash: that of opwest.objects.flash, as text. pair: NAME=FILE.
    on, off: the option has no value, and sets the field to true or false."""
    flag: str | None = None
    """None: the name of the field with hyphens."""
    choices: Sequence[str] | Mapping[str, Any] = ()
    """The valid values; a mapping contains the values of the field."""
    repeatable: bool = False
    formats: Sequence[str] = ()
    """The only formats that have the option, such as tflite; empty: all."""
    with_npu: bool = False
    """Whether it has an effect on models that Vela compiles."""
    is_recorded: bool = True
    """Whether import.json contains it: it has an effect on the files."""
    group: str | None = None
    """The title of its group in the help; None: the first options."""


def _option(default: Any, help: str, metavar: str | None = None, value: Any = "text", **more: Any) -> Any:
    return field(default=default, metadata={"option": Option(help, metavar, value, **more)})


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = _option(
        None, "name of the model (default: name of the file)", "NAME", with_npu=True, group=_ADVANCED
    )
    vectors: int = _option(8, "number of golden vectors (default: 8)", "N", "vectors", with_npu=True, group=_CHECKS)
    signature: str | None = _option(
        None, "signature to import (default: all, a model for each)", "NAME", group=_ADVANCED
    )
    array: str | None = _option(
        None,
        "array of a C source that is the model, or NAME:LINE (default: the only one that is a model)",
        "NAME",
        with_npu=True,
        group=_ADVANCED,
    )
    compare: int = _option(
        0,
        "run N inputs through the format's runtime and the emitted C; report the first operator that differs",
        *("N", "count"),
        is_recorded=False,
    )
    kernels: str = _option(
        KERNELS[0],
        "auto: variants for classes of processors, chosen by measured costs (default); portable: C for every "
        "processor; rvv: for RV32 with the vector extension, chosen by measured costs; cmsis-nn: call CMSIS-NN where "
        "the results are equal, with scratch memory for every Cortex-M; cmsis-nn-none, -dsp, -mve: for processors with "
        "these instructions",
        choices=KERNELS,
        with_npu=True,
        group=_VARIANTS,
    )
    optimize: str = _option(
        OBJECTIVES[0],
        "what variants are chosen for: the least cycles (default), the least flash (operators are also compiled for "
        "size), or the least memory",
        choices=OBJECTIVES,
        group=_VARIANTS,
    )
    max_flash: int | None = _option(
        None,
        "bytes of constants and operators, such as 200KiB: the fastest variants within it; none: no limit "
        "(default for speed: the constants of portable operators and 36 KiB, with convolutions 76 KiB)",
        *("SIZE", "limit"),
        group=_VARIANTS,
    )
    max_ram: int | None = _option(
        None,
        "bytes of tensors between layers and scratch memory, such as 32KiB: the best variants within it",
        *("SIZE", "size"),
    )
    prefer: Sequence[str] = _option(
        (),
        "choose a variant for each layer to which it applies, such as dsp-halves; repeatable",
        "VARIANT",
        repeatable=True,
        group=_VARIANTS,
    )
    libraries: Sequence[str] = _option(
        (),
        "cmsis-nn: its functions are candidates for each layer whose results are equal, beside the variants of "
        "opwest; images of processors for which one is chosen need Zephyr's modules cmsis-nn and cmsis-dsp",
        flag="--with",
        choices=LIBRARIES,
        repeatable=True,
        group=_VARIANTS,
    )
    tuning: Sequence[str] = _option(
        (),
        "a table of measurements of 'opwest tune', in addition to opwest's own; repeatable",
        *("FILE", "path"),
        repeatable=True,
        group=_VARIANTS,
    )
    caller_memory: bool = _option(
        True,
        "the memory of inputs and outputs: the caller's buffers (default), or planned in the workspace, where "
        "other tensors reuse it",
        flag="--io",
        choices={"caller": True, "workspace": False},
        group=_MEMORY,
    )
    place: Sequence[str] = _option(
        (),
        "constants of layers, such as 2,4=sram, are copied to a pool when the model is opened; repeatable",
        "LAYERS=POOL",
        repeatable=True,
        group=_MEMORY,
    )
    pools: Sequence[str] = _option(
        (),
        "a pool for --place besides 'sram': the memory region of a board in devicetree; repeatable",
        "NAME=BOARD:NODELABEL",
        flag="--pool",
        repeatable=True,
        with_npu=True,
        group=_MEMORY,
    )
    boards: Sequence[str] = _option(
        (),
        "board of the application, written to the manifest; --flash defaults to its flash, if known; repeatable",
        "BOARD",
        flag="--board",
        repeatable=True,
        with_npu=True,
    )
    given_flash: str | None = _option(
        None,
        f"the flash that code and constants are in: {FORM} (default: that of the board, else {UNKNOWN.text})",
        *("FLASH", "flash"),
        flag="--flash",
        group=_VARIANTS,
    )
    rounding: str = _option(
        ROUNDINGS[0],
        "int8 fully connected layers round once as in TFLite (default), or twice as in CMSIS-NN",
        choices=ROUNDINGS,
        group=_ARITHMETIC,
    )
    operators: Sequence[Sequence[str]] = _option(
        (),
        "operator of the user for the operators NAME of the model, from a snippet of a manifest; repeatable",
        *("NAME=FILE.yaml", "pair"),
        flag="--operator",
        repeatable=True,
    )
    optimisations: bool = _option(
        True,
        "one operation for each operator: no simplification, no passes, no stripes (default: all of them)",
        value="off",
        flag="--no-optimisations",
        group=_CHECKS,
    )
    float_io: bool = _option(
        False, "quantised inputs and outputs become float32 (default: unchanged)", value="on", group=_ARITHMETIC
    )
    dequantise_weights: bool = _option(
        False,
        "int8 weights of layers with float32 data become float32 (default: they remain int8)",
        value="on",
        group=_ARITHMETIC,
    )
    exact: bool = _option(
        False,
        "round quantised operators as onnxruntime or PyTorch does (default: TFLite's fixed-point rule)",
        value="on",
        formats=("onnx", "torch"),
    )
    format: str | None = None
    """The format that the file must have, such as onnx; None: any."""
    arrays: str | None = None
    """The path for the arrays of the comparison."""

    @property
    def flash(self) -> Flash:
        """Return the flash of the operators: the given one, or that of an unknown board. Raises ValueError."""
        return UNKNOWN if self.given_flash is None else flash_of_text(self.given_flash)


def options_of(format: str | None) -> dict[str, Option]:
    """Return the options for a format, by the names of their fields; all options without a format."""
    options = {member.name: member.metadata.get("option") for member in dataclasses.fields(Options)}
    return {
        name: option
        for name, option in options.items()
        if option is not None and (format is None or not option.formats or format in option.formats)
    }


def size_of(text: str) -> int:
    """Return bytes: of a number, or of one with KiB or MiB. Raises ValueError."""
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if text.endswith(unit)), ("", 1))
    number = int(text.removesuffix(unit))
    if number < 0:
        raise ValueError(text)
    return number * factor


SIZE = "bytes, such as 20000, 200KiB or 2MiB"
"""The form of sizes."""
_UNITS = (("KiB", 1 << 10), ("MiB", 1 << 20))


def flag_of(name: str, option: Option) -> str:
    """Return an option as users write it."""
    return option.flag or f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    models: tuple[str, ...]
    """The names: one for each signature. With several, each has a directory of its name."""
    files: tuple[str, ...]
    operators: int
    steps: int
    constant_bytes: int
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    choices: tuple[Mapping[str, Any], ...] = ()
    """For each model the chosen variants of operators: rows as in the JSON output of `opwest import`."""
    layers: tuple[Mapping[str, Any], ...] = ()
    """For each model its layers, with the steps and the costs of each implementation: as in import.json."""
