# SPDX-License-Identifier: Apache-2.0
"""The libraries that operators need: the C and C++ libraries, and those of TVM and Halide."""

from __future__ import annotations

from opwest.model.builds import CppNeeds
from opwest.model.files import Files
from opwest.objects.facts import CSource, Member
from opwest.objects.halide_symbols import PROVIDED as HALIDE_PROVIDED
from opwest.objects.providers import uses_libm
from opwest.objects.tvm_symbols import PROVIDED, tvm_functions


def needs_full_libc(files: Files) -> bool:
    """Return whether an operator uses libm, which Zephyr's minimal C library lacks."""
    return any(
        not {"math.h", "cmath"}.isdisjoint(item.includes)
        if isinstance(item, CSource)
        else any(map(uses_libm, item.undefined))
        for item in _linked(files)
    )


def cpp_needs(files: Files) -> CppNeeds:
    """Return what the C++ sources of operators need."""
    sources = [one.item for one in files.sources if isinstance(one.item, CSource) and one.item.language == "C++"]
    if not sources:
        return CppNeeds(False, False)
    from opwest.objects.cppsource import needs_library

    return CppNeeds(True, any(needs_library(source) for source in sources))


def needs_tvm(files: Files) -> bool:
    """Return whether an object or source calls functions of TVM's runtime."""
    return any(tvm_functions(item) & PROVIDED for item in _linked(files))


def needs_halide(files: Files) -> bool:
    """Return whether an object or source calls functions of Halide's runtime."""
    return any(
        not HALIDE_PROVIDED.isdisjoint(item.calls if isinstance(item, CSource) else item.undefined)
        for item in _linked(files)
    )


def _linked(files: Files) -> list[Member | CSource]:
    """Return the sources and linked objects, without the archive members that no operator needs."""
    objects = [one.item for linkables in files.targets.values() for one in linkables if one.examined.linked]
    return [*objects, *(one.item for one in files.sources)]
