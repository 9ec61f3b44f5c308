# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest quantise` and `opwest tune`."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.cli.arguments import Arguments, number_of
from opwest.cli.run_options import add_device, flash_option
from opwest.objects.flash import FORM
from opwest.quantisation.request import CALIBRATIONS, DTYPES, KEEPS


class _Cores:
    """The names of the cores, read on use: most commands need no table of processors."""

    def __iter__(self) -> Iterator[str]:
        from opwest.objects.targets import measured_cores

        return iter(measured_cores())

    def __contains__(self, name: object) -> bool:
        return name in list(self)


def add_quantise(quantise: Arguments) -> None:
    """Add the options of `opwest quantise`."""
    quantise.path("file MODEL", "a float32 model: a .tflite, .onnx or .pt2 file")
    quantise.output("FILE", "a new file of the same format; the figures are in FILE.quantise.json", required=True)
    quantise.path(
        "--samples FILE.npz",
        "typical inputs: an array for each input, cases in its first dimension; a .npy file for one input",
        required=True,
    )
    quantise.value(
        "--labels [NAME=]FILE.npy",
        "the class of each case, of output NAME (default: the only one)",
    )
    quantise.choice("--dtype", DTYPES, "int8 (default), or int16x8: int16 data with int8 weights (.tflite)", DTYPES[0])
    quantise.choice(
        "--calibration",
        CALIBRATIONS,
        "ranges: all values, 99.99 %% of them, or the least squared error (default: that with the least measured loss)",
    )
    quantise.value(
        "--keep-accuracy N",
        "keep the fewest layers out of int8 for a loss of at most N percentage points of accuracy, or without --labels "
        "percent of error (root of the mean squared difference of the outputs)",
        _loss,
    )
    quantise.choice(
        "--keep",
        KEEPS,
        "arithmetic of kept layers (default: int16x8 in .tflite files, else float)",
    )
    quantise.flag("--float-io", help="inputs and outputs stay float32 (default: they are quantised, except in .pt2)")


def _loss(text: str) -> float:
    return number_of(text, float, "a number of at least 0", 0)


def add_tune(tune: Arguments) -> None:
    """Add the options of `opwest tune`."""
    tune.path("folder DIR", "the output of 'opwest import' of a trained model")
    where = tune.exclusive(required=True)
    where.value("--board BOARD", "measure for a board of Zephyr: on it with --serial, otherwise on its core in QEMU")
    where.target.add_argument("--core", choices=_Cores(), help="measure on a core, in QEMU")
    tune.value(
        "--flash FLASH",
        f"flash of operators and constants in QEMU: {FORM} (default: that of the manifest, else that of the board, "
        "else that which the import assumes)",
        flash_option,
    )
    tune.path(
        "--cmsis-nn DIR",
        "also measure CMSIS-NN in this directory, for 'opwest import --with cmsis-nn' (default: not measured)",
    )
    tune.path("--zephyr-base DIR", "Zephyr tree with the board (default: that of the workspace)")
    add_device(tune.group("on a board"), "serial device of the board: measure by its cycle counter")
