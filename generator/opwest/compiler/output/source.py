# SPDX-License-Identifier: Apache-2.0
"""The files of C that imports write, in Zephyr's format: the one place that formats them."""

from __future__ import annotations

import functools
import re

from opwest.base.c_format import format_c

_BETWEEN = re.compile(r"\n\n+(?=[^\t\n #}])")
"""Between definitions at the outermost level."""


def c_file(text: str) -> bytes:
    """Return the content of a file of C source text in Zephyr's format."""
    return "\n".join(map(_formatted, _BETWEEN.split(text.rstrip("\n")))).encode()


@functools.cache
def _formatted(part: str) -> str:
    """Return a definition in Zephyr's format. The files of an import have many definitions in common."""
    return format_c(part + "\n")
