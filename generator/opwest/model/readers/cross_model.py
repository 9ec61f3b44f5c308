# SPDX-License-Identifier: Apache-2.0
"""Checks across the models of one application."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import Diagnostics, Location
from opwest.model.readers.tvmgen import check_interfaces, rows
from opwest.model.types.c_names import check_names_together
from opwest.model.types.model import Model


def check_together(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report conflicts between the models of one application."""
    check_names_together(models, faults)
    _check_files(models, faults)
    _check_options(models, faults)
    _check_system_library(models, faults)
    check_interfaces(models, faults)


def _check_files(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report files of one name: an application has one src/."""
    first: dict[str, tuple[Model, Location]] = {}
    for model in models:
        for file in model.application.files:
            other, at = first.setdefault(file.name, (model, file.location))
            if other is not model:
                faults.error(
                    f"duplicate application source {file.name!r} in models {other.name!r} and {model.name!r}",
                    file.location,
                    expected="unique file names",
                    hint=f"first defined at {at}",
                )


def _check_options(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report options with several values: an application has one prj.conf."""
    first: dict[str, tuple[Model, str | int]] = {}
    for model in models:
        for key, value in model.application.kconfig:
            other, known = first.setdefault(key, (model, value))
            if known != value:
                faults.error(
                    f"models {other.name!r} and {model.name!r} set {key} to {known} and {value}",
                    model.location,
                    expected="one value",
                )


def _check_system_library(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report duplicate names, and a table without names: an image has one table."""
    first: dict[str, Model] = {}
    for model in models:
        named = rows(model) if model.compat else []
        if model.compat and not named:
            faults.error(
                f"model {model.name!r} has compat: {model.compat}, but no packed operator",
                model.location,
                expected="operators with convention: packed",
                hint="compat: tvm-crt-all adds the other operators through adapters",
            )
        for row in named:
            other = first.setdefault(row.name, model)
            if other is not model:
                faults.error(
                    f"duplicate operator {row.name!r} in the table of models {other.name!r} and {model.name!r}",
                    model.location,
                    expected="unique names: an image has one table",
                    hint="remove 'compat' from one of the models",
                )
