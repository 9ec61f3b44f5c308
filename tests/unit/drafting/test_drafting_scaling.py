# SPDX-License-Identifier: Apache-2.0
"""The time for a draft is proportional to the size of its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opwest.diagnostics import Diagnostics
from opwest.drafting.files import Given, Unit
from opwest.drafting.from_source import from_source
from opwest.drafting.selection import select
from opwest.objects.csource import read_c_source
from opwest.objects.facts import CSource
from scaling import check_linear


def test_comments_and_structures_of_sources() -> None:
    def use(count: int) -> Callable[[], None]:
        text = "".join(
            f"struct s{n} {{ int a; }};\n/** Convolve.\n * @param x image {n}\n */\n"
            f"int f{n}(const struct s{n} *x, int *y) {{ return 0; }} int g{n}(const int *x, int *y) {{ return 0; }}\n"
            for n in range(count)
        )
        source = read_c_source(Path("f.c"), text.encode())

        def check() -> None:
            found = from_source(source)
            assert len(found) == 2 * count
            for n in (0, count - 1):
                first, second = (found[f"{name}{n}"].parameters[0] for name in "fg")
                assert (first.struct, first.comment) == (f"s{n}", f"image {n}")
                assert (second.struct, second.comment) == (None, f"image {n}")

        return check

    check_linear(use(100), use(800))


def test_selection_of_operators() -> None:
    """Neither the operators chosen before nor the undefined symbols of the file are searched for each operator."""

    def use(count: int) -> Callable[[], None]:
        source = CSource(Path("f.c"), b"", (), (), (), ())
        functions, needs = dict.fromkeys(f"f{n}" for n in range(count)), frozenset(f"u{n}" for n in range(count))
        one = Given("f.c", source, [Unit("f.c", functions, needs, certain_needs=False)])

        def check() -> None:
            assert len(select([one], (), (), Diagnostics()).operators) == count

        return check

    check_linear(use(500), use(4000))
