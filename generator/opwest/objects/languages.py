# SPDX-License-Identifier: Apache-2.0
"""The languages of sources, by the suffix of the file, as GCC and CMake choose the compiler."""

from __future__ import annotations

from typing import Final

CPP_SUFFIXES: Final = (".cc", ".cpp", ".cxx")
SOURCE_SUFFIXES: Final = (".c", *CPP_SUFFIXES)
HEADER_SOURCE: Final = ".h"
"""Headers with functions in C, which can be listed as sources."""
HEADER_SUFFIXES: Final = (".h", ".hh", ".hpp", ".hxx")
MINIMAL_CPP_HEADERS: Final = frozenset(("cstddef", "cstdint", "new"))
"""The headers of Zephyr's minimal C++ library."""


def is_cpp(name: str) -> bool:
    """Whether a file of this name is a C++ source."""
    return name.endswith(CPP_SUFFIXES)
