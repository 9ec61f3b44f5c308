# SPDX-License-Identifier: Apache-2.0
"""The cover of configurations is complete: each pair that some test supports, and each test."""

import cover
import pytest
from cover import Declaration, configured


def of(function: object) -> Declaration:
    found: Declaration = function.configurations  # type: ignore[attr-defined]
    return found


def test_every_pair_and_every_test_is_covered() -> None:
    declared = cover.declarations()
    rows = cover.cover(declared)
    assert rows.keys() == declared.keys() and all(rows.values())
    covered = frozenset().union(*(declared[name].pairs(row) for name in rows for row in rows[name]))
    possible = cover.possible(declared)
    assert covered >= possible
    assert all(set(rows[name]) <= set(declared[name].rows) for name in rows)
    # No list of a few values: the boards, back ends, conventions and versions of the matrix, in all pairs.
    matrix = declared["test_matrix_on_zephyr.test_cells"]
    assert possible >= frozenset().union(*map(matrix.pairs, matrix.rows))
    values = {value for pair in possible for value in pair}
    assert {("version", version) for version in cover.VERSIONS} <= values
    assert {("convention", name) for name in cover.CONVENTIONS} <= values
    assert len(possible) > 100


def test_the_cover_is_small() -> None:
    """The matrix covers what remains, with fewer images than a board and a version each."""
    declared = cover.declarations()
    rows = cover.cover(declared)
    more = {name: len(found) for name, found in rows.items() if len(found) > 1}
    # A board of one test only has its pairs in no other one.
    assert more.keys() == {"test_matrix_on_zephyr.test_cells", "test_written_code_on_zephyr.test_written_code"}
    assert sum(more.values()) <= 16


def test_campaigns_run_all_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = cover.declarations()
    monkeypatch.setenv("OPWEST_CAMPAIGN", "1")
    whole = cover.chosen.__wrapped__()
    assert {name: list(one.rows) for name, one in declared.items()} == whole


def test_greedy_choice() -> None:
    """The rows with new pairs first; what remains is left to the cheapest test."""

    @configured("board", ["a", "b"])
    def one() -> None: ...

    @configured("board, back_end, other", [("a", "c", 1), ("a", "llvm", 2), ("b", "llvm", 3)], cost=1)
    def two() -> None: ...

    @configured("version", ["3.7", "4.1"], board=("a", "b"))
    def three() -> None: ...

    @configured()
    def four() -> None: ...

    declared = {name: of(value) for name, value in {"1": one, "2": two, "3": three, "4": four}.items()}
    assert declared["4"].pairs(()) == frozenset()
    assert declared["3"].in_ci == [("4.1",)]
    assert cover.shown(min(declared["1"].pairs(("a",)))) == "back_end c, convention unpacked"
    rows = cover.cover(declared)
    assert rows == {"4": [()], "3": [("4.1",)], "1": [("a",)], "2": [("a", "llvm", 2), ("b", "llvm", 3)]}
    covered = frozenset().union(*(declared[name].pairs(row) for name in rows for row in rows[name]))
    assert covered == cover.possible(declared)
    lines = cover.table(declared, rows)
    assert lines[-1] == f"{len(covered)} of {len(covered)} pairs, in 5 configurations of 4 tests"
    assert not any("NONE" in line for line in lines)
    assert cover.table(declared, {"1": [("a",)]})[-1].startswith("6 of ")


def test_declarations_name_known_dimensions() -> None:
    with pytest.raises(AssertionError, match="boards"):
        configured(boards="a")
    with pytest.raises(AssertionError):
        configured("board", [])
