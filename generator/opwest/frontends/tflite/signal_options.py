# SPDX-License-Identifier: Apache-2.0
"""The options of tflite-micro's signal operators: a map of FlexBuffers.

tflite-micro takes them by their place in the sorted map, so that a map with other keys has another meaning there.
Source: signal/micro/kernels/, such as rfft.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwest.compiler.graph.spec import Operator
from opwest.compiler.graph.types import Unsupported

TYPE = "T"
"""The option that is a dtype, as a number of the schema."""


def signal_options(
    row: Operator, found: Mapping[str, Any], dtypes: Mapping[int, str]
) -> tuple[dict[str, Any], Unsupported | None]:
    """Return the options of an operator, and the reason why they are none. `dtypes`: by number in the schema."""
    if found.keys() != row.options.keys():
        shown = ", ".join(f"'{name}'" for name in sorted(found)) or "none"
        wanted = ", ".join(f"'{name}'" for name in sorted(row.options)) or "none"
        return {}, Unsupported(f"custom options {shown}", f"a FlexBuffers map with the keys {wanted}")
    options: dict[str, Any] = {}
    for name, default in row.options.items():
        value = found[name]
        if isinstance(value, (list, float)):
            return {}, Unsupported(f"custom option '{name}' is {value}", "a whole number")
        options[name] = dtypes.get(value, f"type {value}") if name == TYPE else type(default)(value)
    return options, None
