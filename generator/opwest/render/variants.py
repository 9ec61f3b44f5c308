# SPDX-License-Identifier: Apache-2.0
"""The selection of a model's variants: rows for CMake and Kconfig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model
from opwest.render.literals import cmake_string, kconfig_string


def variant_folder(model: Model) -> str:
    """Return the directory of a variant in the directory of its model."""
    return f"variants/{model.variant.name}" if model.variant else ""


def without_shared(
    model: Model, files: Mapping[PurePosixPath, bytes], base: Mapping[PurePosixPath, bytes]
) -> dict[PurePosixPath, bytes]:
    """Return the files of a variant without those that are equal to files of its base, which its model.cmake lists."""
    shared = sorted(path for path in files if _can_be_shared(model, path) and base.get(path) == files[path])
    kept = {path: content for path, content in files.items() if path not in shared}
    if shared:
        rows = "".join(f"\n  {cmake_string(str(path))}" for path in shared)
        text = f"\n# Files of the base, which this variant uses.\nset({model.name}_SHARED{rows}\n)\n"
        kept[PurePosixPath("model.cmake")] += text.encode()
    return kept


def _can_be_shared(model: Model, path: PurePosixPath) -> bool:
    """Whether a file includes no other file by a path relative to its own."""
    return path.parts[0] in ("include", "tests") or path.name in ("rename.h", service_file(model.name))


def service_file(model: str) -> str:
    """Return the name of the source for runs of a model from a host."""
    return f"{model}_service.c"


def variant_option(model: str, variant: str) -> str:
    """Return the option that is set in images with a variant."""
    return f"CONFIG_{CNames(model).kconfig}_VARIANT_{variant.upper()}"


def variant_rows(variants: Sequence[Model]) -> list[dict[str, Any]]:
    """Return the variants with the conditions of their targets, for CMake."""
    return [
        {
            "name": variant.name,
            "targets": [
                {"name": target.name, "kconfig": [f"{symbol}={value}" for symbol, value in target.kconfig]}
                for target in variant.targets
            ],
        }
        for variant in (model.variant for model in variants)
        if variant is not None
    ]


def kconfig_rows(base: Model, variants: Sequence[Model]) -> list[dict[str, Any]]:
    """Return a row for each variant and one for the base: a symbol, its conditions, what it selects and implies.

    Symbols that the base and all variants require are left out.
    """
    common = set(_selects(base)).intersection(*map(_selects, variants))
    everywhere = common_options([base, *variants])
    symbol = CNames(base.name).kconfig
    rows: list[dict[str, Any]] = []
    for model in variants:
        if model.variant is not None:
            conditions = list(map(_condition, model.variant.targets))
            option = variant_option(base.name, model.variant.name)
            rows.append({"symbol": option.removeprefix("CONFIG_"), "conditions": conditions})
    if rows:
        rows.append({"symbol": f"{symbol}_BASE", "conditions": [" && ".join(f"!{row['symbol']}" for row in rows)]})
    for row, model in zip(rows, [*variants, base], strict=bool(rows)):
        options = _options(model) - everywhere
        row["selects"] = [select for select in _selects(model) if select not in common]
        row["implies"] = sorted(option.removeprefix("CONFIG_") for option in options)
    return rows


def common_options(models: Sequence[Model]) -> set[str]:
    """Return the options of external symbols that a model and all its variants require."""
    options = list(map(_options, models))
    return options[0].intersection(*options[1:])


def _options(model: Model) -> set[str]:
    """Return the options of the external symbols of a model or a variant."""
    return {option for external in model.externals for option in external.kconfig}


def _selects(model: Model) -> list[str]:
    needs = {
        "REQUIRES_FULL_LIBC": model.needs_full_libc,
        "CPP": model.cpp.language,
        "REQUIRES_FULL_LIBCPP": model.cpp.library,
        "OPWEST_TVM": model.needs_tvm,
        "OPWEST_HALIDE": model.needs_halide,
    }
    return [symbol for symbol, needed in needs.items() if needed]


def _condition(target: Target) -> str:
    """Return the configuration that selects a target as an expression of Kconfig."""
    parts = []
    for option, value in target.kconfig:
        symbol = option.removeprefix("CONFIG_")
        parts.append({"y": symbol, "n": f"!{symbol}"}.get(value) or f"{symbol} = {kconfig_string(value)}")
    return " && ".join(parts)
