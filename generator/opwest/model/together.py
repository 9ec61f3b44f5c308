# SPDX-License-Identifier: Apache-2.0
"""Checks across the models of one application."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.diagnostics import Diagnostics, Location
from opwest.model.c_names import check_names_together
from opwest.model.crt_table import rows
from opwest.model.model import Model


def check_together(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report whatever keeps models from being parts of one application."""
    check_names_together(models, faults)
    _check_files(models, faults)
    _check_options(models, faults)
    _check_system_library(models, faults)


def _check_files(models: Sequence[Model], faults: Diagnostics) -> None:
    """Only one model of an application can bring a file of a name."""
    first: dict[str, tuple[Model, Location]] = {}
    for model in models:
        for file in model.application.files:
            other, at = first.setdefault(file.name, (model, file.location))
            if other is not model:
                faults.error(
                    f"models {other.name!r} and {model.name!r} both bring {file.name!r} for src/",
                    file.location,
                    expected="file names of their own",
                    hint=f"the other is at {at}",
                )


def _check_options(models: Sequence[Model], faults: Diagnostics) -> None:
    """One prj.conf has one value for an option."""
    first: dict[str, tuple[Model, str | int]] = {}
    for model in models:
        for key, value in model.application.kconfig:
            other, known = first.setdefault(key, (model, value))
            if known != value:
                faults.error(
                    f"models {other.name!r} and {model.name!r} set {key} to {known} and to {value}",
                    model.location,
                    expected="one value",
                )


def _check_system_library(models: Sequence[Model], faults: Diagnostics) -> None:
    """One table of an image has each name once, and at least one."""
    first: dict[str, Model] = {}
    for model in models:
        named = rows(model) if model.compat else []
        if model.compat and not named:
            faults.error(
                f"model {model.name!r} asks for {model.compat}, but no operator is packed",
                model.location,
                expected="operators with convention: packed",
                hint="compat: tvm-crt-all has the others too, through adapters",
            )
        for row in named:
            other = first.setdefault(row.name, model)
            if other is not model:
                faults.error(
                    f"models {other.name!r} and {model.name!r} both have {row.name!r} in the table of {model.compat}",
                    model.location,
                    expected="names of their own: one image has one table",
                    hint="leave `compat` out of one of them",
                )
