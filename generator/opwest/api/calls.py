# SPDX-License-Identifier: Apache-2.0
"""What the functions of the API have in common: diagnostics, errors, results and the conversion of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from opwest.base.diagnostics import Diagnostic, Diagnostics, OpwestError, fault_of_system
from opwest.base.frozen_dataclass import dataclass

AnyPath = str | PathLike[str]
Paths = AnyPath | Sequence[AnyPath]
Words = str | Sequence[str]
Progress = Callable[[str], None]
"""Receives one line of text for each stage of a long call."""


@dataclass(frozen=True)
class CallResult:
    """What each result has."""

    diagnostics: tuple[Diagnostic, ...] = field(default=(), kw_only=True)
    """The warnings and notes of the call. Errors are in OpwestError."""


P = ParamSpec("P")
R = TypeVar("R", bound=CallResult)


def api_function(function: Callable[Concatenate[Diagnostics, P], R]) -> Callable[P, R]:
    """Return a function of the API. `function` reports to its first argument, which the result gets as diagnostics.

    After errors, the function raises OpwestError with all diagnostics, and with the result if there is one.
    """

    signature = inspect.signature(function)
    kinds = {
        name: _TYPES.get(str(one.annotation).removesuffix(" | None")) for name, one in signature.parameters.items()
    }

    @functools.wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        faults = Diagnostics()
        result: R | None = None
        try:
            _check_types(options, kinds, faults)
            result = function(faults, *arguments, **options)
        except OpwestError as error:
            for diagnostic in error.diagnostics:
                faults.add(diagnostic)
        except OSError as error:
            faults.add(fault_of_system(error))
        if result is None or faults.has_errors:
            raise OpwestError(faults.in_order(), result)
        return replace(result, diagnostics=tuple(faults.in_order()))

    _, *parameters = signature.parameters.values()
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "True or False"),
    "int": ((Integral,), "an integer"),
    "float": ((Real,), "a number"),
    "str": ((str,), "text"),
}
"""The simple types of arguments by their annotation, and in words."""


def _check_types(
    options: Mapping[str, object], kinds: Mapping[str, tuple[tuple[type, ...], str] | None], faults: Diagnostics
) -> None:
    """Raise OpwestError for arguments of another type than their annotation."""
    for name, value in options.items():
        kind = kinds.get(name)
        is_flag = isinstance(value, bool) and kind is not None and bool not in kind[0]
        if kind is not None and value is not None and (is_flag or not isinstance(value, kind[0])):
            faults.error(f"argument {name!r} is {value!r}", expected=kind[1])
    faults.raise_if_errors()


def collecting(function: Callable[P, R], faults: Diagnostics) -> Callable[P, R]:
    """Return a function of the API that reports to `faults`, for the command line.

    It returns a result also after errors that do not prevent one.
    """
    return functools.partial(cast("Any", function).__wrapped__, faults)


def path_of(value: AnyPath | None) -> Path | None:
    """Return a path, None without one."""
    return None if value is None else Path(value)


def paths_of(values: Paths) -> tuple[Path, ...]:
    """Return one or several paths as a tuple."""
    return (Path(values),) if isinstance(values, (str, PathLike)) else tuple(map(Path, values))


def words_of(values: Words) -> tuple[str, ...]:
    """Return one or several words as a tuple."""
    return (values,) if isinstance(values, str) else tuple(values)


def check_choices(faults: Diagnostics, *rows: tuple[str, object, Iterable[object]]) -> None:
    """Raise OpwestError if an argument has none of its values. A row: the name, the value, the possible values."""
    for name, value, choices in rows:
        if value not in choices:
            faults.error(f"invalid {name} {value!r}", expected=" or ".join(repr(choice) for choice in choices))
    faults.raise_if_errors()
