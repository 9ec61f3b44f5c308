# SPDX-License-Identifier: Apache-2.0
"""The cover of configurations is complete: each pair that some test supports, and each test."""

import cover


def test_every_pair_and_every_test_is_covered():
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


def test_the_cover_is_small():
    """The matrix covers what remains, with fewer images than a board and a version each."""
    declared = cover.declarations()
    rows = cover.cover(declared)
    more = {name: len(found) for name, found in rows.items() if len(found) > 1}
    # A board of one test only has its pairs in no other one.
    assert more.keys() == {"test_matrix_on_zephyr.test_cells", "test_bundles_llext_on_zephyr.test_written_code"}
    assert sum(more.values()) <= 16


def test_campaigns_run_all_configurations(monkeypatch):
    declared = cover.declarations()
    monkeypatch.setenv("OPWEST_CAMPAIGN", "1")
    whole = cover.chosen.__wrapped__()
    assert {name: list(one.rows) for name, one in declared.items()} == whole
